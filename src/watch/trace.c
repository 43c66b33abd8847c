/* A span is written at once and waits as JSON, since its task may be gone when
 * it is posted. One post at a time, of at most a batch. Its answer decides:
 *
 *   2xx                   accepted, except for those reported as rejected
 *   429, 502, 503, 504    again: after Retry-After, or after a second, two,
 *                         four, up to a minute (the protocol's list)
 *   no answer             likewise
 *   anything else         dropped, counted, logged
 *
 * Headers and endpoint are secrets: no log line contains them. */
#include "watch/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"

enum {
    SOON_MS = 1000,
    SOON_MOST_MS = 60 * 1000,
    ANSWER_MAX = 64 * 1024,
    ANSWER_BYTES = 256 * 1024, /* of memory to parse one */
};

struct span {
    struct list_node node;
    size_t n;
    char json[];
};

struct traces {
    struct traces_opts opts; /* its strings are in `strings` */
    char *strings;
    struct fetch_header headers[1 + TRACE_HEADERS_MAX];
    size_t n_headers;

    struct list waiting, out; /* struct span, oldest first; out: in flight */
    size_t n_waiting, n_out;
    struct timer timer; /* the next post; or the deadline of traces_stop */
    uint64_t request;   /* zero: none is under way */
    int n_failures;     /* in a row */
    struct buf one, body;
    struct traces_stats stats;

    bool is_stopping, has_stopped;
    struct loop_job stop_job;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

static void traces_post(struct traces *tr);

/* Settings. */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replace "%20" by a space, in place. An invalid escape stays as it is. */
static struct str header_unescape(char *p, size_t n)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        int high = p[i] == '%' && i + 2 < n ? hex_digit(p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(p[i + 2]) : -1;

        if (low >= 0) {
            p[to++] = (char)(high << 4 | low);
            i += 2;
        } else {
            p[to++] = p[i];
        }
    }
    return (struct str){p, to};
}

static struct str header_trim(struct str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_sub(s, 1, s.n);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static void traces_read_headers(struct traces *tr, char *text, size_t n)
{
    struct str rest = {text, n};

    tr->headers[0] =
        (struct fetch_header){STR("Content-Type"), STR("application/json")};
    tr->n_headers = 1;
    while (rest.n) {
        struct str value = str_cut(&rest, ','), name;

        if (!header_trim(value).n)
            continue;
        name = header_trim(str_cut(&value, '='));
        value = header_trim(value);
        if (!name.n || !value.n || tr->n_headers > TRACE_HEADERS_MAX) {
            log_warn(tr->opts.log, "traces.header_left_out",
                     LOG_C("because",
                           "traces.headersVariable must hold at most 16 of "
                           "name=value, separated by commas"));
            continue;
        }
        tr->headers[tr->n_headers++] = (struct fetch_header){
            name, header_unescape(text + (value.p - text), value.n)};
    }
}

static void span_drop_first(struct list *from, size_t *n)
{
    struct list_node *node = list_pop(from);

    (*n)--;
    free(LIST_OF(node, struct span, node));
}

static void spans_drop_all(struct traces *tr)
{
    while (tr->n_out)
        span_drop_first(&tr->out, &tr->n_out);
    while (tr->n_waiting)
        span_drop_first(&tr->waiting, &tr->n_waiting);
}

/* Drop the oldest spans beyond max_waiting. */
static void spans_trim(struct traces *tr)
{
    while (tr->n_waiting > (size_t)tr->opts.settings.max_waiting) {
        span_drop_first(&tr->waiting, &tr->n_waiting);
        tr->stats.dropped_total++;
    }
}

static void spans_requeue(struct traces *tr)
{
    while (tr->n_waiting) {
        list_append(&tr->out, list_pop(&tr->waiting));
        tr->n_out++, tr->n_waiting--;
    }
    while (tr->n_out) {
        list_append(&tr->waiting, list_pop(&tr->out));
        tr->n_waiting++, tr->n_out--;
    }
    spans_trim(tr);
}

static bool traces_is_on(const struct traces *tr)
{
    return tr->opts.settings.endpoint.n > 0;
}

void traces_set(struct traces *tr, const struct traces_settings *s)
{
    size_t n = s->endpoint.n + s->headers.n + s->service.n + s->node.n + 1;
    char *strings = mem_new(n), *at = strings;
    struct traces_settings *mine = &tr->opts.settings;

    if (tr->request)
        fetch_cancel(tr->opts.fetch, tr->request);
    tr->request = 0;
    spans_requeue(tr);
    *mine = *s;
    if (s->batch > s->max_waiting) /* a batch would never be full */
        mine->batch = s->max_waiting;
    mine->endpoint = str_pack(&at, mine->endpoint);
    mine->service = str_pack(&at, mine->service);
    mine->node = str_pack(&at, mine->node);
    mine->headers = str_pack(&at, mine->headers);
    traces_read_headers(tr, at - mine->headers.n, mine->headers.n);
    free(tr->strings);
    tr->strings = strings;
    tr->n_failures = 0;
    spans_trim(tr);
    if (traces_is_on(tr)) {
        if (tr->n_waiting)
            traces_post(tr);
        return;
    }
    loop_timer_cancel(tr->opts.loop, &tr->timer);
    tr->stats.dropped_total += (int64_t)(tr->n_waiting + tr->n_out);
    spans_drop_all(tr);
}

/* Life. */

static void on_traces_timer(struct timer *t)
{
    struct traces *tr = LIST_OF(t, struct traces, timer);

    if (!tr->is_stopping) {
        traces_post(tr);
        return;
    }
    if (tr->request)
        fetch_cancel(tr->opts.fetch, tr->request);
    tr->request = 0;
    loop_at_end(tr->opts.loop, &tr->stop_job);
}

static void on_traces_stopped(struct loop_job *job)
{
    struct traces *tr = LIST_OF(job, struct traces, stop_job);

    if (tr->has_stopped)
        return;
    tr->has_stopped = true;
    loop_timer_cancel(tr->opts.loop, &tr->timer);
    if (tr->n_waiting + tr->n_out)
        log_warn(tr->opts.log, "traces.lost",
                 LOG_I("spans", (int64_t)(tr->n_waiting + tr->n_out)));
    spans_drop_all(tr);
    tr->stopped(tr->stopped_ctx);
}

struct traces *traces_new(const struct traces_opts *opts)
{
    struct traces *tr = mem_new(sizeof(*tr));

    tr->opts = *opts;
    tr->timer.fire = on_traces_timer;
    tr->stop_job.run = on_traces_stopped;
    list_init(&tr->waiting);
    list_init(&tr->out);
    buf_init(&tr->one, TRACE_SPAN_MAX);
    buf_init(&tr->body, TRACE_BODY_MAX + TRACE_SPAN_MAX + 4096);
    traces_set(tr, &opts->settings);
    return tr;
}

void traces_free(struct traces *tr)
{
    if (!tr)
        return;
    if (tr->request)
        fetch_cancel(tr->opts.fetch, tr->request);
    loop_timer_cancel(tr->opts.loop, &tr->timer);
    loop_not_at_end(&tr->stop_job);
    spans_drop_all(tr);
    buf_fini(&tr->one);
    buf_fini(&tr->body);
    free(tr->strings);
    free(tr);
}

void traces_stop(struct traces *tr, void (*done)(void *ctx), void *ctx)
{
    tr->stopped = done;
    tr->stopped_ctx = ctx;
    tr->is_stopping = true;
    loop_timer_cancel(tr->opts.loop, &tr->timer);
    if (!traces_is_on(tr) || tr->n_failures || !(tr->n_waiting + tr->n_out)) {
        if (tr->request)
            fetch_cancel(tr->opts.fetch, tr->request);
        tr->request = 0;
        loop_at_end(tr->opts.loop, &tr->stop_job);
        return;
    }
    loop_timer_set(tr->opts.loop, &tr->timer, TRACE_LAST_MS);
    if (!tr->request)
        traces_post(tr);
}

struct traces_stats traces_stats(const struct traces *tr)
{
    struct traces_stats s = tr->stats;

    s.is_on = traces_is_on(tr);
    s.waiting = (int64_t)(tr->n_waiting + tr->n_out);
    return s;
}

/* Posting. */

static void traces_post_later(struct traces *tr, int64_t ms)
{
    if (tr->is_stopping)
        loop_at_end(tr->opts.loop, &tr->stop_job);
    else
        loop_timer_set(tr->opts.loop, &tr->timer, ms);
}

static void traces_post_next(struct traces *tr)
{
    if (tr->n_waiting >= (size_t)tr->opts.settings.batch ||
        (tr->is_stopping && tr->n_waiting))
        traces_post(tr);
    else if (tr->n_waiting || tr->is_stopping)
        traces_post_later(tr, tr->opts.settings.delay_ms);
}

static void traces_retry_later(struct traces *tr, const char *because,
                               int64_t least_ms)
{
    int64_t ms;

    spans_requeue(tr);
    tr->n_failures++;
    tr->stats.failures_total++;
    ms = rand_backoff_ms(tr->opts.rand, tr->n_failures, SOON_MS, SOON_MOST_MS);
    if (ms < least_ms)
        ms = least_ms;
    log_warn(tr->opts.log, "traces.failed", LOG_C("because", because),
             LOG_I("times", tr->n_failures),
             LOG_I("waiting", (int64_t)tr->n_waiting),
             LOG_I("again_in_ms", ms));
    traces_post_later(tr, ms);
}

static void traces_count_rejected(struct traces *tr, int64_t n,
                                  const char *because)
{
    tr->stats.refused_total += n;
    log_error(tr->opts.log, "traces.refused", LOG_I("spans", n),
              LOG_C("because", because));
}

/* The number of spans that a collector rejected: {"partialSuccess":
 * {"rejectedSpans":"1","errorMessage":"…"}}. */
static int64_t answer_rejected_spans(struct str body, size_t most)
{
    struct arena scratch;
    const struct json *n;
    int64_t v = 0;

    arena_init(&scratch, ANSWER_BYTES);
    n = json_get(
        json_get(json_parse(&scratch, body, 0, NULL), STR("partialSuccess")),
        STR("rejectedSpans"));
    if (n && n->type == JSON_STR) {
        if (str_to_i64(n->s, &v))
            v = 0;
    } else {
        v = json_int_or(n, 0);
    }
    arena_fini(&scratch);
    return v < 0 ? 0 : v > (int64_t)most ? (int64_t)most : v;
}

static void traces_batch_accepted(struct traces *tr, struct str body)
{
    int64_t rejected = answer_rejected_spans(body, tr->n_out);

    if (tr->n_failures)
        log_info(tr->opts.log, "traces.recovered",
                 LOG_I("failures", tr->n_failures));
    tr->n_failures = 0;
    tr->stats.sent_total += (int64_t)tr->n_out - rejected;
    if (rejected)
        traces_count_rejected(tr, rejected,
                              "the collector rejected some of them");
    while (tr->n_out)
        span_drop_first(&tr->out, &tr->n_out);
}

static void collector_answer_problem(const struct traces *tr,
                                     const struct fetch_answer *a, char *out,
                                     size_t size)
{
    struct str secrets[1 + TRACE_HEADERS_MAX];
    char says[120];

    secrets[0] = tr->opts.settings.endpoint;
    for (size_t i = 1; i < tr->n_headers; i++)
        secrets[i] = tr->headers[i].value;
    fetch_complaint(a->body, secrets, tr->n_headers, says, sizeof(says));
    snprintf(out, size, "the collector answers %d%s%s", a->status,
             says[0] ? ": " : "", says);
}

static void traces_judge_answer(struct traces *tr, const struct fetch_answer *a)
{
    char because[200];

    if (a->status >= 200 && a->status < 300) {
        traces_batch_accepted(tr, a->body);
        traces_post_next(tr);
        return;
    }
    collector_answer_problem(tr, a, because, sizeof(because));
    if (a->status == 429 || (a->status >= 502 && a->status <= 504)) {
        traces_retry_later(
            tr, because, fetch_retry_after_ms(a, loop_wall_ms(tr->opts.loop)));
        return;
    }
    traces_count_rejected(tr, (int64_t)tr->n_out, because);
    while (tr->n_out)
        span_drop_first(&tr->out, &tr->n_out);
    traces_post_next(tr);
}

static void on_collector_answer(void *ctx, uint64_t id, enum err e,
                                const struct fetch_answer *a,
                                const struct why *why)
{
    struct traces *tr = ctx;

    (void)id;
    tr->request = 0;
    if (e)
        traces_retry_later(tr, why->text, 0);
    else
        traces_judge_answer(tr, a);
}

static void traces_write_body(struct traces *tr)
{
    buf_clear(&tr->body);
    trace_head(&tr->body, tr->opts.settings.service, tr->opts.settings.node);
    while (tr->n_waiting && tr->n_out < (size_t)tr->opts.settings.batch &&
           tr->body.n < TRACE_BODY_MAX) {
        struct list_node *node = list_pop(&tr->waiting);
        const struct span *s = LIST_OF(node, struct span, node);

        if (tr->n_out)
            buf_add_char(&tr->body, ',');
        buf_add_str(&tr->body, (struct str){s->json, s->n});
        list_append(&tr->out, node);
        tr->n_waiting--, tr->n_out++;
    }
    trace_tail(&tr->body);
}

static void traces_post(struct traces *tr)
{
    static const struct fetch_handler handler = {.on_done =
                                                     on_collector_answer};
    const struct traces_settings *s = &tr->opts.settings;
    struct fetch_request rq = {.method = STR("POST"),
                               .url = s->endpoint,
                               .headers = tr->headers,
                               .n_headers = tr->n_headers,
                               .is_trusted = true,
                               .timeout_ms = s->timeout_ms,
                               .max_body_bytes = ANSWER_MAX};
    struct why why = {""};
    enum err e = ERR_NOMEM;

    if (tr->request || !tr->n_waiting || !traces_is_on(tr))
        return;
    if (!tr->is_stopping)
        loop_timer_cancel(tr->opts.loop, &tr->timer);
    traces_write_body(tr);
    rq.body = buf_str(&tr->body);
    if (tr->body.over || FAULT("traces.post"))
        why_err(&why, e, "out of memory");
    else
        e = fetch_start(tr->opts.fetch, &rq, &handler, tr, &tr->request, &why);
    if (e == ERR_SYNTAX)
        why_err(&why, e,
                "traces.endpoint or a header in traces.headersVariable "
                "cannot be sent");
    if (e)
        traces_retry_later(tr, why.text, 0);
}

/* Spans. */

static struct span *span_new(struct traces *tr, const struct task *t,
                             const struct task_result *r, int64_t at_ms,
                             const struct task *parent)
{
    struct span *s;

    buf_clear(&tr->one);
    trace_span(&tr->one, t, r, at_ms, parent);
    if (tr->one.over || FAULT("traces.span"))
        return NULL;
    s = mem_new(sizeof(*s) + tr->one.n);
    s->n = tr->one.n;
    memcpy(s->json, tr->one.p, tr->one.n);
    return s;
}

void traces_task(struct traces *tr, const struct task *t,
                 const struct task_result *r, int64_t at_ms,
                 const struct task *parent)
{
    struct span *s;

    if (!traces_is_on(tr) || tr->is_stopping)
        return;
    s = span_new(tr, t, r, at_ms, parent);
    if (!s) {
        tr->stats.dropped_total++;
        return;
    }
    list_append(&tr->waiting, &s->node);
    tr->n_waiting++;
    spans_trim(tr);
    if (tr->request || (tr->n_failures && timer_is_set(&tr->timer)))
        return;
    if (tr->n_waiting >= (size_t)tr->opts.settings.batch)
        traces_post(tr);
    else if (!timer_is_set(&tr->timer))
        traces_post_later(tr, tr->opts.settings.delay_ms);
}
