/* The tools that models are offered, and what is read of what they say. */
#include "test/t.h"
#include "model/msg.h"
#include "wire/wire.h"

static struct arena arena;
static struct why why;

static const struct json *parsed(const char *text)
{
    const struct json *v;

    arena_fini(&arena);
    arena_init(&arena, 8 << 20);
    v = json_parse(&arena, str_of(text), 0, NULL);
    CHECK(v);
    return v;
}

static const struct json *offered(enum wire_form form)
{
    static struct buf out;
    struct json_out o;

    buf_fini(&out);
    buf_init(&out, 1 << 20);
    o = json_out(&out);
    wire_tools(&o, form);
    CHECK(!out.over);
    buf_add_char(&out, '\0');
    return parsed(out.p);
}

TEST(each_provider_has_its_own_form_and_the_same_tools)
{
    static const char *const names[] = {"delegate_to_agent", "search_agents"};

    for (size_t i = 0; i < 2; i++) {
        const struct json *t = json_at(offered(WIRE_OPENAI), i);
        const struct json *f = json_get(t, STR("function"));
        size_t n = json_get(f, STR("parameters"))->kids.n;

        CHECK_STR(json_get(t, STR("type"))->s, "function");
        CHECK_STR(json_get(f, STR("name"))->s, names[i]);
        CHECK(json_get(f, STR("description"))->s.n > 20);
        t = json_at(offered(WIRE_ANTHROPIC), i);
        CHECK_STR(json_get(t, STR("name"))->s, names[i]);
        CHECK(t->kids.n == 3 && json_get(t, STR("description"))->s.n > 20);
        CHECK(json_get(t, STR("input_schema"))->kids.n == n);
        CHECK(wire_tool_of(str_of(names[i])) == WIRE_DELEGATE + i);
    }
    CHECK(wire_tool_of(STR("")) == WIRE_NO_TOOL);
    CHECK(wire_tool_of(STR("delegate_to_agen")) == WIRE_NO_TOOL);
    CHECK(wire_tool_of(STR("Search_agents")) == WIRE_NO_TOOL);
}

TEST(one_order_is_read_with_all_it_says)
{
    struct wire_orders w;

    CHECK_INT(
        wire_orders_read(parsed("{\"agentId\":\"b\",\"task\":\"do \\\"it\\\"\","
                                "\"mode\":\"async\",\"timeoutMs\":86400000,"
                                "\"stream\":true,\"skill\":\"s\",\"onTimeout\":"
                                "\"continue\",\"mood\":\"good\"}"),
                         &w, &why),
        OK);
    CHECK(w.n == 1 && !w.is_many && w.list[0].mode == DELEGATION_ASYNC);
    CHECK(w.list[0].timeout_ms == 86400000 && w.list[0].is_stream);
    CHECK(w.list[0].goes_on);
    CHECK_STR(w.list[0].agent, "b");
    CHECK_STR(w.list[0].task, "do \"it\"");
    CHECK_STR(w.list[0].skill, "s");
    CHECK_INT(wire_orders_read(
                  parsed("{\"agentId\":\"b\",\"task\":\"x\",\"mode\":null,"
                         "\"timeoutMs\":null,\"stream\":null,\"tasks\":null,"
                         "\"skill\":null}"),
                  &w, &why),
              OK);
    CHECK(w.n == 1 && w.list[0].mode == DELEGATION_SYNC && !w.list[0].skill.n);
    CHECK(!w.list[0].timeout_ms && !w.list[0].is_stream && !w.list[0].goes_on);
    CHECK_INT(wire_orders_read(parsed("{\"agentId\":\"b\",\"task\":\"x\","
                                      "\"timeoutMs\":1000.0}"),
                               &w, &why),
              OK);
    CHECK(w.list[0].timeout_ms == 1000);
}

static void write_many(char *out, size_t size, int n)
{
    size_t at = (size_t)snprintf(out, size, "{\"tasks\":[");

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, size - at,
                               "%s{\"agentId\":\"a%d\",\"task\":\"t\"}",
                               i ? "," : "", i);
    snprintf(out + at, size - at, "]}");
}

TEST(up_to_sixteen_orders_are_read_at_once)
{
    static char text[4096];
    struct wire_orders w;

    for (int n = 1; n <= 16; n++) {
        write_many(text, sizeof(text), n);
        CHECK_INT(wire_orders_read(parsed(text), &w, &why), OK);
        CHECK(w.is_many && w.n == (size_t)n);
    }
    CHECK_STR(w.list[15].agent, "a15");
    write_many(text, sizeof(text), 17);
    CHECK_INT(wire_orders_read(parsed(text), &w, &why), ERR_BAD_REQUEST);
    CHECK_STR(str_of(why.text), "tasks must be a list of 1 to 16 objects");
}

TEST(what_is_wrong_with_an_order_is_said_in_words)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[]", "the arguments must be an object"},
        {"7", "the arguments must be an object"},
        {"{}", "agentId is needed"},
        {"{\"agentId\":\"\",\"task\":\"x\"}", "agentId is needed"},
        {"{\"agentId\":\"b\"}", "task is needed"},
        {"{\"agentId\":\"b\",\"task\":\" \"}", "task is needed"},
        {"{\"agentId\":\"b\",\"task\":7}", "task must be text"},
        {"{\"agentId\":{},\"task\":\"x\"}", "agentId must be text"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"mode\":\"later\"}",
         "mode must be \"sync\" or \"async\""},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"mode\":1}", "mode must be"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"timeoutMs\":0}",
         "timeoutMs must be a whole number from 1 to 86400000"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"timeoutMs\":86400001}",
         "timeoutMs must be"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"timeoutMs\":1.5}",
         "timeoutMs must be"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"timeoutMs\":1e300}",
         "timeoutMs must be"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"timeoutMs\":\"9\"}",
         "timeoutMs must be"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"stream\":\"yes\"}",
         "stream must be true or false"},
        {"{\"agentId\":\"b\",\"task\":\"x\",\"skill\":[]}",
         "skill must be text"},
        {"{\"tasks\":[]}", "tasks must be a list of 1 to 16 objects"},
        {"{\"tasks\":{}}", "tasks must be a list"},
        {"{\"tasks\":[7]}", "tasks[0]: it must be an object"},
        {"{\"tasks\":[{\"agentId\":\"b\",\"task\":\"x\"},{}]}",
         "tasks[1]: agentId is needed"},
        {"{\"task\":\"x\",\"tasks\":[]}", "not both"},
    };
    struct wire_orders w;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        why.text[0] = '\0';
        CHECK(wire_orders_read(parsed(cases[i].text), &w, &why) != OK);
        if (!strstr(why.text, cases[i].words))
            T_FAIL("%s: %s", cases[i].text, why.text);
    }
}

TEST(a_search_is_read)
{
    static const char *const bad[] = {
        "{}",
        "{\"query\":\"\"}",
        "{\"query\":7}",
        "[]",
        "{\"query\":null}",
        "{\"query\":\"x\",\"limit\":0}",
        "{\"query\":\"x\",\"limit\":21}",
        "{\"query\":\"x\",\"limit\":\"1\"}",
    };
    struct wire_search s;

    CHECK_INT(wire_search_read(parsed("{\"query\":\"x\"}"), &s, &why), OK);
    CHECK_STR(s.query, "x");
    CHECK_INT(s.limit, 5);
    CHECK_INT(
        wire_search_read(parsed("{\"query\":\"x\",\"limit\":20}"), &s, &why),
        OK);
    CHECK_INT(s.limit, 20);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        why.text[0] = '\0';
        CHECK(wire_search_read(parsed(bad[i]), &s, &why) != OK && why.text[0]);
    }
}

TEST(each_text_is_taken_up_to_its_limit)
{
    static const struct {
        const char *key;
        size_t max;
    } cases[] = {{"agentId", AGENT_NAME_MAX},
                 {"task", MSG_TEXT_MAX},
                 {"skill", MSG_SKILL_MAX}};
    static char text[MSG_TEXT_MAX + 200];
    struct wire_orders w;

    for (size_t i = 0; i < 3; i++)
        for (size_t more = 0; more < 2; more++) {
            int at = snprintf(text, sizeof(text), "{%s\"%s\":\"",
                              i == 0   ? "\"task\":\"x\","
                              : i == 1 ? "\"agentId\":\"b\","
                                       : "\"agentId\":\"b\",\"task\":\"x\",",
                              cases[i].key);

            memset(text + at, 'x', cases[i].max + more);
            memcpy(text + at + cases[i].max + more, "\"}", 3);
            CHECK_INT(wire_orders_read(parsed(text), &w, &why),
                      more ? ERR_LIMIT : OK);
        }
}

TEST(what_came_of_it_is_written)
{
    struct buf out;
    struct json_out o;

    buf_init(&out, 4096);
    o = json_out(&out);
    json_open(&o, '[');
    wire_outcome(&o, &(struct wire_outcome){.status = "completed",
                                            .key = STR("del_1"),
                                            .task_id = STR("task_1")});
    wire_outcome(&o, &(struct wire_outcome){.status = "error",
                                            .error = STR("it is \"away\"")});
    json_close(&o, ']');
    CHECK_STR(buf_str(&out),
              "[{\"status\":\"completed\",\"response\":\"\",\"sessionKey\":"
              "\"del_1\",\"task_id\":\"task_1\"},{\"status\":\"error\","
              "\"error\":\"it is \\\"away\\\"\"}]");
    buf_fini(&out);
}
