/* Calls of tools, in every form and in pieces. */
#include "base/json.h"
#include "test/t.h"
#include "wire/chat/chat.h"

static struct chat_calls api;
static struct arena arena;

static void feed(const char *text)
{
    struct chat_word w;
    struct why why;

    arena_init(&arena, strlen(text) * 40 + (1 << 20));
    if (chat_read(&arena, MODEL_OPENAI, str_of(text), &w, &why))
        T_FAIL("%s: %s", text, why.text);
    CHECK_INT(chat_calls_add(&api, &w), OK);
    arena_fini(&arena);
}

#define DELTA(list) "{\"choices\":[{\"delta\":{\"tool_calls\":[" list "]}}]}"
#define WHOLE(list) "{\"choices\":[{\"message\":{\"tool_calls\":[" list "]}}]}"

static void expect(size_t i, const char *id, const char *name,
                   const char *arguments)
{
    CHECK(i < api.n);
    CHECK_STR(str_of(api.list[i].id), id);
    CHECK_STR(str_of(api.list[i].name), name);
    CHECK_STR(buf_str(&api.list[i].arguments), arguments);
}

static void feed_part(int index, const char *arguments, size_t n)
{
    struct buf text;
    struct json_out o;

    buf_init(&text, 4096);
    o = json_out(&text);
    buf_addf(&text,
             "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,"
             "\"function\":{\"arguments\":",
             index);
    json_put_str(&o, (struct str){arguments, n});
    buf_add_str(&text, STR("}}]}}]}"));
    buf_add_char(&text, '\0');
    feed(text.p);
    buf_fini(&text);
}

TEST(arguments_are_put_together_however_they_are_split)
{
    static const char a[] = "{\"query\":\"a \\\"b\\\" \\u00e9\"}",
                      b[] = "{\"agentId\":\"x\",\"task\":\"y\"}";

    for (size_t i = 0; i < sizeof(a); i++)
        for (size_t j = 0; j < sizeof(b); j++) {
            feed(DELTA("{\"index\":0,\"id\":\"c1\",\"type\":\"function\","
                       "\"function\":{\"name\":\"search_agents\","
                       "\"arguments\":\"\"}}"));
            feed_part(0, a, i);
            feed(DELTA("{\"index\":1,\"id\":\"c2\",\"type\":\"function\","
                       "\"function\":{\"name\":\"delegate_to_agent\"}}"));
            feed_part(1, b, j); /* the two calls alternate */
            feed_part(0, a + i, sizeof(a) - 1 - i);
            feed_part(1, b + j, sizeof(b) - 1 - j);
            CHECK_INT(api.n, 2);
            expect(0, "c1", "search_agents", a);
            expect(1, "c2", "delegate_to_agent", b);
            CHECK_STR(chat_arguments(&api.list[0]), a);
            CHECK_INT(api.bytes, sizeof(a) + sizeof(b) - 2);
            chat_calls_clear(&api);
            CHECK(!api.n && !api.bytes);
        }
}

TEST(what_others_say_otherwise_is_understood)
{
    /* Without an index, each call whole. */
    feed(DELTA("{\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":"
               "\"{}\"}},{\"id\":\"b\",\"function\":{\"name\":\"y\","
               "\"arguments\":\"{}\"}}"));
    feed(DELTA("{\"function\":{\"arguments\":\" \"}}"));
    feed(DELTA("{\"id\":\"a\",\"function\":{\"arguments\":\"\\n\"}}"));
    CHECK_INT(api.n, 2);
    expect(0, "a", "x", "{}\n");
    expect(1, "b", "y", "{} ");
    chat_calls_clear(&api);
    /* One index for all calls. */
    feed(DELTA("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\","
               "\"arguments\":\"{}\"}}"));
    feed(DELTA("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"x\","
               "\"arguments\":\"{\"}}"));
    feed(DELTA("{\"index\":0,\"function\":{\"arguments\":\"}\"}}"));
    CHECK_INT(api.n, 2);
    expect(0, "a", "x", "{}");
    expect(1, "b", "x", "{}");
    chat_calls_clear(&api);
    /* Id and name repeated with every piece; or a new id each time. */
    for (int i = 0; i < 3; i++)
        feed(DELTA("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\","
                   "\"arguments\":\"1\"}}"));
    feed(
        DELTA("{\"index\":0,\"id\":\"z\",\"function\":{\"arguments\":\"2\"}}"));
    CHECK_INT(api.n, 1);
    expect(0, "a", "x", "1112");
    chat_calls_clear(&api);
    /* A name in pieces; an object instead of text; no id at all. */
    feed(DELTA("{\"index\":0,\"function\":{\"name\":\"search\"}}"));
    feed(DELTA("{\"index\":0,\"function\":{\"name\":\"_agents\","
               "\"arguments\":{\"query\": \"q\"}}}"));
    CHECK_INT(api.n, 1);
    expect(0, "", "search_agents", "{\"query\":\"q\"}");
    chat_calls_clear(&api);
    /* A whole answer: each piece is a call, whatever its id is. */
    feed(WHOLE("{\"id\":\"a\",\"function\":{\"name\":\"x\"}},{\"id\":\"a\","
               "\"function\":{\"name\":\"x\"}}"));
    CHECK_INT(api.n, 2);
    CHECK_STR(chat_arguments(&api.list[0]), "{}");
    chat_calls_clear(&api);
}

TEST(what_is_no_call_is_passed_over)
{
    feed("{\"choices\":[{\"delta\":{\"tool_calls\":null}}]}");
    feed("{\"choices\":[{\"delta\":{\"tool_calls\":{}}}]}");
    feed("{\"choices\":[{\"delta\":{\"tool_calls\":[]}}]}");
    feed(DELTA("7,null,[],\"x\""));
    CHECK_INT(api.n, 0);
    feed(DELTA("{},{\"index\":-5,\"id\":7,\"function\":{\"name\":{},"
               "\"arguments\":[]}}"));
    CHECK_INT(api.n, 1); /* without a name, which comes later */
    chat_calls_clear(&api);
}

TEST(sixteen_calls_are_kept_and_the_others_counted)
{
    char text[256];

    for (int i = 0; i < 10000; i++) {
        snprintf(text, sizeof(text),
                 DELTA("{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":"
                       "\"x\",\"arguments\":\"{\"}}"),
                 i * 7, i);
        feed(text);
        snprintf(text, sizeof(text),
                 DELTA("{\"index\":%d,\"function\":{\"arguments\":\"}\"}}"),
                 i * 7);
        feed(text);
    }
    CHECK(api.n == CHAT_CALLS_MAX && api.n_more == 10000 - CHAT_CALLS_MAX);
    expect(0, "c0", "x", "{}");
    expect(15, "c15", "x", "{}");
    chat_calls_clear(&api);
}

TEST(arguments_have_a_limit_for_all_together)
{
    static char piece[1 << 16];
    size_t n = 0;

    memset(piece, 'x', sizeof(piece) - 1);
    feed(DELTA("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\","
               "\"arguments\":\"{}\"}}"));
    for (; n < 10 << 20; n += sizeof(piece) - 1) {
        struct buf text;

        buf_init(&text, 1 << 20);
        buf_addf(&text,
                 DELTA("{\"index\":1,\"function\":{\"arguments\":\"%s\"}}"),
                 piece);
        buf_add_char(&text, '\0');
        feed(text.p);
        buf_fini(&text);
        CHECK(api.bytes <= CHAT_CALLS_BYTES);
    }
    CHECK(api.list[1].is_cut && api.list[1].arguments.n == 0);
    CHECK(api.bytes == 2 && !chat_arguments(&api.list[1]).n);
    CHECK_STR(chat_arguments(&api.list[0]), "{}");
    chat_calls_clear(&api);
    /* The exact limit. */
    for (int more = 0; more < 2; more++) {
        struct buf text;
        size_t left = CHAT_CALLS_BYTES + (size_t)more;

        buf_init(&text, CHAT_CALLS_BYTES + 1000);
        buf_add_str(&text, STR("{\"choices\":[{\"delta\":{\"tool_calls\":[{"
                               "\"index\":0,\"function\":{\"arguments\":\""));
        while (left > 0) {
            size_t part = left < sizeof(piece) - 1 ? left : sizeof(piece) - 1;

            buf_add(&text, piece, part);
            left -= part;
        }
        buf_add_str(&text, STR("\"}}]}}]}"));
        buf_add_char(&text, '\0');
        feed(text.p);
        buf_fini(&text);
        CHECK(api.list[0].is_cut == (more == 1));
        chat_calls_clear(&api);
    }
}

static struct str written(const char *text, size_t round)
{
    static struct buf out;
    struct str answers[CHAT_CALLS_MAX];

    buf_fini(&out);
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < api.n; i++)
        answers[i] = STR("re\"sult");
    chat_write_round(&out, MODEL_OPENAI, &api, str_of(text), answers, round);
    CHECK(!out.over);
    return buf_str(&out);
}

TEST(what_is_written_back_is_what_everybody_takes)
{
    feed(DELTA("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\","
               "\"arguments\":\"{\\\"q\\\":1}\"}}"));
    CHECK_STR(written("", 1),
              "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{"
              "\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"x\","
              "\"arguments\":\"{\\\"q\\\":1}\"}}]},{\"role\":\"tool\","
              "\"tool_call_id\":\"a\",\"content\":\"re\\\"sult\"}");
    /* A repeated id, none, one that is too long; an invalid name; arguments
     * that are not an object. */
    feed(DELTA("{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"y z\","
               "\"arguments\":\"[]\"}}"));
    feed(DELTA("{\"index\":2,\"function\":{\"arguments\":\"{\"}}"));
    CHECK_STR(str_head(written("Hm.", 2), 352),
              "{\"role\":\"assistant\",\"content\":\"Hm.\",\"tool_calls\":[{"
              "\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"x\","
              "\"arguments\":\"{\\\"q\\\":1}\"}},{\"id\":\"sb002x001\",\"type\""
              ":\"function\",\"function\":{\"name\":\"unknown\",\"arguments\":"
              "\"{}\"}},{\"id\":\"sb002x002\",\"type\":\"function\","
              "\"function\":{\"name\":\"unknown\",\"arguments\":\"{}\"}}]},"
              "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"re\\\"su"
              "lt\"}");
    chat_calls_clear(&api);
    /* An id that looks like a generated one. */
    feed(DELTA("{\"index\":0,\"id\":\"sb002x001\"},{\"index\":1},{\"index\":2,"
               "\"id\":\"sb002x002\"}"));
    CHECK(written("", 2).n);
    CHECK_STR(str_of(api.list[0].id), "sb002x001");
    CHECK_STR(str_of(api.list[1].id), "sb002x002");
    CHECK_STR(str_of(api.list[2].id), "sb002x003");
    chat_calls_clear(&api);
}

TEST(an_id_or_a_name_of_any_length_is_survived)
{
    static char text[4096];

    for (int n = 60; n < 70; n++) {
        snprintf(text, sizeof(text),
                 DELTA("{\"index\":0,\"id\":\"%0*d\",\"function\":{\"name\":"
                       "\"%0*d\"}}"),
                 n, 0, n, 0);
        feed(text);
        CHECK((api.list[0].id[0] != 0) == (n <= CHAT_CALL_ID_MAX));
        CHECK(api.list[0].has_bad_name == (n > CHAT_CALL_NAME_MAX));
        chat_calls_clear(&api);
    }
}
