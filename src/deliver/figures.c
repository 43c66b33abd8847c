/* What became of deliveries, by desk: its breaker, its figures, and the state
 * of the agent that follows from them.
 *
 * The state is derived whenever somebody asks, and never kept. Of several that
 * fit the first of these is told:
 *
 *     DEAD    it cannot be reached and nothing can wake it, or waking it
 *             failed three times (the road says so); or what its address names
 *             is not configured
 *     ERROR   FAILURES_ERROR failures in a row, or its breaker is not closed
 *     SLOW    the median of its last DESK_LAST answers is over SLOW_TIMES that
 *             of its week; for SLOW_MS after the last of them, since nobody
 *             knows how fast who does nothing would be
 *     BUSY    as much is in flight as may be
 *     ACTIVE  something is in flight, or was in the last minute
 *     IDLE    none of these
 *
 * What it reports of itself counts where that stands further up; so BUSY does
 * unless something worse is known, and ACTIVE and IDLE change nothing.
 *
 * The week is in memory: a start forgets it. It is a histogram for each day in
 * steps of a third of a power of two, good to a quarter, which a factor of
 * three does not mind; and it counts from WEEK_MIN answers on, or else the
 * first slow ones would be measured by themselves. */
#include <stdlib.h>

#include "deliver/desk.h"

enum {
    DAY_MS = 24 * 3600 * 1000,
    ACTIVE_MS = 60 * 1000,
    FAILURES_ERROR = 3,
    SLOW_TIMES = 3,
    SLOW_MS = 3600 * 1000,
    WEEK_MIN = 100,
    SHOW_MS = 10 * 1000, /* between two looks at who might be shown */
};

const int64_t deliver_bucket_ms[DELIVER_BUCKETS - 1] = {
    1, 5, 25, 100, 250, 1000, 2500, 10000, 30000, 60000, 300000};

/* How long answers take. */

/* Of steps 1, 1.26, 1.587, 2, …: the last that is not larger. */
static unsigned past_bucket(int64_t ms)
{
    uint64_t v = ms < 1 ? 1 : (uint64_t)ms;
    unsigned octave = 63 - (unsigned)__builtin_clzll(v), at = 3 * octave;

    if (octave >= PAST_BUCKETS / 3)
        return PAST_BUCKETS - 1;
    at += v * 100 >= (UINT64_C(126) << octave);
    at += v * 1000 >= (UINT64_C(1587) << octave);
    return at;
}

/* In the middle of that step. */
static int64_t past_value(unsigned at)
{
    static const int64_t thousandths[3] = {1122, 1414, 1782};

    return (thousandths[at % 3] << (at / 3)) / 1000;
}

static void past_add(struct desk_past *p, int64_t now_ms, int64_t ms)
{
    int64_t day = now_ms / DAY_MS;
    unsigned i = (unsigned)(day % PAST_DAYS), at = past_bucket(ms);

    if (p->day[i] != day) {
        memset(p->n[i], 0, sizeof(p->n[i]));
        p->day[i] = day;
    }
    if (p->n[i][at] == UINT16_MAX) /* the shape is what counts */
        for (unsigned b = 0; b < PAST_BUCKETS; b++)
            p->n[i][b] /= 2;
    p->n[i][at]++;
}

/* The median of the days that count; zero: there are too few answers. */
static int64_t past_median(const struct desk_past *p, int64_t now_ms)
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
            return past_value(b);
    }
    return 0;
}

int64_t desk_last_median(const struct desk *k)
{
    unsigned n = k->n_last < DESK_LAST ? k->n_last : DESK_LAST;
    int32_t sorted[DESK_LAST];

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

int64_t desk_usual(const struct desk *k, int64_t now_ms)
{
    return k->past ? past_median(k->past, now_ms) : 0;
}

static bool is_slow(const struct desk *k, int64_t now_ms)
{
    int64_t week_ms;

    if (k->n_last < DESK_LAST || now_ms - k->answered_ms >= SLOW_MS)
        return false;
    week_ms = desk_usual(k, now_ms);
    return week_ms && desk_last_median(k) > SLOW_TIMES * week_ms;
}

/* Without memory there is no week, and nobody is slow. */
static void note_latency(struct desk *k, int64_t now_ms, int64_t ms)
{
    if (!k->past && !FAULT("deliver.past"))
        k->past = calloc(1, sizeof(*k->past));
    if (k->past)
        past_add(k->past, now_ms, ms);
    k->last_ms[k->n_last % DESK_LAST] =
        ms < INT32_MAX ? (int32_t)ms : INT32_MAX;
    /* From DESK_LAST on it only says where the next one goes. */
    k->n_last = k->n_last + 1 < 2 * DESK_LAST ? k->n_last + 1 : DESK_LAST;
    k->answered_ms = now_ms;
}

/* What is counted, for the desk and for those that are not shown. */
#define COUNT(k, what, n)                     \
    do {                                      \
        (k)->stats.what += (n);               \
        if (!(k)->is_shown)                   \
            (k)->deliver->others.what += (n); \
    } while (0)

static enum deliver_outcome outcome_of(enum task_status s)
{
    if (s == TASK_COMPLETED)
        return OUTCOME_COMPLETED;
    if (s == TASK_EXPIRED)
        return OUTCOME_EXPIRED;
    return s == TASK_FAILED ? OUTCOME_FAILED : OUTCOME_CANCELLED;
}

/* Who was never given work has no desk, and is none of those that are shown. */
void deliver_delegated(struct deliver *d, struct str by, struct str to,
                       enum task_status s)
{
    struct desk *maker = desk_find(d, by), *taker = desk_find(d, to);
    enum deliver_outcome o = outcome_of(s);

    if (maker)
        COUNT(maker, made_total[o], 1);
    else
        d->others.made_total[o]++;
    if (taker)
        COUNT(taker, received_total[o], 1);
    else
        d->others.received_total[o]++;
}

static void count_latency(struct desk *k, int64_t ms)
{
    unsigned b = 0;

    while (b < DELIVER_BUCKETS - 1 && ms > deliver_bucket_ms[b])
        b++;
    COUNT(k, latency_total[b], 1);
    COUNT(k, latency_sum_ms, ms);
}

static void note_breaker(struct desk *k)
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

static void worked(struct desk *k, int64_t now_ms)
{
    k->has_worked = true;
    k->worked_ms = now_ms;
}

static void note_failure(struct desk *k)
{
    if (k->n_failures < INT32_MAX)
        k->n_failures++;
    k->failed_ms = loop_mono_ms(k->deliver->opts.loop);
}

/* An answer, whatever it says: somebody is there. */
static void answered(struct desk *k, const struct delivery *y)
{
    breaker_good(&k->breaker, y->is_probe);
    note_breaker(k);
}

static void task_failed(struct desk *k)
{
    COUNT(k, failed_total, 1);
    hour_count(k, MINUTE_FAILED, 0);
}

/* Who is innocent has not failed, whatever became of the attempt. */
void desk_attempt_failed(struct desk *k, const struct delivery_failure *f,
                         bool is_last)
{
    if (is_last)
        task_failed(k);
    else
        COUNT(k, retries_total, 1);
    if (!f->is_innocent)
        hour_error(k, f->code, f->detail.n ? f->detail : f->words);
}

void desk_had_result(struct delivery *y, const struct task_result *r)
{
    struct desk *k = y->errand->desk;
    int64_t now_ms = loop_mono_ms(y->deliver->opts.loop);
    int64_t ms = now_ms - y->began_ms;

    deliver_stir(y->deliver, str_of(k->name));
    worked(k, now_ms);
    answered(k, y);
    if (r->status == TASK_COMPLETED) {
        k->n_failures = 0;
        COUNT(k, completed_total, 1);
        hour_count(k, MINUTE_COMPLETED, ms);
        count_latency(k, ms);
        note_latency(k, now_ms, ms);
    } else if (r->status == TASK_CANCELLED) {
        COUNT(k, cancelled_total, 1);
        hour_count(k, MINUTE_CANCELLED, 0);
    } else {
        note_failure(k);
        task_failed(k);
        hour_error(k, r->error_code, r->error);
    }
}

void desk_had_failure(struct delivery *y, const struct delivery_failure *f,
                      bool is_last)
{
    struct deliver *d = y->deliver;
    struct desk *k = y->errand->desk;
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    deliver_stir(d, str_of(k->name));
    worked(k, now_ms);
    desk_attempt_failed(k, f, is_last);
    if (f->is_innocent) {
        breaker_forget(&k->breaker, y->is_probe);
        return;
    }
    note_failure(k);
    if (f->is_final) {
        answered(k, y);
        return;
    }
    k->breaker.max_failures = d->opts.settings.breaker_failures;
    k->breaker.pause_ms = d->opts.settings.breaker_pause_ms;
    breaker_bad(&k->breaker, y->is_probe, now_ms, f->retry_ms);
    note_breaker(k);
}

void desk_had_cancel(struct delivery *y)
{
    struct desk *k = y->errand->desk;

    worked(k, loop_mono_ms(y->deliver->opts.loop));
    breaker_forget(&k->breaker, y->is_probe);
    COUNT(k, cancelled_total, 1);
    hour_count(k, MINUTE_CANCELLED, 0);
}

void desk_had_chunk(struct delivery *y)
{
    struct desk *k = y->errand->desk;

    COUNT(k, chunks_total, 1);
}

void desk_arrived(struct desk *k)
{
    deliver_stir(k->deliver, str_of(k->name));
    k->n_failures = 0;
    k->breaker = (struct breaker){0};
    note_breaker(k);
}

/* How it is. */

static bool is_dead(const struct deliver *d, const struct agent *a)
{
    const struct road_row *road;
    struct agent_url url;

    if (agent_url_read(a->url, &url, NULL) != OK)
        return true;
    road = road_of(&url);
    if (road->is_dead)
        return road->is_dead(d, a, &url, false, NULL);
    /* Its program or model is not configured: nothing there could wake up. */
    return road->reaches && road->reaches(d, a, &url, NULL) == ERR_NOT_FOUND;
}

enum agent_state desk_derived(const struct deliver *d, const struct agent *a,
                              const struct desk *k)
{
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (is_dead(d, a))
        return AGENT_DEAD;
    if (!k)
        return AGENT_IDLE;
    if (k->n_failures >= FAILURES_ERROR || k->is_open)
        return AGENT_ERROR;
    if (is_slow(k, now_ms))
        return AGENT_SLOW;
    if (desk_is_full(d, k, a))
        return AGENT_BUSY;
    if (k->n_in_flight || (k->has_worked && now_ms - k->worked_ms < ACTIVE_MS))
        return AGENT_ACTIVE;
    return AGENT_IDLE;
}

enum agent_state deliver_state(const struct deliver *d, const struct agent *a)
{
    const struct desk *k = desk_find(d, a->name);
    enum agent_state s = desk_derived(d, a, k);

    /* From BUSY on a larger number is worse. */
    if (k && k->reported >= AGENT_BUSY && k->reported > s)
        return k->reported;
    return s;
}

void deliver_stir(struct deliver *d, struct str agent)
{
    if (d->opts.on_stir)
        d->opts.on_stir(d->opts.ctx, agent);
}

/* Without memory for a desk it is not known. */
void deliver_report(struct deliver *d, struct str agent, enum agent_state s)
{
    struct desk *k = s ? desk_named(d, agent) : desk_find(d, agent);

    deliver_stir(d, agent);

    if (k)
        k->reported = s;
}

bool deliver_may_try(const struct deliver *d, struct str agent)
{
    const struct desk *k = desk_find(d, agent);
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    if (!k)
        return true;
    if (k->reported == AGENT_ERROR)
        return false;
    if (k->is_open)
        return !breaker_is_shut(&k->breaker, now_ms);
    /* It failed, but not so often that it is left alone: one at a time finds
     * out how it is. */
    return (!k->n_in_flight && !k->n_waiting) ||
           now_ms - k->failed_ms >= d->opts.settings.breaker_pause_ms;
}

void deliver_report_data(struct deliver *d, struct str agent, int64_t at_ms)
{
    struct desk *k = desk_named(d, agent);

    if (k)
        k->data_at_ms = at_ms;
}

int64_t deliver_data_at(const struct deliver *d, struct str agent)
{
    const struct desk *k = desk_find(d, agent);

    return k ? k->data_at_ms : 0;
}

/* What others may know. */

static struct desk_stats stats_of(const struct desk *k)
{
    struct desk_stats s = k->stats;

    s.waiting = (int64_t)k->n_waiting;
    s.in_flight = (int64_t)k->n_in_flight;
    s.is_open = k->is_open;
    return s;
}

bool deliver_desk(const struct deliver *d, struct str agent,
                  struct desk_stats *out)
{
    const struct desk *k = desk_find(d, agent);

    if (k)
        *out = stats_of(k);
    return k;
}

static int64_t used(const struct desk *k)
{
    return k->stats.completed_total + k->stats.failed_total +
           k->stats.cancelled_total + (int64_t)k->n_in_flight +
           (int64_t)k->n_waiting;
}

/* Totals alone: the rest is as it is now. */
static void add_totals(struct desk_stats *to, const struct desk_stats *s,
                       int times)
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

/* What was counted among the others before it was shown stays there, or else
 * it would be told twice, or their totals would shrink. */
static struct desk_stats stats_to_show(const struct desk *k)
{
    struct desk_stats s = stats_of(k);

    add_totals(&s, &k->before_shown, -1);
    return s;
}

/* The name of the sum is nobody else's. */
static bool may_be_shown(const struct deliver *d, const struct desk *k)
{
    const struct agent *a = desk_agent(d, k);

    return a && a->visibility == VISIBILITY_PUBLIC &&
           !str_eq(a->name, STR("other"));
}

void desk_show(struct deliver *d, struct desk *k)
{
    if (k->is_shown || d->n_shown == DELIVER_SHOWN_MAX || !may_be_shown(d, k))
        return;
    k->is_shown = true;
    k->before_shown = k->stats;
    d->n_shown++;
    list_append(&d->shown, &k->shown);
}

/* What it has told goes to the others, so that the sum of all stays. */
void desk_hide(struct deliver *d, struct desk *k)
{
    struct desk_stats s;

    if (!k->is_shown)
        return;
    s = stats_to_show(k);
    add_totals(&d->others, &s, 1);
    k->is_shown = false;
    d->n_shown--;
    list_remove(&k->shown);
}

/* Those that could be shown, the most used first. */
static size_t look_over(struct deliver *d, struct desk *best[DELIVER_SHOWN_MAX])
{
    size_t n = 0;

    for (struct list_node *at = list_first(&d->all_desks); at;
         at = list_next(&d->all_desks, at)) {
        struct desk *k = LIST_OF(at, struct desk, node);
        size_t i;

        if (k->is_shown || !may_be_shown(d, k) ||
            (n == DELIVER_SHOWN_MAX && used(best[n - 1]) >= used(k)))
            continue;
        i = n < DELIVER_SHOWN_MAX ? n++ : n - 1;
        for (; i && used(best[i - 1]) < used(k); i--)
            best[i] = best[i - 1];
        best[i] = k;
    }
    return n;
}

/* Those that had no room when they began, or were not public. Anybody may ask
 * as often as they like, so all desks are gone through only now and then, and
 * not while there is no room. */
static void choose_shown(struct deliver *d)
{
    struct desk *best[DELIVER_SHOWN_MAX];
    int64_t now_ms = loop_mono_ms(d->opts.loop);
    size_t n;

    if (d->n_shown == DELIVER_SHOWN_MAX || now_ms < d->show_again_ms)
        return;
    d->show_again_ms = now_ms + SHOW_MS;
    n = look_over(d, best);
    for (size_t i = 0; i < n; i++)
        desk_show(d, best[i]);
}

size_t deliver_shown(struct deliver *d, struct desk_row rows[DELIVER_SHOWN_MAX],
                     struct desk_stats *others)
{
    struct list_node *at, *next;
    size_t n = 0;

    choose_shown(d);
    *others = (struct desk_stats){
        .waiting = d->stats.waiting,
        .in_flight = (int64_t)d->n_on_the_way,
    };
    for (at = list_first(&d->shown); at; at = next) {
        struct desk *k = LIST_OF(at, struct desk, shown);
        const struct agent *a = desk_agent(d, k);

        next = list_next(&d->shown, at);
        if (!may_be_shown(d, k)) {
            desk_hide(d, k);
            continue;
        }
        rows[n++] =
            (struct desk_row){a->name, deliver_state(d, a), stats_to_show(k)};
        others->waiting -= (int64_t)k->n_waiting;
        others->in_flight -= (int64_t)k->n_in_flight;
    }
    add_totals(others, &d->others, 1); /* now that who is not shown is hidden */
    return n;
}
