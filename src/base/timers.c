#include "base/timers.h"

#include <stdlib.h>

#include "base/mem.h"

void timers_init(struct timers *ts)
{
    *ts = (struct timers){.n = 0};
}

void timers_fini(struct timers *ts)
{
    for (size_t i = 0; i < ts->n; i++)
        ts->heap[i]->slot = 0;
    free(ts->heap);
    timers_init(ts);
}

static bool timer_is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void timers_put(struct timers *ts, size_t i, struct timer *t)
{
    ts->heap[i] = t;
    t->slot = i + 1;
}

/* Find the place of t from the hole at i, upwards and then downwards; one of
 * the two does nothing. */
static void timers_sift(struct timers *ts, size_t i, struct timer *t)
{
    while (i > 0 && timer_is_before(t, ts->heap[(i - 1) / 2])) {
        timers_put(ts, i, ts->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t kid = 2 * i + 1;

        if (kid + 1 < ts->n &&
            timer_is_before(ts->heap[kid + 1], ts->heap[kid]))
            kid++;
        if (kid >= ts->n || !timer_is_before(ts->heap[kid], t))
            break;
        timers_put(ts, i, ts->heap[kid]);
        i = kid;
    }
    timers_put(ts, i, t);
}

void timers_set(struct timers *ts, struct timer *t, int64_t at_ms)
{
    if (!timer_is_set(t)) {
        if (ts->n == ts->cap) {
            ts->cap = ts->cap ? ts->cap * 2 : 16;
            ts->heap = mem_resize(ts->heap, ts->cap, sizeof(*ts->heap));
        }
        t->slot = ++ts->n;
    }
    t->at_ms = at_ms;
    t->order = ts->next_order++;
    timers_sift(ts, t->slot - 1, t);
}

void timers_cancel(struct timers *ts, struct timer *t)
{
    struct timer *last;
    size_t hole;

    if (!timer_is_set(t))
        return;
    hole = t->slot - 1;
    t->slot = 0;
    last = ts->heap[--ts->n];
    if (last != t)
        timers_sift(ts, hole, last);
}

int64_t timers_next_ms(const struct timers *ts)
{
    return ts->n ? ts->heap[0]->at_ms : INT64_MAX;
}

size_t timers_fire(struct timers *ts, int64_t now_ms, size_t limit)
{
    size_t fired = 0;

    while (fired < limit && ts->n && ts->heap[0]->at_ms <= now_ms) {
        struct timer *t = ts->heap[0];

        timers_cancel(ts, t);
        t->fire(t);
        fired++;
    }
    return fired;
}

bool timers_check(const struct timers *ts)
{
    for (size_t i = 0; i < ts->n; i++) {
        if (ts->heap[i]->slot != i + 1)
            return false;
        if (i > 0 && timer_is_before(ts->heap[i], ts->heap[(i - 1) / 2]))
            return false;
    }
    return ts->n <= ts->cap;
}
