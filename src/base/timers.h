#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

/* timers: a binary heap of timers that are embedded in the waiting objects. The
 * time is an argument. Setting, moving and cancelling a timer cost the
 * logarithm of their number. Threads: one at a time. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t order; /* equal times fire in the order they were set */
    size_t slot;    /* index in the heap plus one; zero if not set */
    void (*fire)(struct timer *t);
};

struct timers {
    struct timer **heap;
    size_t n, cap;
    uint64_t next_order;
};

void timers_init(struct timers *ts);
void timers_fini(struct timers *ts);

/* Set or move t; the caller has set `fire`. */
void timers_set(struct timers *ts, struct timer *t, int64_t at_ms);

/* Harmless if it is not set. */
void timers_cancel(struct timers *ts, struct timer *t);

static inline bool timer_is_set(const struct timer *t)
{
    return t->slot != 0;
}

/* When the next timer is due; INT64_MAX if none is set. */
int64_t timers_next_ms(const struct timers *ts);

/* Fire at most `limit` timers that are due at now_ms; each is removed before
 * its call. Returns how many fired. */
size_t timers_fire(struct timers *ts, int64_t now_ms, size_t limit);

/* For tests: the heap order holds. */
bool timers_check(const struct timers *ts);

#endif
