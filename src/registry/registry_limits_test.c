/* Limits: of all agents, and of one user. */
#include "test/lib/control.h"
#include "test/lib/registry_stage.h"

static enum err put_nth(struct stage *s, const struct caller *c, int i,
                        int n_skills)
{
    char card[2048];
    int n = snprintf(card, sizeof(card), "{\"name\":\"a%d\",\"skills\":[", i);

    for (int k = 0; k < n_skills; k++)
        n += snprintf(card + n, sizeof(card) - (size_t)n,
                      "%s{\"id\":\"s%d\",\"name\":\"s\"}", k ? "," : "", k);
    snprintf(card + n, sizeof(card) - (size_t)n, "]}");
    return stage_put(s, c, card);
}

TEST(there_is_a_limit_to_agents_skills_and_those_of_one_user)
{
    struct stage s;
    const struct agent configured = {.name = STR("c"), .url = STR("echo:")};

    stage_prepare(&s);
    s.opts.limits = (struct registry_limits){
        .max_agents = 5, .max_skills = 10, .max_agents_per_user = 2};
    CHECK(stage_start(&s) == OK);
    CHECK(stage_configure(&s, &configured, 1) == OK);
    CHECK(put_nth(&s, &stage_anna, 1, 4) == OK);
    CHECK(put_nth(&s, &stage_anna, 2, 4) == OK);
    CHECK(put_nth(&s, &stage_anna, 3, 1) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "maxAgentsPerUser"));
    CHECK(put_nth(&s, &stage_anna, 2, 5) ==
          OK); /* no more agents than before */
    CHECK(put_nth(&s, &stage_bob, 3, 2) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "maxSkills"));
    CHECK(put_nth(&s, &stage_bob, 3, 1) == OK);
    CHECK(put_nth(&s, &stage_admin, 4, 0) == OK);
    CHECK(put_nth(&s, &stage_admin, 5, 0) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "maxAgents)"));
    /* Given to a user, it counts for that user. */
    CHECK(stage_patch(&s, &stage_admin, "a3", "{\"creator_id\":\"anna\"}") ==
          OK);
    CHECK(stage_remove(&s, &stage_anna, "a1") == OK);
    CHECK(put_nth(&s, &stage_anna, 1, 0) == ERR_LIMIT);
    CHECK(put_nth(&s, &stage_bob, 1, 0) == OK);
    stage_restart(&s, false);
    CHECK(stage_remove(&s, &stage_bob, "a1") == OK);
    CHECK(put_nth(&s, &stage_anna, 1, 0) == ERR_LIMIT);
    registry_set_limits(
        s.r, &(struct registry_limits){
                 .max_agents = 5, .max_skills = 10, .max_agents_per_user = 0});
    CHECK(put_nth(&s, &stage_anna, 1, 0) == OK);
    stage_close(&s);
}

/* A card whose stored form is as long as that of any other with this n. */
static enum err put_long(struct stage *s, const struct caller *c,
                         const char *name, int n)
{
    char card[4096];

    snprintf(card, sizeof(card), "{\"name\":\"%s\",\"description\":\"%0*d\"}",
             name, n, 0);
    return stage_put(s, c, card);
}

static size_t stored_bytes(struct stage *s, const char *name)
{
    struct query q;
    size_t n;

    query_init(&q, &agent_table, 1);
    query_if(&q, AGENT_KEY, IS, value_text(str_of(name)));
    CHECK(store_look(s->store, &q) == OK && q.rows);
    n = row_str(q.rows, AGENT_CARD).n;
    query_fini(&q);
    return n;
}

TEST(there_is_a_limit_to_the_bytes_of_one_users_cards)
{
    struct registry_limits limits = {.max_agents = 100, .max_skills = 100};
    struct registry_change first;
    struct registry_by by;
    struct stage s;
    size_t own;

    stage_open(&s);
    CHECK(put_long(&s, &stage_anna, "a1", 100) == OK);
    own = stored_bytes(&s, "a1") - 100; /* of another card */
    limits.max_bytes_per_user = 3 * own + 1000;
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_anna, "a2", 400) == OK);
    CHECK(put_long(&s, &stage_anna, "a3", 501) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "maxCardBytesPerUser"));
    CHECK(put_long(&s, &stage_anna, "a3", 500) == OK);
    CHECK(put_long(&s, &stage_bob, "b1", 1000) == OK);
    CHECK(put_long(&s, &stage_admin, "c1", 3000) == OK);
    /* One that takes another's place counts by what it has more. */
    CHECK(put_long(&s, &stage_anna, "a1", 101) == ERR_LIMIT);
    CHECK(put_long(&s, &stage_anna, "a1", 50) == OK);
    CHECK(put_long(&s, &stage_anna, "a2", 451) == ERR_LIMIT);
    CHECK(put_long(&s, &stage_anna, "a2", 450) == OK);
    stage_restart(&s, false);
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_anna, "a2", 451) == ERR_LIMIT);
    CHECK(stage_remove(&s, &stage_anna, "a3") == OK);
    /* Pending cards count, and no longer once rejected. */
    by = stage_by(&s, &stage_anna);
    CHECK(stage_begin_put(&s, &first, "", "{\"name\":\"a4\"}", &by) == OK);
    CHECK(put_long(&s, &stage_anna, "a2", 950) == ERR_LIMIT);
    CHECK(registry_settle(s.r, &first, &s.why) != OK);
    registry_change_fini(&first);
    CHECK(put_long(&s, &stage_anna, "a2", 950) == OK);
    /* Beyond a limit that was lowered a card may still be shortened. */
    limits.max_bytes_per_user = 10;
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_anna, "a2", 949) == OK);
    /* An admin may give them more than they might take. */
    CHECK(stage_patch(&s, &stage_admin, "c1", "{\"creator_id\":\"Anna\"}") ==
          OK);
    CHECK(stage_patch(&s, &stage_admin, "c1", "{\"creator_id\":\"bob\"}") ==
          OK);
    stage_close(&s);
}

/* Whatever the case an admin wrote them in, it is the same user. */
TEST(a_creator_in_another_case_is_the_same)
{
    struct registry_limits limits = {
        .max_agents = 5, .max_skills = 10, .max_agents_per_user = 1};
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK(stage_put(&s, &stage_admin,
                    "{\"name\":\"x\",\"creator_id\":\"ANNA\","
                    "\"visibility\":\"shared\"}") == OK);
    CHECK_STR(stage_find(&s, NULL, "x")->org, "acme");
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"y\"}") == ERR_LIMIT);
    s.orgs[0].org = "zeta";
    registry_user_moved(s.r, STR("anna"));
    CHECK_STR(stage_find(&s, NULL, "x")->org, "zeta");
    CHECK(stage_find(&s, &stage_carl, "x"));
    stage_check(&s);
    stage_close(&s);
}

TEST(what_is_on_its_way_counts)
{
    struct stage s;
    struct registry_by by;
    struct registry_change first;

    stage_prepare(&s);
    s.opts.limits = (struct registry_limits){
        .max_agents = 2, .max_skills = 3, .max_agents_per_user = 1};
    CHECK(stage_start(&s) == OK);
    by = stage_by(&s, &stage_anna);
    CHECK(stage_begin_put(&s, &first, "",
                          "{\"name\":\"x\",\"skills\":[{\"id\":\"1\",\"name\":"
                          "\"1\"},{\"id\":\"2\",\"name\":\"2\"}]}",
                          &by) == OK);
    CHECK(put_nth(&s, &stage_anna, 1, 0) == ERR_LIMIT);
    CHECK(put_nth(&s, &stage_bob, 1, 2) == ERR_LIMIT);
    CHECK(put_nth(&s, &stage_bob, 1, 1) == OK);
    CHECK(put_nth(&s, &stage_carl, 2, 0) == ERR_LIMIT);
    CHECK(registry_settle(s.r, &first, &s.why) != OK);
    registry_change_fini(&first);
    CHECK(put_nth(&s, &stage_anna, 2, 2) == OK);
    stage_close(&s);
}

/* n cards of so many skills each; how many were taken. */
static int put_many(struct stage *s, const struct caller *c, int from, int n,
                    int n_skills)
{
    int taken = 0;

    for (int i = from; i < from + n; i++)
        taken += put_nth(s, c, i, n_skills) == OK;
    return taken;
}

TEST(there_is_a_limit_to_the_skills_of_one_user)
{
    struct registry_limits limits = {
        .max_agents = 100, .max_skills = 1000, .max_skills_per_user = 10};
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK_INT(put_many(&s, &stage_anna, 0, 5, 4), 2);
    CHECK(strstr(s.why.text, "10 skills (registry.maxSkillsPerUser)"));
    CHECK(put_nth(&s, &stage_anna, 2, 2) == OK); /* at the limit */
    CHECK(put_nth(&s, &stage_anna, 3, 0) == OK); /* needs none */
    CHECK(put_nth(&s, &stage_anna, 2, 3) == ERR_LIMIT);
    CHECK(put_nth(&s, &stage_anna, 2, 1) == OK);
    CHECK(put_nth(&s, &stage_anna, 1, 5) == OK);
    CHECK(put_nth(&s, &stage_bob, 5, 10) == OK);
    CHECK(put_nth(&s, &stage_admin, 6, 20) == OK);
    stage_restart(&s, false);
    registry_set_limits(s.r, &limits);
    CHECK(put_nth(&s, &stage_anna, 7, 1) == ERR_LIMIT);
    CHECK(stage_remove(&s, &stage_anna, "a1") == OK);
    CHECK(put_nth(&s, &stage_anna, 7, 5) == OK);
    stage_check(&s);
    stage_close(&s);
}

static int skills_of_two_strangers(void)
{
    struct registry_limits limits = {
        .max_agents = 1000, .max_skills = 2000, .max_skills_per_user = 100};
    struct stage s;
    int n;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    n = put_many(&s, &stage_anna, 0, 100, 20);
    n += put_many(&s, &stage_carl, 100, 100, 20);
    stage_close(&s);
    return 20 * n;
}

TEST(two_users_cannot_fill_the_index)
{
    CHECK_INT(skills_of_two_strangers(), 200);
}

TEST(the_test_above_would_notice_that_nobody_counts)
{
    fault_arm_at("registry.no_shares", 1);
    CHECK_INT(skills_of_two_strangers(), 2000);
}

/* The words of an agent stand in each of its skills: a long description costs
 * as often as it has skills. */
TEST(there_is_a_limit_to_what_one_user_takes_of_the_index)
{
    struct registry_limits limits = {.max_agents = 100,
                                     .max_skills = 1000,
                                     .max_index_bytes_per_user = 4000};
    char card[4096];
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_anna, "long", 1000) == OK);
    snprintf(card, sizeof(card),
             "{\"name\":\"wide\",\"description\":\"%0*d\",\"skills\":["
             "{\"id\":\"1\",\"name\":\"1\"},"
             "{\"id\":\"2\",\"name\":\"2\"}]}",
             1000, 0);
    CHECK(stage_put(&s, &stage_anna, card) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "4000 bytes of the index"));
    CHECK(strstr(s.why.text, "maxIndexBytesPerUser"));
    CHECK(stage_put(&s, &stage_bob, card) == OK);
    stage_check(&s);
    stage_close(&s);
}

/* anna and bob are of one org, carl of another. */
TEST(there_are_limits_for_the_users_of_one_org_together)
{
    struct registry_limits limits = {.max_agents = 100,
                                     .max_skills = 1000,
                                     .max_agents_per_org = 3,
                                     .max_skills_per_org = 10};
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK(put_nth(&s, &stage_anna, 1, 6) == OK);
    CHECK(put_nth(&s, &stage_bob, 2, 5) == ERR_LIMIT);
    CHECK(strstr(s.why.text,
                 "the users of one org together may have at most 10 skills "
                 "(registry.maxSkillsPerOrg)"));
    CHECK(put_nth(&s, &stage_bob, 2, 4) == OK);
    CHECK(put_nth(&s, &stage_carl, 3, 5) == OK);
    CHECK(put_nth(&s, &stage_anna, 4, 0) == OK);
    CHECK(put_nth(&s, &stage_bob, 5, 0) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "registry.maxAgentsPerOrg"));
    /* One that takes another's place counts by what it has more. */
    CHECK(put_nth(&s, &stage_anna, 1, 7) == ERR_LIMIT);
    CHECK(put_nth(&s, &stage_anna, 1, 5) == OK);
    CHECK(put_nth(&s, &stage_bob, 2, 5) == OK);
    stage_check(&s);
    /* The holdings of a user move with the user into another org. */
    s.orgs[0].org = "zeta";
    registry_user_moved(s.r, STR("anna"));
    stage_check(&s);
    CHECK(put_nth(&s, &stage_bob, 5, 5) == OK);
    CHECK(put_nth(&s, &stage_carl, 6, 0) == ERR_LIMIT);
    stage_restart(&s, false);
    registry_set_limits(s.r, &limits);
    stage_check(&s);
    CHECK(put_nth(&s, &stage_bob, 6, 1) == ERR_LIMIT);
    stage_close(&s);
}

TEST(bytes_of_an_org_are_counted_too)
{
    struct registry_limits limits = {.max_agents = 100,
                                     .max_skills = 1000,
                                     .max_bytes_per_org = 1500,
                                     .max_index_bytes_per_org = 1300};
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_anna, "a1", 500) == OK);
    CHECK(put_long(&s, &stage_bob, "b1", 1000) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "registry.maxCardBytesPerOrg"));
    limits.max_bytes_per_org = 0;
    registry_set_limits(s.r, &limits);
    CHECK(put_long(&s, &stage_bob, "b1", 1000) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "registry.maxIndexBytesPerOrg"));
    CHECK(put_long(&s, &stage_carl, "c1", 1000) == OK);
    CHECK(put_long(&s, &stage_bob, "b1", 100) == OK);
    stage_close(&s);
}

/* anna changes one card all the time, for a minute; how often that was taken,
 * and bob's own meanwhile. */
static int changes_of_one_minute(bool *has_bob)
{
    struct registry_limits limits = {
        .max_agents = 100, .max_skills = 1000, .skills_per_minute = 60};
    struct stage s;
    int64_t begun_ms;
    int n = 0;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    begun_ms = s.now_ms;
    for (int i = 0; i < 60; i++) {
        s.now_ms = begun_ms + 1000 * i; /* each call takes a while, too */
        n += put_nth(&s, &stage_anna, 1, n % 2 ? 9 : 8) == OK;
    }
    *has_bob = put_nth(&s, &stage_bob, 2, 20) == OK;
    stage_check(&s);
    stage_close(&s);
    return n;
}

/* 120 at once and 60 in the minute, and each is nine or ten. */
TEST(changes_of_one_user_have_a_rate_that_counts_skills)
{
    bool has_bob;
    int n = changes_of_one_minute(&has_bob);

    CHECK(has_bob);
    CHECK_INT(n, 18);
}

TEST(control_changes_without_a_rate_are_noticed)
{
    bool has_bob;

    fault_arm_at("registry.no_pace", 1);
    CHECK_INT(changes_of_one_minute(&has_bob), 60);
}

TEST(what_is_refused_counts_and_what_is_the_same_counts_a_quarter)
{
    struct registry_limits limits = {.max_agents = 100,
                                     .max_skills = 1000,
                                     .max_skills_per_user = 10,
                                     .skills_per_minute = 20};
    struct stage s;

    stage_open(&s);
    registry_set_limits(s.r, &limits);
    CHECK(put_nth(&s, &stage_anna, 1, 7) == OK); /* 32 are left */
    for (int i = 0; i < 4; i++)
        CHECK(put_nth(&s, &stage_anna, 1, 7) == OK);     /* two each */
    CHECK(put_nth(&s, &stage_anna, 2, 11) == ERR_LIMIT); /* twelve */
    CHECK(stage_patch(&s, &stage_anna, "a1", "{\"description\":\"x\"}") ==
          OK); /* eight */
    CHECK(put_nth(&s, &stage_anna, 1, 4) == ERR_RATE_LIMITED);
    CHECK(strstr(s.why.text, "20 agents and skills a minute "
                             "(registry.skillsPerMinute); try again in 4 s"));
    CHECK(put_nth(&s, &stage_admin, 3, 30) == OK); /* is not bound */
    s.now_ms += 3000;
    CHECK(put_nth(&s, &stage_anna, 1, 4) == OK);
    stage_check(&s);
    stage_close(&s);
}

/* The front. */

static bool is_found(struct stage *s, const struct caller *who,
                     const char *name)
{
    struct eyes eyes =
        who ? eyes_of(who, s->now_ms) : (struct eyes){.sees_all = true};
    struct registry_near_query q = {
        .eyes = eyes, .text = str_of(name), .trusts_all = true};
    const struct registry_near *list;
    size_t n, n_left;
    bool is = false;

    CHECK(registry_near(s->r, &q, &list, &n, &n_left) == OK);
    for (size_t i = 0; i < n; i++)
        is |= str_eq(list[i].agent->name, str_of(name));
    return is;
}

static enum err publish(struct stage *s, const struct caller *who,
                        const char *name, int n_skills)
{
    char card[2048];
    int n = snprintf(card, sizeof(card),
                     "{\"name\":\"%s\",\"visibility\":\"public\","
                     "\"skills\":[",
                     name);

    for (int k = 0; k < n_skills; k++)
        n += snprintf(card + n, sizeof(card) - (size_t)n,
                      "%s{\"id\":\"s%d\",\"name\":\"s\"}", k ? "," : "", k);
    snprintf(card + n, sizeof(card) - (size_t)n, "]}");
    return stage_put(s, who, card);
}

static int n_found(struct stage *s, const struct caller *who, char first)
{
    int n = 0;
    char name[16];

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "%c%d", first, i);
        n += is_found(s, who, name);
    }
    return n;
}

/* anna and bob publish 20 cards of four documents each, where 80 are searched;
 * carl has published one before them, and one after. */
static void open_crowd(struct stage *s)
{
    char name[16];

    stage_prepare(s);
    s->opts.limits = (struct registry_limits){
        .max_agents = 1000, .max_skills = 10000, .max_searched = 80};
    CHECK(stage_start(s) == OK);
    CHECK(publish(s, &stage_carl, "c0", 3) == OK);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        CHECK(publish(s, &stage_anna, name, 3) == OK);
        snprintf(name, sizeof(name), "b%d", i);
        CHECK(publish(s, &stage_bob, name, 3) == OK);
        stage_check(s);
    }
    CHECK(publish(s, &stage_carl, "c1", 9) == OK);
    stage_check(s);
}

static void two_who_publish_very_much(void)
{
    struct stage s;
    int before, after;

    open_crowd(&s);
    before = n_found(&s, &stage_carl, 'a');
    CHECK(before >= 5 && before <= 8);
    CHECK_INT(n_found(&s, &stage_carl, 'b'), before);
    CHECK(is_found(&s, &stage_anna, "c0") && is_found(&s, &stage_anna, "c1"));
    CHECK_INT(n_found(&s, &stage_anna, 'a'), before); /* nor for themselves */
    CHECK_INT(n_found(&s, NULL, 'a'), before);        /* nor for admins */
    CHECK(stage_find(&s, &stage_carl, "a19")); /* it is there by its name */
    /* A start computes the shares again, with the same free eighth. */
    stage_restart(&s, false);
    stage_check(&s);
    after = n_found(&s, &stage_carl, 'a');
    CHECK(after >= before - 1 && after <= before + 1);
    CHECK(is_found(&s, &stage_anna, "c1"));
    stage_close(&s);
}

TEST(two_who_publish_very_much_are_searched_in_part)
{
    two_who_publish_very_much();
}

TEST(control_all_in_front_is_noticed)
{
    check_control("registry.all_in_front", two_who_publish_very_much);
}

TEST(what_was_put_aside_comes_back_when_there_is_room)
{
    struct stage s;
    char name[16];

    open_crowd(&s);
    CHECK(!is_found(&s, &stage_carl, "a19"));
    /* Cards that are not public are not searched by others, and do not
     * count. */
    CHECK(stage_patch(&s, &stage_anna, "a19", "{\"visibility\":\"private\"}") ==
          OK);
    CHECK(is_found(&s, &stage_anna, "a19"));
    CHECK(!is_found(&s, &stage_carl, "a19"));
    CHECK(stage_patch(&s, &stage_anna, "a19", "{\"visibility\":\"public\"}") ==
          OK);
    CHECK(!is_found(&s, &stage_anna, "a19"));
    /* Another card of the same owner takes the place of one that goes. */
    CHECK(is_found(&s, &stage_carl, "a0"));
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        CHECK(stage_remove(&s, &stage_anna, name) == OK);
        stage_check(&s);
    }
    CHECK(n_found(&s, &stage_carl, 'a') >= 5);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        CHECK(stage_remove(&s, &stage_bob, name) == OK);
    }
    stage_check(&s);
    CHECK_INT(n_found(&s, &stage_carl, 'a'), 14); /* an eighth stays free */
    registry_set_limits(s.r, &(struct registry_limits){.max_searched = 40});
    stage_check(&s);
    CHECK(n_found(&s, &stage_carl, 'a') < 10);
    CHECK(is_found(&s, &stage_anna, "c0"));
    registry_set_limits(s.r, &(struct registry_limits){.max_searched = 0});
    CHECK_INT(n_found(&s, &stage_carl, 'a'), 16);
    stage_check(&s);
    stage_close(&s);
}

TEST(up_to_the_limit_nothing_is_put_aside)
{
    struct stage s;

    stage_prepare(&s);
    s.opts.limits = (struct registry_limits){
        .max_agents = 1000, .max_skills = 10000, .max_searched = 40};
    CHECK(stage_start(&s) == OK);
    CHECK(publish(&s, &stage_anna, "a0", 19) == OK);
    CHECK(publish(&s, &stage_anna, "a1", 19) == OK);
    CHECK_INT(n_found(&s, &stage_carl, 'a'), 2);
    CHECK(publish(&s, &stage_admin, "p0", 30) == OK); /* does not count */
    CHECK_INT(n_found(&s, &stage_carl, 'a'), 2);
    CHECK(publish(&s, &stage_bob, "b0", 0) == OK);
    CHECK_INT(n_found(&s, &stage_carl, 'a'), 1);
    CHECK(is_found(&s, &stage_carl, "b0") && is_found(&s, &stage_carl, "p0"));
    stage_check(&s);
    stage_close(&s);
}
