#include "base/fault.h"
#include "speak/speak.h"
#include "test/t.h"

#define TASK "task_01jabcdefghjkmnpqrstvwxyz0"
#define KEY  "del_01jabcdefghjkmnpqrstvwxyz0"

struct read {
    struct arena arena;
    struct speak_orders orders;
    struct why why;
    enum err e;
};

typedef enum err reader(struct arena *a, struct str body,
                        struct speak_orders *out, struct why *why);

static struct read *read_by(reader *by, struct str body)
{
    struct read *r = calloc(1, sizeof(*r));

    CHECK(r);
    arena_init(&r->arena, 64 * 1024 * 1024);
    r->e = by(&r->arena, body, &r->orders, &r->why);
    return r;
}

static void end(struct read *r)
{
    arena_fini(&r->arena);
    free(r);
}

static void refused(reader *by, const char *body, enum err e, const char *words)
{
    struct read *r = read_by(by, str_of(body));

    CHECK_INT(r->e, e);
    if (!strstr(r->why.text, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, r->why.text);
    end(r);
}

TEST(what_is_sent_in_two_phases_says_everything_it_can)
{
    struct read *r = read_by(
        speak_send_task,
        STR("{\"agent_id\":\"web-search-agent\",\"message\":\"Find\","
            "\"skill_id\":\"web-search\",\"session_id\":\"session-abc\","
            "\"task_id\":\"" TASK "\",\"parent_task_id\":\"" TASK "\","
            "\"metadata\":{\"a\":1},\"timeoutMs\":5,\"stream\":true,"
            "\"onDisconnect\":\"cancel\"}"));
    const struct speak_order *o = &r->orders.list[0];

    CHECK_STR(str_of(r->why.text), "");
    CHECK_INT(r->e, OK);
    CHECK_INT(r->orders.n, 1);
    CHECK(!r->orders.is_many);
    CHECK_STR(o->agent, "web-search-agent");
    CHECK_STR(o->message, "Find");
    CHECK_STR(o->skill, "web-search");
    CHECK_STR(o->session_id, "session-abc");
    CHECK_STR(o->task_id, TASK);
    CHECK_STR(o->parent_id, TASK);
    CHECK_STR(o->metadata, "{\"a\":1}");
    CHECK_INT(o->mode, DELEGATION_TWO_PHASE);
    CHECK_INT(o->timeout_ms, 5);
    CHECK_INT(o->wait_ms, 0);
    CHECK(o->is_stream && o->says_line && o->ends_with_line);
    end(r);
}

TEST(each_required_param_is_missed_empty_and_of_another_type_one_by_one)
{
    static const struct {
        const char *body;
        enum err e;
        const char *words;
    } cases[] = {
        {"{\"message\":\"m\",\"skill_id\":\"s\"}", ERR_BAD_REQUEST,
         "agent_id is missing"},
        {"{\"agent_id\":null,\"message\":\"m\",\"skill_id\":\"s\"}",
         ERR_BAD_REQUEST, "agent_id is missing"},
        {"{\"agent_id\":\"\",\"message\":\"m\",\"skill_id\":\"s\"}",
         ERR_BAD_REQUEST, "agent_id must be a string of 1 to"},
        {"{\"agent_id\":7,\"message\":\"m\",\"skill_id\":\"s\"}",
         ERR_BAD_REQUEST, "agent_id must be a string"},
        {"{\"agent_id\":\"a\",\"skill_id\":\"s\"}", ERR_BAD_REQUEST,
         "message is missing"},
        {"{\"agent_id\":\"a\",\"message\":\"\",\"skill_id\":\"s\"}",
         ERR_BAD_REQUEST, "message must be a string of 1 to"},
        {"{\"agent_id\":\"a\",\"message\":{},\"skill_id\":\"s\"}",
         ERR_BAD_REQUEST, "message must be a string"},
        {"{\"agent_id\":\"a\",\"message\":\"m\"}", ERR_BAD_REQUEST,
         "skill_id is missing"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":\"\"}",
         ERR_BAD_REQUEST, "skill_id must be a string of 1 to"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":[]}",
         ERR_BAD_REQUEST, "skill_id must be a string"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":\"s\","
         "\"session_id\":\"\"}",
         ERR_BAD_REQUEST, "session_id must be"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":\"s\","
         "\"task_id\":\"nonsense\"}",
         ERR_BAD_REQUEST, "task_id must be a task's id"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":\"s\","
         "\"onDisconnect\":\"stop\"}",
         ERR_BAD_REQUEST, "onDisconnect must be \"keep\" or \"cancel\""},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skil_id\":\"s\"}",
         ERR_BAD_REQUEST, "did you mean \"skill_id\"?"},
        {"{\"agent_id\":\"a\",\"message\":\"m\",\"skill_id\":\"s\","
         "\"timeoutMs\":0}",
         ERR_BAD_REQUEST, "timeoutMs must be a whole number from 1"},
        {"[]", ERR_BAD_REQUEST, "must be a JSON object"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        refused(speak_send_task, cases[i].body, cases[i].e, cases[i].words);
}

static struct read *of_size(size_t n)
{
    struct buf body;
    struct read *r;

    buf_init(&body, n + 256);
    buf_add_str(&body,
                STR("{\"agent_id\":\"a\",\"skill_id\":\"s\",\"message\":\""));
    for (size_t i = 0; i < n; i++)
        buf_add_char(&body, 'x');
    buf_add_str(&body, STR("\"}"));
    r = read_by(speak_send_task, buf_str(&body));
    buf_fini(&body);
    return r;
}

TEST(a_message_may_be_as_long_as_any_and_no_longer)
{
    struct read *r = of_size(MSG_TEXT_MAX);

    CHECK_INT(r->e, OK);
    CHECK_INT(r->orders.list[0].message.n, MSG_TEXT_MAX);
    end(r);
    r = of_size(MSG_TEXT_MAX + 1);
    CHECK_INT(r->e, ERR_LIMIT);
    CHECK(strstr(r->why.text, "message must be a string of 1 to 1048576"));
    end(r);
    r = of_size(10 * 1000 * 1000);
    CHECK_INT(r->e, ERR_LIMIT);
    end(r);
}

TEST(the_tool_s_words_become_the_same_order)
{
    struct read *r =
        read_by(speak_delegate,
                STR("{\"agentId\":\"docs\",\"task\":\"t\",\"mode\":\"async\","
                    "\"timeoutMs\":7000,\"stream\":true,\"skill\":\"s\","
                    "\"sessionKey\":\"" KEY "\",\"onTimeout\":\"continue\","
                    "\"onDisconnect\":\"keep\",\"parent_task_id\":\"" TASK "\","
                    "\"session_id\":\"s-1\"}"));
    const struct speak_order *o = &r->orders.list[0];

    CHECK_STR(str_of(r->why.text), "");
    CHECK_INT(r->e, OK);
    CHECK_INT(o->mode, DELEGATION_ASYNC);
    CHECK_INT(o->timeout_ms, 7000);
    CHECK_STR(o->session_key, KEY);
    CHECK_STR(o->task_session, "s-1"); /* the task, and no more */
    CHECK(!o->session_id.n);
    CHECK(o->goes_on && o->says_line && !o->ends_with_line);
    end(r);
    r = read_by(speak_delegate, STR("{\"agentId\":\"docs\",\"task\":\"t\"}"));
    o = &r->orders.list[0];
    CHECK_INT(r->e, OK);
    CHECK_INT(o->mode, DELEGATION_SYNC);
    CHECK_INT(o->wait_ms, 60000);
    CHECK_INT(o->timeout_ms, 0);
    CHECK(!o->goes_on && !o->says_line);
    end(r);
    r = read_by(speak_delegate,
                STR("{\"agentId\":\"d\",\"task\":\"t\",\"timeoutMs\":500}"));
    CHECK_INT(r->orders.list[0].wait_ms, 500);
    CHECK_INT(r->orders.list[0].timeout_ms, DELEGATION_TIMEOUT_MS);
    end(r);
}

static struct read *of_many(int n)
{
    struct buf body;
    struct read *r;

    buf_init(&body, 64 * 1024);
    buf_add_str(&body, STR("{\"tasks\":["));
    for (int i = 0; i < n; i++)
        buf_addf(&body, "%s{\"agentId\":\"a%d\",\"task\":\"t\"}", i ? "," : "",
                 i);
    buf_add_str(&body, STR("]}"));
    r = read_by(speak_delegate, buf_str(&body));
    buf_fini(&body);
    return r;
}

TEST(sixteen_at_once_and_no_more)
{
    struct read *r = of_many(16);

    CHECK_INT(r->e, OK);
    CHECK_INT(r->orders.n, 16);
    CHECK(r->orders.is_many);
    CHECK_STR(r->orders.list[15].agent, "a15");
    end(r);
    r = of_many(17);
    CHECK_INT(r->e, ERR_BAD_REQUEST);
    CHECK(strstr(r->why.text, "more than 16"));
    end(r);
    r = of_many(0);
    CHECK_INT(r->e, ERR_BAD_REQUEST);
    end(r);
}

TEST(what_is_wrong_with_one_of_many_is_said_of_that_one)
{
    refused(speak_delegate,
            "{\"tasks\":[{\"agentId\":\"a\",\"task\":\"t\"},{\"task\":\"t\"}]}",
            ERR_BAD_REQUEST, "tasks[1].agentId is missing");
    refused(speak_delegate, "{\"tasks\":[7]}", ERR_BAD_REQUEST,
            "tasks[0] must be an object");
    refused(speak_delegate,
            "{\"tasks\":[{\"agentId\":\"a\",\"task\":\"t\"}],"
            "\"mode\":\"sync\"}",
            ERR_BAD_REQUEST, "unknown field \"mode\"");
    refused(speak_delegate, "{\"agentId\":\"a\"}", ERR_BAD_REQUEST,
            "task is missing");
    refused(speak_delegate, "{\"agentId\":\"a\",\"task\":\"t\",\"mode\":\"x\"}",
            ERR_BAD_REQUEST, "mode must be \"sync\" or \"async\"");
    refused(speak_delegate,
            "{\"agentId\":\"a\",\"task\":\"t\",\"sessionKey\":\"x\"}",
            ERR_BAD_REQUEST, "sessionKey must be one that an answer gave");
}

static void told(const struct task *t, struct str original_id, const char *want)
{
    struct buf out;
    struct json_out o;

    buf_init(&out, 4096);
    o = json_out(&out);
    json_open(&o, '{');
    speak_delegation_result(&o, STR(KEY), original_id, t);
    json_close(&o, '}');
    CHECK_STR(buf_str(&out), want);
    buf_fini(&out);
}

static void answered(const struct task *t, const char *want)
{
    struct buf out;
    struct json_out o;

    buf_init(&out, 4096);
    o = json_out(&out);
    json_open(&o, '{');
    speak_delegated(&o, STR(KEY), t);
    json_close(&o, '}');
    CHECK_STR(buf_str(&out), want);
    buf_fini(&out);
}

TEST(a_result_is_told_as_it_is_promised)
{
    struct task t = {.id = {TASK},
                     .status = TASK_COMPLETED,
                     .result = {.status = TASK_COMPLETED, .text = STR("Here")}};

    told(&t, STR("42"),
         "{\"original_id\":\"42\",\"task_id\":\"" TASK "\",\"status\":"
         "\"completed\",\"text\":\"Here\",\"metadata\":{}}");
    told(&t, STR(""),
         "{\"sessionKey\":\"" KEY "\",\"task_id\":\"" TASK "\",\"status\":"
         "\"completed\",\"text\":\"Here\",\"metadata\":{}}");
    answered(&t, "{\"status\":\"completed\",\"sessionKey\":\"" KEY
                 "\",\"task_id\":\"" TASK "\",\"response\":\"Here\"}");
    t.status = TASK_QUEUED;
    answered(&t, "{\"status\":\"accepted\",\"sessionKey\":\"" KEY
                 "\",\"task_id\":\"" TASK "\"}");
    t.status = t.result.status = TASK_EXPIRED;
    t.result.error = STR("late");
    told(&t, STR("42"),
         "{\"original_id\":\"42\",\"task_id\":\"" TASK
         "\",\"status\":\"failed\",\"error\":\"late\"}");
    answered(&t, "{\"status\":\"timeout\",\"sessionKey\":\"" KEY
                 "\",\"task_id\":\"" TASK "\",\"error\":\"late\"}");
    t.status = t.result.status = TASK_CANCELLED;
    t.result.error = STR("");
    told(&t, STR("42"),
         "{\"original_id\":\"42\",\"task_id\":\"" TASK
         "\",\"status\":\"failed\",\"error\":\"cancelled\"}");
    answered(&t, "{\"status\":\"error\",\"sessionKey\":\"" KEY
                 "\",\"task_id\":\"" TASK "\",\"error\":\"cancelled\"}");
}

TEST(reading_survives_every_fault)
{
    long nth = 0;

    do {
        struct read *r;

        fault_arm(++nth);
        r = read_by(speak_delegate,
                    STR("{\"tasks\":[{\"agentId\":\"a\",\"task\":\"t\"}]}"));
        CHECK(fault_fired() ? r->e != OK : r->e == OK);
        end(r);
    } while (fault_fired());
}
