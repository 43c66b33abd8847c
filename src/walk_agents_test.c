/* The walk and agents that come and go: who is carried what. */
#include "test/lib/walk_stage.h"

static void commit(struct registry_change *c)
{
    struct why why = {""};
    bool is_done = false;

    store_submit(stage.store, &c->tx, agents_stage_done, &is_done);
    while (!is_done)
        loop_turn(&stage.loop);
    if (registry_settle(stage.registry, c, &why) != OK)
        T_FAIL("%s", why.text);
    registry_change_fini(c);
}

static void put(const char *user, const char *name, const char *card)
{
    struct caller who = somebody(user);
    struct registry_by by = {.caller = &who,
                             .now_ms = loop_wall_ms(&stage.loop)};
    struct registry_change c;
    struct card_problems problems;
    struct arena arena;
    struct why why = {""};

    who.scopes |= SCOPE_AGENTS;
    arena_init(&arena, 1 << 20);
    registry_change_init(&c);
    if (registry_put(stage.registry, &c, str_of(name),
                     json_parse(&arena, str_of(card), 0, NULL), &by, &problems,
                     &why) != OK)
        T_FAIL("%s", why.text);
    commit(&c);
    arena_fini(&arena);
}

static void take_away(const char *user, const char *name)
{
    struct caller who = somebody(user);
    struct registry_by by = {.caller = &who,
                             .now_ms = loop_wall_ms(&stage.loop)};
    struct registry_change c;
    struct why why = {""};

    registry_change_init(&c);
    if (registry_remove(stage.registry, &c, str_of(name), &by, &why) != OK)
        T_FAIL("%s", why.text);
    commit(&c);
}

static const char slow[] = "{\"description\":\"slow\",\"url\":\"echo:1000\","
                           "\"visibility\":\"public\"}";

/* Two for anna's agent, one behind the other; then the name is bob's. */
TEST(what_was_meant_for_one_is_not_carried_to_whoever_has_its_name)
{
    struct told first, second, other;

    stage_open();
    put("anna", "x", slow);
    pass_ms(10);
    CHECK(post((struct letter){.to = "x", .conversation = "c"}, &first));
    CHECK(post((struct letter){.to = "x", .conversation = "c"}, &second));
    pass_ms(10);
    take_away("anna", "x");
    put("bob", "x", slow);
    pass_ms(5000);
    CHECK_INT(stored(&first.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(stored(&second.task_id, NULL, NULL), TASK_QUEUED);
    /* Who sends to it now means bob's. */
    other = sent((struct letter){.to = "x", .from = "carl"});
    CHECK_INT(other.err, OK);
    pass_ms(1000);
    CHECK_INT(stored(&other.task_id, NULL, NULL), TASK_COMPLETED);
    /* And when the name is anna's again, so is what waits. */
    take_away("bob", "x");
    put("anna", "x", slow);
    pass_ms(0);
    pass_ms(1000);
    CHECK_INT(stored(&second.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

TEST(whom_they_do_not_see_they_do_not_reach)
{
    struct told t;

    stage_open();
    put("anna", "mine", "{\"description\":\"mine\",\"url\":\"echo:\"}");
    t = sent((struct letter){.to = "mine", .from = "bob"});
    CHECK_INT(t.err, ERR_AGENT_NOT_FOUND);
    CHECK(!strstr(t.why.text, "did you mean"));
    t = sent((struct letter){.to = "min", .from = "bob"});
    CHECK(t.err == ERR_AGENT_NOT_FOUND && !strstr(t.why.text, "mine"));
    t = sent((struct letter){.to = "mine", .from = "anna"});
    CHECK_INT(t.err, OK);
    t = sent((struct letter){.to = "mine", .from = "admin"});
    CHECK_INT(t.err, OK);
    stage_close();
}

TEST(an_agent_without_a_road_is_refused_at_once)
{
    struct told t;

    stage_open();
    put("anna", "hub", "{\"description\":\"elsewhere\"}");
    put("anna", "web",
        "{\"description\":\"elsewhere\",\"url\":\"https://a.example/\"}");
    t = sent((struct letter){.to = "hub"});
    CHECK(t.err == ERR_AGENT_OFFLINE && strstr(t.why.text, "must be running"));
    t = sent((struct letter){.to = "web"});
    CHECK(t.err == ERR_NOT_IMPLEMENTED && strstr(t.why.text, "HTTP"));
    stage_close();
}
