/* Outcomes of deliveries per queue: the breaker, the figures, and the state of
 * the agent derived from them.
 *
 * The state is derived on each request and never stored. The first that fits
 * applies:
 *
 *     DEAD    it cannot be reached and cannot be woken, or waking it failed
 *             three times (the transport decides); or its process or model is
 *             not configured
 *     ERROR   FAILURES_ERROR failures in a row, or its breaker is not closed
 *     SLOW    the median of its last AGENT_QUEUE_LAST answers is over
 *             SLOW_TIMES that of its week; for SLOW_MS after the last answer,
 *             because the speed of an idle agent is unknown
 *     BUSY    the limit in flight is reached
 *     ACTIVE  something is in flight, or was in the last minute
 *     IDLE    none of these
 *
 * The agent's own report wins if it is further up. So BUSY counts unless a
 * worse state is known, and ACTIVE and IDLE change nothing.
 *
 * The week is kept in memory only. It is a histogram per day with buckets of a
 * third of a power of two, exact to a quarter, which is enough for a factor of
 * three. It counts from WEEK_MIN answers on; with fewer, slow first answers
 * would be compared with themselves. */
#include <stdlib.h>

#include "deliver/queue/agent_queue.h"

enum {
    DAY_MS = 24 * 3600 * 1000,
    ACTIVE_MS = 60 * 1000,
    FAILURES_ERROR = 3,
    SLOW_TIMES = 3,
    SLOW_MS = 3600 * 1000,
    WEEK_MIN = 100,
    SHOW_MS = 10 * 1000, /* between two selections of shown queues */
};

const int64_t deliver_bucket_ms[DELIVER_BUCKETS - 1] = {
    1, 5, 25, 100, 250, 1000, 2500, 10000, 30000, 60000, 300000};

/* Latency. */

/* The last of the steps 1, 1.26, 1.587, 2, … that is not larger. */
static unsigned queue_past_bucket(int64_t ms)
{
    uint64_t v = ms < 1 ? 1 : (uint64_t)ms;
    unsigned octave = 63 - (unsigned)__builtin_clzll(v), at = 3 * octave;

    if (octave >= PAST_BUCKETS / 3)
        return PAST_BUCKETS - 1;
    at += v * 100 >= (UINT64_C(126) << octave);
    at += v * 1000 >= (UINT64_C(1587) << octave);
    return at;
}

/* The middle of a bucket. */
static int64_t queue_past_value(unsigned at)
{
    static const int64_t thousandths[3] = {1122, 1414, 1782};

    return (thousandths[at % 3] << (at / 3)) / 1000;
}

static void queue_past_add(struct agent_queue_past *p, int64_t now_ms,
                           int64_t ms)
{
    int64_t day = now_ms / DAY_MS;
    unsigned i = (unsigned)(day % PAST_DAYS), at = queue_past_bucket(ms);

    if (p->day[i] != day) {
        memset(p->n[i], 0, sizeof(p->n[i]));
        p->day[i] = day;
    }
    if (p->n[i][at] == UINT16_MAX) /* only the shape matters */
        for (unsigned b = 0; b < PAST_BUCKETS; b++)
            p->n[i][b] /= 2;
    p->n[i][at]++;
}

/* The median of the last days; zero: too few answers. */
static int64_t queue_past_median(const struct agent_queue_past *p,
                                 int64_t now_ms)
{
    int64_t day = now_ms / DAY_MS, n[PAST_BUCKETS] = {0}, all = 0, seen = 0;

    for (unsigned i = 0; i < PAST_DAYS; i++) {
        if (p->day[i] <= day - PAST_DAYS)
            continue;
        for (unsigned b = 0; b < PAST_BUCKETS; b++) {
            n[b] += p->n[i][b];
            all += p->n[i][b];
        }
    }
    if (all < WEEK_MIN)
        return 0;
    for (unsigned b = 0; b < PAST_BUCKETS; b++) {
        seen += n[b];
        if (2 * seen >= all)
            return queue_past_value(b);
    }
    return 0;
}

int64_t agent_queue_last_median(const struct agent_queue *k)
{
    unsigned n = k->n_last < AGENT_QUEUE_LAST ? k->n_last : AGENT_QUEUE_LAST;
    int32_t sorted[AGENT_QUEUE_LAST];

    if (!n)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;

        for (; at && sorted[at - 1] > k->last_ms[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = k->last_ms[i];
    }
    return (sorted[(n - 1) / 2] + (int64_t)sorted[n / 2]) / 2;
}

int64_t agent_queue_usual(const struct agent_queue *k, int64_t now_ms)
{
    return k->past ? queue_past_median(k->past, now_ms) : 0;
}

static bool agent_queue_is_slow(const struct agent_queue *k, int64_t now_ms)
{
    int64_t week_ms;

    if (k->n_last < AGENT_QUEUE_LAST || now_ms - k->answered_ms >= SLOW_MS)
        return false;
    week_ms = agent_queue_usual(k, now_ms);
    return week_ms && agent_queue_last_median(k) > SLOW_TIMES * week_ms;
}

static void agent_queue_note_latency(struct agent_queue *k, int64_t now_ms,
                                     int64_t ms)
{
    if (!k->past)
        k->past = mem_new(sizeof(*k->past));
    queue_past_add(k->past, now_ms, ms);
    k->last_ms[k->n_last % AGENT_QUEUE_LAST] =
        ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
    /* From AGENT_QUEUE_LAST on, only the position of the next one matters. */
    k->n_last =
        k->n_last + 1 < 2 * AGENT_QUEUE_LAST ? k->n_last + 1 : AGENT_QUEUE_LAST;
    k->answered_ms = now_ms;
}

/* Count for the queue, and for the sum of the hidden queues. */
#define COUNT(k, what, n)                     \
    do {                                      \
        (k)->stats.what += (n);               \
        if (!(k)->is_shown)                   \
            (k)->deliver->others.what += (n); \
    } while (0)

static enum deliver_outcome deliver_outcome_of(enum task_status s)
{
    if (s == TASK_COMPLETED)
        return OUTCOME_COMPLETED;
    if (s == TASK_EXPIRED)
        return OUTCOME_EXPIRED;
    return s == TASK_FAILED ? OUTCOME_FAILED : OUTCOME_CANCELLED;
}

/* An agent that never got work has no queue and is not shown. */
void deliver_delegated(struct deliver *d, struct str by, struct str to,
                       enum task_status s)
{
    struct agent_queue *maker = agent_queue_find(d, by),
                       *taker = agent_queue_find(d, to);
    enum deliver_outcome o = deliver_outcome_of(s);

    if (maker)
        COUNT(maker, made_total[o], 1);
    else
        d->others.made_total[o]++;
    if (taker)
        COUNT(taker, received_total[o], 1);
    else
        d->others.received_total[o]++;
}

static void agent_queue_count_latency(struct agent_queue *k, int64_t ms)
{
    unsigned b = 0;

    while (b < DELIVER_BUCKETS - 1 && ms > deliver_bucket_ms[b])
        b++;
    COUNT(k, latency_total[b], 1);
    COUNT(k, latency_sum_ms, ms);
}

static void agent_queue_note_breaker(struct agent_queue *k)
{
    bool is_open = k->breaker.state != BREAKER_CLOSED;

    if (is_open == k->is_open)
        return;
    k->is_open = is_open;
    k->deliver->stats.breakers_open += is_open ? 1 : -1;
    if (!k->deliver->opts.log)
        return;
    if (is_open)
        log_warn(k->deliver->opts.log, "deliver.breaker_opened",
                 LOG_C("agent", k->name));
    else
        log_info(k->deliver->opts.log, "deliver.breaker_closed",
                 LOG_C("agent", k->name));
}

static void agent_queue_note_work(struct agent_queue *k, int64_t now_ms)
{
    k->has_worked = true;
    k->worked_ms = now_ms;
}

static void agent_queue_note_failure(struct agent_queue *k)
{
    if (k->n_failures < INT32_MAX)
        k->n_failures++;
    k->failed_ms = loop_mono_ms(k->deliver->opts.loop);
}

/* Any answer shows that the agent is there. */
static void agent_queue_note_answer(struct agent_queue *k,
                                    const struct delivery *y)
{
    breaker_good(&k->breaker, y->is_probe);
    agent_queue_note_breaker(k);
}

static void agent_queue_task_failed(struct agent_queue *k)
{
    COUNT(k, failed_total, 1);
    last_hour_count(k, MINUTE_FAILED, 0);
}

/* An innocent failure is not an error of the agent. */
void agent_queue_attempt_failed(struct agent_queue *k,
                                const struct delivery_failure *f, bool is_last)
{
    if (is_last)
        agent_queue_task_failed(k);
    else
        COUNT(k, retries_total, 1);
    if (!f->is_innocent)
        last_hour_error(k, f->code, f->detail.n ? f->detail : f->words);
}

void agent_queue_had_result(struct delivery *y, const struct task_result *r)
{
    struct agent_queue *k = y->deliver_job->agent_queue;
    int64_t now_ms = loop_mono_ms(y->deliver->opts.loop);
    int64_t ms = now_ms - y->began_ms;

    deliver_stir(y->deliver, str_of(k->name));
    agent_queue_note_work(k, now_ms);
    agent_queue_note_answer(k, y);
    if (r->status == TASK_COMPLETED) {
        k->n_failures = 0;
        COUNT(k, completed_total, 1);
        last_hour_count(k, MINUTE_COMPLETED, ms);
        agent_queue_count_latency(k, ms);
        agent_queue_note_latency(k, now_ms, ms);
    } else if (r->status == TASK_CANCELLED) {
        COUNT(k, cancelled_total, 1);
        last_hour_count(k, MINUTE_CANCELLED, 0);
    } else {
        agent_queue_note_failure(k);
        agent_queue_task_failed(k);
        last_hour_error(k, r->error_code, r->error);
    }
}

void agent_queue_had_failure(struct delivery *y,
                             const struct delivery_failure *f, bool is_last)
{
    struct deliver *d = y->deliver;
    struct agent_queue *k = y->deliver_job->agent_queue;
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    deliver_stir(d, str_of(k->name));
    agent_queue_note_work(k, now_ms);
    agent_queue_attempt_failed(k, f, is_last);
    if (f->is_innocent) {
        breaker_forget(&k->breaker, y->is_probe);
        return;
    }
    agent_queue_note_failure(k);
    if (f->is_final) {
        agent_queue_note_answer(k, y);
        return;
    }
    k->breaker.max_failures = d->opts.settings.breaker_failures;
    k->breaker.pause_ms = d->opts.settings.breaker_pause_ms;
    breaker_bad(&k->breaker, y->is_probe, now_ms, f->retry_ms);
    agent_queue_note_breaker(k);
}

void agent_queue_had_cancel(struct delivery *y)
{
    struct agent_queue *k = y->deliver_job->agent_queue;

    agent_queue_note_work(k, loop_mono_ms(y->deliver->opts.loop));
    breaker_forget(&k->breaker, y->is_probe);
    COUNT(k, cancelled_total, 1);
    last_hour_count(k, MINUTE_CANCELLED, 0);
}

void agent_queue_had_chunk(struct delivery *y)
{
    struct agent_queue *k = y->deliver_job->agent_queue;

    COUNT(k, chunks_total, 1);
}

void agent_queue_arrived(struct agent_queue *k)
{
    deliver_stir(k->deliver, str_of(k->name));
    k->n_failures = 0;
    k->breaker = (struct breaker){0};
    agent_queue_note_breaker(k);
}

/* State. */

static bool agent_is_dead(const struct deliver *d, const struct agent *a)
{
    const struct transport_row *transport;
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK)
        return true;
    transport = transport_of(&url);
    if (transport->is_dead)
        return transport->is_dead(d, a, &url, false, NULL);
    /* Its program or model is not configured, so it can never wake up. */
    return transport->reaches &&
           transport->reaches(d, a, &url, NULL) == ERR_NOT_FOUND;
}

enum agent_state agent_queue_derived(const struct deliver *d,
                                     const struct agent *a,
                                     const struct agent_queue *k)
{
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (agent_is_dead(d, a))
        return AGENT_DEAD;
    if (!k)
        return AGENT_IDLE;
    if (k->n_failures >= FAILURES_ERROR || k->is_open)
        return AGENT_ERROR;
    if (agent_queue_is_slow(k, now_ms))
        return AGENT_SLOW;
    if (agent_queue_is_full(d, k, a))
        return AGENT_BUSY;
    if (k->n_in_flight || (k->has_worked && now_ms - k->worked_ms < ACTIVE_MS))
        return AGENT_ACTIVE;
    return AGENT_IDLE;
}

enum agent_state deliver_state(const struct deliver *d, const struct agent *a)
{
    const struct agent_queue *k = agent_queue_find(d, a->name);
    enum agent_state s = agent_queue_derived(d, a, k);

    /* From BUSY on, a larger number is worse. */
    if (k && k->reported >= AGENT_BUSY && k->reported > s)
        return k->reported;
    return s;
}

void deliver_stir(struct deliver *d, struct str agent)
{
    if (d->opts.on_stir)
        d->opts.on_stir(d->opts.ctx, agent);
}

void deliver_report(struct deliver *d, struct str agent, enum agent_state s)
{
    struct agent_queue *k =
        s ? agent_queue_named(d, agent) : agent_queue_find(d, agent);

    deliver_stir(d, agent);

    if (k)
        k->reported = s;
}

bool deliver_may_try(const struct deliver *d, struct str agent)
{
    const struct agent_queue *k = agent_queue_find(d, agent);
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (!k)
        return true;
    if (k->reported == AGENT_ERROR)
        return false;
    if (k->is_open)
        return !breaker_is_shut(&k->breaker, now_ms);
    /* Its breaker is closed: one attempt at a time shows whether it recovered.
     */
    return (!k->n_in_flight && !k->n_waiting) ||
           now_ms - k->failed_ms >= d->opts.settings.breaker_pause_ms;
}

void deliver_report_data(struct deliver *d, struct str agent, int64_t at_ms)
{
    struct agent_queue *k = agent_queue_named(d, agent);

    if (k)
        k->data_at_ms = at_ms;
}

int64_t deliver_data_at(const struct deliver *d, struct str agent)
{
    const struct agent_queue *k = agent_queue_find(d, agent);

    return k ? k->data_at_ms : 0;
}

/* Public figures. */

static struct agent_queue_stats
agent_queue_stats_now(const struct agent_queue *k)
{
    struct agent_queue_stats s = k->stats;

    s.waiting = (int64_t)k->n_waiting;
    s.in_flight = (int64_t)k->n_in_flight;
    s.is_open = k->is_open;
    return s;
}

bool deliver_queue_stats(const struct deliver *d, struct str agent,
                         struct agent_queue_stats *out)
{
    const struct agent_queue *k = agent_queue_find(d, agent);

    if (k)
        *out = agent_queue_stats_now(k);
    return k;
}

static int64_t agent_queue_use(const struct agent_queue *k)
{
    return k->stats.completed_total + k->stats.failed_total +
           k->stats.cancelled_total + (int64_t)k->n_in_flight +
           (int64_t)k->n_waiting;
}

/* Only totals: the other figures describe the present. */
static void agent_queue_add_totals(struct agent_queue_stats *to,
                                   const struct agent_queue_stats *s, int times)
{
    to->completed_total += times * s->completed_total;
    to->failed_total += times * s->failed_total;
    to->cancelled_total += times * s->cancelled_total;
    to->retries_total += times * s->retries_total;
    to->chunks_total += times * s->chunks_total;
    for (unsigned b = 0; b < DELIVER_BUCKETS; b++)
        to->latency_total[b] += times * s->latency_total[b];
    to->latency_sum_ms += times * s->latency_sum_ms;
    for (unsigned i = 0; i < N_OUTCOMES; i++) {
        to->made_total[i] += times * s->made_total[i];
        to->received_total[i] += times * s->received_total[i];
    }
}

/* Counts from before the queue was shown stay in the sum of the others.
 * Otherwise they would appear twice, or the totals of the others would shrink.
 */
static struct agent_queue_stats
agent_queue_stats_to_show(const struct agent_queue *k)
{
    struct agent_queue_stats s = agent_queue_stats_now(k);

    agent_queue_add_totals(&s, &k->before_shown, -1);
    return s;
}

/* "other" is the name of the sum. */
static bool agent_queue_may_be_shown(const struct deliver *d,
                                     const struct agent_queue *k)
{
    const struct agent *a = agent_queue_agent(d, k);

    return a && a->visibility == VISIBILITY_PUBLIC &&
           !str_eq(a->name, STR("other"));
}

void agent_queue_show(struct deliver *d, struct agent_queue *k)
{
    if (k->is_shown || d->n_shown == DELIVER_SHOWN_MAX ||
        !agent_queue_may_be_shown(d, k))
        return;
    k->is_shown = true;
    k->before_shown = k->stats;
    d->n_shown++;
    list_append(&d->shown, &k->shown);
}

/* Its shown totals move to the others, so that the sum of all stays. */
void agent_queue_hide(struct deliver *d, struct agent_queue *k)
{
    struct agent_queue_stats s;

    if (!k->is_shown)
        return;
    s = agent_queue_stats_to_show(k);
    agent_queue_add_totals(&d->others, &s, 1);
    k->is_shown = false;
    d->n_shown--;
    list_remove(&k->shown);
}

/* The queues that could be shown, the most used first. */
static size_t
agent_queues_most_used(struct deliver *d,
                       struct agent_queue *best[DELIVER_SHOWN_MAX])
{
    size_t n = 0;

    for (struct list_node *at = list_first(&d->all_queues); at;
         at = list_next(&d->all_queues, at)) {
        struct agent_queue *k = LIST_OF(at, struct agent_queue, node);
        size_t i;

        if (k->is_shown || !agent_queue_may_be_shown(d, k) ||
            (n == DELIVER_SHOWN_MAX &&
             agent_queue_use(best[n - 1]) >= agent_queue_use(k)))
            continue;
        i = n < DELIVER_SHOWN_MAX ? n++ : n - 1;
        for (; i && agent_queue_use(best[i - 1]) < agent_queue_use(k); i--)
            best[i] = best[i - 1];
        best[i] = k;
    }
    return n;
}

/* Show queues that found no room at their first task, or became public since.
 * Callers may poll often, so this scans all queues only from time to time, and
 * only if there is room. */
static void agent_queues_choose_shown(struct deliver *d)
{
    struct agent_queue *best[DELIVER_SHOWN_MAX];
    int64_t now_ms = loop_mono_ms(d->opts.loop);
    size_t n;

    if (d->n_shown == DELIVER_SHOWN_MAX || now_ms < d->show_again_ms)
        return;
    d->show_again_ms = now_ms + SHOW_MS;
    n = agent_queues_most_used(d, best);
    for (size_t i = 0; i < n; i++)
        agent_queue_show(d, best[i]);
}

size_t deliver_shown(struct deliver *d,
                     struct agent_queue_row rows[DELIVER_SHOWN_MAX],
                     struct agent_queue_stats *others)
{
    struct list_node *at, *next;
    size_t n = 0;

    agent_queues_choose_shown(d);
    *others = (struct agent_queue_stats){
        .waiting = d->stats.waiting,
        .in_flight = (int64_t)d->n_on_the_way,
    };
    for (at = list_first(&d->shown); at; at = next) {
        struct agent_queue *k = LIST_OF(at, struct agent_queue, shown);
        const struct agent *a = agent_queue_agent(d, k);

        next = list_next(&d->shown, at);
        if (!agent_queue_may_be_shown(d, k)) {
            agent_queue_hide(d, k);
            continue;
        }
        rows[n++] = (struct agent_queue_row){a->name, deliver_state(d, a),
                                             agent_queue_stats_to_show(k)};
        others->waiting -= (int64_t)k->n_waiting;
        others->in_flight -= (int64_t)k->n_in_flight;
    }
    agent_queue_add_totals(others, &d->others, 1); /* after the hiding above */
    return n;
}
