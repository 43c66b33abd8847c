/* Agents that are a prompt and a model. */
#include "test/lib/web_stage.h"

#define KEY "sk-very-secret-1234"

static struct model_def models[2];

static void set_models(void)
{
    struct deliver_settings s = web.opts.settings;

    s.models = models;
    s.n_models = 2;
    deliver_set(web.d, &s);
}

static struct peer *open_model(const char *reply)
{
    static char url[64];
    struct peer *p;

    web_open();
    stage_allow(web.s, NULL); /* the operator's own is reached all the same */
    p = peer_open(web.s, reply);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/", p->port);
    models[0] = (struct model_def){.name = STR("small"),
                                   .base_url = str_of(url),
                                   .model = STR("tiny-1"),
                                   .key = STR(KEY),
                                   .system_prompt = STR("You are small."),
                                   .temperature = -1,
                                   .history_messages = 10,
                                   .history_bytes = 1000,
                                   .timeout_ms = 300 * 1000,
                                   .silence_ms = 40 * 1000};
    models[1] = models[0];
    models[1].name = STR("vendor");
    models[1].model = STR("");
    models[1].key = STR("");
    models[1].system_prompt = STR("");
    set_models();
    web.agent.url = STR("model:small");
    web.agent.is_configured = false;
    return p;
}

#define PIECE(text)                                                   \
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text \
    "\"}}]}\n\n"
#define FINISH(why)                                                \
    "data: {\"model\":\"tiny-1-0613\",\"choices\":[{\"delta\":{}," \
    "\"finish_reason\":\"" why "\"}]}\n\n"
#define USAGE "data: {\"choices\":[],\"usage\":{\"total_tokens\": 7}}\n\n"
#define DONE  "data: [DONE]\n\n"

#define FAILURE \
    "event: error\ndata: {\"error\":{\"message\":\"late\",\"code\":503}}\n\n"

static void expect_completed(const char *text)
{
    if (web.status != TASK_COMPLETED)
        T_FAIL("%s: %s %s %s", web.words, web.error_code, web.error,
               web.because);
    CHECK_STR(buf_str(&web.result), text);
}

static void expect_failed(const char *code, const char *words)
{
    if (web.status != TASK_FAILED)
        T_FAIL("%s: %s", web.words, web.because);
    CHECK_STR(str_of(web.error_code), code);
    if (!strstr(web.error, words))
        T_FAIL("\"%s\" is not in: %s", words, web.error);
    CHECK(!strstr(web.error, "127.0.0.1") && !strstr(web.error, KEY));
}

static void expect_again(const char *words)
{
    CHECK(is_heard_of('a') && !is_heard_of('r'));
    if (!strstr(web.because, words))
        T_FAIL("\"%s\" is not in: %s", words, web.because);
    CHECK(!strstr(web.because, KEY));
}

/* The request. */

TEST(a_model_is_asked_and_streams_its_answer)
{
    struct peer *p =
        open_model(SSE_HEAD PIECE("Hel") PIECE("lo") FINISH("stop") USAGE DONE);

    p->closes = true;
    carry();
    CHECK_STR(str_of(web.words), "wccr");
    expect_completed("Hello");
    CHECK_STR(buf_str(&web.text), "Hello");
    CHECK_STR(buf_str(&web.metadata),
              "{\"model\":\"tiny-1-0613\",\"finish_reason\":\"stop\","
              "\"usage\":{\"total_tokens\":7}}");
    CHECK(peer_heard(p, "POST /v1/chat/completions HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "\r\nAuthorization: Bearer " KEY "\r\n"));
    CHECK(peer_heard(p, "{\"model\":\"tiny-1\",\"messages\":[{\"role\":"
                        "\"system\",\"content\":\"You are small.\"},{\"role\":"
                        "\"user\",\"content\":\"hello \\\"you\\\"\"}],"
                        "\"stream\":true,\"stream_options\":"));
    CHECK(!peer_heard(p, "max_tokens") && !peer_heard(p, "temperature"));
    CHECK(!strstr(log_said(), KEY));
    web_close();
}

/* The other dialect. */

#define EVENT(type, more) \
    "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define BEGIN                                                                \
    EVENT("message_start", ",\"message\":{\"model\":\"haiku-1\",\"usage\":{" \
                           "\"input_tokens\":5,\"output_tokens\":1}}")
#define WORD(text)                                                           \
    EVENT("content_block_delta",                                             \
          ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" text \
          "\"}")
#define LAST(why)                                                      \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" why "\"}," \
                           "\"usage\":{\"output_tokens\":3}")          \
    EVENT("message_stop", "")

static struct peer *open_anthropic(const char *reply)
{
    struct peer *p = open_model(reply);

    models[0].kind = models[1].kind = MODEL_ANTHROPIC;
    set_models();
    return p;
}

TEST(one_of_anthropics_is_asked_in_its_own_words)
{
    struct peer *p = open_anthropic(SSE_HEAD BEGIN EVENT("ping", "") WORD("Hel")
                                        WORD("lo") LAST("end_turn"));

    carry();
    CHECK_STR(str_of(web.words), "wccr");
    expect_completed("Hello");
    CHECK_STR(buf_str(&web.metadata),
              "{\"model\":\"haiku-1\",\"finish_reason\":\"stop\",\"usage\":{"
              "\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":8}"
              "}");
    CHECK(peer_heard(p, "POST /v1/messages HTTP/1.1\r\n"));
    CHECK(peer_heard(p, "\r\nx-api-key: " KEY "\r\n"));
    CHECK(peer_heard(p, "\r\nanthropic-version: 2023-06-01\r\n"));
    CHECK(!peer_heard(p, "Bearer"));
    CHECK(peer_heard(p, "{\"model\":\"tiny-1\",\"max_tokens\":4096,"
                        "\"system\":\"You are small.\",\"messages\":[{"
                        "\"role\":\"user\",\"content\":\"hello \\\"you\\\"\""
                        "}],\"stream\":true}"));
    CHECK(!strstr(log_said(), KEY));
    web_close();
}

TEST(what_anthropic_says_is_wrong_is_told_apart)
{
    const struct {
        const char *reply, *code; /* NULL: it is tried again */
    } cases[] = {
        {"HTTP/1.1 529 X\r\nContent-Length: 0\r\n\r\n", NULL},
        {"HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n", NULL},
        {SSE_HEAD BEGIN EVENT("error", ",\"error\":{\"type\":"
                                       "\"overloaded_error\"}"),
         NULL},
        {SSE_HEAD BEGIN EVENT("error", ",\"error\":{\"type\":"
                                       "\"invalid_request_error\"}"),
         "model_error"},
        {SSE_HEAD EVENT("message_stop", "") BEGIN WORD("a") LAST("end_turn"),
         NULL},
        {SSE_HEAD BEGIN LAST("refusal"), "content_filter"},
        {OK_JSON("{\"choices\":[{}]}"), "bad_answer"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_anthropic(cases[i].reply);

        p->closes = true;
        carry();
        if (cases[i].code)
            expect_failed(cases[i].code, "");
        else
            expect_again("the model's endpoint");
        web_close();
    }
}

TEST(the_agents_prompt_goes_before_the_models)
{
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    web.agent.routing.system_prompt = STR("You are the agent.");
    models[0].max_tokens = 50;
    models[0].temperature = 0;
    set_models();
    carry();
    expect_completed("");
    CHECK(peer_heard(p, "\"content\":\"You are the agent.\""));
    CHECK(!peer_heard(p, "You are small."));
    CHECK(peer_heard(p, "\"max_tokens\":50,\"temperature\":0"));
    web_close();
}

TEST(what_was_said_before_is_told_again)
{
    static const struct task_said before[] = {{false, STR("I am Ada"), 1, 1},
                                              {true, STR("Hello Ada"), 1, 1}};
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    web.history = before;
    web.n_history = 2;
    for (int later = 0; later < 2; later++) {
        web.keeps_history = later;
        clear_words();
        buf_clear(&p->asked);
        offer();
        turn(web.s, 5);
        CHECK(web.max_n == 10 && web.max_bytes == 1000);
        if (later) {
            CHECK_INT(p->n_asked, 1);
            tell_history();
        }
        UNTIL(web.s, IS_OVER);
        expect_completed("");
        CHECK(peer_heard(p, "{\"role\":\"user\",\"content\":\"I am Ada\"},"
                            "{\"role\":\"assistant\",\"content\":\"Hello Ada\"}"
                            ",{\"role\":\"user\",\"content\":\"hello"));
    }
    models[0].history_messages = 0;
    set_models();
    carry();
    CHECK_INT(p->n_asked, 3);
    web_close();
}

TEST(without_its_history_a_model_is_not_asked)
{
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    web.history_err = ERR_OVERLOADED;
    for (int i = 0; i < 4; i++) { /* more often than it may fail */
        carry();
        CHECK(is_heard_of('a') && p->n_asked == 0);
        web.keeps_history = false;
    }
    web.keeps_history = true;
    clear_words();
    offer();
    turn(web.s, 5);
    tell_history();
    UNTIL(web.s, IS_OVER);
    CHECK(is_heard_of('a') && p->n_asked == 0);
    web_close();
}

TEST(a_cancel_reaches_the_question_for_the_history_too)
{
    struct peer *p = open_model(NULL);

    web.keeps_history = true;
    offer();
    turn(web.s, 5);
    CHECK(web.heard && on_the_way() == 1);
    deliver_cancel(web.d, STR("task_a"));
    CHECK_INT(web.n_history_cancelled, 1);
    turn(web.s, 5);
    CHECK(p->n_guests == 0 && web.n_words == 0);
    offer(); /* and one that is dropped at the end */
    turn(web.s, 5);
    web_close();
    CHECK_INT(web.n_history_cancelled, 2);
}

/* Which model. */

TEST(a_definition_is_found_by_its_name_or_by_what_is_before_the_slash)
{
    static const struct {
        const char *url, *model;
        enum err e;
        const char *words;
    } cases[] = {
        {"model:small", "tiny-1", OK, NULL},
        {"model:SMALL", "tiny-1", OK, NULL},
        {"model:small/other", "other", OK, NULL},
        {"model:vendor/a/b:8b", "a/b:8b", OK, NULL},
        {"model:vendor", NULL, ERR_NOT_FOUND, "models.vendor.model"},
        {"model:vendor/", NULL, ERR_NOT_FOUND, "models.vendor.model"},
        {"model:none", NULL, ERR_NOT_FOUND, "\"models\": {\"none\": "},
        {"model:none/x", NULL, ERR_NOT_FOUND, "\"models\": {\"none\": "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));
        struct why why = {""};
        char wanted[64];

        web.agent.url = str_of(cases[i].url);
        CHECK_INT(deliver_reaches(web.d, &web.agent, &why), cases[i].e);
        if (cases[i].e) {
            if (!strstr(why.text, cases[i].words))
                T_FAIL("%s: %s", cases[i].url, why.text);
        } else {
            carry();
            expect_completed("");
            snprintf(wanted, sizeof(wanted), "{\"model\":\"%s\",",
                     cases[i].model);
            CHECK(peer_heard(p, wanted));
        }
        web_close();
    }
}

TEST(the_key_is_that_of_the_definition)
{
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    web.agent.url = STR("model:vendor/x");
    /* The card's authentication is for its own address. */
    web.agent.authentication = STR("{\"credentials\":\"mine\"}");
    carry();
    expect_completed("");
    CHECK(!peer_heard(p, "Authorization"));
    web_close();
}

TEST(a_definition_may_go_while_a_task_waits)
{
    struct deliver_settings s;
    struct peer *p = open_model(NULL);

    s = web.opts.settings;
    s.models = NULL;
    s.n_models = 0;
    deliver_set(web.d, &s);
    carry();
    CHECK(is_heard_of('r') && web.status == TASK_FAILED);
    CHECK_INT(p->n_guests, 0);
    web_close();
}

/* The answer. */

TEST(an_answer_without_streaming_is_taken_whole)
{
    struct peer *p = open_model(OK_JSON(
        "{\"id\":\"x\",\"object\":\"chat.completion\",\"choices\":[{"
        "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
        "\"whole\"},\"finish_reason\":\"stop\"}],\"usage\":{\"a\":1}}"));

    carry();
    CHECK_STR(str_of(web.words), "wr");
    expect_completed("whole");
    CHECK_STR(buf_str(&web.metadata), "{\"model\":\"tiny-1\",\"finish_reason\":"
                                      "\"stop\",\"usage\":{\"a\":1}}");
    p->reply = OK_JSON("{\"object\":\"list\",\"data\":[]}");
    carry();
    expect_failed("bad_answer", "it has no \"choices\"");
    p->reply = OK_JSON("<html>");
    carry();
    expect_failed("bad_answer", "not valid JSON");
    p->reply = OK_JSON("{\"error\":{\"message\":\"no " KEY "\",\"code\":400}}");
    carry();
    expect_failed("model_error", "no [the key]");
    web_close();
}

TEST(an_answer_is_whole_once_it_says_why_it_ended)
{
    static const struct {
        const char *reply, *text; /* NULL: it is asked again */
    } cases[] = {
        {SSE_HEAD PIECE("a") FINISH("stop"), "a"},
        {SSE_HEAD PIECE("a") DONE, "a"},
        {SSE_HEAD PIECE("a") FINISH("length") "data: {\"cho", "a"},
        {SSE_HEAD PIECE("a") FINISH("tool_calls") DONE, "a"},
        {SSE_HEAD FINISH("stop") DONE, ""},
        {SSE_HEAD PIECE("a") DONE PIECE("b") FINISH("stop") DONE, "a"},
        {SSE_HEAD PIECE("a") FINISH("stop") "data: hello\n\n", "a"},
        {SSE_HEAD PIECE("a") FINISH("stop") FAILURE, "a"},
        {SSE_HEAD PIECE("a") FINISH("stop") FINISH("error"), "a"},
        {SSE_HEAD PIECE("a") FINISH("stop") USAGE FAILURE, "a"},
        {SSE_HEAD PIECE("a") FAILURE, NULL},
        {SSE_HEAD PIECE("a"), NULL},
        {SSE_HEAD PIECE("a") USAGE, NULL},
        {SSE_HEAD, NULL},
        {SSE_HEAD DONE, NULL},
        {"HTTP/1.1 200 OK\r\n" SSE_TYPE
         "Content-Length: 10000\r\n\r\n" PIECE("a") FINISH("stop"),
         "a"},
        {"HTTP/1.1 200 OK\r\n" SSE_TYPE
         "Content-Length: 10000\r\n\r\n" PIECE("a"),
         NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_model(cases[i].reply);

        p->closes = true;
        carry();
        if (cases[i].text)
            expect_completed(cases[i].text);
        else
            expect_again("");
        CHECK_INT(p->n_asked, 1);
        web_close();
    }
}

TEST(what_a_filter_has_left_nothing_of_has_failed)
{
    struct peer *p = open_model(SSE_HEAD FINISH("content_filter") DONE);

    p->closes = true;
    carry();
    expect_failed("content_filter", "filtered out");
    p->reply = SSE_HEAD PIECE("half") FINISH("content_filter") DONE;
    carry();
    expect_completed("half");
    CHECK(strstr(web.metadata.p, "content_filter"));
    web_close();
}

TEST(errors_within_a_stream_are_final_or_not)
{
    static const struct {
        const char *reply, *code; /* NULL: it is asked again */
        const char *words;
    } cases[] = {
        {SSE_HEAD PIECE("a") "data: {\"error\":{\"message\":\"too long " KEY
                             "\",\"code\":400}}\n\n",
         "model_error", "says that it failed: too long [the key]"},
        {SSE_HEAD "data: {\"error\":{\"message\":\"no " KEY
                  "\",\"code\":401}}\n\n",
         "model_error", "says that it failed"},
        {SSE_HEAD "event: error\ndata: {\"error\":\"overloaded\"}\n\n", NULL,
         "overloaded"},
        {SSE_HEAD "data: {\"error\":{\"code\":503}}\n\n", NULL, "failed"},
        {SSE_HEAD PIECE("a") FINISH("error"), NULL, "failed"},
        {SSE_HEAD PIECE("a") "data: hello\n\n", "bad_answer", "not valid JSON"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_model(cases[i].reply);

        p->closes = true;
        carry();
        if (cases[i].code)
            expect_failed(cases[i].code, cases[i].words);
        else
            expect_again(cases[i].words);
        web_close();
    }
}

TEST(each_status_is_final_or_not)
{
    static const struct {
        const char *status, *headers, *body, *code, *words;
    } cases[] = {
        {"400 Bad", "", "{\"error\":{\"message\":\"context length\"}}",
         "model_error", "status 400: context length"},
        {"401 No", "", "{\"error\":{\"message\":\"key sk-ve***34\"}}",
         "model_error", "status 401; it does not take our key"},
        {"403 No", "", "", "model_error", "keyVariable"},
        {"404 No", "", "{\"error\":\"model not found\"}", "model_error",
         "404: model not found; are models.NAME.baseUrl"},
        {"413 No", "", "", "model_error", "status 413"},
        {"302 Go", "Location: http://127.0.0.1:1/\r\n", "", "model_error",
         "elsewhere"},
        {"429 Slow", "Retry-After: 5\r\n", "{\"error\":\"quota\"}", NULL,
         "429: quota"},
        {"408 Slow", "", "", NULL, "408"},
        {"500 No", "", "{\"error\":{\"message\":\"CUDA\"}}", NULL, "500: CUDA"},
        {"503 No", "", "", NULL, "503"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_model(
            answer_of(cases[i].status, cases[i].headers, cases[i].body));

        carry();
        CHECK_INT(p->n_asked, 1);
        if (cases[i].code)
            expect_failed(cases[i].code, cases[i].words);
        else
            expect_again(cases[i].words);
        CHECK(!strstr(web.error, "sk-ve"));
        web_close();
    }
}

/* Endpoints that know less. */

static void carry_choosy(const char *complaint, const char *missing)
{
    struct peer *p = open_model(NULL);

    models[0].max_tokens = 5;
    set_models();
    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, answer_of("400 Bad", JSON_TYPE, complaint));
    UNTIL(web.s, p->n_asked == 2);
    CHECK(!peer_heard(p, missing));
    buf_clear(&p->asked);
    peer_say(p, OK_JSON("{\"choices\":[{\"message\":{\"content\":\"ok\"}}]}"));
    UNTIL(web.s, IS_OVER);
    expect_completed("ok");
    web_close();
}

TEST(what_an_endpoint_does_not_know_is_left_out)
{
    struct peer *p;

    carry_choosy("{\"error\":{\"message\":\"unknown field stream_options\"}}",
                 "nothing");
    carry_choosy("{\"error\":{\"message\":\"use 'max_completion_tokens'\"}}",
                 "nothing");
    /* But not for ever. */
    p = open_model(answer_of("400 Bad", JSON_TYPE,
                             "{\"error\":\"max_completion_tokens and "
                             "stream_options\"}"));
    models[0].max_tokens = 5;
    set_models();
    carry();
    expect_failed("model_error", "status 400: max_completion_tokens");
    CHECK_INT(p->n_asked, 3);
    CHECK(peer_heard(p, "\"max_completion_tokens\":5}"));
    web_close();
}

/* Known limits of an endpoint are not probed again until it is configured
 * again. */
TEST(what_an_endpoint_does_not_know_is_remembered)
{
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    models[0].max_tokens = 5;
    set_models();
    for (int i = 0; i < 2; i++) {
        p->n_asked = 0;
        p->first_reply = answer_of("400 Bad", JSON_TYPE,
                                   "{\"error\":\"use max_completion_tokens\"}");
        carry();
        CHECK_INT(p->n_asked, 2);
        p->first_reply = NULL;
        buf_clear(&p->asked);
        carry();
        expect_completed("");
        CHECK_INT(p->n_asked, 3);
        CHECK(peer_heard(p, "\"max_completion_tokens\":5"));
        CHECK(peer_heard(p, "stream_options"));
        buf_clear(&p->asked);
        web.agent.url = STR("model:small/other"); /* it may know */
        carry();
        CHECK(!peer_heard(p, "max_completion_tokens"));
        web.agent.url = STR("model:small");
        set_models();
    }
    web_close();
}

TEST(what_is_remembered_wrongly_is_forgotten)
{
    struct peer *p = open_model(OK_JSON("{\"choices\":[{}]}"));

    p->first_reply =
        answer_of("400 Bad", JSON_TYPE, "{\"error\":\"stream_options?\"}");
    carry();
    expect_completed("");
    CHECK_INT(p->n_asked, 2);
    p->reply = answer_of("400 Bad", JSON_TYPE, "{\"error\":\"no\"}");
    carry();
    expect_failed("model_error", "status 400: no");
    p->reply = OK_JSON("{\"choices\":[{}]}");
    buf_clear(&p->asked);
    carry();
    CHECK(peer_heard(p, "stream_options"));
    web_close();
}

/* Time. */

TEST(one_answer_has_a_time_of_its_own)
{
    struct peer *p = open_model(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    later(web.s, 299 * 1000);
    CHECK(!IS_OVER);
    later(web.s, 2 * 1000);
    UNTIL(web.s, IS_OVER);
    expect_again("the model's endpoint did not answer in time");
    UNTIL(web.s, last_guest(p)->is_eof);
    web_close();
}

TEST(silence_behind_the_end_is_no_failure)
{
    struct peer *p = open_model(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD PIECE("a"));
    UNTIL(web.s, is_heard_of('c'));
    later(web.s, 39 * 1000);
    CHECK(!IS_OVER);
    peer_say(p, FINISH("stop"));
    turn(web.s, 20);
    later(web.s, 39 * 1000);
    CHECK(!IS_OVER); /* what was used may still come */
    later(web.s, 2 * 1000);
    UNTIL(web.s, IS_OVER);
    expect_completed("a");
    web_close();
}

TEST(silence_before_the_end_is_one)
{
    struct peer *p = open_model(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD PIECE("a"));
    UNTIL(web.s, is_heard_of('c'));
    later(web.s, 41 * 1000);
    UNTIL(web.s, IS_OVER);
    expect_again("fell silent");
    web_close();
}

TEST(a_cancel_closes_the_connection)
{
    struct peer *p = open_model(NULL);

    offer();
    UNTIL(web.s, p->n_asked == 1);
    peer_say(p, SSE_HEAD PIECE("a"));
    UNTIL(web.s, is_heard_of('c'));
    deliver_cancel(web.d, STR("task_a"));
    UNTIL(web.s, last_guest(p)->is_eof);
    CHECK_STR(str_of(web.words), "wc");
    web_close();
}

/* Faults. */

/* A request that was not sent is logged, with a readable reason. */
static void check_log_is_sane(void)
{
    const char *said = log_said();

    for (; *said; said++)
        CHECK(*said == '\n' || (*said >= ' ' && *said < 0x7f));
    CHECK(!strstr(log_said(), "\"because\":\"\""));
}

static void check_faults(const char *first_reply, const char *reply)
{
    static const struct task_said before[] = {{false, STR("I am Ada"), 1, 1},
                                              {true, STR("Hello Ada"), 1, 1}};
    bool has_fired = true;
    long nth = 0;

    while (has_fired && nth < 500) {
        struct peer *p = open_model(reply);

        p->closes = true;
        p->first_reply = first_reply;
        web.history = before;
        web.n_history = 2;
        has_fired = carry_with_fault(++nth);
        CHECK(has_fired || web.status == TASK_COMPLETED);
        check_log_is_sane();
        carry();
        expect_completed("ok");
        web_close();
    }
    CHECK(!has_fired && nth > 10);
}

TEST(asking_a_model_survives_every_fault)
{
    check_faults(NULL, SSE_HEAD PIECE("ok") FINISH("stop") USAGE DONE);
    check_faults(answer_of("400 Bad", JSON_TYPE,
                           "{\"error\":\"unknown field stream_options\"}"),
                 SSE_HEAD PIECE("ok") FINISH("stop") DONE);
    check_faults(
        NULL,
        "HTTP/1.1 200 OK\r\nConnection: close\r\n" JSON_TYPE
        "\r\n{\"choices\":[{\"message\":{\"content\":[{\"text\":\"ok\"}]}}],"
        "\"usage\":{\"a\":1}}");
}
