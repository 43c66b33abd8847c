/* Agents that come and go: which agent is given which task. */
#include "test/lib/walk_agents.h"

static const char slow[] = "{\"description\":\"slow\",\"url\":\"echo:1000\","
                           "\"visibility\":\"public\"}";

/* Two messages for anna's agent; then the name is bob's. */
TEST(what_was_meant_for_one_is_not_carried_to_whoever_has_its_name)
{
    struct told first, second, other;

    stage_open();
    stage_put("anna", "x", slow);
    pass_ms(10);
    CHECK(post((struct letter){.to = "x", .conversation = "c"}, &first));
    CHECK(post((struct letter){.to = "x", .conversation = "c"}, &second));
    pass_ms(10);
    stage_take_away("anna", "x");
    stage_put("bob", "x", slow);
    pass_ms(5000);
    CHECK_INT(stored(&first.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(stored(&second.task_id, NULL, NULL), TASK_QUEUED);
    /* A sender now means bob's. */
    other = sent((struct letter){.to = "x", .from = "carl"});
    CHECK_INT(other.err, OK);
    pass_ms(1000);
    CHECK_INT(stored(&other.task_id, NULL, NULL), TASK_COMPLETED);
    /* When the name is anna's again, so is the waiting task. */
    stage_take_away("bob", "x");
    stage_put("anna", "x", slow);
    pass_ms(0);
    pass_ms(1000);
    CHECK_INT(stored(&second.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

TEST(whom_they_do_not_see_they_do_not_reach)
{
    struct told t;

    stage_open();
    stage_put("anna", "mine", "{\"description\":\"mine\",\"url\":\"echo:\"}");
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
    stage_put("anna", "hub", "{\"description\":\"elsewhere\"}");
    stage_put("anna", "web",
              "{\"description\":\"elsewhere\",\"url\":\"https://a.example/\"}");
    t = sent((struct letter){.to = "hub"});
    CHECK(t.err == ERR_AGENT_OFFLINE && strstr(t.why.text, "must be running"));
    t = sent((struct letter){.to = "web"});
    CHECK(t.err == ERR_NOT_IMPLEMENTED && strstr(t.why.text, "HTTP"));
    stage_close();
}
