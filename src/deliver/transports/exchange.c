/* A running request: its limits of time and memory, and its failures.
 *
 * fetch could split a stream itself. It is done here, because bytes that are no
 * complete event (a comment every few seconds, half of a long result) also show
 * that the peer is alive.
 *
 * The memory of answers is limited for all agents together (d->exchange_bytes),
 * so that a thousand agents that slowly send just less than the limit do not
 * use up the memory.
 *
 * If the address is the operator's, error details of fetch go to the log and
 * not to the requester, since internal names and ports must not leak. The
 * author of a card knows its address already. */
#include "deliver/transports/exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct exchange *exchange_of_ctx(void *ctx)
{
    return ctx;
}

/* Failures. */

static const struct {
    enum err e;
    struct delivery_failure failure;
    const char *words; /* after `peer` */
} breaks[] = {
    {ERR_ADDRESS,
     {.code = STR("address_not_allowed"), .is_final = true},
     "has an address that is not to be connected to"},
    {ERR_SYNTAX,
     {.code = STR("unreachable"), .is_final = true},
     "cannot be called as it is set up"},
    {ERR_TIMEOUT, {.code = STR("timeout")}, "did not answer in time"},
    {ERR_LIMIT,
     {.code = STR("too_large"), .is_final = true},
     "answered with more than the limit"},
    {ERR_BAD_REQUEST,
     {.code = STR("bad_answer")},
     "broke off its answer, or does not speak HTTP"},
    {ERR_BUSY,
     {.code = STR("overloaded"), .is_innocent = true},
     "was not called: too many requests are running"},
    {ERR_NOMEM,
     {.code = STR("out_of_memory"), .is_innocent = true},
     "was not called: memory is short"},
    {ERR_STOPPING,
     {.code = STR("stopping"), .is_innocent = true},
     "was not heard: the server is shutting down"},
    {ERR_UNREACHABLE,
     {.code = STR("unreachable")},
     "does not answer at its address"}, /* and any other error */
};

enum { N_BREAKS = sizeof(breaks) / sizeof(breaks[0]) };

static size_t break_row(enum err e)
{
    size_t i = 0;

    while (i < N_BREAKS - 1 && breaks[i].e != e)
        i++;
    return i;
}

struct delivery_failure exchange_failure_of(enum err e)
{
    return breaks[break_row(e)].failure;
}

static void exchange_break(struct exchange *a, struct delivery_failure f,
                           const struct why *words)
{
    f.words = str_of(words->text);
    if (a->ops->on_broken)
        a->ops->on_broken(a, &f);
    else
        delivery_failed(&a->delivery, &f);
}

void exchange_failed(struct exchange *a, struct delivery_failure f,
                     const char *fmt, ...)
{
    struct why words;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words.text, sizeof(words.text), fmt, ap);
    va_end(ap);
    f.words = str_of(words.text);
    delivery_failed(&a->delivery, &f);
}

static void exchange_on_late(struct loop_job *job)
{
    struct exchange *a = LIST_OF(job, struct exchange, late);

    a->failure.words = str_of(a->failure_words.text);
    delivery_failed(&a->delivery, &a->failure);
}

void exchange_fail_later(struct exchange *a, struct delivery_failure f,
                         const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->failure_words.text, sizeof(a->failure_words.text), fmt, ap);
    va_end(ap);
    a->failure = f;
    loop_at_end(a->d->opts.loop, &a->late);
}

/* The explanation of an error of fetch. */
static void exchange_break_words(struct exchange *a, enum err e,
                                 const struct why *from, struct why *out)
{
    bool is_shown = !a->is_operators && from->text[0];

    if (a->d->opts.log && from->text[0])
        log_info(a->d->opts.log, "deliver.not_asked",
                 LOG_C("task_id", a->delivery.id.task_id.text),
                 LOG_C("agent", a->agent), LOG_C("because", from->text));
    why_err(out, e, "%s %s%s%.300s", a->peer, breaks[break_row(e)].words,
            is_shown ? ": " : "", is_shown ? from->text : "");
}

void exchange_not_sent(struct exchange *a, enum err e, const struct why *why)
{
    struct why words;

    exchange_break_words(a, e, why, &words);
    exchange_fail_later(a, exchange_failure_of(e), "%s", words.text);
}

/* Deadlines. */

/* The end of the wait; monotonic. */
static int64_t exchange_patience_ends_ms(const struct exchange *a)
{
    int64_t silent_ms = a->heard_ms + a->silence_ms;
    bool is_limited = a->has_head && a->silence_ms > 0;

    return is_limited && silent_ms < a->until_ms ? silent_ms : a->until_ms;
}

static void exchange_on_patience(struct timer *t)
{
    struct exchange *a = LIST_OF(t, struct exchange, patience);
    int64_t left_ms =
        exchange_patience_ends_ms(a) - loop_mono_ms(a->d->opts.loop);
    struct why words;

    if (left_ms > 0) {
        loop_timer_set(a->d->opts.loop, &a->patience, left_ms);
        return;
    }
    if (a->has_head && exchange_patience_ends_ms(a) < a->until_ms)
        why_err(&words, ERR_TIMEOUT,
                "%s fell silent in the middle of its answer for %lld ms",
                a->peer, (long long)a->silence_ms);
    else
        why_err(&words, ERR_TIMEOUT, "%s did not answer in time", a->peer);
    exchange_break(a, exchange_failure_of(ERR_TIMEOUT), &words);
}

/* The answer. */

static void exchange_uncount_bytes(struct exchange *a)
{
    a->d->exchange_bytes -= a->n_counted;
    a->n_counted = 0;
}

/* False: all answers together are over the limit. */
static bool exchange_count_bytes(struct exchange *a)
{
    size_t n = a->body.n + a->sse.line.n + a->sse.data.n + a->n_kept;

    exchange_uncount_bytes(a);
    a->n_counted = n;
    a->d->exchange_bytes += n;
    return a->d->exchange_bytes <= a->d->opts.settings.max_gathered_bytes;
}

/* Some frameworks answer 201 to every POST. */
static bool exchange_is_good(const struct exchange *a)
{
    return a->status == 200 || a->status == 201;
}

/* We never ask for compression. Without this check the error would be "bad
 * JSON". */
static void exchange_reject_packed(struct exchange *a,
                                   const struct fetch_answer *answer)
{
    for (size_t i = 0; i < answer->n_headers; i++) {
        struct str how = str_trim(answer->headers[i].value);
        char name[32];

        if (!str_eq_nocase(answer->headers[i].name, STR("content-encoding")) ||
            !how.n || str_eq_nocase(how, STR("identity")))
            continue;
        snprintf(name, sizeof(name), "%.*s", STR_ARG(str_head(how, 31)));
        name[str_tame(name, strlen(name))] = '\0';
        exchange_failed(a,
                        (struct delivery_failure){.code = STR("bad_answer"),
                                                  .is_final = true},
                        "%s sent an answer that is compressed (%s), which was "
                        "not asked for",
                        a->peer, name);
        return;
    }
}

static void exchange_on_head(void *ctx, uint64_t id,
                             const struct fetch_answer *answer)
{
    struct exchange *a = exchange_of_ctx(ctx);
    struct loop *loop = a->d->opts.loop;

    (void)id;
    a->has_head = true;
    a->heard_ms = loop_mono_ms(loop);
    a->status = answer->status;
    a->retry_ms = fetch_retry_after_ms(answer, loop_wall_ms(loop));
    for (size_t i = 0; i < answer->n_headers; i++) {
        struct str value = answer->headers[i].value;

        if (!str_eq_nocase(answer->headers[i].name, STR("content-type")))
            continue;
        value = str_trim(str_cut(&value, ';'));
        snprintf(a->type, sizeof(a->type), "%.*s",
                 STR_ARG(str_head(value, sizeof(a->type) - 1)));
    }
    a->type[str_tame(a->type, strlen(a->type))] = '\0';
    a->is_stream = str_eq_nocase(str_of(a->type), STR("text/event-stream"));
    loop_timer_set(loop, &a->patience,
                   exchange_patience_ends_ms(a) - a->heard_ms);
    if (exchange_is_good(a) && delivery_working(&a->delivery))
        exchange_reject_packed(a, answer);
}

static bool exchange_on_sse(void *ctx, const struct sse_event *e)
{
    struct exchange *a = exchange_of_ctx(ctx);

    return a->ops->on_event(a, e);
}

static void exchange_on_bytes(void *ctx, uint64_t id, struct str bytes)
{
    struct exchange *a = exchange_of_ctx(ctx);
    enum err e = OK;
    struct why words;

    (void)id;
    a->heard_ms = loop_mono_ms(a->d->opts.loop);
    if (FAULT("deliver.bytes"))
        e = ERR_NOMEM;
    else if (!exchange_is_good(a))
        buf_add_str(&a->body, /* the first bytes, for its message */
                    str_sub(bytes, 0, EXCHANGE_COMPLAINT_MAX - a->body.n));
    else if (a->is_stream)
        e = sse_feed(&a->sse, bytes);
    else if (bytes.n > EXCHANGE_ANSWER_MAX - a->body.n)
        e = ERR_LIMIT;
    else
        buf_add_str(&a->body, bytes);
    if (a->delivery.is_over || !a->id) /* over, or exchange_rest */
        return;
    if (!e && a->body.over)
        e = ERR_NOMEM;
    if (!exchange_count_bytes(a) && !e)
        e = ERR_BUSY;
    if (e) {
        exchange_break_words(a, e, &(struct why){""}, &words);
        exchange_break(a, exchange_failure_of(e), &words);
    }
}

static void exchange_on_done(void *ctx, uint64_t id, enum err e,
                             const struct fetch_answer *answer,
                             const struct why *why)
{
    struct exchange *a = exchange_of_ctx(ctx);
    struct why words;

    (void)id;
    (void)answer;
    a->id = 0;
    if (e) {
        exchange_break_words(a, e, why, &words);
        exchange_break(a, exchange_failure_of(e), &words);
    } else if (!exchange_is_good(a)) {
        a->ops->on_status(a);
    } else if (a->is_stream) {
        a->ops->on_end(a);
    } else {
        a->ops->on_whole(a);
    }
}

/* Begin and end. */

static int64_t exchange_time_left_ms(const struct deliver *d,
                                     int64_t deadline_ms)
{
    int64_t ms = deadline_ms - loop_wall_ms(d->opts.loop);

    if (!deadline_ms || ms > EXCHANGE_LONGEST_MS)
        return EXCHANGE_LONGEST_MS;
    return (ms > 0 ? ms : 0) + EXCHANGE_SPARE_MS;
}

int64_t exchange_whole_ms(struct deliver *d, const struct task *t)
{
    return exchange_time_left_ms(d, t->deadline_ms);
}

void exchange_again(struct exchange *a, int64_t whole_ms)
{
    int64_t most_ms = exchange_time_left_ms(a->d, a->delivery.deadline_ms);

    if (whole_ms > most_ms)
        whole_ms = most_ms;
    a->until_ms = loop_mono_ms(a->d->opts.loop) + whole_ms;
    a->has_head = false;
    loop_timer_set(a->d->opts.loop, &a->patience, whole_ms);
}

void exchange_rest(struct exchange *a)
{
    if (a->id)
        fetch_cancel(a->d->opts.fetch, a->id);
    a->id = 0;
    exchange_again(a, EXCHANGE_LONGEST_MS);
}

void exchange_init(struct exchange *a, struct deliver *d,
                   const struct exchange_ops *ops, const struct agent *agent,
                   int64_t whole_ms)
{
    a->d = d;
    a->ops = ops;
    a->late.run = exchange_on_late;
    a->patience.fire = exchange_on_patience;
    a->until_ms = loop_mono_ms(d->opts.loop) + whole_ms;
    snprintf(a->agent, sizeof(a->agent), "%.*s", STR_ARG(agent->name));
    buf_init(&a->body, EXCHANGE_ANSWER_MAX);
    sse_init(&a->sse, EXCHANGE_ANSWER_MAX, exchange_on_sse, a);
    loop_timer_set(d->opts.loop, &a->patience, whole_ms);
}

void exchange_stop(struct exchange *a)
{
    if (a->id)
        fetch_cancel(a->d->opts.fetch, a->id);
    a->id = 0;
    loop_timer_cancel(a->d->opts.loop, &a->patience);
    loop_not_at_end(&a->late);
    exchange_uncount_bytes(a);
}

void exchange_fini(struct exchange *a)
{
    buf_fini(&a->body);
    sse_fini(&a->sse);
}

enum err exchange_send(struct exchange *a, struct fetch_request *rq,
                       struct why *why)
{
    static const struct fetch_handler handler = {.on_head = exchange_on_head,
                                                 .on_bytes = exchange_on_bytes,
                                                 .on_done = exchange_on_done};
    enum err e;

    a->has_head = false;
    a->type[0] = '\0';
    buf_clear(&a->body);
    sse_restart(&a->sse);
    /* Our own deadlines come first, since their errors explain more. */
    rq->timeout_ms =
        a->until_ms - loop_mono_ms(a->d->opts.loop) + EXCHANGE_SPARE_MS;
    if (rq->timeout_ms < EXCHANGE_SPARE_MS)
        rq->timeout_ms = EXCHANGE_SPARE_MS;
    rq->max_body_bytes = EXCHANGE_STREAM_MAX;
    rq->max_event_bytes = EXCHANGE_ANSWER_MAX;
    e = fetch_start(a->d->opts.fetch, rq, &handler, a, &a->id, why);
    if (e)
        a->id = 0;
    return e;
}
