/* One request for each question, and what it says of the classifier:
 *
 *     200             it is there, whatever it says
 *     400, 413, 422   it is there and does not take this question: some refuse
 *                     texts that they do not like, and nobody's text may keep
 *                     others from being asked about
 *     429, 503, 529   too much: with the pause that it asks for
 *     the rest, none  it fails
 *
 * What not every endpoint knows is asked for and left out for a while where it
 * complains of it by name (habits). A complaint may quote the text that it is
 * about, which is anybody's: so its words count only where the question has the
 * name nowhere but as its field.
 *
 * Turned down: waiting for room where too many are under way, and asking again.
 * A message has other layers, and whoever sent it waits. What a classifier says
 * is wrong may repeat what it was asked, so it is told to whoever asked and is
 * in no log. */
#include "route/intent.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/breaker.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/url.h"
#include "chat/chat.h"

enum {
    WORDS_BYTES = 200,
    STRINGS_BYTES = 64 * 1024,
    REFUSED_LOG_MS = 60 * 1000,
    N_HABITS = 3,
    BODY_SPARE_BYTES = 256,
};

/* Fields that some do not take, what everybody takes instead, and of which
 * kinds' questions they are part. */
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

/* What it is asked with: a copy that is made whole and then used. */
struct place {
    struct arena arena;
    struct str url, origin, key;
    enum model_kind kind;
    struct fetch_header headers[CHAT_HEADERS_MAX];
    size_t n_headers;
    int64_t timeout_ms;
    uint64_t number; /* of the classifiers that there were */
    int64_t habit_until_ms[N_HABITS];
};

struct intent {
    struct intent_opts opts; /* but for the settings */
    struct place place;
    struct breaker breaker;
    struct list out;
    struct intent_stats stats;
    int64_t refused_log_ms, unusable_log_ms; /* not again before this */
    bool is_stopping;
};

/* One under way. */
struct question {
    struct list_node node;
    struct intent *intent;
    uint64_t id; /* fetch's */
    uint64_t place;
    enum model_kind kind;
    bool is_probe;
    bool is_quotable[N_HABITS]; /* it has the field's name elsewhere too */
    int64_t since_ms, timeout_ms;
    intent_done *done;
    void *ctx;
};

/* Whom to ask. */

/* What may be shown: a path or a query can hold secrets. */
static void find_origin(struct place *p)
{
    struct url url;

    if (!url_read(p->url, &url, NULL))
        p->origin = (struct str){
            url.scheme.p,
            (size_t)(url.authority.p + url.authority.n - url.scheme.p)};
}

static enum err find_way(struct place *p, const struct intent_settings *s)
{
    struct chat_reach r;
    enum err e = chat_reach(&p->arena, s->kind, s->endpoint, p->key, false, &r);

    if (e || !s->endpoint.n)
        return e;
    p->url = r.url;
    for (; p->n_headers < r.n_headers; p->n_headers++)
        p->headers[p->n_headers] = (struct fetch_header){
            r.headers[p->n_headers].name, r.headers[p->n_headers].value};
    find_origin(p);
    return OK;
}

static enum err place_make(struct place *p, const struct intent_settings *s)
{
    *p = (struct place){.kind = s->kind, .timeout_ms = s->timeout_ms};
    arena_init(&p->arena, STRINGS_BYTES);
    if (arena_keep(&p->arena, s->key, &p->key) && find_way(p, s) == OK)
        return OK;
    arena_fini(&p->arena);
    return ERR_NOMEM;
}

enum err intent_set(struct intent *in, const struct intent_settings *s)
{
    struct place next;
    enum err e = place_make(&next, s);

    if (e)
        return e;
    next.number = in->place.number;
    /* What the one did says nothing of another. */
    if (!str_eq(next.url, in->place.url) || !str_eq(next.key, in->place.key) ||
        next.kind != in->place.kind) {
        next.number++;
        in->breaker = (struct breaker){.max_failures = INTENT_FAILURES_MAX,
                                       .pause_ms = INTENT_PAUSE_MS};
    }
    arena_fini(&in->place.arena);
    in->place = next;
    return OK;
}

struct intent *intent_new(const struct intent_opts *opts)
{
    struct intent *in = FAULT("intent.new") ? NULL : calloc(1, sizeof(*in));

    if (!in)
        return NULL;
    in->opts = *opts;
    list_init(&in->out);
    arena_init(&in->place.arena, 0);
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
    arena_fini(&in->place.arena);
    free(in);
}

/* What became of it. */

/* Out of everything but memory, so that `done` may do as it likes. */
static void leave(struct question *q)
{
    list_remove(&q->node);
    q->intent->stats.out--;
}

static bool is_current(const struct question *q)
{
    return q->place == q->intent->place.number;
}

static void went_well(struct question *q)
{
    struct intent *in = q->intent;

    if (is_current(q) && breaker_good(&in->breaker, q->is_probe))
        log_info(in->opts.log, "intent.classifier_back",
                 LOG_S("classifier", in->place.origin));
}

/* `plain` is for the log. */
static void went_badly(struct question *q, int64_t retry_ms, const char *plain)
{
    struct intent *in = q->intent;
    int64_t now_ms = loop_mono_ms(in->opts.loop);
    bool was_closed = in->breaker.state == BREAKER_CLOSED;

    if (is_current(q) &&
        breaker_bad(&in->breaker, q->is_probe, now_ms, retry_ms) && was_closed)
        log_warn(in->opts.log, "intent.classifier_fails",
                 LOG_S("classifier", in->place.origin), LOG_C("because", plain),
                 LOG_I("pause_ms", in->breaker.until_ms - now_ms));
}

/* "param": "temperature", or "response_format.type". */
static bool is_param(const struct json *param, struct str field)
{
    struct str s = param && param->type == JSON_STR ? param->s : STR("");

    return str_eq(str_sub(s, 0, str_find(s, '.', 0)), field);
}

/* The next ones are asked without what it does not like. */
static void take_habits(struct question *q, struct str body,
                        const char *complaint)
{
    struct place *p = &q->intent->place;
    struct arena scratch;
    const struct json *root, *param;

    arena_init(&scratch, STRINGS_BYTES);
    root = json_parse(&scratch, body, 0, NULL);
    param = json_get(json_get(root, STR("error")), STR("param"));
    for (size_t i = 0; i < N_HABITS && is_current(q); i++)
        if (habits[i].is_of[q->kind] &&
            (is_param(param, habits[i].field) ||
             (!q->is_quotable[i] && strstr(complaint, habits[i].field.p))))
            p->habit_until_ms[i] =
                loop_mono_ms(q->intent->opts.loop) + INTENT_HABIT_MS;
    arena_fini(&scratch);
}

/* Not more often than it helps whoever reads it. */
static bool may_log(struct intent *in, int64_t *not_before_ms)
{
    int64_t now_ms = loop_mono_ms(in->opts.loop);

    if (*not_before_ms && now_ms < *not_before_ms)
        return false;
    *not_before_ms = now_ms + REFUSED_LOG_MS;
    return true;
}

static void was_refused(struct question *q, const struct fetch_answer *a,
                        const char *complaint)
{
    struct intent *in = q->intent;

    went_well(q);
    take_habits(q, a->body, complaint);
    if (is_current(q) && may_log(in, &in->refused_log_ms))
        log_warn(in->opts.log, "intent.classifier_refuses",
                 LOG_S("classifier", in->place.origin),
                 LOG_I("status", a->status));
}

/* A status that is no answer. Nothing of what it says about our key, which some
 * repeat in part; and nothing of one that was asked with a key that is not
 * known any more. */
static enum err judge(const struct question *q, const struct fetch_answer *a,
                      struct why *why)
{
    char words[WORDS_BYTES] = "";
    const char *hint = "";
    enum err e = ERR_UNREACHABLE;

    if (a->status == 401 || a->status == 403) {
        e = ERR_NOT_ALLOWED;
        hint = "; it does not take our key";
    } else if (is_current(q)) {
        fetch_complaint(a->body, &q->intent->place.key, 1, words,
                        sizeof(words));
    }
    if (a->status == 400 || a->status == 413 || a->status == 422)
        e = ERR_BAD_REQUEST;
    else if (a->status == 429 || a->status == 529)
        e = ERR_OVERLOADED;
    else if (a->status >= 300 && a->status < 400)
        hint = "; it wants to be asked elsewhere";
    return why_err(why, e, "the classifier answered with status %d%s%s%s",
                   a->status, *words ? ": " : "", words, hint);
}

static enum err on_status(struct question *q, const struct fetch_answer *a,
                          struct why *why)
{
    enum err e = judge(q, a, why);
    char plain[64];

    snprintf(plain, sizeof(plain), "it answered with status %d", a->status);
    if (e == ERR_BAD_REQUEST)
        was_refused(q, a, why->text);
    else
        went_badly(q,
                   fetch_retry_after_ms(a, loop_wall_ms(q->intent->opts.loop)),
                   plain);
    return e;
}

/* What was not even begun: words without what is ours to know. Why it cannot be
 * asked may name where it is, and is for the log. */
static enum err not_begun(struct intent *in, enum err e, const struct why *from,
                          struct why *why)
{
    if (e == ERR_BUSY)
        return why_err(why, e, "too many requests to others are under way");
    if (e == ERR_NOMEM || e == ERR_STOPPING)
        return why_err(why, e, "%s", err_row(e)->wording);
    if (may_log(in, &in->unusable_log_ms))
        log_warn(in->opts.log, "intent.classifier_unusable",
                 LOG_S("classifier", in->place.origin),
                 LOG_C("because", from->text));
    return why_err(why, ERR_UNREACHABLE,
                   "the classifier cannot be asked as it is configured");
}

/* No answer at all: fetch's error as one of ours. Its words name the host, and
 * are for the log. */
static enum err on_failure(struct question *q, enum err e,
                           const struct why *from, struct why *why)
{
    if (e == ERR_STOPPING || e == ERR_NOMEM || e == ERR_BUSY) {
        /* Which are ours. */
        breaker_forget(&q->intent->breaker, q->is_probe && is_current(q));
        return not_begun(q->intent, e, from, why);
    }
    went_badly(q, 0, from->text);
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
                       "what the classifier answered is no HTTP, or "
                       "ended early");
    default:
        return why_err(why, ERR_UNREACHABLE,
                       "the classifier could not be reached");
    }
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why)
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
        r.err = on_status(q, a, &r.why);
    else
        went_well(q);
    if (!r.err)
        r.body = a->body;
    in->stats.failed_total += r.err != OK;
    leave(q);
    q->done(q->ctx, &r);
    free(q);
}

/* Asking. */

static enum err say_paused(const struct intent *in, struct why *why)
{
    int64_t left_ms = in->breaker.until_ms - loop_mono_ms(in->opts.loop);
    char until[64] = "until it has answered once";

    if (in->breaker.state == BREAKER_OPEN && left_ms > 0)
        snprintf(until, sizeof(until), "for the next %lld s",
                 (long long)(left_ms + 999) / 1000);
    return why_err(why, ERR_OVERLOADED,
                   "the classifier failed too often and is left alone %s",
                   until);
}

static enum err may_ask(struct intent *in, struct why *why)
{
    if (in->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (!in->opts.fetch || !in->place.url.n)
        return why_err(why, ERR_UNREACHABLE, "no classifier is configured");
    if (in->stats.out >= INTENT_OUT_MAX)
        return why_err(why, ERR_BUSY,
                       "the classifier is asked %d questions already",
                       INTENT_OUT_MAX);
    if (!breaker_may(&in->breaker, loop_mono_ms(in->opts.loop)))
        return say_paused(in, why);
    return OK;
}

static enum err start(struct question *q, struct str body, struct why *why)
{
    static const struct fetch_handler handler = {.on_done = on_done};
    struct intent *in = q->intent;
    struct fetch_request rq = {
        .method = STR("POST"),
        .url = in->place.url,
        .headers = in->place.headers,
        .n_headers = in->place.n_headers,
        .body = body,
        .is_trusted = true,
        .timeout_ms = in->place.timeout_ms,
        .max_body_bytes = INTENT_ANSWER_MAX,
    };
    struct why came = {""};
    enum err e = fetch_start(in->opts.fetch, &rq, &handler, q, &q->id, &came);

    if (e)
        return not_begun(in, e, &came, why);
    q->is_probe = breaker_ask(&in->breaker);
    q->place = in->place.number;
    q->kind = in->place.kind;
    q->since_ms = loop_mono_ms(in->opts.loop);
    q->timeout_ms = rq.timeout_ms;
    list_append(&in->out, &q->node);
    in->stats.out++;
    in->stats.asked_total++;
    return OK;
}

/* Whether it has the word twice, however it is written: letters and underscores
 * stand as they are in JSON that we write. */
static bool has_twice(struct str body, struct str word)
{
    size_t n = 0;

    for (size_t i = 0; n < 2 && i + word.n <= body.n; i++)
        n += str_eq_nocase(str_sub(body, i, i + word.n), word);
    return n == 2;
}

/* As it is known to want it: what is asked, with some fields as habits say. */
static enum err send_it(struct question *q, struct str body, struct why *why)
{
    const struct place *p = &q->intent->place;
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
          : start(q, body, why);
    for (size_t i = 0; i < N_HABITS; i++)
        buf_fini(&bufs[i]);
    return e;
}

uint64_t intent_ask(struct intent *in, struct str body, intent_done *done,
                    void *ctx)
{
    struct intent_reply r = {0};
    struct question *q = NULL;

    r.err = may_ask(in, &r.why);
    if (!r.err) {
        q = FAULT("intent.ask") ? NULL : calloc(1, sizeof(*q));
        if (!q)
            r.err =
                why_err(&r.why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    }
    if (q) {
        *q = (struct question){.intent = in, .done = done, .ctx = ctx};
        r.err = send_it(q, body, &r.why);
    }
    if (!r.err)
        return q->id;
    free(q);
    in->stats.unasked_total++;
    done(ctx, &r);
    return 0;
}

static void give_up(struct question *q)
{
    struct intent *in = q->intent;

    fetch_cancel(in->opts.fetch, q->id);
    breaker_forget(&in->breaker, q->is_probe && is_current(q));
    leave(q);
}

void intent_cancel(struct intent *in, uint64_t id)
{
    for (struct list_node *n = list_first(&in->out); n;
         n = list_next(&in->out, n)) {
        struct question *q = LIST_OF(n, struct question, node);

        if (q->id != id)
            continue;
        give_up(q);
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
        give_up(q);
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
