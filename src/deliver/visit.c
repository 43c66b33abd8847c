/* One request under way: what it may take of time and memory, and what becomes
 * of one that breaks.
 *
 * Fetch would take a stream apart by itself; it is done here, because bytes
 * that are no event (a comment every few seconds, half of a long result) show
 * all the same that somebody is there.
 *
 * What an answer takes in memory counts for all agents together
 * (d->asked_bytes), so that a thousand who each send a little less than the
 * limit, slowly, do not add up to more than there is.
 *
 * Where the address is the operator's, what fetch has to say of it goes into
 * the log and not to whoever sent the task: names and ports within are none of
 * their business. Whoever gave an address in a card knows it already. */
#include "deliver/visit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static struct visit *visit_of(void *ctx)
{
    return ctx;
}

/* Failing. */

static const struct {
    enum err e;
    struct delivery_failure failure;
    const char *words; /* behind `who` */
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
     "was not called: as many requests are under way as may be"},
    {ERR_NOMEM,
     {.code = STR("out_of_memory"), .is_innocent = true},
     "was not called: memory is short"},
    {ERR_STOPPING,
     {.code = STR("stopping"), .is_innocent = true},
     "was not heard: the server is shutting down"},
    {ERR_UNREACHABLE,
     {.code = STR("unreachable")},
     "does not answer at its address"}, /* and whatever else there is */
};

enum { N_BREAKS = sizeof(breaks) / sizeof(breaks[0]) };

static size_t break_of(enum err e)
{
    size_t i = 0;

    while (i < N_BREAKS - 1 && breaks[i].e != e)
        i++;
    return i;
}

struct delivery_failure visit_failure_of(enum err e)
{
    return breaks[break_of(e)].failure;
}

static void fail(struct visit *a, struct delivery_failure f,
                 const struct why *words)
{
    f.words = str_of(words->text);
    if (a->ops->on_broken)
        a->ops->on_broken(a, &f);
    else
        delivery_failed(&a->delivery, &f);
}

void visit_failed(struct visit *a, struct delivery_failure f, const char *fmt,
                  ...)
{
    struct why words;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words.text, sizeof(words.text), fmt, ap);
    va_end(ap);
    f.words = str_of(words.text);
    delivery_failed(&a->delivery, &f);
}

static void on_late(struct loop_job *job)
{
    struct visit *a = LIST_OF(job, struct visit, late);

    a->failure.words = str_of(a->failure_words.text);
    delivery_failed(&a->delivery, &a->failure);
}

void visit_fail_later(struct visit *a, struct delivery_failure f,
                      const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->failure_words.text, sizeof(a->failure_words.text), fmt, ap);
    va_end(ap);
    a->failure = f;
    loop_at_end(a->d->opts.loop, &a->late);
}

/* What is said of an error of fetch's. */
static void break_words(struct visit *a, enum err e, const struct why *from,
                        struct why *out)
{
    bool is_shown = !a->is_operators && from->text[0];

    if (a->d->opts.log && from->text[0])
        log_info(a->d->opts.log, "deliver.not_asked",
                 LOG_C("task_id", a->delivery.id.task_id.text),
                 LOG_C("agent", a->agent), LOG_C("because", from->text));
    why_err(out, e, "%s %s%s%.300s", a->who, breaks[break_of(e)].words,
            is_shown ? ": " : "", is_shown ? from->text : "");
}

void visit_not_sent(struct visit *a, enum err e, const struct why *why)
{
    struct why words;

    break_words(a, e, why, &words);
    visit_fail_later(a, visit_failure_of(e), "%s", words.text);
}

/* Waiting. */

/* When it has waited long enough, by the loop's monotonic time. */
static int64_t patience_ends_ms(const struct visit *a)
{
    int64_t silent_ms = a->heard_ms + a->silence_ms;
    bool is_limited = a->has_head && a->silence_ms > 0;

    return is_limited && silent_ms < a->until_ms ? silent_ms : a->until_ms;
}

static void on_patience(struct timer *t)
{
    struct visit *a = LIST_OF(t, struct visit, patience);
    int64_t left_ms = patience_ends_ms(a) - loop_mono_ms(a->d->opts.loop);
    struct why words;

    /* A timer that fires has a place, so setting it again cannot fail. */
    if (left_ms > 0 &&
        loop_timer_set(a->d->opts.loop, &a->patience, left_ms) == OK)
        return;
    if (a->has_head && patience_ends_ms(a) < a->until_ms)
        why_err(&words, ERR_TIMEOUT,
                "%s fell silent in the middle of its answer for %lld ms",
                a->who, (long long)a->silence_ms);
    else
        why_err(&words, ERR_TIMEOUT, "%s did not answer in time", a->who);
    fail(a, visit_failure_of(ERR_TIMEOUT), &words);
}

/* The answer. */

static void forget_bytes(struct visit *a)
{
    a->d->asked_bytes -= a->n_counted;
    a->n_counted = 0;
}

/* False: there is too much of all answers together. */
static bool count_bytes(struct visit *a)
{
    size_t n = a->body.n + a->sse.line.n + a->sse.data.n + a->n_kept;

    forget_bytes(a);
    a->n_counted = n;
    a->d->asked_bytes += n;
    return a->d->asked_bytes <= a->d->opts.settings.max_gathered_bytes;
}

/* 201 is what some frameworks answer to every POST. */
static bool is_good(const struct visit *a)
{
    return a->status == 200 || a->status == 201;
}

static struct str media_type(struct str value)
{
    return str_trim(str_sub(value, 0, str_find(value, ';', 0)));
}

/* Nobody asked for that; without these words it would be bad JSON. */
static void refuse_packed(struct visit *a, const struct fetch_answer *answer)
{
    for (size_t i = 0; i < answer->n_headers; i++) {
        struct str how = str_trim(answer->headers[i].value);
        char name[32];

        if (!str_eq_nocase(answer->headers[i].name, STR("content-encoding")) ||
            !how.n || str_eq_nocase(how, STR("identity")))
            continue;
        snprintf(name, sizeof(name), "%.*s", STR_ARG(str_head(how, 31)));
        name[str_tame(name, strlen(name))] = '\0';
        visit_failed(a,
                     (struct delivery_failure){.code = STR("bad_answer"),
                                               .is_final = true},
                     "%s sent an answer that is compressed (%s), which was "
                     "not asked for",
                     a->who, name);
        return;
    }
}

static void on_head(void *ctx, uint64_t id, const struct fetch_answer *answer)
{
    struct visit *a = visit_of(ctx);
    struct loop *loop = a->d->opts.loop;

    (void)id;
    a->has_head = true;
    a->heard_ms = loop_mono_ms(loop);
    a->status = answer->status;
    a->retry_ms = fetch_retry_after_ms(answer, loop_wall_ms(loop));
    for (size_t i = 0; i < answer->n_headers; i++)
        if (str_eq_nocase(answer->headers[i].name, STR("content-type")))
            snprintf(a->type, sizeof(a->type), "%.*s",
                     STR_ARG(str_head(media_type(answer->headers[i].value),
                                      sizeof(a->type) - 1)));
    a->type[str_tame(a->type, strlen(a->type))] = '\0';
    a->is_stream = str_eq_nocase(str_of(a->type), STR("text/event-stream"));
    /* It has a place, as in on_patience; and were it not set, it would end
     * with the whole. */
    if (loop_timer_set(loop, &a->patience, patience_ends_ms(a) - a->heard_ms) !=
            OK ||
        !is_good(a))
        return;
    if (delivery_working(&a->delivery))
        refuse_packed(a, answer);
}

static bool on_sse(void *ctx, const struct sse_event *e)
{
    struct visit *a = visit_of(ctx);

    return a->ops->on_event(a, e);
}

/* An error's body is read for its words alone: what is more is passed over. */
static void keep_complaint(struct visit *a, struct str bytes)
{
    size_t room = VISIT_COMPLAINT_MAX - a->body.n;

    buf_add_str(&a->body, str_sub(bytes, 0, room));
}

static void on_bytes(void *ctx, uint64_t id, struct str bytes)
{
    struct visit *a = visit_of(ctx);
    enum err e = OK;
    struct why words;

    (void)id;
    a->heard_ms = loop_mono_ms(a->d->opts.loop);
    if (FAULT("deliver.bytes"))
        e = ERR_NOMEM;
    else if (!is_good(a))
        keep_complaint(a, bytes);
    else if (a->is_stream)
        e = sse_feed(&a->sse, bytes);
    else if (bytes.n > VISIT_ANSWER_MAX - a->body.n)
        e = ERR_LIMIT;
    else
        buf_add_str(&a->body, bytes);
    if (a->delivery.is_over || !a->id) /* or nothing more is heard of it */
        return;
    if (!e && a->body.over)
        e = ERR_NOMEM;
    if (!count_bytes(a) && !e)
        e = ERR_BUSY;
    if (e) {
        break_words(a, e, &(struct why){""}, &words);
        fail(a, visit_failure_of(e), &words);
    }
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *answer, const struct why *why)
{
    struct visit *a = visit_of(ctx);
    struct why words;

    (void)id;
    (void)answer;
    a->id = 0;
    if (e) {
        break_words(a, e, why, &words);
        fail(a, visit_failure_of(e), &words);
    } else if (!is_good(a)) {
        a->ops->on_status(a);
    } else if (a->is_stream) {
        a->ops->on_end(a);
    } else {
        a->ops->on_whole(a);
    }
}

/* Life. */

static int64_t time_left(const struct deliver *d, int64_t deadline_ms)
{
    int64_t ms = deadline_ms - loop_wall_ms(d->opts.loop);

    if (!deadline_ms || ms > VISIT_LONGEST_MS)
        return VISIT_LONGEST_MS;
    return (ms > 0 ? ms : 0) + VISIT_SPARE_MS;
}

int64_t visit_whole_ms(struct deliver *d, const struct task *t)
{
    return time_left(d, t->deadline_ms);
}

/* The timer has a place, as in on_patience. */
void visit_again(struct visit *a, int64_t whole_ms)
{
    int64_t most_ms = time_left(a->d, a->delivery.deadline_ms);

    if (whole_ms > most_ms)
        whole_ms = most_ms;
    a->until_ms = loop_mono_ms(a->d->opts.loop) + whole_ms;
    a->has_head = false;
    (void)!loop_timer_set(a->d->opts.loop, &a->patience, whole_ms);
}

void visit_rest(struct visit *a)
{
    if (a->id)
        fetch_cancel(a->d->opts.fetch, a->id);
    a->id = 0;
    visit_again(a, VISIT_LONGEST_MS);
}

enum err visit_init(struct visit *a, struct deliver *d,
                    const struct visit_ops *ops, const struct agent *agent,
                    int64_t whole_ms)
{
    a->d = d;
    a->ops = ops;
    a->late.run = on_late;
    a->patience.fire = on_patience;
    a->until_ms = loop_mono_ms(d->opts.loop) + whole_ms;
    snprintf(a->agent, sizeof(a->agent), "%.*s", STR_ARG(agent->name));
    buf_init(&a->body, VISIT_ANSWER_MAX);
    sse_init(&a->sse, VISIT_ANSWER_MAX, on_sse, a);
    return loop_timer_set(d->opts.loop, &a->patience, whole_ms);
}

void visit_stop(struct visit *a)
{
    if (a->id)
        fetch_cancel(a->d->opts.fetch, a->id);
    a->id = 0;
    loop_timer_cancel(a->d->opts.loop, &a->patience);
    loop_not_at_end(&a->late);
    forget_bytes(a);
}

void visit_fini(struct visit *a)
{
    buf_fini(&a->body);
    sse_fini(&a->sse);
}

enum err visit_send(struct visit *a, struct fetch_request *rq, struct why *why)
{
    static const struct fetch_handler handler = {
        .on_head = on_head, .on_bytes = on_bytes, .on_done = on_done};
    enum err e;

    a->has_head = false;
    a->type[0] = '\0';
    buf_clear(&a->body);
    sse_restart(&a->sse);
    /* Ours end first: they know what is being waited for. */
    rq->timeout_ms =
        a->until_ms - loop_mono_ms(a->d->opts.loop) + VISIT_SPARE_MS;
    if (rq->timeout_ms < VISIT_SPARE_MS)
        rq->timeout_ms = VISIT_SPARE_MS;
    rq->max_body_bytes = VISIT_STREAM_MAX;
    rq->max_event_bytes = VISIT_ANSWER_MAX;
    e = fetch_start(a->d->opts.fetch, rq, &handler, a, &a->id, why);
    if (e)
        a->id = 0;
    return e;
}
