/* Cards: permission to put, patch and remove them, conditions, and feed
 * entries. */
#include "test/lib/registry_stage.h"

static const char *const echo_card =
    "{\"name\":\"echo\",\"url\":\"echo:\",\"title\":\"says it again\","
    "\"skills\":[{\"id\":\"say\",\"name\":\"Say\",\"tags\":[\"talk\"]}]}";

TEST(a_card_is_registered_and_found_whatever_its_case)
{
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(s.is_new && !s.is_same && s.revision == 1 && s.n_came == 1);
    a = stage_find(&s, &stage_anna, "ECHO");
    CHECK(a);
    CHECK_STR(a->name, "echo");
    CHECK_STR(a->creator, "anna");
    CHECK_STR(a->org, "acme");
    CHECK(a->visibility == VISIBILITY_PRIVATE && a->kind == AGENT_MANAGED);
    CHECK(a->created_ms == s.now_ms && a->updated_ms == s.now_ms);
    CHECK(!a->is_configured && a->n_skills == 1);
    stage_restart(&s, false);
    a = stage_find(&s, &stage_anna, "echo");
    CHECK(a && a->revision == 1 && a->n_skills == 1);
    CHECK_STR(a->org, "acme");
    stage_close(&s);
}

TEST(who_registers_decides_kind_and_visibility)
{
    static const struct caller agent = {.token_id = {"tok_9"},
                                        .principal = "robot",
                                        .owner = "anna",
                                        .org = "acme",
                                        .role = ROLE_AGENT,
                                        .scopes = SCOPE_AGENTS | SCOPE_READ};
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_admin, "{\"name\":\"of-admin\"}") == OK);
    CHECK(stage_put(&s, &agent, "{\"name\":\"of-agent\"}") == OK);
    a = stage_find(&s, NULL, "of-admin");
    CHECK(a->visibility == VISIBILITY_PUBLIC && a->kind == AGENT_PLATFORM);
    CHECK_STR(a->creator, "admin");
    a = stage_find(&s, NULL, "of-agent");
    CHECK(a->visibility == VISIBILITY_PRIVATE);
    CHECK(a->kind == AGENT_SELF_HOSTED);
    CHECK_STR(a->creator, "anna");
    stage_close(&s);
}

TEST(the_same_card_again_is_no_change)
{
    struct stage s;
    size_t n_feed;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    n_feed = stage_feed(&s, NULL);
    s.now_ms += 1000;
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(s.is_same && s.revision == 1 && s.n_came == 1);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"url\":\"echo:\"}") == OK);
    CHECK(s.is_same && s.revision == 1);
    CHECK_INT(stage_feed(&s, NULL), n_feed);
    CHECK_INT(stage_find(&s, NULL, "echo")->updated_ms, s.now_ms - 1000);
    CHECK_INT(registry_stats(s.r).seq, 1);
    stage_close(&s);
}

TEST(what_a_new_card_leaves_out_stays_as_an_admin_said_it)
{
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(stage_patch(&s, &stage_admin, "echo",
                      "{\"visibility\":\"shared\",\"org\":\"zeta\","
                      "\"kind\":\"platform\"}") == OK);
    CHECK(s.revision == 2);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(s.is_same);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"echo\"}") == OK);
    a = stage_find(&s, &stage_carl, "echo");
    CHECK(a && a->revision == 3 && a->n_skills == 0);
    CHECK(a->visibility == VISIBILITY_SHARED && a->kind == AGENT_PLATFORM);
    CHECK_STR(a->org, "zeta");
    CHECK_STR(a->creator, "anna");
    stage_restart(&s, false);
    CHECK_STR(stage_find(&s, &stage_carl, "echo")->org, "zeta");
    stage_close(&s);
}

TEST(an_admin_gives_it_to_somebody_else)
{
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"creator_id\":\"carl\"}") ==
          OK);
    a = stage_find(&s, &stage_carl, "echo");
    CHECK(a && a->revision == 2);
    CHECK_STR(a->org, "zeta"); /* the creator's */
    CHECK(!stage_find(&s, &stage_anna, "echo"));
    stage_close(&s);
}

/* As a program that deploys agents for others does. */
TEST(what_an_admin_registers_for_somebody_is_managed_and_theirs)
{
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_admin,
                    "{\"name\":\"own\",\"description\":\"x\"}") == OK);
    CHECK(stage_put(&s, &stage_admin,
                    "{\"name\":\"for\",\"description\":\"x\","
                    "\"creator_id\":\"carl\"}") == OK);
    a = stage_find(&s, &stage_carl, "own");
    CHECK(a && a->kind == AGENT_PLATFORM && a->visibility == VISIBILITY_PUBLIC);
    a = stage_find(&s, &stage_carl, "for");
    CHECK(a && a->kind == AGENT_MANAGED && a->visibility == VISIBILITY_PRIVATE);
    CHECK(!stage_find(&s, &stage_anna, "for"));
    CHECK(stage_patch(&s, &stage_admin, "own", "{\"creator_id\":\"carl\"}") ==
          OK);
    CHECK(stage_find(&s, &stage_carl, "own")->kind == AGENT_MANAGED);
    stage_close(&s);
}

TEST(fields_are_patched)
{
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    s.now_ms += 5;
    CHECK(stage_patch(&s, &stage_anna, "Echo",
                      "{\"title\":null,\"version\":\"2\"}") == OK);
    a = stage_find(&s, &stage_anna, "echo");
    CHECK(a->title.n == 0 && a->n_skills == 1 && a->revision == 2);
    CHECK_STR(a->version, "2");
    CHECK(a->created_ms == s.now_ms - 5 && a->updated_ms == s.now_ms);
    CHECK(stage_patch(&s, &stage_anna, "echo", "[1]") == ERR_BAD_REQUEST);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"version\":7}") ==
          ERR_BAD_REQUEST);
    CHECK(strncmp(s.problem, "/version ", 9) == 0);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"name\":\"other\"}") ==
          ERR_BAD_REQUEST);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"org\":\"zeta\"}") ==
          ERR_NOT_ALLOWED);
    CHECK(s.problems.n == 1 && s.problems.list[0].is_forbidden);
    CHECK(stage_patch(&s, &stage_anna, "missing", "{}") == ERR_NOT_FOUND);
    CHECK_INT(stage_find(&s, &stage_anna, "echo")->revision, 2);
    stage_close(&s);
}

/* The answer to any user who wants to change the agent of another. */
TEST(who_does_not_own_it_cannot_change_it)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    /* Not there, for bob; but its name is taken. */
    CHECK(stage_put(&s, &stage_bob, echo_card) == ERR_EXISTS);
    CHECK(strcmp(s.why.text, "the name is taken") == 0);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"ECHO\"}") == ERR_EXISTS);
    CHECK(strcmp(s.why.text, "the name is taken") == 0);
    CHECK(stage_patch(&s, &stage_bob, "echo", "{}") == ERR_NOT_FOUND);
    CHECK(stage_remove(&s, &stage_bob, "echo") == ERR_NOT_FOUND);
    CHECK(stage_grant(&s, &stage_bob, "echo", "bob", "", 0) == ERR_NOT_FOUND);
    /* Seen, and another's. */
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"visibility\":\"shared\"}") ==
          OK);
    CHECK(stage_put(&s, &stage_bob, echo_card) == ERR_NOT_ALLOWED);
    CHECK(stage_patch(&s, &stage_bob, "echo", "{}") == ERR_NOT_ALLOWED);
    CHECK(stage_remove(&s, &stage_bob, "echo") == ERR_NOT_ALLOWED);
    CHECK(stage_grant(&s, &stage_bob, "echo", "bob", "", 0) == ERR_NOT_ALLOWED);
    CHECK(stage_remove(&s, &stage_carl, "echo") == ERR_NOT_FOUND);
    /* Admins may. */
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"version\":\"3\"}") == OK);
    CHECK_STR(stage_find(&s, NULL, "echo")->creator, "anna");
    CHECK(stage_remove(&s, &stage_admin, "echo") == OK);
    CHECK(!stage_find(&s, NULL, "echo"));
    stage_close(&s);
}

TEST(another_case_is_the_same_agent)
{
    struct stage s;
    struct registry_by by;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"Echo\"}") == ERR_EXISTS);
    CHECK(strstr(s.why.text, "\"echo\""));
    CHECK(stage_put_if(&s, "ECHO", "{}", &by) == ERR_EXISTS);
    CHECK(strstr(s.why.text, "\"echo\""));
    CHECK(stage_put_if(&s, "echo", "{\"name\":\"ECHO\"}", &by) ==
          ERR_BAD_REQUEST);
    CHECK_INT(registry_agents(s.r).n, 1);
    stage_close(&s);
}

TEST(conditions_hold)
{
    struct stage s;
    struct registry_by by;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    by.if_revision = 1;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == ERR_PRECONDITION);
    by.if_revision = -1;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == ERR_PRECONDITION);
    by.if_revision = 0;
    by.must_be_there = true;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == ERR_NOT_FOUND);
    by.must_be_there = false;
    by.must_be_new = true;
    CHECK(stage_put_if(&s, "echo", echo_card, &by) == OK);
    CHECK(stage_put_if(&s, "echo", echo_card, &by) == ERR_EXISTS);
    by.must_be_new = false;
    by.if_revision = 2;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == ERR_PRECONDITION);
    CHECK(strstr(s.why.text, "revision 1"));
    by.if_revision = 1;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == OK);
    by.if_revision = -1;
    CHECK(stage_put_if(&s, "echo", echo_card, &by) == OK);
    CHECK_INT(s.revision, 3);
    /* Judged by what is seen: bob learns nothing of its revision. */
    by.caller = &stage_bob;
    CHECK(stage_put_if(&s, "echo", "{}", &by) == ERR_PRECONDITION);
    CHECK(strstr(s.why.text, "no agent of that name"));
    stage_close(&s);
}

TEST(one_change_of_an_agent_at_a_time)
{
    struct stage s;
    struct registry_by by;
    struct registry_change first;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    /* A name that is coming. */
    CHECK(stage_begin_put(&s, &first, "", echo_card, &by) == OK);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"ECHO\"}") == ERR_BUSY);
    CHECK(stage_remove(&s, &stage_anna, "echo") == ERR_NOT_FOUND);
    CHECK(registry_agents(s.r).n == 0);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"other\"}") == OK);
    CHECK(stage_commit(&s, &first, OK) == OK);
    /* One that is there. */
    CHECK(stage_begin_put(&s, &first, "", "{\"name\":\"echo\"}", &by) == OK);
    CHECK(stage_put(&s, &stage_anna, echo_card) == ERR_BUSY);
    CHECK(stage_remove(&s, &stage_anna, "echo") == ERR_BUSY);
    CHECK(stage_grant(&s, &stage_anna, "echo", "bob", "", 0) == ERR_BUSY);
    CHECK_INT(stage_find(&s, NULL, "echo")->n_skills, 1);
    /* Never submitted: as if never asked. */
    CHECK(registry_settle(s.r, &first, &s.why) != OK);
    registry_change_fini(&first);
    stage_check(&s);
    CHECK_INT(stage_find(&s, NULL, "echo")->revision, 1);
    CHECK(stage_remove(&s, &stage_anna, "echo") == OK);
    stage_close(&s);
}

TEST(whoever_writes_the_database_besides_us_is_noticed)
{
    struct stage s;
    struct tx tx;
    struct tx_op *op;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, echo_card) == OK);
    tx_init(&tx);
    op = tx_update(&tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(STR("echo")));
    tx_set(op, AGENT_REVISION, value_int(7));
    op = tx_add(&tx, &registry_table, REGISTRY_SEQ, 6, 0);
    tx_if(op, REGISTRY_KEY, IS, value_int(1));
    store_submit(s.store, &tx, stage_on_done, NULL);
    store_turn(s.store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    CHECK(stage_remove(&s, &stage_anna, "echo") == ERR_BUSY);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"echo\"}") == ERR_BUSY);
    CHECK(stage_grant(&s, &stage_anna, "echo", "bob", "", 0) == ERR_BUSY);
    CHECK_INT(stage_find(&s, NULL, "echo")->revision, 1);
    stage_restart(&s, false);
    CHECK_INT(stage_find(&s, NULL, "echo")->revision, 7);
    CHECK(stage_remove(&s, &stage_anna, "echo") == OK);
    stage_close(&s);
}

TEST(the_feed_says_who_and_what)
{
    struct stage s;
    struct buf feed;
    struct id grant;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"Echo\"}") == OK);
    CHECK(stage_patch(&s, &stage_admin, "echo",
                      "{\"version\":\"2\",\"title\":\"E\"}") == OK);
    CHECK(stage_grant(&s, &stage_anna, "echo", "bob", "", 0) == OK);
    grant = s.grant_id;
    CHECK(stage_ungrant(&s, &stage_admin, grant.text) == OK);
    CHECK(stage_remove(&s, &stage_anna, "ECHO") == OK);
    buf_init(&feed, 8192);
    CHECK_INT(stage_feed(&s, &feed), 5);
    buf_add_char(&feed, '\0');
    for (char *id; (id = strstr(feed.p, grant.text));)
        memset(id, 'x', strlen(grant.text));
    if (strcmp(
            feed.p,
            "agent.registered Echo anna anna {\"by\":\"anna\",\"revision\":1}\n"
            "agent.updated Echo admin anna {\"by\":\"admin\",\"revision\":2,"
            "\"changed\":[\"title\",\"version\"]}\n"
            "grant.created Echo anna anna {\"by\":\"anna\",\"revision\":2,"
            "\"grant_id\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"user\":"
            "\"bob\","
            "\"expires_ms\":null}\n"
            "grant.removed Echo admin anna {\"by\":\"admin\",\"revision\":2,"
            "\"grant_id\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"user\":"
            "\"bob\","
            "\"expires_ms\":null}\n"
            "agent.removed Echo anna anna "
            "{\"by\":\"anna\",\"revision\":2}\n") != 0)
        T_FAIL("%s", feed.p);
    buf_fini(&feed);
    stage_close(&s);
}

TEST(a_bad_card_says_all_that_is_wrong_and_changes_nothing)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"echo\",\"version\":1,\"title\":2}") ==
          ERR_BAD_REQUEST);
    CHECK(s.problems.n == 2 && s.problem[0] == '/');
    CHECK(s.why.text[0]);
    CHECK(stage_put(&s, &stage_anna, "{}") == ERR_BAD_REQUEST);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"a b\"}") == ERR_BAD_REQUEST);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":7}") == ERR_BAD_REQUEST);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"search\"}") ==
          ERR_BAD_REQUEST);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"e\",\"restart\":{\"command\":[\"x\"]}}") ==
          ERR_NOT_ALLOWED);
    CHECK(registry_agents(s.r).n == 0 && stage_feed(&s, NULL) == 0);
    stage_close(&s);
}

TEST(a_state_is_what_is_known_now)
{
    static const struct {
        const char *card;
        enum agent_state state;
    } cases[] = {
        {"{\"name\":\"a\",\"url\":\"echo:\"}", AGENT_IDLE},
        {"{\"name\":\"b\",\"url\":\"https://b.example/\"}", AGENT_IDLE},
        {"{\"name\":\"c\",\"url\":\"process:c\"}", AGENT_IDLE},
        {"{\"name\":\"d\",\"url\":\"model:d\"}", AGENT_IDLE},
        {"{\"name\":\"e\"}", AGENT_DEAD},
        {"{\"name\":\"f\",\"wake\":{\"url\":\"https://f.example/\"}}",
         AGENT_IDLE},
    };
    struct stage s;

    stage_open(&s);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[] = {(char)('a' + i), '\0'};

        CHECK(stage_put(&s, &stage_admin, cases[i].card) == OK);
        CHECK_INT(registry_state(s.r, stage_find(&s, NULL, name)),
                  cases[i].state);
    }
    stage_close(&s);
}

TEST(agents_are_in_the_order_of_their_names_whatever_came_first)
{
    static const char *const names[] = {"b", "Ab", "a", "C", "a-b", "A.b"};
    static const char *const order[] = {"a", "a-b", "A.b", "Ab", "b", "C"};
    struct stage s;
    struct agents all;

    stage_open(&s);
    for (int i = 0; i < 6; i++) {
        char card[64];

        snprintf(card, sizeof(card), "{\"name\":\"%s\"}", names[i]);
        CHECK(stage_put(&s, &stage_admin, card) == OK);
    }
    for (int again = 0; again < 2; again++) {
        all = registry_agents(s.r);
        CHECK_INT(all.n, 6);
        for (int i = 0; i < 6; i++) {
            CHECK_STR(all.list[i]->name, order[i]);
            CHECK(agent_find(&all, str_of(order[i])) == all.list[i]);
        }
        stage_restart(&s, false);
    }
    stage_close(&s);
}
