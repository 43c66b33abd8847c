/* What agents that are models use, on the stage of the walk: "boss" works for
 * ever, and what it would call is called for it here. */
#include "test/lib/walk_stage.h"
#include "walk_internal.h"

static struct {
    int n;
    char text[4096];
} heard;

static void on_heard(void *ctx, struct str text)
{
    CHECK(ctx == &heard && json_check(text, NULL) == OK);
    heard.n++;
    snprintf(heard.text, sizeof(heard.text), "%.*s", STR_ARG(text));
}

static struct delivery_id work;

static void open_boss(const char *url)
{
    struct told t;

    memset(&heard, 0, sizeof(heard));
    stage_ground();
    stage.agents[2] = (struct agent){.name = STR("boss"),
                                     .url = str_of(url),
                                     .description = STR("gives work")};
    stage.agents[0].description = STR("says it again");
    stage.n_agents = 3;
    for (size_t i = 0; i < 3; i++)
        stage.agents[i].delegation.max_concurrent =
            stage.agents[i].delegation.max_depth = -1;
    stage_start();
    stage_make_anna();
    t = sent((struct letter){.to = "boss", .from = "anna"});
    CHECK_INT(t.err, OK);
    pass_ms(1);
    work = (struct delivery_id){t.task_id, 1, 1};
}

static void *use(enum wire_tool tool, const char *arguments)
{
    void *handle = NULL;

    heard.text[0] = '\0';
    if (!walk_on_tool(stage.walk, &work, STR("boss"), tool, str_of(arguments),
                      on_heard, &heard, &handle))
        return NULL;
    CHECK(handle);
    return handle;
}

static bool is_said(const char *words)
{
    return strstr(heard.text, words) != NULL;
}

TEST(a_delegation_is_answered_when_it_is_over)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"say this\"}");
    pass_ms(500);
    CHECK_INT(heard.n, 0);
    pass_ms(600);
    CHECK(heard.n == 1 && is_said("\"status\":\"completed\""));
    CHECK(is_said("\"response\":\"say this\"") && is_said("\"sessionKey\""));
    CHECK_INT(hire_stats(stage.walk->hires).open, 0);
    CHECK_INT(hire_stats(stage.walk->hires).ready, 0);
    stage_close();
}

TEST(several_are_answered_together_and_apart)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE,
        "{\"tasks\":[{\"agentId\":\"echo\",\"task\":\"one\"},{\"agentId\":"
        "\"nobody\",\"task\":\"two\"},{\"agentId\":\"boss\",\"task\":\"x\"},"
        "{\"agentId\":\"slow\",\"task\":\"three\",\"mode\":\"async\"}]}");
    pass_ms(10);
    pass_ms(10);
    CHECK(heard.n == 1 && is_said("{\"results\":[{\"status\":\"completed\""));
    CHECK(is_said("\"response\":\"one\"") &&
          is_said("\"status\":\"accepted\""));
    CHECK(is_said("itself") && is_said("nobody"));
    stage_close();
}

TEST(what_cannot_be_is_said_at_once)
{
    open_boss("echo:3600000");
    use(WIRE_DELEGATE, "{\"agentId\":\"echo\"}");
    CHECK(heard.n == 1 && is_said("\"status\":\"error\"") && is_said("task"));
    use(WIRE_SEARCH, "{}");
    CHECK(heard.n == 2 && is_said("query is needed"));
    stage_close();
}

TEST(a_search_finds_others_and_not_itself)
{
    open_boss("echo:3600000");
    use(WIRE_SEARCH, "{\"query\":\"says it again\"}");
    CHECK(heard.n == 1 && is_said("{\"agents\":[{\"agentId\":\"echo\""));
    use(WIRE_SEARCH, "{\"query\":\"gives work\"}");
    CHECK(heard.n == 2 && !is_said("boss"));
    stage_close();
}

TEST(what_was_left_is_not_answered)
{
    void *u;

    open_boss("echo:3600000");
    u = use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    walk_tool_cancel(stage.walk, u); /* before it was accepted */
    pass_ms(10);
    u = use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    pass_ms(10);
    walk_tool_cancel(stage.walk, u); /* and after that */
    pass_ms(2000);
    CHECK_INT(heard.n, 0);
    use(WIRE_DELEGATE, "{\"agentId\":\"slow\",\"task\":\"x\"}");
    pass_ms(10);
    stage_close(); /* and one that is open still */
    CHECK_INT(heard.n, 0);
}

/* A model has no line on which it could hear of it later. */
TEST(what_a_model_does_not_wait_for_is_not_kept)
{
    for (int is_model = 0; is_model < 2; is_model++) {
        open_boss("echo:3600000");
        use(WIRE_DELEGATE,
            "{\"agentId\":\"slow\",\"task\":\"x\",\"mode\":\"async\"}");
        pass_ms(10);
        if (is_model) { /* it is another by now, which has the name */
            stage.agents[2].url = STR("model:small");
            CHECK_INT(stage_configure(NULL), OK);
        }
        pass_ms(1100);
        CHECK(heard.n == 1 && is_said("accepted"));
        CHECK_INT(hire_stats(stage.walk->hires).ready, !is_model);
        stage_close();
    }
}

TEST(who_may_delegate_has_tools)
{
    struct agent a = {.delegation = {.max_depth = -1, .max_concurrent = -1}};
    struct str one = STR("x");

    open_boss("echo:3600000");
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.is_limited = true;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    a.delegation.allow = (struct strs){&one, 1};
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = 0;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = 1;
    stage.walk->opts.hire.max_depth = 0;
    CHECK(walk_has_tools(stage.walk, NULL, &a));
    a.delegation.max_depth = -1;
    CHECK(!walk_has_tools(stage.walk, NULL, &a));
    stage_close();
}

/* Answered once whatever breaks, and what was said is JSON. */
TEST(a_use_survives_every_fault)
{
    static const struct {
        enum wire_tool tool;
        const char *arguments;
    } cases[] = {
        {WIRE_DELEGATE, "{\"agentId\":\"echo\",\"task\":\"x\"}"},
        {WIRE_SEARCH, "{\"query\":\"says it again\"}"},
    };

    for (size_t i = 0; i < 2; i++) {
        bool has_fired = true;
        long nth = 0;

        while (has_fired && nth < 500) {
            bool is_begun;

            open_boss("echo:3600000");
            fault_arm(++nth);
            is_begun = use(cases[i].tool, cases[i].arguments) || heard.n;
            for (int j = 0; is_begun && j < 200 && !heard.n; j++)
                pass_ms(1000);
            has_fired = fault_fired();
            fault_arm(0);
            CHECK(has_fired || (is_begun && heard.n == 1));
            CHECK(heard.n == is_begun);
            stage_close();
        }
        CHECK(!has_fired && nth > 1);
    }
}
