#ifndef DELIVER_DESK_H
#define DELIVER_DESK_H

/* What the files about desks share: desk.c (who goes next), figures.c (what
 * came of it, and the state that follows from it) and check.c. */

#include "deliver/internal.h"

enum {
    DESK_NAME_BYTES = AGENT_NAME_MAX + 1,
    DESK_PRIORITIES = PRIORITY_LOW + 1,
    /* So many in a row may go before the one that has waited longest, because
     * they are of a higher priority; then it goes. */
    DESK_PASSED_MAX = 15,
    DESK_LAST = 20, /* answers whose median says how fast it is now */
};

/* How long its answers took, by day, in thirds of powers of two of
 * milliseconds. */
enum { PAST_DAYS = 7, PAST_BUCKETS = 72 };
struct desk_past {
    int64_t day[PAST_DAYS]; /* which one is there */
    uint16_t n[PAST_DAYS][PAST_BUCKETS];
};

/* They did not get to their agent, and are to fail. */
struct desk_doom {
    int64_t before_ms;
    struct delivery_failure failure;
    char strings[];
};

struct desk {
    struct deliver *deliver;
    char name[DESK_NAME_BYTES]; /* lower case */
    struct list_node node;      /* d->all_desks */
    struct list_node ready;     /* d->ready, or d->stuck */
    int64_t priority;           /* of its agent, when it was last served */
    struct timers waiting[DESK_PRIORITIES]; /* errands by place */
    struct list arrivals;                   /* the same, by arrival */
    size_t n_waiting, n_in_flight, n_holds;
    unsigned n_passed; /* before the first of arrivals, since it is that */
    bool is_away;      /* when it was last served */
    struct desk_doom *doom;
    struct breaker breaker;
    bool is_open;       /* counted in breakers_open */
    struct timer pause; /* the breaker's */

    struct desk_stats stats;
    bool is_shown;
    struct list_node shown; /* d->shown */
    enum agent_state reported;
    bool has_worked;
    int64_t worked_ms;          /* last; loop's monotonic time */
    int n_failures;             /* in a row */
    int32_t last_ms[DESK_LAST]; /* of completed ones */
    unsigned n_last;
    int64_t answered_ms;    /* the last of them */
    struct desk_past *past; /* NULL: nothing yet, or no memory for it */
};

static inline struct errand *errand_at(const struct timers *ts, size_t i)
{
    return LIST_OF(ts->heap[i], struct errand, place);
}

/* Its agent as it is now, and how it is reached; NULL: there is none. */
const struct agent *desk_agent(const struct deliver *d, const struct desk *k);

/* As much of its agent's is on the way as may be. */
bool desk_is_full(const struct deliver *d, const struct desk *k,
                  const struct agent *a);

/* figures.c: one of it was not even begun. */
void desk_had_no_start(struct desk *k, bool is_last);

/* Its figures are not told by its agent's name any more. */
void desk_hide(struct deliver *d, struct desk *k);

/* Its agent was away and is back: what failed before does not count. */
void desk_arrived(struct desk *k);

#endif
