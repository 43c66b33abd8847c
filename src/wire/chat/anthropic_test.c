/* Anthropic's messages, written and read. */
#include "wire/chat/chat.h"

#include "base/json.h"
#include "test/t.h"

static struct arena arena;
static struct why why;
static struct chat_calls api;

static struct str written(struct chat_request rq)
{
    static struct buf out;

    rq.kind = MODEL_ANTHROPIC;
    buf_fini(&out);
    buf_init(&out, 1 << 20);
    chat_write(&out, &rq);
    CHECK(!out.over && json_check(buf_str(&out), NULL) == OK);
    return buf_str(&out);
}

static struct chat_word read_well(const char *text)
{
    struct chat_word w;

    arena_fini(&arena);
    arena_init(&arena, strlen(text) * 40 + (1 << 20));
    if (chat_read(&arena, MODEL_ANTHROPIC, str_of(text), &w, &why))
        T_FAIL("%s: %s", text, why.text);
    return w;
}

TEST(it_is_reached_by_its_own_path_and_headers)
{
    static const struct str forms[] = {STR("https://a.example/v1"),
                                       STR("https://a.example/v1/"),
                                       STR("https://a.example/v1/messages"),
                                       STR("https://a.example/v1/messages/")};
    struct chat_reach r;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        arena_init(&arena, 4096);
        CHECK_INT(chat_reach(&arena, MODEL_ANTHROPIC, forms[i], STR("sk-1"),
                             true, &r),
                  OK);
        CHECK_STR(r.url, "https://a.example/v1/messages");
        CHECK_INT(r.n_headers, 4);
        CHECK_STR(r.headers[2].name, "anthropic-version");
        CHECK_STR(r.headers[2].value, "2023-06-01");
        CHECK_STR(r.headers[3].name, "x-api-key");
        CHECK_STR(r.headers[3].value, "sk-1");
        arena_fini(&arena);
    }
    arena_init(&arena, 4096);
    CHECK_INT(chat_reach(&arena, MODEL_ANTHROPIC,
                         STR("http://b/v1?x=/messages"), STR(""), false, &r),
              OK);
    CHECK_STR(r.url, "http://b/v1/messages?x=/messages");
    CHECK_INT(r.n_headers, 3); /* without a key none is sent */
    arena_fini(&arena);
    arena_init(&arena, 0);
    CHECK_INT(chat_reach(&arena, MODEL_ANTHROPIC, forms[0], STR("k"), true, &r),
              ERR_NOMEM);
}

TEST(the_least_that_is_written_says_how_long_an_answer_may_be)
{
    CHECK_STR(written((struct chat_request){.model = STR("haiku"),
                                            .message = STR("hi \"you\""),
                                            .temperature = -1,
                                            .streams = true}),
              "{\"model\":\"haiku\",\"max_tokens\":4096,\"messages\":[{"
              "\"role\":\"user\",\"content\":\"hi \\\"you\\\"\"}],\"stream\":"
              "true}");
}

TEST(everything_that_can_be_written)
{
    static const struct task_said before[] = {
        {false, STR("one"), 1, 1},
        {true, STR(" \n\t"), 1, 1}, /* the API rejects blank messages */
        {false, STR("two"), 1, 2},
        {true, STR("three"), 1, 2}};

    /* Options of OpenAI's dialect are not sent. */
    CHECK_STR(written((struct chat_request){.model = STR("m"),
                                            .system = STR("Be brief."),
                                            .history = before,
                                            .n_history = 4,
                                            .message = STR("four"),
                                            .max_tokens = 9,
                                            .temperature = 0.5,
                                            .streams = true,
                                            .wants_usage = true,
                                            .has_long_max_tokens = true}),
              "{\"model\":\"m\",\"max_tokens\":9,\"system\":\"Be brief.\","
              "\"messages\":[{\"role\":\"user\",\"content\":\"one\"},{\"role\":"
              "\"user\",\"content\":\"two\"},{\"role\":\"assistant\","
              "\"content\":\"three\"},{\"role\":\"user\",\"content\":\"four\"}"
              "],\"stream\":true,\"temperature\":0.5}");
}

/* The API rejects blank messages, and an answer before the first question. */
TEST(what_says_nothing_is_left_out_with_its_answer)
{
    static const struct task_said before[] = {
        {true, STR("cut off"), 1, 0}, {false, STR(" \n\t"), 1, 1},
        {true, STR("what?"), 1, 1},   {false, STR("one"), 1, 2},
        {true, STR("two"), 1, 2},     {false, STR("\xc2\xa0"), 1, 3},
        {true, STR("hm?"), 1, 3}};
    static const char *const blanks[] = {"", " ", "\n\t", "\xc2\xa0",
                                         "\xe3\x80\x80 "};

    for (size_t i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++)
        CHECK_STR(written((struct chat_request){.model = STR("m"),
                                                .history = before,
                                                .n_history = 7,
                                                .message = str_of(blanks[i]),
                                                .temperature = -1}),
                  "{\"model\":\"m\",\"max_tokens\":4096,\"messages\":[{"
                  "\"role\":\"user\",\"content\":\"one\"},{\"role\":"
                  "\"assistant\",\"content\":\"two\"},{\"role\":\"user\","
                  "\"content\":\"(no text)\"}]}");
}

TEST(tools_are_offered_and_at_the_end_no_more_to_be_used)
{
    struct chat_request rq = {.has_tools = true, .temperature = -1};
    struct json *root, *tools;

    for (int is_last = 0; is_last < 2; is_last++) {
        rq.is_last = is_last;
        arena_init(&arena, 1 << 20);
        root = json_parse(&arena, written(rq), 0, NULL);
        tools = json_get(root, STR("tools"));
        CHECK_INT(tools->kids.n, 2);
        JSON_EACH(tool, tools)
        {
            CHECK_INT(tool->kids.n, 3);
            CHECK(json_get(tool, STR("input_schema"))->type == JSON_OBJ);
        }
        CHECK_STR(json_str_or(
                      json_get(json_get(root, STR("tool_choice")), STR("type")),
                      STR("")),
                  is_last ? "none" : "");
        arena_fini(&arena);
    }
}

TEST(a_schema_is_a_tool_that_must_be_called)
{
    struct chat_word w;

    CHECK_STR(
        written((struct chat_request){.model = STR("m"),
                                      .message = STR("x"),
                                      .schema = STR("{\"type\":\"object\"}")}),
        "{\"model\":\"m\",\"max_tokens\":4096,\"messages\":[{\"role\":"
        "\"user\",\"content\":\"x\"}],\"tools\":[{\"name\":\"answer\","
        "\"description\":\"Give your answer.\",\"input_schema\":{"
        "\"type\":\"object\"}}],\"tool_choice\":{\"type\":\"tool\","
        "\"name\":\"answer\"},\"temperature\":0.0}");
    w = read_well("{\"type\":\"message\",\"content\":[{\"type\":\"tool_use\","
                  "\"id\":\"t\",\"name\":\"answer\",\"input\":{\"a\":1}}],"
                  "\"stop_reason\":\"tool_use\"}");
    CHECK(chat_object(&w));
    CHECK_INT(json_int_or(json_get(chat_object(&w), STR("a")), 0), 1);
    w = read_well("{\"type\":\"message\",\"content\":[{\"type\":\"tool_use\","
                  "\"name\":\"other\",\"input\":{\"a\":1}},{\"type\":\"text\","
                  "\"text\":\"{}\"}]}");
    CHECK(!chat_object(&w));
    CHECK_STR(w.text, "{}");
}

#define START                                                                \
    "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":"    \
    "\"message\",\"role\":\"assistant\",\"model\":\"haiku-1\",\"content\":[" \
    "],\"stop_reason\":null,\"usage\":{\"input_tokens\":20,"                 \
    "\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":4,"       \
    "\"output_tokens\":1}}}"

TEST(a_stream_is_read_event_by_event)
{
    struct chat_word w = read_well(START);

    CHECK(w.has_choice && !w.text.n && !w.finish.n && !w.is_done);
    CHECK_STR(w.model, "haiku-1");
    CHECK(w.used[CHAT_PROMPT] == 27 && w.used[CHAT_COMPLETION] == 1 &&
          w.used[CHAT_TOTAL] == -1);
    w = read_well("{\"type\":\"content_block_start\",\"index\":0,"
                  "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}");
    CHECK(w.has_choice && !w.text.n && !w.n_pieces);
    w = read_well("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
                  "\"type\":\"text_delta\",\"text\":\"Hel\"}}");
    CHECK_STR(w.text, "Hel");
    w = read_well("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                  "\"end_turn\",\"stop_sequence\":null},\"usage\":{"
                  "\"output_tokens\":15}}");
    CHECK_STR(w.finish, "stop");
    CHECK(w.used[CHAT_PROMPT] == -1 && w.used[CHAT_COMPLETION] == 15);
    w = read_well("{\"type\":\"message_stop\"}");
    CHECK(w.is_done && !w.is_error);
    CHECK(read_well("[DONE]").is_done); /* from a translating proxy */
}

TEST(what_is_not_for_us_is_passed_over)
{
    static const char *const cases[] = {
        "{\"type\":\"ping\"}",
        "{\"type\":\"content_block_stop\",\"index\":0}",
        "{\"type\":\"something_new\",\"text\":\"x\"}",
        "{\"type\":7}",
        "{}",
        "{\"error\":null}",
        "{\"type\":\"message\"}",
        "{\"type\":\"message\",\"content\":\"x\"}",
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
        "\"thinking_delta\",\"thinking\":\"hm\"}}",
        "{\"type\":\"content_block_delta\",\"delta\":{\"type\":"
        "\"signature_delta\",\"signature\":\"x\"}}",
        "{\"type\":\"content_block_start\",\"content_block\":{\"type\":"
        "\"thinking\",\"text\":\"x\"}}",
        "{\"type\":\"content_block_delta\",\"delta\":7}",
        "{\"type\":\"message_delta\",\"delta\":null}",
        "{\"type\":\"message_start\"}",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chat_word w = read_well(cases[i]);

        CHECK(!w.text.n && !w.finish.n && !w.n_pieces && !w.is_error &&
              !w.is_done);
    }
}

TEST(why_it_ended_has_the_usual_names)
{
    static const struct {
        const char *theirs, *ours;
    } cases[] = {
        {"end_turn", "stop"},          {"stop_sequence", "stop"},
        {"max_tokens", "length"},      {"tool_use", "tool_calls"},
        {"refusal", "content_filter"}, {"pause_turn", "pause_turn"},
    };
    char text[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
                 "\"%s\"}}",
                 cases[i].theirs);
        CHECK_STR(read_well(text).finish, cases[i].ours);
        snprintf(text, sizeof(text),
                 "{\"type\":\"message\",\"content\":[],\"stop_reason\":\"%s\"}",
                 cases[i].theirs);
        CHECK_STR(read_well(text).finish, cases[i].ours);
    }
}

TEST(a_whole_answer_has_all_blocks)
{
    struct chat_word w = read_well(
        "{\"type\":\"message\",\"model\":\"m-1\",\"content\":[{\"type\":"
        "\"thinking\",\"thinking\":\"hm\"},{\"type\":\"text\",\"text\":\"a\"},"
        "7,{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"x\",\"input\":{"
        "\"q\":1}},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"tool_use\","
        "\"id\":\"t2\",\"name\":\"y\",\"input\":{}}],\"stop_reason\":"
        "\"tool_use\",\"usage\":{\"input_tokens\":2,\"output_tokens\":3}}");

    CHECK(w.has_choice && w.is_whole);
    CHECK_STR(w.text, "ab");
    CHECK_STR(w.model, "m-1");
    CHECK_STR(w.finish, "tool_calls");
    CHECK(w.used[CHAT_PROMPT] == 2 && w.used[CHAT_COMPLETION] == 3);
    CHECK_INT(chat_calls_add(&api, &w), OK);
    CHECK_INT(api.n, 2);
    CHECK_STR(str_of(api.list[0].id), "t1");
    CHECK_STR(chat_arguments(&api.list[0]), "{\"q\":1}");
    CHECK_STR(chat_arguments(&api.list[1]), "{}");
    chat_calls_clear(&api);
}

static void feed(const char *text)
{
    struct chat_word w = read_well(text);

    CHECK_INT(chat_calls_add(&api, &w), OK);
}

#define CALL(index, id, name)                                              \
    "{\"type\":\"content_block_start\",\"index\":" index                   \
    ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\"" \
    ":\"" name "\",\"input\":{}}}"

static void feed_part(int index, const char *part, size_t n)
{
    struct buf text;
    struct json_out o;

    buf_init(&text, 4096);
    o = json_out(&text);
    buf_addf(&text,
             "{\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{"
             "\"type\":\"input_json_delta\",\"partial_json\":",
             index);
    json_put_str(&o, (struct str){part, n});
    buf_add_str(&text, STR("}}"));
    buf_add_char(&text, '\0');
    feed(text.p);
    buf_fini(&text);
}

TEST(inputs_are_put_together_however_they_are_split)
{
    static const char a[] = "{\"query\":\"a \\\"b\\\" \\u00e9\"}",
                      b[] = "{\"agentId\":\"x\"}";

    for (size_t i = 0; i < sizeof(a); i++)
        for (size_t j = 0; j < sizeof(b); j++) {
            feed(CALL("1", "toolu_1", "search_agents"));
            feed_part(1, a, i);
            feed(CALL("2", "toolu_2", "delegate_to_agent"));
            feed_part(2, b, j); /* the two calls alternate */
            feed_part(1, a + i, sizeof(a) - 1 - i);
            feed_part(2, b + j, sizeof(b) - 1 - j);
            CHECK_INT(api.n, 2);
            CHECK_STR(str_of(api.list[0].name), "search_agents");
            CHECK_STR(chat_arguments(&api.list[0]), a);
            CHECK_STR(chat_arguments(&api.list[1]), b);
            chat_calls_clear(&api);
        }
}

TEST(more_of_what_is_no_call_of_ours_begins_none)
{
    feed("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{"
         "\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\","
         "\"input\":{}}}");
    feed_part(0, "{\"q\":1}", 7);
    CHECK_INT(api.n, 0);
    feed(CALL("1", "t", "x"));
    feed_part(0, "more", 4);
    CHECK_INT(api.n, 1);
    CHECK_STR(chat_arguments(&api.list[0]), "{}");
    chat_calls_clear(&api);
}

TEST(sixteen_calls_are_kept_and_the_others_counted)
{
    char text[256];

    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof(text),
                 "{\"type\":\"content_block_start\",\"index\":%d,"
                 "\"content_block\":{\"type\":\"tool_use\",\"id\":\"t%d\","
                 "\"name\":\"x\",\"input\":{}}}",
                 i, i);
        feed(text);
        feed_part(i, "{}", 2);
    }
    CHECK(api.n == CHAT_CALLS_MAX && api.n_more == 100 - CHAT_CALLS_MAX);
    CHECK_INT(api.bytes, 2 * CHAT_CALLS_MAX);
    chat_calls_clear(&api);
}

TEST(a_round_is_the_assistants_message_and_one_of_the_users)
{
    static const struct str answers[] = {STR("re\"sult"), STR("{}")};
    struct buf out;

    feed(CALL("0", "toolu_1", "x"));
    feed_part(0, "{\"q\":1}", 7);
    feed(CALL("1", "toolu_1", "y z")); /* the same id, and no name */
    feed_part(1, "[", 1);
    buf_init(&out, 1 << 16);
    chat_write_round(&out, MODEL_ANTHROPIC, &api, STR("Hm."), answers, 2);
    CHECK_STR(buf_str(&out),
              "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
              "\"text\":\"Hm.\"},{\"type\":\"tool_use\",\"id\":\"toolu_1\","
              "\"name\":\"x\",\"input\":{\"q\":1}},{\"type\":\"tool_use\","
              "\"id\":\"sb002x001\",\"name\":\"unknown\",\"input\":{}}]},"
              "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
              "\"tool_use_id\":\"toolu_1\",\"content\":\"re\\\"sult\"},{"
              "\"type\":\"tool_result\",\"tool_use_id\":\"sb002x001\","
              "\"content\":\"{}\"}]}");
    buf_clear(&out);
    chat_write_round(&out, MODEL_ANTHROPIC, &api, STR(" \n"), answers, 2);
    CHECK(
        !memmem(out.p, out.n, "\"text\"", 6)); /* the API rejects blank text */
    buf_fini(&out);
    chat_calls_clear(&api);
}

TEST(errors_say_what_they_are)
{
    static const struct {
        const char *type;
        int64_t code;
    } cases[] = {
        {"invalid_request_error", 400},
        {"authentication_error", 401},
        {"permission_error", 403},
        {"not_found_error", 404},
        {"request_too_large", 413},
        {"rate_limit_error", 429},
        {"api_error", 500},
        {"timeout_error", 504},
        {"overloaded_error", 529},
        {"billing_error", 402},
        {"some_other", 0},
    };
    char text[256];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int typed = 0; typed < 2; typed++) {
            struct chat_word w;

            snprintf(text, sizeof(text),
                     "{%s\"error\":{\"type\":\"%s\",\"message\":\"x\"}}",
                     typed ? "\"type\":\"error\"," : "", cases[i].type);
            w = read_well(text);
            CHECK(w.is_error && !w.is_done);
            CHECK_INT(w.error_code, cases[i].code);
        }
}

TEST(what_is_kept_of_it_has_limits)
{
    static char text[4096];
    struct chat_word w;

    snprintf(text, sizeof(text),
             "{\"type\":\"message\",\"content\":[],\"model\":\"%0500d\","
             "\"stop_reason\":\"%0100d\",\"usage\":{\"input_tokens\":"
             "9223372036854775807,\"cache_read_input_tokens\":"
             "9223372036854775807,\"output_tokens\":-3}}",
             0, 0);
    w = read_well(text);
    CHECK(w.model.n == CHAT_NAME_MAX && w.finish.n == CHAT_FINISH_MAX);
    CHECK(w.used[CHAT_PROMPT] == CHAT_USED_MAX);
    CHECK(w.used[CHAT_COMPLETION] == -1);
}

TEST(without_memory_it_says_so)
{
    static const char *const texts[] = {
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
        "{\"type\":\"tool_use\",\"name\":\"x\"}]}",
        CALL("0", "t", "x")};

    for (size_t i = 0; i < 2; i++) {
        enum err e = ERR_NOMEM;
        struct chat_word w;

        for (size_t cap = 0; e && cap < 8192; cap += 16) {
            arena_init(&arena, cap);
            e = chat_read(&arena, MODEL_ANTHROPIC, str_of(texts[i]), &w, &why);
            CHECK(!e || e == ERR_NOMEM || e == ERR_BAD_REQUEST);
            CHECK(e || w.n_pieces == 1);
            arena_fini(&arena);
        }
        CHECK(!e);
    }
}
