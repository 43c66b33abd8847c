/* Counts of the last hour per minute, the last error, and the author of a
 * pause: shown to people only, no decision depends on them.
 *
 * A ring of boxes that advances only when something is counted, so an idle
 * agent costs nothing. Each part is allocated when it is first needed.
 *
 * Rejected: a median per minute (a histogram each, twenty times the memory),
 * because a mean shows the same trend. Rejected: recounting from the feed after
 * a start, because the feed has no latencies. */
#include <stdlib.h>

#include "deliver/queue/agent_queue.h"

static int64_t last_hour_minute(const struct agent_queue *k)
{
    return loop_mono_ms(k->deliver->opts.loop) / DELIVER_MINUTE_MS;
}

/* The box of this minute, after clearing those older than an hour. */
static struct agent_queue_minute *last_hour_box(struct agent_queue_hour *h,
                                                int64_t minute)
{
    if (minute - h->minute >= DELIVER_HOUR) {
        *h = (struct agent_queue_hour){.minute = minute};
    } else {
        while (h->minute < minute)
            h->box[++h->minute % DELIVER_HOUR] = (struct agent_queue_minute){0};
    }
    return &h->box[minute % DELIVER_HOUR];
}

static void last_hour_add(uint32_t *sum, int64_t n)
{
    *sum = n > UINT32_MAX - *sum ? UINT32_MAX : *sum + (uint32_t)n;
}

void last_hour_count(struct agent_queue *k, enum minute_outcome outcome,
                     int64_t ms)
{
    struct agent_queue_minute *m;

    last_hour_settle(k);
    if (!k->hour)
        k->hour = mem_new(sizeof(*k->hour));
    m = last_hour_box(k->hour, last_hour_minute(k));
    if (outcome == MINUTE_COMPLETED) {
        last_hour_add(&m->completed, 1);
        last_hour_add(&m->latency_sum_ms, ms < 0 ? 0 : ms);
    } else {
        last_hour_add(outcome == MINUTE_FAILED ? &m->failed : &m->cancelled, 1);
    }
}

static void last_hour_copy_text(char *to, size_t size, struct str s)
{
    s = str_head(s, size - 1);
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

void last_hour_error(struct agent_queue *k, struct str code, struct str words)
{
    last_hour_settle(k);
    k->error_ms = loop_wall_ms(k->deliver->opts.loop);
    if (!k->error)
        k->error = mem_new(sizeof(*k->error));
    last_hour_copy_text(k->error->code, sizeof(k->error->code), code);
    last_hour_copy_text(k->error->words, sizeof(k->error->words), words);
}

void last_hour_paused(struct agent_queue *k, struct str by, int64_t at_ms)
{
    if (!k->paused)
        k->paused = mem_new(sizeof(*k->paused));
    k->paused->at_ms = at_ms;
    last_hour_copy_text(k->paused->by, sizeof(k->paused->by), by);
}

void last_hour_free(struct agent_queue *k)
{
    free(k->hour);
    free(k->error);
    free(k->paused);
}

/* Forget the figures of a removed agent, so that the owner of its name's next
 * agent does not see them. */
static void last_hour_forget(struct agent_queue *k)
{
    last_hour_free(k);
    free(k->past);
    k->hour = NULL;
    k->error = NULL;
    k->paused = NULL;
    k->past = NULL;
    k->error_ms = 0;
    k->n_last = 0;
    k->n_failures = 0;
    k->has_worked = false;
    k->of_another = k->stats;
}

void last_hour_settle(struct agent_queue *k)
{
    const struct agent *a = agent_queue_agent(k->deliver, k);

    if (!a)
        return;
    if (k->is_of_agent && k->made_ms != a->created_ms)
        last_hour_forget(k);
    /* Pauses survive a restart, so this one may be for an earlier agent of the
     * name. */
    if (k->paused && k->paused->at_ms < a->created_ms) {
        free(k->paused);
        k->paused = NULL;
    }
    k->is_of_agent = true;
    k->made_ms = a->created_ms;
}

/* Oldest first. Reading does not advance the ring: minutes past the newest box
 * or older than an hour are zero. */
static void last_hour_copy(const struct agent_queue_hour *h, int64_t minute,
                           struct agent_queue_figures *out)
{
    for (int i = 0; i < DELIVER_HOUR; i++) {
        int64_t at = minute - (DELIVER_HOUR - 1) + i;

        if (at < 0 || at > h->minute || at <= h->minute - DELIVER_HOUR)
            continue;
        out->hour[i] = h->box[at % DELIVER_HOUR];
        out->has_hour |= out->hour[i].completed || out->hour[i].failed ||
                         out->hour[i].cancelled;
    }
}

void deliver_figures(const struct deliver *d, struct str agent,
                     struct agent_queue_figures *out)
{
    struct agent_queue *k = agent_queue_find(d, agent);
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    *out = (struct agent_queue_figures){
        .latency_ms = -1, .running_ms = now_ms % DELIVER_MINUTE_MS};
    if (!k)
        return;
    last_hour_settle(k);
    out->waiting = (int64_t)k->n_waiting;
    out->in_flight = (int64_t)k->n_in_flight;
    out->completed_total =
        k->stats.completed_total - k->of_another.completed_total;
    out->failed_total = k->stats.failed_total - k->of_another.failed_total;
    out->cancelled_total =
        k->stats.cancelled_total - k->of_another.cancelled_total;
    out->retries_total = k->stats.retries_total - k->of_another.retries_total;
    out->latency_ms = agent_queue_last_median(k);
    out->usual_ms = agent_queue_usual(k, now_ms);
    out->failed_ms = k->error_ms;
    if (k->error) {
        out->error_code = str_of(k->error->code);
        out->error = str_of(k->error->words);
    }
    out->is_paused = k->is_paused;
    if (k->is_paused && k->paused) {
        out->paused_by = str_of(k->paused->by);
        out->paused_ms = k->paused->at_ms;
    }
    if (k->hour)
        last_hour_copy(k->hour, last_hour_minute(k), out);
}
