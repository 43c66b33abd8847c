/* What an agent did in the last hour, minute by minute, what went wrong last,
 * and who paused it: for people who look at it, and nothing is decided by it.
 *
 * A ring of boxes that moves on only when something is counted or somebody
 * looks: an agent that does nothing costs nothing. Each part is made when it is
 * first needed; without memory for it that part is not told, and work goes on.
 *
 * Turned down: a median for each minute (a histogram each, twenty times the
 * memory) where a mean shows the same bend; and the feed, from which it could
 * be counted again after a start: it has no latencies. */
#include <stdlib.h>

#include "deliver/desk.h"

static int64_t minute_of(const struct desk *k)
{
    return loop_mono_ms(k->deliver->opts.loop) / DELIVER_MINUTE_MS;
}

/* The box of this minute, with what is older than an hour forgotten. */
static struct desk_minute *box_now(struct desk_hour *h, int64_t minute)
{
    if (minute - h->minute >= DELIVER_HOUR) {
        *h = (struct desk_hour){.minute = minute};
    } else {
        while (h->minute < minute)
            h->box[++h->minute % DELIVER_HOUR] = (struct desk_minute){0};
    }
    return &h->box[minute % DELIVER_HOUR];
}

static void add_to(uint32_t *sum, int64_t n)
{
    *sum = n > UINT32_MAX - *sum ? UINT32_MAX : *sum + (uint32_t)n;
}

void hour_count(struct desk *k, enum minute_what what, int64_t ms)
{
    struct desk_minute *m;

    hour_settle(k);
    if (!k->hour && !FAULT("deliver.hour"))
        k->hour = calloc(1, sizeof(*k->hour));
    if (!k->hour)
        return;
    m = box_now(k->hour, minute_of(k));
    if (what == MINUTE_COMPLETED) {
        add_to(&m->completed, 1);
        add_to(&m->latency_sum_ms, ms < 0 ? 0 : ms);
    } else {
        add_to(what == MINUTE_FAILED ? &m->failed : &m->cancelled, 1);
    }
}

static void copy_text(char *to, size_t size, struct str s)
{
    s = str_head(s, size - 1);
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

void hour_error(struct desk *k, struct str code, struct str words)
{
    hour_settle(k);
    k->error_ms = loop_wall_ms(k->deliver->opts.loop);
    if (!k->error && !FAULT("deliver.error"))
        k->error = malloc(sizeof(*k->error));
    if (!k->error)
        return;
    copy_text(k->error->code, sizeof(k->error->code), code);
    copy_text(k->error->words, sizeof(k->error->words), words);
}

void hour_paused(struct desk *k, struct str by, int64_t at_ms)
{
    if (!k->paused && !FAULT("deliver.paused"))
        k->paused = malloc(sizeof(*k->paused));
    if (!k->paused)
        return;
    k->paused->at_ms = at_ms;
    copy_text(k->paused->by, sizeof(k->paused->by), by);
}

void hour_free(struct desk *k)
{
    free(k->hour);
    free(k->error);
    free(k->paused);
}

/* What a removed agent did and said: whose it was need not see the one that has
 * its name now, nor the other way round. */
static void forget(struct desk *k)
{
    hour_free(k);
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

void hour_settle(struct desk *k)
{
    const struct agent *a = desk_agent(k->deliver, k);

    if (!a)
        return;
    if (k->is_of_agent && k->made_ms != a->created_ms)
        forget(k);
    /* Pauses outlive a start, and their author was another's then too. */
    if (k->paused && k->paused->at_ms < a->created_ms) {
        free(k->paused);
        k->paused = NULL;
    }
    k->is_of_agent = true;
    k->made_ms = a->created_ms;
}

/* The oldest first. Whoever looks does not move it on: what is past the newest
 * box, or older than an hour, is nothing. */
static void copy_hour(const struct desk_hour *h, int64_t minute,
                      struct desk_figures *out)
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
                     struct desk_figures *out)
{
    struct desk *k = desk_find(d, agent);
    int64_t now_ms = loop_mono_ms(d->opts.loop);

    *out = (struct desk_figures){.latency_ms = -1,
                                 .running_ms = now_ms % DELIVER_MINUTE_MS};
    if (!k)
        return;
    hour_settle(k);
    out->waiting = (int64_t)k->n_waiting;
    out->in_flight = (int64_t)k->n_in_flight;
    out->completed_total =
        k->stats.completed_total - k->of_another.completed_total;
    out->failed_total = k->stats.failed_total - k->of_another.failed_total;
    out->cancelled_total =
        k->stats.cancelled_total - k->of_another.cancelled_total;
    out->retries_total = k->stats.retries_total - k->of_another.retries_total;
    out->latency_ms = desk_last_median(k);
    out->usual_ms = desk_usual(k, now_ms);
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
        copy_hour(k->hour, minute_of(k), out);
}
