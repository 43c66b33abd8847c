/* The tools that models are offered, and parsing their arguments. */
#include "test/t.h"
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
    CHECK_STR(json_get(json_at(offered(WIRE_PI), 0), STR("name"))->s,
              "delegate_to_agent");
    CHECK_STR(json_get(json_at(offered(WIRE_PI), 1), STR("name"))->s,
              "agent_search");
    CHECK(wire_tool_of(STR("agent_search")) == WIRE_SEARCH);
    CHECK(wire_tool_of(STR("")) == WIRE_NO_TOOL);
    CHECK(wire_tool_of(STR("delegate_to_agen")) == WIRE_NO_TOOL);
    CHECK(wire_tool_of(STR("Search_agents")) == WIRE_NO_TOOL);
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

TEST(a_query_is_taken_up_to_its_limit)
{
    static char text[WIRE_QUERY_MAX + 100];
    struct wire_search s;

    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof(text), "{\"query\":\"%0*d\"}",
                 WIRE_QUERY_MAX + more, 0);
        CHECK_INT(wire_search_read(parsed(text), &s, &why),
                  more ? ERR_LIMIT : OK);
    }
}

TEST(an_error_is_written)
{
    struct buf out;

    buf_init(&out, 4096);
    wire_tool_error(&out, STR("it is \"away\""));
    CHECK_STR(buf_str(&out),
              "{\"status\":\"error\",\"error\":\"it is \\\"away\\\"\"}");
    buf_fini(&out);
}
