/* Cards that wait for an admin, and what admins and users say of cards. */
#include "test/lib/control.h"
#include "test/lib/registry_stage.h"

static void open_reviewed(struct stage *s)
{
    stage_open(s);
    registry_set_review(s->r, true);
}

static const struct agent *find(struct stage *s, const struct caller *c,
                                const char *name)
{
    return stage_find(s, c, name);
}

static enum err judge_at(struct stage *s, const struct caller *c,
                         const char *name, enum review_verdict verdict,
                         const char *reason, int64_t revision)
{
    struct registry_by by = stage_by(s, c);
    struct registry_change change;
    enum err e;

    by.if_revision = revision;
    s->problems.n = 0;
    registry_change_init(&change);
    e = registry_judge(s->r, &change, str_of(name), verdict, str_of(reason),
                       &by, &s->why);
    return stage_commit(s, &change, e);
}

/* By an admin who has read the card as it is now. */
static enum err judge(struct stage *s, const char *name,
                      enum review_verdict verdict, const char *reason)
{
    const struct agent *a = find(s, &stage_admin, name);

    return judge_at(s, &stage_admin, name, verdict, reason,
                    a ? a->revision : 1);
}

static enum err report(struct stage *s, const struct caller *c,
                       const char *name, const char *reason)
{
    struct registry_by by = stage_by(s, c);
    struct registry_change change;
    enum err e;

    s->problems.n = 0;
    registry_change_init(&change);
    e = registry_report(s->r, &change, str_of(name), str_of(reason), &by,
                        &s->why);
    return stage_commit(s, &change, e);
}

static enum err dismiss(struct stage *s, const struct caller *c,
                        const char *name)
{
    struct registry_by by = stage_by(s, c);
    struct registry_change change;
    enum err e;

    s->problems.n = 0;
    registry_change_init(&change);
    e = registry_dismiss_reports(s->r, &change, str_of(name), &by, &s->why);
    return stage_commit(s, &change, e);
}

/* The view of others: nothing, or a description. */
static void expect_serves(struct stage *s, const char *name,
                          const char *description)
{
    const struct agent *a = find(s, &stage_carl, name);

    CHECK(!a == !description);
    if (a)
        CHECK_STR(a->description, description);
}

static void expect_review(struct stage *s, const char *name,
                          enum review_state state, const char *description)
{
    const struct agent *a = find(s, &stage_admin, name);

    CHECK(a && a->review && a->review->state == state);
    CHECK_STR(a->review->wanted->description, description);
}

static bool has_review(struct stage *s, const char *name)
{
    return find(s, &stage_admin, name)->review != NULL;
}

#define PUBLIC(text) \
    "{\"name\":\"z\",\"visibility\":\"public\",\"description\":\"" text "\"}"

TEST(a_public_card_of_a_user_waits_for_an_admin)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    expect_serves(&s, "z", NULL);
    expect_review(&s, "z", REVIEW_WAITING, "one");
    CHECK_STR(find(&s, &stage_anna, "z")->description, "one");
    stage_restart(&s, false);
    registry_set_review(s.r, true);
    expect_review(&s, "z", REVIEW_WAITING, "one");
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    expect_serves(&s, "z", "one");
    CHECK(!has_review(&s, "z"));
    stage_restart(&s, true);
    expect_serves(&s, "z", "one");
    stage_close(&s);
}

static void wait_in_vain(void)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    expect_serves(&s, "z", NULL);
    stage_close(&s);
}

TEST(control_a_card_that_nobody_reviewed_is_noticed)
{
    check_control("registry.no_review", wait_in_vain);
}

TEST(a_changed_card_waits_while_the_approved_one_serves)
{
    struct stage s;
    int64_t updated_ms;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    updated_ms = find(&s, &stage_carl, "z")->updated_ms;
    s.now_ms += 1000;
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    expect_serves(&s, "z", "one");
    CHECK(find(&s, &stage_carl, "z")->updated_ms == updated_ms);
    expect_review(&s, "z", REVIEW_WAITING, "two");
    stage_restart(&s, false);
    registry_set_review(s.r, true);
    /* A patch goes on from what is wanted, or it would undo that. */
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"title\":\"T\"}") == OK);
    expect_review(&s, "z", REVIEW_WAITING, "two");
    CHECK_STR(find(&s, &stage_admin, "z")->review->wanted->title, "T");
    expect_serves(&s, "z", "one");
    /* The same again changes nothing. */
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"title\":\"T\"}") == OK);
    CHECK(s.is_same);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    expect_serves(&s, "z", "two");
    CHECK_STR(find(&s, &stage_carl, "z")->title, "T");
    stage_close(&s);
}

TEST(what_serves_written_again_takes_the_wish_back)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    CHECK(has_review(&s, "z"));
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(!has_review(&s, "z"));
    expect_serves(&s, "z", "one");
    stage_close(&s);
}

TEST(a_card_that_is_not_public_does_not_wait)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"visibility\":\"shared\"}") == OK);
    CHECK(!has_review(&s, "z") && find(&s, &stage_bob, "z"));
    /* Nor does it lose who sees it when it wants to be public. */
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK_STR(find(&s, &stage_bob, "z")->description, "one");
    expect_serves(&s, "z", NULL);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"visibility\":\"private\"}") ==
          OK);
    CHECK(!has_review(&s, "z"));
    expect_serves(&s, "z", NULL);
    CHECK_STR(find(&s, &stage_anna, "z")->description, "two");
    stage_close(&s);
}

TEST(a_rejected_card_waits_again_when_it_says_something_else)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    CHECK(judge(&s, "z", REVIEW_REJECT, "promises too much") == OK);
    expect_serves(&s, "z", "one");
    expect_review(&s, "z", REVIEW_REJECTED, "two");
    CHECK_STR(find(&s, &stage_anna, "z")->review->reason, "promises too much");
    CHECK_STR(find(&s, &stage_anna, "z")->review->by, "admin");
    stage_restart(&s, false);
    registry_set_review(s.r, true);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    CHECK(s.is_same);
    expect_review(&s, "z", REVIEW_REJECTED, "two");
    CHECK(judge(&s, "z", REVIEW_REJECT, "") == ERR_PRECONDITION);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("three")) == OK);
    expect_review(&s, "z", REVIEW_WAITING, "three");
    CHECK_STR(find(&s, &stage_anna, "z")->review->reason, "");
    /* An admin may think better of it, too. */
    CHECK(judge(&s, "z", REVIEW_REJECT, "no") == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    expect_serves(&s, "z", "three");
    stage_close(&s);
}

TEST(an_admin_approves_what_they_have_read)
{
    struct stage s;
    int64_t read;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("good")) == OK);
    read = find(&s, &stage_admin, "z")->revision;
    CHECK(stage_put(&s, &stage_anna, PUBLIC("evil")) == OK);
    CHECK(judge_at(&s, &stage_admin, "z", REVIEW_APPROVE, "", read) ==
          ERR_PRECONDITION);
    CHECK(judge_at(&s, &stage_admin, "z", REVIEW_APPROVE, "", 0) ==
          ERR_BAD_REQUEST);
    CHECK(strstr(s.why.text, "revision"));
    expect_serves(&s, "z", NULL);
    CHECK(judge(&s, "missing", REVIEW_APPROVE, "") == ERR_NOT_FOUND);
    CHECK(judge_at(&s, &stage_anna, "z", REVIEW_APPROVE, "", read + 1) ==
          ERR_NOT_ALLOWED);
    CHECK(judge_at(&s, &stage_anna, "z", REVIEW_HIDE, "", 0) ==
          ERR_NOT_ALLOWED);
    expect_serves(&s, "z", NULL);
    stage_close(&s);
}

TEST(without_the_setting_nothing_waits_and_what_is_public_stays)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    expect_serves(&s, "z", "one");
    registry_set_review(s.r, true);
    expect_serves(&s, "z", "one");
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    expect_serves(&s, "z", "one");
    registry_set_review(s.r, false);
    expect_serves(&s, "z", "one"); /* not approved */
    CHECK(stage_put(&s, &stage_anna, PUBLIC("three")) == OK);
    expect_serves(&s, "z", "three");
    CHECK(!has_review(&s, "z"));
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == ERR_PRECONDITION);
    stage_close(&s);
}

TEST(admins_and_the_configuration_do_not_wait)
{
    struct stage s;
    const struct agent configured = {
        .name = STR("c"), .url = STR("echo:"), .description = STR("d")};

    open_reviewed(&s);
    CHECK(stage_configure(&s, &configured, 1) == OK);
    CHECK(find(&s, &stage_carl, "c"));
    CHECK(judge(&s, "c", REVIEW_HIDE, "") == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "configuration"));
    CHECK(stage_put(&s, &stage_admin, PUBLIC("one")) == OK);
    expect_serves(&s, "z", "one");
    /* An admin's change of a user's agent also applies to the waiting card. */
    CHECK(stage_remove(&s, &stage_admin, "z") == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(stage_patch(&s, &stage_admin, "z", "{\"title\":\"T\"}") == OK);
    expect_serves(&s, "z", NULL);
    expect_review(&s, "z", REVIEW_WAITING, "one");
    /* Only an approval, of what was read, shows it to others. */
    CHECK(stage_patch(&s, &stage_admin, "z", "{\"visibility\":\"public\"}") ==
          ERR_PRECONDITION);
    CHECK(strstr(s.why.text, "/api/agents/z/approve"));
    expect_serves(&s, "z", NULL);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    expect_serves(&s, "z", "one");
    CHECK_STR(find(&s, &stage_carl, "z")->title, "T"); /* nor undoes that */
    stage_close(&s);
}

/* Fields that an admin removed, of an agent in each state of review. */
static void take_command_away(enum review_state state)
{
    const struct agent *a;
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_patch(&s, &stage_admin, "z",
                      "{\"restart\":{\"command\":[\"evil\"]},\"url\":"
                      "\"process:shell\"}") == OK);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"visibility\":\"public\","
                    "\"description\":\"two\",\"restart\":{\"command\":"
                    "[\"evil\"]},\"url\":\"process:shell\"}") == OK);
    if (state == REVIEW_REJECTED)
        CHECK(judge(&s, "z", REVIEW_REJECT, "") == OK);
    if (state == REVIEW_HIDDEN)
        CHECK(judge(&s, "z", REVIEW_HIDE, "") == OK);
    expect_review(&s, "z", state, "two");
    CHECK(stage_patch(&s, &stage_admin, "z",
                      "{\"restart\":null,\"url\":\"echo:\"}") == OK);
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"visibility\":\"private\"}") ==
          OK);
    a = find(&s, &stage_anna, "z");
    CHECK(!a->restart.n);
    CHECK_STR(a->url, "echo:");
    if (a->review)
        CHECK(!a->review->wanted->restart.n);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"restart\":{\"command\":"
                    "[\"evil\"]}}") == ERR_NOT_ALLOWED);
    stage_close(&s);
}

TEST(a_wish_brings_back_no_program_that_an_admin_took_away)
{
    take_command_away(REVIEW_WAITING);
    take_command_away(REVIEW_REJECTED);
    take_command_away(REVIEW_HIDDEN);
}

TEST(what_an_admin_changes_an_approval_does_not_undo)
{
    const struct agent *a;
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"visibility\":\"public\","
                    "\"description\":\"one\",\"version\":\"1\"}") == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"description\":\"two\"}") == OK);
    CHECK(stage_patch(&s, &stage_admin, "z",
                      "{\"title\":\"T\",\"version\":null,\"delegation\":"
                      "{\"allowAgents\":[]}}") == OK);
    expect_serves(&s, "z", "one");
    expect_review(&s, "z", REVIEW_WAITING, "two");
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    a = find(&s, &stage_carl, "z");
    CHECK_STR(a->description, "two");
    CHECK_STR(a->title, "T");
    CHECK(!a->version.n && a->delegation.is_limited);
    /* An admin who writes what is wanted has decided. */
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"description\":\"three\"}") ==
          OK);
    CHECK(stage_patch(&s, &stage_admin, "z", "{\"description\":\"three\"}") ==
          OK);
    expect_serves(&s, "z", "three");
    CHECK(!has_review(&s, "z"));
    stage_close(&s);
}

TEST(a_new_creator_has_no_wish_of_the_one_before)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("evil")) == OK);
    CHECK(stage_patch(&s, &stage_admin, "z", "{\"creator_id\":\"carl\"}") ==
          OK);
    CHECK(!has_review(&s, "z"));
    CHECK(stage_patch(&s, &stage_carl, "z", "{\"visibility\":\"private\"}") ==
          OK);
    CHECK_STR(find(&s, &stage_carl, "z")->description, "one");
    stage_close(&s);
}

TEST(a_rejected_card_does_not_come_back_with_the_setting_off)
{
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("evil")) == OK);
    CHECK(judge(&s, "z", REVIEW_REJECT, "") == OK);
    registry_set_review(s.r, false);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("evil")) == OK && s.is_same);
    expect_serves(&s, "z", NULL);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("good")) == OK);
    expect_serves(&s, "z", "good");
    stage_close(&s);
}

TEST(who_changes_an_agent_without_end_does_not_keep_admins_from_it)
{
    struct registry_change first;
    struct registry_by by;
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    by = stage_by(&s, &stage_anna);
    CHECK(stage_begin_put(&s, &first, "", PUBLIC("two"), &by) == OK);
    CHECK(judge(&s, "z", REVIEW_HIDE, "") == ERR_BUSY);
    CHECK(stage_commit(&s, &first, OK) == OK);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("three")) == ERR_BUSY);
    CHECK(judge(&s, "z", REVIEW_HIDE, "") == OK);
    s.now_ms += 5000; /* and not for ever */
    CHECK(stage_put(&s, &stage_anna, PUBLIC("three")) == OK);
    expect_serves(&s, "z", NULL);
    stage_close(&s);
}

TEST(a_hidden_agent_stays_hidden_whatever_its_creator_writes)
{
    struct stage s;

    stage_open(&s); /* without the setting */
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_HIDE, "asks for passwords") == OK);
    expect_serves(&s, "z", NULL);
    CHECK_STR(find(&s, &stage_anna, "z")->review->reason, "asks for passwords");
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    expect_serves(&s, "z", NULL);
    expect_review(&s, "z", REVIEW_HIDDEN, "two");
    CHECK_STR(find(&s, &stage_anna, "z")->description, "two");
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"visibility\":\"private\"}") ==
          OK);
    CHECK(stage_patch(&s, &stage_anna, "z", "{\"visibility\":\"public\"}") ==
          OK);
    stage_restart(&s, false);
    expect_serves(&s, "z", NULL);
    expect_review(&s, "z", REVIEW_HIDDEN, "two");
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    expect_serves(&s, "z", "two");
    CHECK(!has_review(&s, "z"));
    stage_close(&s);
}

TEST(what_waits_counts_for_its_creator)
{
    struct registry_limits limits = {.max_agents = 10, .max_skills = 10};
    struct stage s;

    open_reviewed(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    limits.max_bytes_per_user = 150;
    registry_set_limits(s.r, &limits);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == ERR_LIMIT);
    limits.max_bytes_per_user = 1000;
    registry_set_limits(s.r, &limits);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    limits.max_bytes_per_user = 200;
    stage_restart(&s, false);
    registry_set_limits(s.r, &limits);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"y\"}") == ERR_LIMIT);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"y\"}") == OK);
    stage_close(&s);
}

TEST(credentials_of_a_card_that_waits_are_sealed_and_kept)
{
    static struct seal_key key;
    struct stage s;
    struct query q;
    const struct agent *a;

    CHECK(seal_key_read(STR("00112233445566778899aabbccddeeff"
                            "00112233445566778899aabbccddeeff"),
                        &key) == OK);
    stage_prepare(&s);
    s.opts.seal = &key;
    s.opts.seal_from = "/etc/key";
    CHECK(stage_start(&s) == OK);
    registry_set_review(s.r, true);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"visibility\":\"public\","
                    "\"authentication\":{\"schemes\":[\"bearer\"],"
                    "\"credentials\":\"s3cret\"}}") == OK);
    /* As it is read back, which stands for those that are set. */
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"z\",\"title\":\"T\",\"authentication\":"
                    "{\"schemes\":[\"bearer\"],\"credentials\":\"" CARD_IS_SET
                    "\"}}") == OK);
    query_init(&q, &review_table, 1);
    CHECK(store_look(s.store, &q) == OK && q.rows);
    CHECK(str_find(row_str(q.rows, REVIEW_CARD), '\n', 0) <
          row_str(q.rows, REVIEW_CARD).n);
    CHECK(!memmem(row_str(q.rows, REVIEW_CARD).p,
                  row_str(q.rows, REVIEW_CARD).n, "s3cret", 6));
    query_fini(&q);
    stage_restart(&s, false);
    registry_set_review(s.r, true);
    a = find(&s, &stage_anna, "z");
    CHECK(a->review && a->review->wanted->visibility == VISIBILITY_PUBLIC);
    CHECK(memmem(a->review->wanted->authentication.p,
                 a->review->wanted->authentication.n, "s3cret", 6));
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    stage_close(&s);
}

TEST(users_report_what_they_see_and_admins_read_it)
{
    struct stage s;
    struct registry_report list[REPORTS_PER_AGENT];
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, PUBLIC("one")) == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"p\"}") == OK);
    CHECK(report(&s, &stage_carl, "p", "private") == ERR_NOT_FOUND);
    CHECK(report(&s, &stage_anna, "z", "mine") == ERR_BAD_REQUEST);
    CHECK(report(&s, &stage_carl, "z", "") == ERR_BAD_REQUEST);
    CHECK(report(&s, &stage_carl, "z", "lies") == OK);
    CHECK(report(&s, &stage_bob, "z", "lies too") == OK);
    CHECK(report(&s, &stage_carl, "z", "lies") == OK && s.is_same);
    CHECK(report(&s, &stage_carl, "z", "  ") == ERR_BAD_REQUEST);
    CHECK(report(&s, &stage_carl, "z", "still lies") == OK);
    stage_restart(&s, false);
    a = find(&s, &stage_admin, "z");
    CHECK(registry_n_reports(s.r, a) == 2);
    CHECK(registry_reports(s.r, a, list, REPORTS_PER_AGENT) == 2);
    CHECK_STR(list[0].user, "bob");
    CHECK_STR(list[1].reason, "still lies");
    /* A change of the card leaves them. */
    CHECK(stage_put(&s, &stage_anna, PUBLIC("two")) == OK);
    a = find(&s, &stage_admin, "z");
    CHECK(registry_n_reports(s.r, a) == 2);
    CHECK(dismiss(&s, &stage_anna, "z") == ERR_NOT_ALLOWED);
    CHECK(dismiss(&s, &stage_admin, "z") == OK);
    CHECK(dismiss(&s, &stage_admin, "z") == ERR_PRECONDITION);
    CHECK(registry_n_reports(s.r, find(&s, &stage_admin, "z")) == 0);
    /* An admin who hides an agent has read its reports; they go with it. */
    CHECK(report(&s, &stage_carl, "z", "lies") == OK);
    CHECK(judge(&s, "z", REVIEW_HIDE, "lies") == OK);
    CHECK(registry_n_reports(s.r, find(&s, &stage_admin, "z")) == 0);
    CHECK(judge(&s, "z", REVIEW_APPROVE, "") == OK);
    CHECK(report(&s, &stage_carl, "z", "lies") == OK);
    CHECK(stage_remove(&s, &stage_anna, "z") == OK);
    CHECK(registry_stats(s.r).reports == 0);
    stage_restart(&s, false);
    stage_close(&s);
}

static void put_public(struct stage *s, int i)
{
    char card[96];

    snprintf(card, sizeof(card), "{\"name\":\"a%d\",\"visibility\":\"public\"}",
             i);
    CHECK(stage_put(s, &stage_anna, card) == OK);
}

TEST(there_are_so_many_reports_and_no_more)
{
    struct stage s;
    struct caller user = stage_carl;
    char name[16];

    stage_open(&s);
    for (int i = 0; i <= REPORTS_PER_USER; i++)
        put_public(&s, i);
    for (int i = 0; i < REPORTS_PER_USER; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        CHECK(report(&s, &stage_carl, name, "bad") == OK);
    }
    CHECK(report(&s, &stage_carl, "a100", "bad") == ERR_LIMIT);
    CHECK(strstr(s.why.text, "100 of your reports"));
    CHECK(report(&s, &stage_carl, "a0", "worse") == OK); /* no further one */
    for (int i = 1; i < REPORTS_PER_AGENT; i++) {
        snprintf(user.principal, sizeof(user.principal), "u%d", i);
        CHECK(report(&s, &user, "a0", "bad") == OK);
    }
    CHECK(report(&s, &stage_bob, "a0", "bad") == ERR_LIMIT);
    stage_restart(&s, false);
    CHECK(report(&s, &stage_bob, "a0", "bad") == ERR_LIMIT);
    CHECK(dismiss(&s, &stage_admin, "a0") == OK);
    CHECK(report(&s, &stage_bob, "a0", "bad") == OK);
    CHECK(report(&s, &stage_carl, "a100", "bad") == OK);
    stage_close(&s);
}

TEST(no_fault_leaves_half_a_review)
{
    static const char *const cards[] = {PUBLIC("one"), PUBLIC("two")};
    struct stage s;
    long nth = 0;
    bool has_fired;

    do {
        enum err e[5];

        open_reviewed(&s);
        CHECK(stage_put(&s, &stage_anna, "{\"name\":\"y\"}") == OK);
        fault_arm(++nth);
        e[0] = stage_put(&s, &stage_anna, cards[0]);
        e[1] = judge(&s, "z", REVIEW_APPROVE, "");
        e[2] = stage_put(&s, &stage_anna, cards[1]);
        e[3] = report(&s, &stage_carl, "z", "bad");
        e[4] = judge(&s, "z", REVIEW_HIDE, "bad");
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired || !(e[0] || e[1] || e[2] || e[3] || e[4]));
        stage_restart(&s, false); /* feed and state agree */
        stage_close(&s);
    } while (has_fired);
    CHECK(nth > 10);
}
