/* Agents and their owners, and where those belong who were removed. */
#include "test/lib/access_stage.h"

/* An admin, Anna of acme, Bert of Zeta, and Anna's agent. */
static void begin(struct stage *s)
{
    struct access_token t;

    stage_prepare(s);
    s->opts.on_moved = stage_on_moved;
    CHECK(stage_start(s) == OK && stage_first_admin(s, &t) == OK);
    CHECK(stage_make(s, "Anna", ROLE_USER, "acme", NULL) == OK);
    CHECK(stage_make(s, "Bert", ROLE_ADMIN, "Zeta", NULL) == OK);
    CHECK(stage_make(s, "Clerk", ROLE_AGENT, NULL, "ANNA") == OK);
}

static struct caller judged(struct stage *s, const struct access_token *t)
{
    struct caller c;

    CHECK(stage_judge(s, t, &c) == OK);
    return c;
}

static struct access_user found(struct stage *s, const char *name)
{
    struct access_user u;

    CHECK(access_user_find(s->a, str_of(name), &u));
    return u;
}

static void expect_caller(const struct caller *c, const char *owner,
                          const char *org)
{
    CHECK_STR(str_of(c->owner), owner);
    CHECK_STR(str_of(c->org), org);
}

TEST(an_agent_calls_with_the_name_and_org_of_its_owner)
{
    struct stage s;
    struct access_token t;
    struct caller c;

    begin(&s);
    CHECK(stage_token(&s, "clerk", 0, 0, &t, NULL) == OK);
    for (int round = 0; round < 2; round++) {
        c = judged(&s, &t);
        CHECK_STR(caller_name(&c), "Clerk");
        expect_caller(&c, "Anna", "acme");
        CHECK(access_is_good(s.a, &c, s.now_ms));
        CHECK_STR(str_of(found(&s, "clerk").owner), "Anna");
        CHECK_STR(str_of(found(&s, "clerk").org), "acme");
        CHECK(!found(&s, "anna").owner[0]);
        stage_restart(&s);
    }
    stage_close(&s);
}

TEST(what_was_open_ends_when_the_owner_or_the_owner_s_org_is_another)
{
    struct stage s;
    struct access_token t;
    struct caller c;

    begin(&s);
    CHECK(stage_token(&s, "Clerk", 0, 0, &t, NULL) == OK);
    c = judged(&s, &t);
    CHECK(stage_org(&s, "anna", "other") == OK);
    CHECK(!access_is_good(s.a, &c, s.now_ms));
    c = judged(&s, &t);
    expect_caller(&c, "Anna", "other");
    CHECK(stage_org(&s, "bert", "other") == OK);
    CHECK(access_is_good(s.a, &c, s.now_ms));
    CHECK(stage_owner(&s, "clerk", "bert") == OK);
    CHECK(!access_is_good(s.a, &c, s.now_ms)); /* of the same org, though */
    c = judged(&s, &t);
    expect_caller(&c, "Bert", "other");
    CHECK(stage_owner(&s, "clerk", "") == OK);
    CHECK(!access_is_good(s.a, &c, s.now_ms));
    c = judged(&s, &t);
    expect_caller(&c, "", "");
    CHECK_INT(s.n_revoked, 0);
    stage_close(&s);
}

TEST(an_owner_is_somebody_else_who_is_there_and_no_agent)
{
    static const struct {
        const char *owner, *words;
    } bad[] = {
        {"no-such", "existing user"}, {"a b", "existing user"},
        {"gone", "existing user"},    {"clerk", "cannot own agents"},
        {"NEW", "another user"},
    };
    struct stage s;

    begin(&s);
    CHECK(stage_user(&s, "gone", ROLE_USER) == OK);
    CHECK(stage_remove(&s, "gone") == OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(stage_make(&s, "new", ROLE_AGENT, NULL, bad[i].owner) ==
              ERR_BAD_REQUEST);
        CHECK(strstr(s.why.text, bad[i].words));
    }
    CHECK(stage_make(&s, "new", ROLE_USER, NULL, "anna") == ERR_BAD_REQUEST);
    CHECK(strstr(s.why.text, "role agent"));
    CHECK(stage_make(&s, "new", ROLE_ADMIN, NULL, "anna") == ERR_BAD_REQUEST);
    CHECK(stage_make(&s, "new", ROLE_AGENT, "acme", "anna") == ERR_BAD_REQUEST);
    CHECK(strstr(s.why.text, "owner's org"));
    CHECK(stage_user(&s, "new", ROLE_AGENT) == OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(stage_owner(&s, "new", bad[i].owner) == ERR_BAD_REQUEST);
    CHECK(stage_owner(&s, "anna", "bert") == ERR_BAD_REQUEST);
    CHECK(stage_change(&s, "clerk", ROLE_USER, NULL, "anna") ==
          ERR_BAD_REQUEST);
    CHECK(stage_org(&s, "clerk", "Zeta") == ERR_BAD_REQUEST);
    CHECK(stage_org(&s, "clerk", "") == OK); /* it has none of its own */
    CHECK_STR(access_org_of(s.a, STR("clerk")), "acme");
    stage_close(&s);
}

TEST(an_owner_takes_the_org_s_place_and_goes_with_the_role)
{
    struct stage s;

    begin(&s);
    CHECK(stage_make(&s, "free", ROLE_AGENT, "Zeta", NULL) == OK);
    CHECK_STR(access_org_of(s.a, STR("FREE")), "Zeta");
    CHECK(stage_owner(&s, "free", "anna") == OK);
    CHECK_STR(access_org_of(s.a, STR("free")), "acme");
    CHECK(stage_role(&s, "free", ROLE_USER) == OK);
    for (int round = 0; round < 2; round++) {
        CHECK(!found(&s, "free").owner[0] && !found(&s, "free").org[0]);
        stage_restart(&s);
    }
    CHECK(stage_change(&s, "clerk", 0, "own", "") == OK);
    CHECK_STR(access_org_of(s.a, STR("clerk")), "own");
    stage_close(&s);
}

TEST(whoever_owns_agents_does_not_become_one)
{
    struct stage s;

    begin(&s);
    CHECK(stage_role(&s, "anna", ROLE_AGENT) == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "owns agents"));
    CHECK(stage_role(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_owner(&s, "clerk", "bert") == OK);
    CHECK(stage_change(&s, "anna", ROLE_AGENT, NULL, "bert") == OK);
    CHECK_STR(access_org_of(s.a, STR("anna")), "Zeta");
    stage_close(&s);
}

TEST(an_owner_has_agents_up_to_the_limit)
{
    struct stage s;

    begin(&s);
    stage_end(&s);
    s.opts.max_owned = 2;
    CHECK(stage_start(&s) == OK);
    CHECK(stage_make(&s, "second", ROLE_AGENT, NULL, "anna") == OK);
    CHECK(stage_make(&s, "third", ROLE_AGENT, NULL, "anna") == ERR_LIMIT);
    CHECK(strstr(s.why.text, "2 agents"));
    CHECK(stage_make(&s, "third", ROLE_AGENT, NULL, "bert") == OK);
    CHECK(stage_owner(&s, "third", "anna") == ERR_LIMIT);
    CHECK(stage_owner(&s, "second", "anna") == OK); /* who is among them */
    CHECK(stage_remove(&s, "clerk") == OK);
    CHECK(stage_owner(&s, "third", "anna") == OK);
    stage_close(&s);
}

/* The end of an owner. */

/* Also run with either half of it left out: in memory, on the disk. */
static void lose_the_owner(void)
{
    struct access_token admin, anna, clerk, scribe, bert, later;
    struct stage s;

    begin(&s);
    CHECK(stage_make(&s, "scribe", ROLE_AGENT, NULL, "anna") == OK);
    CHECK(stage_make(&s, "porter", ROLE_AGENT, NULL, "bert") == OK);
    CHECK(stage_token(&s, "admin", 0, 0, &admin, NULL) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &anna, NULL) == OK);
    CHECK(stage_token(&s, "clerk", 0, 0, &clerk, NULL) == OK);
    CHECK(stage_token(&s, "scribe", 0, 0, &scribe, NULL) == OK);
    CHECK(stage_token(&s, "porter", 0, 0, &bert, NULL) == OK);
    CHECK(stage_remove(&s, "anna") == OK);
    CHECK_INT(s.n_revoked, 3);
    for (int round = 0; round < 2; round++) {
        CHECK(!stage_is_good(&s, &anna) && !stage_is_good(&s, &clerk));
        CHECK(!stage_is_good(&s, &scribe) && stage_is_good(&s, &bert));
        CHECK_STR(str_of(found(&s, "clerk").owner), "Anna");
        CHECK_STR(access_org_of(s.a, STR("clerk")), "acme");
        CHECK(stage_token(&s, "clerk", 0, 0, &later, NULL) == ERR_NOT_ALLOWED);
        CHECK(strstr(s.why.text, "Anna, was removed"));
        stage_restart(&s);
    }
    CHECK(stage_owner(&s, "clerk", "bert") == OK);
    CHECK(stage_owner(&s, "scribe", "") == OK);
    for (int round = 0; round < 2; round++) {
        CHECK(!stage_is_good(&s, &clerk) && !stage_is_good(&s, &scribe));
        CHECK(stage_token(&s, "clerk", 0, 0, &later, NULL) == OK);
        CHECK(stage_is_good(&s, &later));
        stage_restart(&s);
    }
    CHECK(stage_is_good(&s, &later));
    stage_close(&s);
}

TEST(an_agent_s_tokens_end_with_its_owner_and_stay_ended)
{
    lose_the_owner();
}

TEST(that_test_sees_agents_tokens_that_were_not_revoked)
{
    stage_control("access.keep_owned", lose_the_owner);
}

TEST(that_test_sees_agents_tokens_that_stayed_on_the_disk)
{
    stage_control("access.forget_owned", lose_the_owner);
}

/* Two at once. */

static enum err prepare(struct stage *s, struct access_change *c,
                        const char *name, const char *owner, bool is_new)
{
    struct access_wish wish = {.role = is_new ? ROLE_AGENT : 0,
                               .owner = str_of(owner)};

    access_change_init(c);
    return (is_new ? access_user_create : access_user_change)(
        s->a, c, str_of(name), &wish, STR("x"), s->now_ms, &s->why);
}

static void give_up(struct stage *s, struct access_change *c)
{
    CHECK(access_settle(s->a, c, &s->why) != OK);
    access_change_fini(c);
}

static void expect_busy(struct stage *s, const char *name, enum role role)
{
    struct access_change c;

    CHECK(stage_begin(s, &c, name, role) == ERR_BUSY);
    access_change_fini(&c);
}

TEST(an_owner_and_their_agents_are_changed_one_at_a_time)
{
    struct stage s;
    struct access_change one, two;

    begin(&s);
    /* An agent is being made, is about to come or go: its owners wait. */
    CHECK(prepare(&s, &one, "new", "anna", true) == OK);
    expect_busy(&s, "anna", 0);
    expect_busy(&s, "anna", ROLE_AGENT);
    give_up(&s, &one);
    CHECK(prepare(&s, &one, "clerk", "bert", false) == OK);
    expect_busy(&s, "anna", 0);
    expect_busy(&s, "bert", ROLE_USER);
    give_up(&s, &one);
    CHECK(stage_begin(&s, &one, "clerk", 0) == OK);
    expect_busy(&s, "anna", 0);
    give_up(&s, &one);
    /* An owner is being changed: the agents wait, also those to be. */
    CHECK(stage_begin(&s, &one, "anna", 0) == OK);
    expect_busy(&s, "clerk", 0);
    expect_busy(&s, "clerk", ROLE_USER);
    CHECK(prepare(&s, &two, "new", "anna", true) == ERR_BUSY);
    access_change_fini(&two);
    give_up(&s, &one);
    /* And nothing is left of all that. */
    CHECK(prepare(&s, &one, "clerk", "bert", false) == OK);
    CHECK(stage_commit(&s, &one, OK) == OK);
    CHECK(stage_remove(&s, "anna") == OK && stage_remove(&s, "clerk") == OK);
    CHECK(stage_role(&s, "bert", ROLE_AGENT) == OK);
    stage_close(&s);
}

/* A token is made for an agent whose owner is removed at once. */
static void make_and_remove(bool token_first, bool in_order)
{
    struct stage s;
    struct access_token t;
    struct access_change token, removal, *c[2] = {&token, &removal};
    enum err made = OK;

    begin(&s);
    access_change_init(&token);
    CHECK(access_token_create(s.a, &token, STR("clerk"), 0, STR(""), 0,
                              STR("x"), s.now_ms, &t, &s.why) == OK);
    CHECK(stage_begin(&s, &removal, "anna", 0) == OK);
    stage_submit(&s, c[!token_first]);
    stage_submit(&s, c[token_first]);
    store_turn(s.store);
    for (int i = 0; i < 2; i++) {
        struct access_change *next = c[token_first == in_order ? i : !i];
        enum err e = access_settle(s.a, next, &s.why);

        if (next == &token)
            made = e;
        else
            CHECK(e == OK);
        access_change_fini(next);
    }
    /* Whether it was there for a moment is for the order to say. */
    CHECK(made == (token_first && in_order ? OK : ERR_NOT_FOUND));
    CHECK_INT(s.n_revoked, made == OK);
    CHECK_INT(access_stats(s.a).tokens, 1);
    CHECK(!stage_is_good(&s, &t));
    CHECK(stage_owner(&s, "clerk", "bert") == OK);
    CHECK(!stage_is_good(&s, &t));
    stage_restart(&s);
    CHECK(!stage_is_good(&s, &t));
    CHECK_INT(access_stats(s.a).tokens, 1);
    stage_close(&s);
}

TEST(no_token_outlives_the_owner_whichever_came_first)
{
    for (int i = 0; i < 4; i++)
        make_and_remove(i & 1, i & 2);
}

TEST(a_token_made_before_there_was_an_owner_does_not_come_after_them)
{
    struct stage s;
    struct access_token t;
    struct access_change token;

    begin(&s);
    CHECK(stage_user(&s, "free", ROLE_AGENT) == OK);
    access_change_init(&token);
    CHECK(access_token_create(s.a, &token, STR("free"), 0, STR(""), 0, STR("x"),
                              s.now_ms, &t, &s.why) == OK);
    CHECK(stage_owner(&s, "free", "anna") == OK);
    CHECK(stage_remove(&s, "anna") == OK);
    CHECK(stage_commit(&s, &token, OK) == ERR_NOT_FOUND);
    CHECK(stage_owner(&s, "free", "bert") == OK);
    stage_restart(&s);
    CHECK(!stage_is_good(&s, &t));
    stage_close(&s);
}

/* Orgs. */

TEST(the_org_of_a_user_is_known_also_once_they_were_removed)
{
    struct stage s;

    begin(&s);
    CHECK(stage_user(&s, "loner", ROLE_USER) == OK);
    CHECK(stage_remove(&s, "clerk") == OK);
    CHECK(stage_org(&s, "anna", "later") == OK);
    CHECK(stage_remove(&s, "Anna") == OK && stage_remove(&s, "loner") == OK);
    for (int round = 0; round < 2; round++) {
        CHECK_STR(access_org_of(s.a, STR("ANNA")), "later");
        CHECK_STR(access_org_of(s.a, STR("bert")), "Zeta");
        CHECK_STR(access_org_of(s.a, STR("clerk")), "acme"); /* as it was */
        CHECK_STR(access_org_of(s.a, STR("loner")), "");
        CHECK_STR(access_org_of(s.a, STR("admin")), "");
        CHECK_STR(access_org_of(s.a, STR("no-such")), "");
        CHECK_STR(access_org_of(s.a, STR("not a name")), "");
        CHECK_STR(access_org_of(s.a, STR("")), "");
        stage_restart(&s);
    }
    /* A name that is asked for in vain takes nothing from who had it. */
    CHECK(stage_make(&s, "anna", ROLE_USER, "thief", NULL) == ERR_EXISTS);
    CHECK_STR(access_org_of(s.a, STR("anna")), "later");
    stage_close(&s);
}

TEST(a_removal_that_comes_to_nothing_leaves_the_org_to_change)
{
    struct stage s;
    struct access_change c;

    begin(&s);
    CHECK(stage_begin(&s, &c, "anna", 0) == OK);
    CHECK_STR(access_org_of(s.a, STR("anna")), "acme");
    give_up(&s, &c);
    CHECK(stage_org(&s, "anna", "Zeta") == OK);
    CHECK_STR(access_org_of(s.a, STR("anna")), "Zeta");
    CHECK(stage_remove(&s, "anna") == OK);
    CHECK_STR(access_org_of(s.a, STR("anna")), "Zeta");
    stage_close(&s);
}

TEST(whoever_belongs_elsewhere_now_is_told_once_it_is_committed)
{
    struct stage s;
    struct access_change c;
    struct access_wish wish = {.org = STR("Zeta"), .owner = {NULL, 0}};

    begin(&s);
    CHECK_INT(s.n_moved, 0);
    access_change_init(&c);
    CHECK(access_user_change(s.a, &c, STR("anna"), &wish, STR("x"), s.now_ms,
                             &s.why) == OK);
    CHECK_INT(s.n_moved, 0);
    CHECK(stage_commit(&s, &c, OK) == OK);
    CHECK_INT(s.n_moved, 2);
    CHECK_STR(str_of(s.moved[0]), "Anna");
    CHECK_STR(str_of(s.moved[1]), "Clerk");
    CHECK(stage_org(&s, "anna", "Zeta") == OK); /* the same */
    CHECK(stage_role(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_owner(&s, "clerk", "bert") == OK); /* of the same org */
    CHECK_INT(s.n_moved, 2);
    CHECK(stage_owner(&s, "clerk", "admin") == OK);
    CHECK_INT(s.n_moved, 3);
    CHECK_STR(str_of(s.moved[2]), "Clerk");
    CHECK(stage_remove(&s, "anna") == OK); /* who stays of that org */
    fault_arm_at("store.op.full", 1);
    CHECK(stage_org(&s, "bert", "acme") == ERR_NO_SPACE);
    CHECK_INT(s.n_moved, 3);
    stage_close(&s);
}
