#ifndef BASE_TIMERS_H
#define BASE_TIMERS_H

/* timers: what is to happen, ordered by when. A binary heap of timers that
 * sit inside the things that wait; the time comes in as an argument.
 * Setting, moving and cancelling cost the logarithm of their number.
 * Threads: one at a time. */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t order; /* equal times fire in the order they were set */
    size_t slot;    /* place in the heap plus one; zero when not set */
    void (*fire)(struct timer *t);
};

struct timers {
    struct timer **heap;
    size_t n, cap;
    uint64_t next_order;
};

void timers_init(struct timers *ts);
void timers_fini(struct timers *ts);

/* (Re)set t, whose `fire` is filled in. Only growing the heap can fail, and
 * then with ERR_NOMEM and t not set. */
MUST_USE enum err timers_set(struct timers *ts, struct timer *t, int64_t at_ms);

/* Harmless when it is not set. */
void timers_cancel(struct timers *ts, struct timer *t);

static inline bool timer_is_set(const struct timer *t)
{
    return t->slot != 0;
}

/* When the next one is due; INT64_MAX when none is set. */
int64_t timers_next_ms(const struct timers *ts);

/* Fire what is due at now_ms, each taken out before its call, at most `limit`
 * of them. Returns how many fired. */
size_t timers_fire(struct timers *ts, int64_t now_ms, size_t limit);

/* The heap is a heap. For tests. */
bool timers_check(const struct timers *ts);

#endif
