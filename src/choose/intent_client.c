/* One request for each question, and its meaning for the breaker:
 *
 *     200             the classifier works, whatever the answer
 *     400, 413, 422   it works but rejects this question: some reject certain
 *                     texts, and no text may keep others from being asked
 *     429, 503, 529   overloaded: pause for as long as it says
 *     the rest, none  a failure
 *
 * Fields that not every endpoint accepts are sent, and replaced for a while if
 * the endpoint complains about one by name (habits). A complaint may quote the
 * text, which anyone may have written, so it counts only if the question has
 * the name nowhere else than as its field.
 *
 * Rejected: waiting if too many questions are in flight, and retries. A message
 * has other layers, and its sender waits. A classifier's complaint may repeat
 * the question, so it is reported to the requester and never logged. */
#include "choose/intent_client.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/breaker.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/url.h"
#include "wire/chat/chat.h"

enum {
    WORDS_BYTES = 200,
    STRINGS_BYTES = 64 * 1024,
    REFUSED_LOG_MS = 60 * 1000,
    N_HABITS = 3,
    BODY_SPARE_BYTES = 256,
};

/* Fields that some endpoints reject, the value that every endpoint accepts, and
 * the kinds of endpoint that are sent the field. */
static const struct {
    struct str field, instead;
    bool is_of[MODEL_KINDS];
} habits[N_HABITS] = {
    {{"response_format", 15},
     {"{\"type\":\"text\"}", 15},
     {[MODEL_OPENAI] = true}},
    {{"tool_choice", 11},
     {"{\"type\":\"auto\"}", 15},
     {[MODEL_ANTHROPIC] = true}},
    {{"temperature", 11},
     {"1", 1},
     {[MODEL_OPENAI] = true, [MODEL_ANTHROPIC] = true}},
};

/* The destination: a copy of the settings, built whole before it is used. */
struct classifier {
    struct arena arena;
    struct str url, origin, key;
    enum model_kind kind;
    struct fetch_header headers[CHAT_HEADERS_MAX];
    size_t n_headers;
    int64_t timeout_ms;
    uint64_t number; /* counts different classifiers */
    int64_t habit_until_ms[N_HABITS];
};

struct intent {
    struct intent_opts opts; /* without the settings */
    struct classifier to;
    struct breaker breaker;
    struct list out;
    struct intent_stats stats;
    int64_t refused_log_ms, unusable_log_ms; /* next log entry not before */
    bool is_stopping;
};

/* A request in flight. */
struct question {
    struct list_node node;
    struct intent *intent;
    uint64_t id; /* fetch's */
    uint64_t to; /* classifier.number */
    enum model_kind kind;
    bool is_probe;
    bool is_quotable[N_HABITS]; /* the field's name also occurs elsewhere */
    int64_t since_ms, timeout_ms;
    intent_done *done;
    void *ctx;
};

/* The destination. */

static enum err classifier_init(struct classifier *p,
                                const struct intent_settings *s)
{
    struct chat_reach r;
    struct url url;

    *p = (struct classifier){.kind = s->kind, .timeout_ms = s->timeout_ms};
    arena_init(&p->arena, STRINGS_BYTES);
    if (!arena_keep(&p->arena, s->key, &p->key) ||
        chat_reach(&p->arena, s->kind, s->endpoint, p->key, false, &r)) {
        arena_fini(&p->arena);
        return ERR_NOMEM;
    }
    if (!s->endpoint.n)
        return OK;
    p->url = r.url;
    for (; p->n_headers < r.n_headers; p->n_headers++)
        p->headers[p->n_headers] = (struct fetch_header){
            r.headers[p->n_headers].name, r.headers[p->n_headers].value};
    /* Only the origin may be shown: a path or query can hold secrets. */
    if (!url_read(p->url, &url, NULL))
        p->origin = (struct str){
            url.scheme.p,
            (size_t)(url.authority.p + url.authority.n - url.scheme.p)};
    return OK;
}

enum err intent_set(struct intent *in, const struct intent_settings *s)
{
    struct classifier next;
    enum err e = classifier_init(&next, s);

    if (e)
        return e;
    next.number = in->to.number;
    /* The state of one classifier says nothing about another. */
    if (!str_eq(next.url, in->to.url) || !str_eq(next.key, in->to.key) ||
        next.kind != in->to.kind) {
        next.number++;
        in->breaker = (struct breaker){.max_failures = INTENT_FAILURES_MAX,
                                       .pause_ms = INTENT_PAUSE_MS};
    }
    arena_fini(&in->to.arena);
    in->to = next;
    return OK;
}

struct intent *intent_new(const struct intent_opts *opts)
{
    struct intent *in = mem_new(sizeof(*in));

    in->opts = *opts;
    list_init(&in->out);
    arena_init(&in->to.arena, 0);
    in->breaker = (struct breaker){.max_failures = INTENT_FAILURES_MAX,
                                   .pause_ms = INTENT_PAUSE_MS};
    if (intent_set(in, &opts->settings)) {
        free(in);
        return NULL;
    }
    in->opts.settings = (struct intent_settings){0};
    return in;
}

void intent_free(struct intent *in)
{
    if (!in)
        return;
    assert(list_is_empty(&in->out));
    arena_fini(&in->to.arena);
    free(in);
}

/* Results. */

/* Remove q, but do not free it, so that `done` may call anything. */
static void question_leave(struct question *q)
{
    list_remove(&q->node);
    q->intent->stats.out--;
}

static bool is_current(const struct question *q)
{
    return q->to == q->intent->to.number;
}

static void question_succeeded(struct question *q)
{
    struct intent *in = q->intent;

    if (is_current(q) && breaker_good(&in->breaker, q->is_probe))
        log_info(in->opts.log, "intent.classifier_back",
                 LOG_S("classifier", in->to.origin));
}

/* `plain` is for the log. */
static void question_failed(struct question *q, int64_t retry_ms,
                            const char *plain)
{
    struct intent *in = q->intent;
    int64_t now_ms = loop_mono_ms(in->opts.loop);
    bool was_closed = in->breaker.state == BREAKER_CLOSED;

    if (is_current(q) &&
        breaker_bad(&in->breaker, q->is_probe, now_ms, retry_ms) && was_closed)
        log_warn(in->opts.log, "intent.classifier_fails",
                 LOG_S("classifier", in->to.origin), LOG_C("because", plain),
                 LOG_I("pause_ms", in->breaker.until_ms - now_ms));
}

/* The next questions replace the fields that it complains about. */
static void take_habits(struct question *q, struct str body,
                        const char *complaint)
{
    struct classifier *p = &q->intent->to;
    struct arena scratch;
    const struct json *root;
    struct str param; /* "temperature", or "response_format.type" */

    arena_init(&scratch, STRINGS_BYTES);
    root = json_parse(&scratch, body, 0, NULL);
    param = json_str_or(json_get(json_get(root, STR("error")), STR("param")),
                        STR(""));
    param = str_sub(param, 0, str_find(param, '.', 0));
    for (size_t i = 0; i < N_HABITS && is_current(q); i++)
        if (habits[i].is_of[q->kind] &&
            (str_eq(param, habits[i].field) ||
             (!q->is_quotable[i] && strstr(complaint, habits[i].field.p))))
            p->habit_until_ms[i] =
                loop_mono_ms(q->intent->opts.loop) + INTENT_HABIT_MS;
    arena_fini(&scratch);
}

/* Limits how often a warning is logged. */
static bool may_log(struct intent *in, int64_t *not_before_ms)
{
    int64_t now_ms = loop_mono_ms(in->opts.loop);

    if (*not_before_ms && now_ms < *not_before_ms)
        return false;
    *not_before_ms = now_ms + REFUSED_LOG_MS;
    return true;
}

/* Explain a status other than 200. The endpoint's words about our key are never
 * shown, since some repeat part of it; nor any words if the key has changed
 * since. */
static enum err explain_status(const struct question *q,
                               const struct fetch_answer *a, struct why *why)
{
    char words[WORDS_BYTES] = "";
    const char *hint = "";
    enum err e = ERR_UNREACHABLE;

    if (a->status == 401 || a->status == 403) {
        e = ERR_NOT_ALLOWED;
        hint = "; it does not take our key";
    } else if (is_current(q)) {
        fetch_complaint(a->body, &q->intent->to.key, 1, words, sizeof(words));
    }
    if (a->status == 400 || a->status == 413 || a->status == 422)
        e = ERR_BAD_REQUEST;
    else if (a->status == 429 || a->status == 529)
        e = ERR_OVERLOADED;
    else if (a->status >= 300 && a->status < 400)
        hint = "; it redirects";
    return why_err(why, e, "the classifier answered with status %d%s%s%s",
                   a->status, *words ? ": " : "", words, hint);
}

static enum err on_error_status(struct question *q,
                                const struct fetch_answer *a, struct why *why)
{
    struct intent *in = q->intent;
    enum err e = explain_status(q, a, why);
    char plain[64];

    if (e != ERR_BAD_REQUEST) {
        snprintf(plain, sizeof(plain), "it answered with status %d", a->status);
        question_failed(q, fetch_retry_after_ms(a, loop_wall_ms(in->opts.loop)),
                        plain);
        return e;
    }
    question_succeeded(q);
    take_habits(q, a->body, why->text);
    if (is_current(q) && may_log(in, &in->refused_log_ms))
        log_warn(in->opts.log, "intent.classifier_refuses",
                 LOG_S("classifier", in->to.origin),
                 LOG_I("status", a->status));
    return e;
}

/* Explain a request that could not be started, without internal details. The
 * reason may reveal the endpoint, so it is only logged. */
static enum err explain_not_started(struct intent *in, enum err e,
                                    const struct why *from, struct why *why)
{
    if (e == ERR_BUSY)
        return why_err(why, e, "too many requests to others are under way");
    if (e == ERR_NOMEM || e == ERR_STOPPING)
        return why_err(why, e, "%s", err_row(e)->wording);
    if (may_log(in, &in->unusable_log_ms))
        log_warn(in->opts.log, "intent.classifier_unusable",
                 LOG_S("classifier", in->to.origin),
                 LOG_C("because", from->text));
    return why_err(why, ERR_UNREACHABLE,
                   "the classifier cannot be asked as it is configured");
}

/* No answer: translate fetch's error. Its message names the host and is only
 * logged. */
static enum err on_failure(struct question *q, enum err e,
                           const struct why *from, struct why *why)
{
    if (e == ERR_STOPPING || e == ERR_NOMEM || e == ERR_BUSY) {
        /* The cause is on our side. */
        breaker_forget(&q->intent->breaker, q->is_probe && is_current(q));
        return explain_not_started(q->intent, e, from, why);
    }
    question_failed(q, 0, from->text);
    switch ((int)e) {
    case ERR_TIMEOUT:
        return why_err(why, e, "the classifier did not answer within %lld ms",
                       (long long)q->timeout_ms);
    case ERR_LIMIT:
        return why_err(why, ERR_BAD_REQUEST,
                       "the classifier's answer has more than %d bytes",
                       INTENT_ANSWER_MAX);
    case ERR_BAD_REQUEST:
        return why_err(why, e,
                       "the classifier's answer is not HTTP, or ended early");
    default:
        return why_err(why, ERR_UNREACHABLE,
                       "the classifier could not be reached");
    }
}

static void question_on_done(void *ctx, uint64_t id, enum err e,
                             const struct fetch_answer *a,
                             const struct why *why)
{
    struct question *q = ctx;
    struct intent *in = q->intent;
    struct intent_reply r = {
        .kind = q->kind,
        .took_ms = loop_mono_ms(in->opts.loop) - q->since_ms,
    };

    (void)id;
    if (e)
        r.err = on_failure(q, e, why, &r.why);
    else if (a->status != 200)
        r.err = on_error_status(q, a, &r.why);
    else
        question_succeeded(q);
    if (!r.err)
        r.body = a->body;
    in->stats.failed_total += r.err != OK;
    question_leave(q);
    q->done(q->ctx, &r);
    free(q);
}

/* Questions. */

static enum err intent_may_ask(struct intent *in, struct why *why)
{
    int64_t left_ms = in->breaker.until_ms - loop_mono_ms(in->opts.loop);
    char until[64] = "until it has answered once";

    if (in->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (!in->opts.fetch || !in->to.url.n)
        return why_err(why, ERR_UNREACHABLE, "no classifier is configured");
    if (in->stats.out >= INTENT_OUT_MAX)
        return why_err(why, ERR_BUSY,
                       "the classifier is asked %d questions already",
                       INTENT_OUT_MAX);
    if (breaker_may(&in->breaker, loop_mono_ms(in->opts.loop)))
        return OK;
    if (in->breaker.state == BREAKER_OPEN && left_ms > 0)
        snprintf(until, sizeof(until), "for the next %lld s",
                 (long long)(left_ms + 999) / 1000);
    return why_err(why, ERR_OVERLOADED,
                   "the classifier failed too often and is left alone %s",
                   until);
}

static enum err question_start(struct question *q, struct str body,
                               struct why *why)
{
    static const struct fetch_handler handler = {.on_done = question_on_done};
    struct intent *in = q->intent;
    struct fetch_request rq = {
        .method = STR("POST"),
        .url = in->to.url,
        .headers = in->to.headers,
        .n_headers = in->to.n_headers,
        .body = body,
        .is_trusted = true,
        .timeout_ms = in->to.timeout_ms,
        .max_body_bytes = INTENT_ANSWER_MAX,
    };
    struct why came = {""};
    enum err e = fetch_start(in->opts.fetch, &rq, &handler, q, &q->id, &came);

    if (e)
        return explain_not_started(in, e, &came, why);
    q->is_probe = breaker_ask(&in->breaker);
    q->to = in->to.number;
    q->kind = in->to.kind;
    q->since_ms = loop_mono_ms(in->opts.loop);
    q->timeout_ms = rq.timeout_ms;
    list_append(&in->out, &q->node);
    in->stats.out++;
    in->stats.asked_total++;
    return OK;
}

/* Whether the word occurs twice, in any case. Letters and underscores are never
 * escaped in JSON that we write. */
static bool has_twice(struct str body, struct str word)
{
    size_t n = 0;

    for (size_t i = 0; n < 2 && i + word.n <= body.n; i++)
        n += str_eq_nocase(str_sub(body, i, i + word.n), word);
    return n == 2;
}

/* Send the body with the fields replaced that the endpoint rejects. */
static enum err question_send(struct question *q, struct str body,
                              struct why *why)
{
    const struct classifier *p = &q->intent->to;
    int64_t now_ms = loop_mono_ms(q->intent->opts.loop);
    struct buf bufs[N_HABITS];
    enum err e = OK;

    for (size_t i = 0; i < N_HABITS; i++) {
        buf_init(&bufs[i], body.n + BODY_SPARE_BYTES);
        q->is_quotable[i] = has_twice(body, habits[i].field);
        if (e || now_ms >= p->habit_until_ms[i])
            continue;
        e = json_splice(&bufs[i], body, habits[i].field, habits[i].instead,
                        NULL);
        body = buf_str(&bufs[i]);
    }
    e = e ? why_err(why, e == ERR_LIMIT ? ERR_NOMEM : e, "%s",
                    err_row(ERR_NOMEM)->wording)
          : question_start(q, body, why);
    for (size_t i = 0; i < N_HABITS; i++)
        buf_fini(&bufs[i]);
    return e;
}

uint64_t intent_ask(struct intent *in, struct str body, intent_done *done,
                    void *ctx)
{
    struct intent_reply r = {0};
    struct question *q = NULL;

    r.err = intent_may_ask(in, &r.why);
    if (!r.err) {
        q = mem_new(sizeof(*q));
        *q = (struct question){.intent = in, .done = done, .ctx = ctx};
        r.err = question_send(q, body, &r.why);
    }
    if (!r.err)
        return q->id;
    free(q);
    in->stats.unasked_total++;
    done(ctx, &r);
    return 0;
}

static void question_cancel(struct question *q)
{
    struct intent *in = q->intent;

    fetch_cancel(in->opts.fetch, q->id);
    breaker_forget(&in->breaker, q->is_probe && is_current(q));
    question_leave(q);
}

void intent_cancel(struct intent *in, uint64_t id)
{
    for (struct list_node *n = list_first(&in->out); n;
         n = list_next(&in->out, n)) {
        struct question *q = LIST_OF(n, struct question, node);

        if (q->id != id)
            continue;
        question_cancel(q);
        free(q);
        return;
    }
}

void intent_stop(struct intent *in)
{
    struct list_node *n;

    in->is_stopping = true;
    while ((n = list_first(&in->out))) {
        struct question *q = LIST_OF(n, struct question, node);
        struct intent_reply r = {
            .took_ms = loop_mono_ms(in->opts.loop) - q->since_ms,
        };

        r.err =
            why_err(&r.why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
        question_cancel(q);
        q->done(q->ctx, &r);
        free(q);
    }
}

struct intent_stats intent_stats(const struct intent *in)
{
    struct intent_stats s = in->stats;

    s.is_paused = breaker_is_shut(&in->breaker, loop_mono_ms(in->opts.loop));
    return s;
}
