#ifndef TEST_LIB_WEB_STAGE_H
#define TEST_LIB_WEB_STAGE_H

/* The stage on which agents that are reached over HTTP are tested: that of
 * fetch, whose peers are plain sockets of the same process, with a deliver on
 * it and an owner that writes down what it is told. The owner is as the walk
 * is: it lends task and agent when they go, and cancels what has its result. */

#include "deliver/transports/exchange.h"
#include "test/lib/fetch_stage.h"

static struct {
    struct stage *s;
    struct deliver *d;
    struct deliver_opts opts;
    struct agent agent;
    struct task task;

    /* What was told: one letter each, w(orking), c(hunk), r(esult), a(gain). */
    char words[256];
    size_t n_words;
    struct buf text; /* of all chunks */
    enum task_status status;
    struct buf result, metadata;
    char error_code[64], error[600];
    int64_t retry_ms;
    char because[600];

    /* The history that the owner has, and when it says it. */
    const struct task_said *history;
    size_t n_history;
    enum err history_err;
    bool keeps_history; /* until `tell_history` */
    deliver_heard_history *heard;
    void *heard_ctx;
    size_t max_n, max_bytes;
    int n_history_cancelled;

    char cancels_at; /* the word in which it is cancelled */
} web;

static inline void note_word(char word, const struct delivery_id *id)
{
    CHECK(strcmp(id->task_id.text, web.task.id.text) == 0);
    CHECK(id->turn == web.task.turn && id->attempt == web.task.attempt);
    if (web.n_words < sizeof(web.words) - 1)
        web.words[web.n_words] = word;
    web.n_words++;
    if (web.cancels_at == word)
        deliver_cancel(web.d, str_of(id->task_id.text));
}

static inline bool web_on_go(void *ctx, struct str task_id,
                             const struct task **t, const struct agent **a)
{
    (void)ctx;
    CHECK(str_eq(task_id, str_of(web.task.id.text)));
    *t = &web.task;
    *a = &web.agent;
    return true;
}

static inline const struct agent *web_agent_of(void *ctx, struct str name)
{
    (void)ctx;
    return str_eq_nocase(name, web.agent.name) ? &web.agent : NULL;
}

static inline void web_on_working(void *ctx, const struct delivery_id *id)
{
    (void)ctx;
    note_word('w', id);
}

static inline void web_on_chunk(void *ctx, const struct delivery_id *id,
                                struct str text)
{
    (void)ctx;
    CHECK(text.n);
    buf_add_str(&web.text, text);
    note_word('c', id);
}

static inline void web_on_retry(void *ctx, const struct delivery_id *id,
                                int64_t delay_ms, struct str because)
{
    (void)ctx;
    CHECK(because.n);
    web.retry_ms = delay_ms;
    snprintf(web.because, sizeof(web.because), "%.*s", STR_ARG(because));
    note_word('a', id);
}

static inline void web_on_result(void *ctx, const struct delivery_id *id,
                                 const struct task_result *r, uint64_t receipt)
{
    (void)ctx;
    CHECK(!receipt);
    web.status = r->status;
    buf_add_str(&web.result, r->text);
    buf_add_str(&web.metadata, r->metadata);
    snprintf(web.error_code, sizeof(web.error_code), "%.*s",
             STR_ARG(r->error_code));
    snprintf(web.error, sizeof(web.error), "%.*s", STR_ARG(r->error));
    deliver_cancel(web.d, str_of(id->task_id.text)); /* as the walk does */
    note_word('r', id);
}

/* History. */

static inline void tell_history(void)
{
    deliver_heard_history *heard = web.heard;

    CHECK(heard);
    web.heard = NULL;
    heard(web.heard_ctx, web.history_err, web.history,
          web.history_err ? 0 : web.n_history);
}

static inline void web_history(void *ctx, const struct task *t, size_t max_n,
                               size_t max_bytes, deliver_heard_history *done,
                               void *done_ctx, void **handle)
{
    (void)ctx;
    CHECK(t == &web.task && !web.heard);
    web.max_n = max_n;
    web.max_bytes = max_bytes;
    *handle = &web;
    web.heard = done;
    web.heard_ctx = done_ctx;
    if (!web.keeps_history)
        tell_history();
}

static inline void web_history_cancel(void *ctx, void *handle)
{
    (void)ctx;
    CHECK(handle == &web && web.heard);
    web.heard = NULL;
    web.n_history_cancelled++;
}

/* The stage. */

static inline struct deliver_opts web_opts(void)
{
    return (struct deliver_opts){
        .loop = &web.s->loop,
        .log = &web.s->log,
        .fetch = web.s->fetch,
        .seed = {1, 2},
        .settings = {.max_in_flight = 100,
                     .in_flight = 100,
                     .queue = 100,
                     .max_attempts = 3,
                     .retry_ms = 500,
                     .retry_max_ms = 30000,
                     .breaker_failures = 100,
                     .breaker_pause_ms = 1000,
                     .wake_ms = 1000,
                     .silence_ms = 50 * 1000,
                     .max_gathered_bytes = 64 << 20},
        .agent_of = web_agent_of,
        .on_go = web_on_go,
        .on_working = web_on_working,
        .on_chunk = web_on_chunk,
        .on_retry = web_on_retry,
        .on_result = web_on_result,
        .history = web_history,
        .history_cancel = web_history_cancel,
    };
}

static inline void clear_words(void)
{
    memset(web.words, 0, sizeof(web.words));
    web.n_words = 0;
    buf_clear(&web.text);
    buf_clear(&web.result);
    buf_clear(&web.metadata);
    web.error_code[0] = web.error[0] = web.because[0] = '\0';
    web.status = 0;
    web.retry_ms = 0;
}

static inline void web_open_with(struct deliver_opts opts)
{
    web.opts = opts;
    web.d = deliver_new(&web.opts);
    CHECK(web.d);
    web.task = (struct task){.turn = 1,
                             .attempt = 1,
                             .text = STR("hello \"you\""),
                             .conversation_id = STR("c-1"),
                             .requester = STR("alice"),
                             .root_user = STR("alice"),
                             .agent = STR("far"),
                             .deadline_ms = 784111777000 + 500 * 1000};
    snprintf(web.task.id.text, sizeof(web.task.id.text), "task_a");
    web.agent = (struct agent){.name = STR("far"), .is_configured = true};
}

static inline void web_begin(void)
{
    memset(&web, 0, sizeof(web));
    web.s = stage_new(test_opts());
    buf_init_roomy(&web.text, 64 << 20);
    buf_init_roomy(&web.result, 64 << 20);
    buf_init_roomy(&web.metadata, 1 << 20);
}

static inline void web_open(void)
{
    web_begin();
    web_open_with(web_opts());
}

static inline void web_close(void)
{
    deliver_free(web.d);
    stage_free(web.s);
    buf_fini(&web.text);
    buf_fini(&web.result);
    buf_fini(&web.metadata);
}

static inline bool is_heard_of(char word)
{
    return strchr(web.words, word) != NULL;
}

#define IS_OVER (is_heard_of('r') || is_heard_of('a'))

/* What is on its way there now. */
static inline size_t on_the_way(void)
{
    return (size_t)deliver_stats(web.d).on_the_way;
}

static inline void offer(void)
{
    CHECK(deliver_offer(web.d, &web.task, &web.agent) == OK);
}

/* Offer it, and wait until it is over. */
static inline void carry(void)
{
    clear_words();
    offer();
    UNTIL(web.s, IS_OVER);
    CHECK(on_the_way() == 0 && web.d->exchange_bytes == 0);
}

/* The same, and then it is forgotten. */
static inline void carry_once(void)
{
    carry();
    deliver_cancel(web.d, str_of(web.task.id.text));
}

/* The same while the nth step breaks; whether there was one. */
static inline bool carry_with_fault(long nth)
{
    bool has_fired;

    clear_words();
    fault_arm(nth);
    if (deliver_offer(web.d, &web.task, &web.agent) == OK)
        UNTIL(web.s, IS_OVER);
    else
        CHECK(fault_fired());
    has_fired = fault_fired();
    fault_arm(0);
    CHECK(on_the_way() == 0 && web.d->exchange_bytes == 0);
    deliver_cancel(web.d, str_of(web.task.id.text));
    return has_fired;
}

static inline const char *log_said(void)
{
    static char text[1 << 18];
    ssize_t n = pread(web.s->log.fd, text, sizeof(text) - 1, 0);

    CHECK(n >= 0);
    text[n] = '\0';
    return text;
}

/* An answer with its length. */
static inline const char *answer_of(const char *status, const char *headers,
                                    const char *body)
{
    static char text[8][4096];
    static int at;
    char *out = text[at++ % 8];

    CHECK(snprintf(out, sizeof(text[0]),
                   "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
                   headers, strlen(body), body) < (int)sizeof(text[0]));
    return out;
}

#define JSON_TYPE  "Content-Type: application/json\r\n"
#define SSE_TYPE   "Content-Type: text/event-stream\r\n"
#define SSE_HEAD   "HTTP/1.1 200 OK\r\n" SSE_TYPE "Connection: close\r\n\r\n"
#define OK_JSON(b) answer_of("200 OK", JSON_TYPE, b)

#endif
