/* The tools that pi is offered, called by a child that does as pi does with the
 * extension. The real ones are in test/e2e/pi_delegation_test.py. */
#include "deliver/transports/pi.h"
#include "test/lib/pool_stage.h"

static struct office o;

static void with_tools(bool tools)
{
    office_init(&o, "pi");
    o.defs[0].max = 1;
    o.defs[0].tools = tools;
    o.tool_text = STR("{\"agents\":[]}");
    office_set(&o, 1);
}

TEST(the_file_is_there_and_nobody_can_change_it)
{
    with_tools(true);
    job_says(&o, give(&o, "c", "file"), "const tools = [ sealed");
    office_fini(&o);
    with_tools(false);
    job_says(&o, give(&o, "c", "file"), "none sealed");
    office_fini(&o);
}

TEST(where_it_is_goes_with_the_command)
{
    struct process_def def = {.model = STR("p/m"), .tools = true};
    struct str out[DIALECT_ARGS_MAX];

    CHECK_INT(dialect_pi.more_args(&def, out), 6);
    CHECK_STR(out[0], "--extension");
    CHECK_STR(out[1], CHILD_FILE_PATH);
}

TEST(a_model_and_pi_reach_others_by_tools_alone)
{
    struct agent model = {.name = STR("m"), .url = STR("model:x")};
    struct agent hub = {.name = STR("h"), .url = STR("ws-agent://h")};

    with_tools(true);
    CHECK(deliver_uses_tools(o.d, &o.agents[0]));
    CHECK(deliver_uses_tools(o.d, &model) && !deliver_uses_tools(o.d, &hub));
    office_fini(&o);
    office_init(&o, "good");
    CHECK(!deliver_uses_tools(o.d, &o.agents[0]));
    office_fini(&o);
}

TEST(a_call_is_made_as_the_agent_and_for_its_task)
{
    struct job *j;

    with_tools(true);
    j = give(&o, "c", "calls 2 1 g");
    job_says(&o, j,
             "2, 0 errors: {'type':'extension_ui_response','id':'c-1',"
             "'value':'{''agents'':[]}'}'");
    CHECK(strcmp(o.tool, "anna 2 {\"query\":\"x\"}") == 0);
    CHECK_INT(o.n_used, 2);
    CHECK(strstr(j->metadata, "\"tool_calls\":2"));
    office_fini(&o);
}

TEST(what_is_wrong_with_a_call_is_told)
{
    static const struct {
        const char *api, *words;
    } cases[] = {{"calls 1 1 0", "a call is {"},
                 {"calls 1 1 1", "there is no tool"},
                 {"calls 1 1 2", "a call is {"}};

    with_tools(true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job *j = give(&o, "c", cases[i].api);

        job_await(&o, j);
        CHECK(strstr(j->text, "1, 1 errors") &&
              strstr(j->text, cases[i].words));
    }
    CHECK_INT(o.n_used, 0);
    office_fini(&o);
}

/* Without tools the request goes to people, whatever its title. */
TEST(without_tools_it_is_a_dialog)
{
    with_tools(false);
    job_says(&o, give(&o, "c", "calls 1 1 g"),
             "1, 0 errors: {'type':'extension_ui_response','id':'c-0',"
             "'cancelled':true}'");
    CHECK(strstr(o.asked, "signalbox.tool") && !o.n_used);
    office_fini(&o);
}

TEST(so_many_at_once_and_no_more)
{
    struct job *j;

    with_tools(true);
    o.holds_tools = true;
    j = give(&o, "c", "calls 17 17 g");
    UNTIL(&o.s, o.n_held == PI_USES_MAX);
    /* The last is refused before any other is answered. */
    for (size_t i = 0; i < PI_USES_MAX; i++)
        wait_turn(&o.s);
    CHECK_INT(o.n_used, PI_USES_MAX);
    for (size_t i = 0; i < PI_USES_MAX; i++)
        o.used[i].done(o.used[i].ctx, o.tool_text);
    job_await(&o, j);
    CHECK(strstr(j->text, "17, 1 errors"));
    office_fini(&o);
}

TEST(so_many_of_one_task_and_no_more)
{
    struct job *j;

    with_tools(true);
    j = give(&o, "c", "calls 1000 1 a");
    job_says(&o, j, "1000 answered");
    CHECK_INT(o.n_used, PI_CALLS_MAX);
    j = give(&o, "c", "calls 1001 1 g");
    job_await(&o, j);
    CHECK(strstr(j->text, "1001, 1 errors") &&
          strstr(j->text, "has made 1000 calls"));
    CHECK_INT(o.n_used, 2 * PI_CALLS_MAX);
    office_fini(&o);
}

/* Also when all of it together is more than may wait for one child. */
TEST(an_answer_may_be_so_long_and_no_longer)
{
    static char much[PI_RESULT_BYTES + 1];
    struct job *j;

    memset(much, 'x', sizeof(much));
    with_tools(true);
    o.tool_text = (struct str){much, PI_RESULT_BYTES};
    o.holds_tools = true;
    j = give(&o, "c", "calls 16 16 l");
    UNTIL(&o.s, o.n_held == PI_USES_MAX);
    for (size_t i = 0; i < PI_USES_MAX; i++)
        o.used[i].done(o.used[i].ctx, o.tool_text);
    job_await(&o, j);
    CHECK(strstr(j->text, "16, 0 errors: 20972"));
    o.holds_tools = false;
    o.tool_text.n++;
    j = give(&o, "c", "calls 1 1 g");
    job_await(&o, j);
    CHECK(strstr(j->text, "2097153 bytes, and 2097152 are the most"));
    office_fini(&o);
}

TEST(a_call_ends_with_its_task)
{
    static const enum process_cancel hows[] = {CANCEL_STOPS, CANCEL_ASKS};

    for (size_t i = 0; i < 2; i++) {
        struct job *j;

        with_tools(true);
        o.defs[0].cancel = hows[i];
        office_set(&o, 1);
        o.holds_tools = true;
        j = give(&o, "c", "calls 3 3 g");
        UNTIL(&o.s, o.n_held == 3);
        cancel(&o, j);
        CHECK_INT(o.n_tools_cancelled, 3);
        CHECK(deliver_check(o.d));
        office_fini(&o);
    }
}
