/* OpenAI's chat completions, written and read. */
#include "wire/chat/chat.h"

#include "base/fault.h"
#include "base/json.h"
#include "test/t.h"

static struct arena arena;
static struct why why;

static struct str written(const struct chat_request *rq)
{
    static struct buf out;

    buf_fini(&out);
    buf_init(&out, 1 << 20);
    chat_write(&out, rq);
    CHECK(!out.over && json_check(buf_str(&out), NULL) == OK);
    return buf_str(&out);
}

TEST(the_least_that_is_written)
{
    CHECK_STR(written(&(struct chat_request){.model = STR("m"),
                                             .message = STR("hi \"you\""),
                                             .temperature = -1,
                                             .streams = true}),
              "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
              "\"hi \\\"you\\\"\"}],\"stream\":true}");
}

TEST(everything_that_can_be_written)
{
    static const struct task_said before[] = {{false, STR("one"), 1, 1},
                                              {true, STR("two"), 1, 1}};
    struct chat_request rq = {.model = STR("m"),
                              .system = STR("Be brief."),
                              .history = before,
                              .n_history = 2,
                              .message = STR("three"),
                              .max_tokens = 9,
                              .temperature = 0.5,
                              .streams = true,
                              .wants_usage = true};

    CHECK_STR(written(&rq),
              "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":"
              "\"Be brief.\"},{\"role\":\"user\",\"content\":\"one\"},"
              "{\"role\":\"assistant\",\"content\":\"two\"},{\"role\":\"user\","
              "\"content\":\"three\"}],\"stream\":true,\"stream_options\":"
              "{\"include_usage\":true},\"max_tokens\":9,\"temperature\":0.5}");
    rq.has_long_max_tokens = true;
    rq.wants_usage = false;
    rq.temperature = 0;
    CHECK_STR(str_sub(written(&rq), 169, 999),
              "\"stream\":true,\"max_completion_tokens\":9,\"temperature\":"
              "0.0}");
}

static struct chat_word read_well(const char *text)
{
    struct chat_word w;

    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    if (chat_read(&arena, MODEL_OPENAI, str_of(text), &w, &why))
        T_FAIL("%s: %s", text, why.text);
    return w;
}

TEST(a_piece_has_text_in_several_forms)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}", "a"},
        {"{\"choices\":[{\"delta\":{\"content\":\"\"}}]}", ""},
        {"{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]"
         "}",
         ""},
        {"{\"choices\":[{\"delta\":{}}]}", ""},
        {"{\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":"
         "\"a\"},{\"type\":\"image\"},7,{\"text\":\"b\"}]}}]}",
         "ab"},
        {"{\"choices\":[{\"delta\":{\"content\":[]}}]}", ""},
        {"{\"choices\":[{\"delta\":{\"refusal\":\"I will not\"}}]}",
         "I will not"},
        {"{\"choices\":[{\"message\":{\"content\":\"whole\"}}]}", "whole"},
        {"{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}", ""},
        {"{\"choices\":[{\"delta\":{\"content\":7}}]}", ""},
        {"{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}},"
         "{\"index\":1,\"delta\":{\"content\":\"b\"}}]}",
         "a"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chat_word w = read_well(cases[i].json);

        CHECK_STR(w.text, cases[i].text);
        CHECK(w.has_choice && !w.is_error && !w.is_done);
    }
}

TEST(what_is_not_for_us_is_passed_over)
{
    static const char *const cases[] = {
        "{}",
        "{\"choices\":[]}",
        "{\"choices\":null}",
        "{\"choices\":{}}",
        "{\"choices\":[7]}",
        "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}",
        "{\"prompt_filter_results\":[],\"error\":null}",
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chat_word w = read_well(cases[i]);

        CHECK(!w.has_choice && !w.is_error && !w.text.n && !w.finish.n);
    }
}

TEST(the_end_is_said_with_why_and_what_was_used)
{
    struct chat_word w = read_well(
        "{\"model\":\"m-1\",\"choices\":[{\"delta\":{},\"finish_reason\":"
        "\"length\"}],\"usage\":{ \"total_tokens\": 3 }}");

    CHECK_STR(w.finish, "length");
    CHECK_STR(w.model, "m-1");
    CHECK_STR(w.usage, "{\"total_tokens\":3}");
    CHECK(read_well("[DONE]").is_done && read_well(" [DONE] ").is_done);
    CHECK(read_well("{\"usage\":null}").usage.n == 0);
}

TEST(errors_come_in_several_shapes)
{
    static const struct {
        const char *json;
        int64_t code;
    } cases[] = {
        {"{\"error\":{\"message\":\"x\",\"code\":429}}", 429},
        {"{\"error\":{\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}}",
         429},
        {"{\"error\":{\"message\":\"x\",\"type\":\"server_error\"}}", 0},
        {"{\"error\":\"out of memory\"}", 0},
        {"{\"object\":\"error\",\"message\":\"x\",\"code\":400}", 400},
        {"{\"error\":{\"code\":\"x\",\"status\":503}}", 503},
        {"{\"error\":{}}", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chat_word w = read_well(cases[i].json);

        CHECK(w.is_error);
        CHECK_INT(w.error_code, cases[i].code);
    }
}

TEST(what_is_none_of_it_is_said)
{
    static const char *const cases[] = {"",        "hello",  "[]",  "7",
                                        "{\"a\":", "[done]", "null"};
    struct chat_word w;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arena_init(&arena, 1 << 20);
        CHECK(chat_read(&arena, MODEL_OPENAI, str_of(cases[i]), &w, &why) ==
              ERR_BAD_REQUEST);
        CHECK(why.text[0] && !w.text.n && !w.is_done);
        arena_fini(&arena);
    }
}

TEST(what_is_kept_of_it_has_limits)
{
    static char text[20000];
    struct chat_word w;

    snprintf(
        text, sizeof(text),
        "{\"model\":\"%0500d\",\"choices\":[{\"finish_reason\":\"%0100d\"}]"
        ",\"usage\":{\"x\":\"%04100d\"}}",
        0, 0, 0);
    w = read_well(text);
    CHECK(w.model.n == CHAT_NAME_MAX && w.finish.n == CHAT_FINISH_MAX);
    CHECK(w.usage.n == 0); /* half of it would be no JSON */
}

TEST(without_memory_it_says_so)
{
    struct chat_word w;
    enum err e = ERR_NOMEM;

    for (size_t cap = 0; e && cap < 8192; cap += 16) {
        arena_init(&arena, cap);
        e = chat_read(&arena, MODEL_OPENAI,
                      STR("{\"choices\":[{\"delta\":{\"content\":[{\"text\":"
                          "\"a\"}]}}],\"usage\":{\"x\":1}}"),
                      &w, &why);
        CHECK(!e || e == ERR_NOMEM || e == ERR_BAD_REQUEST);
        if (!e)
            CHECK_STR(w.text, "a");
        arena_fini(&arena);
    }
    CHECK(!e);
}

TEST(an_answer_that_finds_no_memory_is_not_a_bad_one)
{
    struct chat_word w;
    struct buf b;

    buf_init(&b, 4 << 20);
    buf_add_str(&b, STR("{\"a\":[0"));
    for (int i = 0; i < 100000; i++)
        buf_add_str(&b, STR(",0"));
    buf_add_str(&b, STR("]}"));
    arena_init(&arena, 64 << 20);
    fault_arm_at("arena.block", 1);
    CHECK(chat_read(&arena, MODEL_OPENAI, buf_str(&b), &w, &why) == ERR_NOMEM);
    CHECK(fault_fired());
    arena_fini(&arena);
    buf_fini(&b);
}
