/* Models that use tools: rounds of calls, with an endpoint of the same process
 * and an owner that does what it is told, now or later. */
#include "deliver/transports/model_stream.h"
#include "test/lib/web_stage.h"

enum { USES_MAX = 512 };

static struct model_def models[1];
static struct {
    struct use {
        enum wire_tool tool;
        char arguments[512];
        deliver_tool_done *done;
        void *ctx;
        bool is_over, is_cancelled;
    } list[USES_MAX];
    size_t n, n_cancelled;
    bool answers_later, may_not;
    const char *answer;
} used;

static bool may_use_tools(void *ctx, const struct task *t,
                          const struct agent *a)
{
    (void)ctx;
    CHECK(t == &web.task && a == &web.agent);
    return !used.may_not;
}

static void answer_use(size_t i, const char *text)
{
    struct use *u = &used.list[i];

    CHECK(i < used.n && !u->is_over && !u->is_cancelled);
    u->is_over = true;
    u->done(u->ctx, str_of(text));
}

static void use_tool(void *ctx, const struct delivery_id *d, struct str agent,
                     enum wire_tool tool, struct str arguments,
                     deliver_tool_done *done, void *done_ctx, void **handle)
{
    struct use *u = &used.list[used.n];

    (void)ctx;
    CHECK(used.n < USES_MAX && str_eq(agent, STR("far")));
    CHECK(strcmp(d->task_id.text, web.task.id.text) == 0);
    CHECK(json_check(arguments, NULL) == OK && arguments.p[0] == '{');
    *u = (struct use){.tool = tool, .done = done, .ctx = done_ctx};
    snprintf(u->arguments, sizeof(u->arguments), "%.*s",
             STR_ARG(str_head(arguments, 511)));
    *handle = u;
    used.n++;
    if (!used.answers_later)
        answer_use(used.n - 1, used.answer);
}

static void cancel_use(void *ctx, void *handle)
{
    struct use *u = handle;

    (void)ctx;
    CHECK(!u->is_over && !u->is_cancelled);
    u->is_cancelled = true;
    used.n_cancelled++;
}

static struct peer *open_model(const char *reply)
{
    static char url[64];
    struct deliver_opts opts;
    struct peer *p;

    web_begin();
    memset(&used, 0, sizeof(used));
    used.answer = "{\"status\":\"completed\"}";
    opts = web_opts();
    opts.has_tools = may_use_tools;
    opts.on_tool = use_tool;
    opts.tool_cancel = cancel_use;
    web_open_with(opts);
    p = peer_open(web.s, reply);
    p->closes = true;
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1", p->port);
    models[0] = (struct model_def){.name = STR("small"),
                                   .base_url = str_of(url),
                                   .model = STR("tiny"),
                                   .temperature = -1,
                                   .timeout_ms = 60 * 1000,
                                   .silence_ms = 20 * 1000,
                                   .tools = true};
    opts.settings.models = models;
    opts.settings.n_models = 1;
    deliver_set(web.d, &opts.settings);
    web.agent.url = STR("model:small");
    return p;
}

#define PIECE(text) \
    "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define CALL(index, id, name, arguments)                                       \
    "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[{"       \
    "\"index\":" index ",\"id\":\"" id "\",\"type\":\"function\",\"function\"" \
    ":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}]}}]}\n\n"
#define FINISH(why) \
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define USAGE(n)                                                            \
    "data: {\"choices\":[],\"usage\":{\"total_tokens\":" n ",\"details\":{" \
    "}}}\n\n"
#define DONE "data: [DONE]\n\n"

#define SEARCH CALL("0", "c1", "search_agents", "{\\\"query\\\":\\\"x\\\"}")
#define DELEGATE                         \
    CALL("1", "c2", "delegate_to_agent", \
         "{\\\"agentId\\\":\\\"b\\\",\\\"task\\\":\\\"y\\\"}")
#define API_END FINISH("tool_calls") DONE

static void expect_completed(const char *text)
{
    if (web.status != TASK_COMPLETED)
        T_FAIL("%s: %s %s %s", web.words, web.error_code, web.error,
               web.because);
    CHECK_STR(buf_str(&web.result), text);
}

/* It is asked, and answers so; then so. */
static void carry_two(struct peer *p, const char *first, const char *second)
{
    p->first_reply = first;
    p->reply = second;
    carry();
}

TEST(a_model_calls_and_is_told_and_answers)
{
    struct peer *p = open_model(NULL);

    used.answer = "{\"agents\":[]}";
    carry_two(p, SSE_HEAD PIECE("Let me see.") SEARCH API_END,
              SSE_HEAD PIECE("No one ") PIECE("can.") FINISH("stop") DONE);
    expect_completed("Let me see.\n\nNo one can.");
    CHECK_STR(buf_str(&web.text), "Let me see.\n\nNo one can.");
    CHECK_INT(p->n_asked, 2);
    CHECK(used.n == 1 && used.list[0].tool == WIRE_SEARCH);
    CHECK_STR(str_of(used.list[0].arguments), "{\"query\":\"x\"}");
    CHECK(peer_heard(p, "\"tools\":[{\"type\":\"function\",\"function\":{"
                        "\"name\":\"delegate_to_agent\""));
    CHECK(!peer_heard(p, "tool_choice"));
    CHECK(peer_heard(
        p, "{\"role\":\"user\",\"content\":\"hello \\\"you\\\"\"},{\"role\":"
           "\"assistant\",\"content\":\"Let me see.\",\"tool_calls\":[{\"id\":"
           "\"c1\",\"type\":\"function\",\"function\":{\"name\":"
           "\"search_agents\",\"arguments\":\"{\\\"query\\\":\\\"x\\\"}\"}}]},"
           "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":"
           "\"{\\\"agents\\\":[]}\"}],\"tools\":"));
    web_close();
}

TEST(calls_of_one_answer_are_done_side_by_side)
{
    struct peer *p = open_model(SSE_HEAD SEARCH DELEGATE API_END);

    used.answers_later = true;
    offer();
    UNTIL(web.s, used.n == 2);
    CHECK(used.list[1].tool == WIRE_DELEGATE);
    answer_use(1, "second");
    turn(web.s, 20);
    CHECK_INT(p->n_asked, 1); /* the other is still at it */
    p->reply = SSE_HEAD PIECE("ok") FINISH("stop") DONE;
    answer_use(0, "first");
    UNTIL(web.s, IS_OVER);
    expect_completed("ok");
    CHECK(peer_heard(p, "\"tool_call_id\":\"c1\",\"content\":\"first\"},{"
                        "\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":"
                        "\"second\"}]"));
    CHECK_INT(used.n_cancelled, 0);
    web_close();
}

/* However it says that it has ended. */
TEST(calls_are_made_whatever_ends_the_answer)
{
    static const char *const firsts[] = {
        SSE_HEAD SEARCH FINISH("tool_calls") DONE,
        SSE_HEAD SEARCH FINISH("tool_calls"),
        SSE_HEAD SEARCH FINISH("stop") DONE,
        SSE_HEAD SEARCH DONE,
        SSE_HEAD SEARCH FINISH("tool_calls") "data: {\"cho",
        SSE_HEAD SEARCH FINISH("tool_calls") "data: hello\n\n",
        SSE_HEAD SEARCH FINISH("tool_calls") DONE SEARCH DONE,
        "HTTP/1.1 200 OK\r\n" SSE_TYPE
        "Content-Length: 10000\r\n\r\n" SEARCH FINISH("tool_calls"),
    };

    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        struct peer *p = open_model(NULL);

        carry_two(p, firsts[i], SSE_HEAD PIECE("ok") FINISH("stop") DONE);
        expect_completed("ok");
        CHECK(p->n_asked == 2 && used.n == 1);
        web_close();
    }
}

TEST(calls_of_an_answer_that_has_not_ended_are_not_made)
{
    static const char *const replies[] = {
        SSE_HEAD SEARCH,
        SSE_HEAD SEARCH "data: {\"error\":{\"code\":503}}\n\n",
        SSE_HEAD SEARCH FINISH("error") DONE,
    };

    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        struct peer *p = open_model(replies[i]);

        carry();
        CHECK(is_heard_of('a') && used.n == 0 && p->n_asked == 1);
        web_close();
    }
}

TEST(an_answer_without_streaming_calls_too)
{
    struct peer *p = open_model(NULL);

    carry_two(p,
              OK_JSON("{\"choices\":[{\"message\":{\"content\":\"Wait.\","
                      "\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":"
                      "\"search_agents\",\"arguments\":\"{}\"}}]},"
                      "\"finish_reason\":\"tool_calls\"}],\"usage\":{"
                      "\"total_tokens\":5}}"),
              OK_JSON("{\"choices\":[{\"message\":{\"content\":\"ok\"},"
                      "\"finish_reason\":\"stop\"}],\"usage\":{"
                      "\"total_tokens\":7}}"));
    expect_completed("Wait.\n\nok");
    CHECK_STR(buf_str(&web.metadata),
              "{\"model\":\"tiny\",\"finish_reason\":\"stop\",\"tool_calls\":1,"
              "\"usage\":{\"total_tokens\":12}}");
    web_close();
}

TEST(what_was_used_is_that_of_all_rounds)
{
    struct peer *p = open_model(NULL);

    carry_two(p, SSE_HEAD SEARCH DELEGATE FINISH("tool_calls") USAGE("3") DONE,
              SSE_HEAD PIECE("ok") FINISH("stop") USAGE("4") DONE);
    expect_completed("ok");
    CHECK_STR(buf_str(&web.metadata),
              "{\"model\":\"tiny\",\"finish_reason\":\"stop\",\"tool_calls\":2,"
              "\"usage\":{\"total_tokens\":7}}");
    web_close();
}

/* Errors go to the model. */
TEST(bad_calls_are_answered_in_words)
{
    static const struct {
        const char *call, *words;
    } cases[] = {
        {CALL("0", "a", "no_tool", "{}"),
         "there is no tool \\\\\\\"no_tool\\\\\\\""},
        {CALL("0", "a", "", "{}"), "there is no tool"},
        {CALL("0", "a", "search_agents", "{\\\"query\\\":"),
         "the arguments are not a JSON object"},
        {CALL("0", "a", "search_agents", "[]"),
         "the arguments are not a JSON object: it is no object"},
        {CALL("0", "a", "search_agents", "query"),
         "the arguments are not a JSON object"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer *p = open_model(NULL);
        char first[2048];

        snprintf(first, sizeof(first), "%s%s%s", SSE_HEAD, cases[i].call,
                 API_END);
        carry_two(p, first, SSE_HEAD PIECE("ok") FINISH("stop") DONE);
        expect_completed("ok");
        CHECK_INT(used.n, 0);
        if (!peer_heard(p, cases[i].words))
            T_FAIL("%s is not in %.*s", cases[i].words,
                   STR_ARG(buf_str(&p->asked)));
        CHECK(peer_heard(p, "{\\\"status\\\":\\\"error\\\""));
        web_close();
    }
}

/* Limits. */

TEST(after_sixteen_rounds_it_is_to_answer)
{
    struct peer *p = open_model(SSE_HEAD SEARCH API_END);

    offer();
    UNTIL(web.s, p->n_asked == TALK_ROUNDS_MAX);
    CHECK(!peer_heard(p, "tool_choice"));
    UNTIL(web.s, p->n_asked == TALK_ROUNDS_MAX + 1 || IS_OVER);
    CHECK(peer_heard(p, "\"tool_choice\":\"none\""));
    UNTIL(web.s, IS_OVER);
    CHECK(web.status == TASK_FAILED && used.n == TALK_ROUNDS_MAX);
    CHECK_STR(str_of(web.error_code), "model_error");
    CHECK(strstr(web.error, "called tools 16 times"));
    web_close();
}

TEST(in_the_last_round_it_may_still_answer)
{
    struct peer *p = open_model(SSE_HEAD SEARCH API_END);

    used.answers_later = true;
    offer();
    for (size_t i = 0; i < TALK_ROUNDS_MAX; i++) {
        UNTIL(web.s, used.n == i + 1);
        if (i == TALK_ROUNDS_MAX - 1) /* and it calls all the same */
            p->reply = SSE_HEAD PIECE("ok") SEARCH FINISH("stop") DONE;
        answer_use(i, "x");
    }
    UNTIL(web.s, IS_OVER);
    expect_completed("ok");
    CHECK_INT(used.n, TALK_ROUNDS_MAX);
    web_close();
}

/* Texts that are too long for the stage's own. */
static char long_reply[14 << 20];

static const char *many_calls(int n)
{
    size_t at =
        (size_t)snprintf(long_reply, sizeof(long_reply), "%s", SSE_HEAD);

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(
            long_reply + at, sizeof(long_reply) - at,
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,"
            "\"id\":\"c%d\",\"function\":{\"name\":\"search_agents\","
            "\"arguments\":\"{}\"}}]}}]}\n\n",
            i * 3, i % 5);
    snprintf(long_reply + at, sizeof(long_reply) - at, "%s", API_END);
    return long_reply;
}

TEST(ten_thousand_calls_are_sixteen_and_a_note)
{
    struct peer *p = open_model(NULL);

    p->closes = false;
    p->first_reply = many_calls(10000);
    used.answers_later = true;
    offer();
    UNTIL(web.s, used.n == CHAT_CALLS_MAX);
    p->reply = SSE_HEAD PIECE("ok") FINISH("stop") DONE;
    for (size_t i = 0; i < CHAT_CALLS_MAX; i++)
        answer_use(i, "x");
    UNTIL(web.s, IS_OVER);
    expect_completed("ok");
    CHECK_INT(used.n, CHAT_CALLS_MAX);
    CHECK(peer_heard(p, "(9984 more calls were not made: 16 at once"));
    /* Ids that were used twice are told apart. */
    CHECK(peer_heard(p, "\"tool_call_id\":\"sb001x005\""));
    web_close();
}

TEST(ten_megabytes_of_arguments_are_refused_in_words)
{
    struct peer *p = open_model(NULL);
    size_t at =
        (size_t)snprintf(long_reply, sizeof(long_reply), "%s", SSE_HEAD);
    static char piece[100001];

    memset(piece, 'x', sizeof(piece) - 1);
    for (int i = 0; i < 100; i++)
        at += (size_t)snprintf(
            long_reply + at, sizeof(long_reply) - at,
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
            "\"function\":{\"name\":\"search_agents\",\"arguments\":\"%s\"}}]}"
            "}]}\n\n",
            piece);
    snprintf(long_reply + at, sizeof(long_reply) - at, "%s", API_END);
    p->closes = false;
    p->first_reply = long_reply;
    p->reply = SSE_HEAD PIECE("ok") FINISH("stop") DONE;
    carry();
    expect_completed("ok");
    CHECK(used.n == 0 && peer_heard(p, "longer than 2097152 bytes"));
    CHECK(p->asked.n < 10000);
    web_close();
}

TEST(a_result_is_told_up_to_its_limit)
{
    for (int more = 0; more < 2; more++) {
        struct peer *p = open_model(NULL);
        size_t n = TALK_RESULTS_BYTES + (size_t)more;

        memset(long_reply, 'x', n);
        long_reply[n] = '\0';
        used.answer = long_reply;
        carry_two(p, SSE_HEAD SEARCH API_END,
                  SSE_HEAD PIECE("ok") FINISH("stop") DONE);
        expect_completed("ok");
        CHECK((p->asked.n > n) == !more);
        CHECK(peer_heard(p, "the answer has 4194305 bytes, and 4194304 are "
                            "the most") == (more == 1));
        web_close();
    }
}

TEST(when_too_much_was_told_it_is_to_answer)
{
    struct peer *p = open_model(SSE_HEAD SEARCH API_END);

    memset(long_reply, 'x', TALK_RESULTS_BYTES);
    long_reply[TALK_RESULTS_BYTES] = '\0';
    used.answer = long_reply;
    used.answers_later = true;
    offer();
    for (size_t i = 0; i < 2; i++) {
        UNTIL(web.s, used.n == i + 1);
        buf_clear(&p->asked);
        if (i == 1)
            p->reply = SSE_HEAD PIECE("ok") FINISH("stop") DONE;
        answer_use(i, long_reply);
    }
    UNTIL(web.s, IS_OVER);
    expect_completed("ok");
    CHECK(peer_heard(p, "\"tool_choice\":\"none\""));
    web_close();
}

/* Permission and ability. */

TEST(who_may_not_delegate_is_offered_nothing)
{
    for (int i = 0; i < 2; i++) {
        struct peer *p = open_model(SSE_HEAD PIECE("a") SEARCH API_END);

        used.may_not = i == 0;
        models[0].tools = i == 0;
        carry();
        expect_completed("a"); /* what it calls all the same is not heard */
        CHECK(used.n == 0 && p->n_asked == 1 && !peer_heard(p, "tool"));
        web_close();
    }
}

TEST(an_endpoint_that_knows_no_tools_is_asked_without)
{
    static const char *const statuses[] = {"400 Bad", "404 No", "500 No"};

    for (size_t i = 0; i < 3; i++) {
        struct peer *p = open_model(NULL);

        carry_two(p,
                  answer_of(statuses[i], JSON_TYPE,
                            "{\"error\":{\"message\":\"tiny does not support "
                            "tools\"}}"),
                  OK_JSON("{\"choices\":[{\"message\":{\"content\":\"ok\"}}]"
                          "}"));
        expect_completed("ok");
        CHECK_INT(p->n_asked, 2);
        buf_clear(&p->asked);
        carry(); /* and is remembered */
        CHECK(p->n_asked == 3 && !peer_heard(p, "\"tools\""));
        web_close();
    }
}

/* Ends in the midst. */

TEST(a_cancel_ends_what_is_being_used)
{
    struct peer *p = open_model(SSE_HEAD SEARCH DELEGATE API_END);

    used.answers_later = true;
    offer();
    UNTIL(web.s, used.n == 2);
    answer_use(0, "x");
    deliver_cancel(web.d, STR("task_a"));
    CHECK(used.n_cancelled == 1 && used.list[1].is_cancelled);
    turn(web.s, 20);
    CHECK(p->n_asked == 1 && !IS_OVER && on_the_way() == 0);
    /* When all is done, but it is not asked again yet. */
    offer();
    UNTIL(web.s, used.n == 4);
    answer_use(2, "x");
    answer_use(3, "x");
    deliver_cancel(web.d, STR("task_a"));
    turn(web.s, 20);
    CHECK(p->n_asked == 2 && used.n_cancelled == 1);
    /* And when the server goes. */
    offer();
    UNTIL(web.s, used.n == 6);
    web_close();
    CHECK_INT(used.n_cancelled, 3);
}

TEST(a_cancel_in_the_words_before_the_calls)
{
    struct peer *p = open_model(SSE_HEAD PIECE("a") SEARCH API_END);

    web.cancels_at = 'c';
    offer();
    UNTIL(web.s, is_heard_of('c'));
    turn(web.s, 20);
    CHECK(used.n == 0 && p->n_asked == 1 && on_the_way() == 0);
    web_close();
}

TEST(the_silence_of_tools_is_not_the_models)
{
    struct peer *p = open_model(SSE_HEAD SEARCH API_END);

    used.answers_later = true;
    offer();
    UNTIL(web.s, used.n == 1);
    later(web.s, 300 * 1000); /* longer than an answer may take */
    CHECK(!IS_OVER);
    p->reply = NULL;
    answer_use(0, "x");
    UNTIL(web.s, p->n_asked == 2);
    later(web.s, 59 * 1000); /* its time begins again */
    CHECK(!IS_OVER);
    later(web.s, 2 * 1000);
    UNTIL(web.s, IS_OVER);
    CHECK(strstr(web.because, "did not answer in time"));
    web_close();
}

TEST(tools_that_never_end_end_with_the_task)
{
    struct peer *p = open_model(SSE_HEAD SEARCH API_END);

    used.answers_later = true;
    offer();
    UNTIL(web.s, used.n == 1);
    later(web.s, 502 * 1000); /* its deadline, and a little */
    UNTIL(web.s, IS_OVER);
    CHECK(used.n_cancelled == 1 && p->n_asked == 1);
    web_close();
}

TEST(a_round_survives_every_fault)
{
    bool has_fired = true;
    long nth = 0;

    while (has_fired && nth < 500) {
        struct peer *p = open_model(NULL);

        p->first_reply = SSE_HEAD PIECE("a") SEARCH DELEGATE API_END;
        p->reply = SSE_HEAD PIECE("ok") FINISH("stop") DONE;
        has_fired = carry_with_fault(++nth);
        CHECK(has_fired || web.status == TASK_COMPLETED);
        for (size_t i = 0; i < used.n; i++)
            CHECK(used.list[i].is_over);
        p->n_asked = 0;
        carry();
        expect_completed("a\n\nok");
        web_close();
    }
    CHECK(!has_fired && nth > 20);
}
