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

/* Of the last hour: box `minute % DELIVER_HOUR` is the newest. Who works has
 * one, so that 10 000 of them are less than 10 MB. */
struct desk_hour {
    int64_t minute;
    struct desk_minute box[DELIVER_HOUR];
};

/* What went wrong last: of its words as many as fit. */
enum { DESK_CODE_BYTES = 48, DESK_WORDS_BYTES = 256 };
struct desk_error {
    char code[DESK_CODE_BYTES], words[DESK_WORDS_BYTES];
};

struct desk_pause {
    int64_t at_ms;
    char by[PRINCIPAL_NAME_MAX + 1];
};

/* They did not get to their agent, and are to fail. */
struct desk_doom {
    int64_t before_ms;
    struct delivery_failure failure;
    char strings[];
};

/* patron.c: who created some agents. There as long as a desk or a delivery is
 * of it. */
struct patron {
    size_t n_users, n_in_flight;
    struct list held; /* desks, which wait for its share */
    size_t n;
    char name[]; /* lower case */
};

struct desk {
    struct deliver *deliver;
    char name[DESK_NAME_BYTES]; /* lower case */
    struct list_node node;      /* d->all_desks */
    struct list_node ready;     /* d->ready, d->able, d->stuck or patron's */
    struct patron *patron;      /* of its agent, when it was last served */
    int64_t priority;           /* of its agent, when it was last served */
    struct timers waiting[DESK_PRIORITIES]; /* errands by place */
    struct list arrivals;                   /* the same, by arrival */
    struct list below;                      /* those of them that is_below */
    size_t n_waiting, n_in_flight, n_holds;
    size_t gathered_bytes; /* of chunks, of what is in flight */
    unsigned n_passed;     /* before the first of arrivals, since it is that */
    bool is_away;          /* when it was last served */
    bool is_paused;        /* somebody said so; the desk is held meanwhile */
    bool is_called;        /* its road wakes it when its agent can take more */
    struct desk_doom *doom;
    struct breaker breaker;
    bool is_open;       /* counted in breakers_open */
    struct timer pause; /* the breaker's */

    struct desk_stats stats;
    struct desk_stats before_shown; /* these, when it was last shown */
    struct desk_stats of_another;   /* these, when its agent was made */
    bool is_of_agent;               /* of the one that was made at made_ms */
    int64_t made_ms;
    bool is_shown;
    struct list_node shown; /* d->shown */
    enum agent_state reported;
    int64_t data_at_ms; /* as it says; zero: it has not said */
    bool has_worked;
    int64_t worked_ms;          /* last; loop's monotonic time */
    int n_failures;             /* in a row */
    int64_t failed_ms;          /* the last of them */
    int32_t last_ms[DESK_LAST]; /* of completed ones */
    unsigned n_last;
    int64_t answered_ms;    /* the last of them */
    struct desk_past *past; /* NULL: nothing yet, or no memory for it */
    struct desk_hour *hour; /* likewise, and these too */
    struct desk_error *error;
    int64_t error_ms; /* Unix time; zero: none */
    struct desk_pause *paused;
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

/* patron.c */
size_t share_of_agent(const struct deliver *d); /* at most, of all in flight */
/* k is of who created a from now on; without memory, nobody's. */
void patron_take(struct deliver *d, struct desk *k, const struct agent *a);
void patron_leave(struct deliver *d, struct patron *o);
/* Whether its share is used up; then k waits for it. */
MUST_USE bool patron_holds(struct deliver *d, struct desk *k);
void patron_wake_one(struct deliver *d, struct patron *o);
void patron_begun(struct delivery *y, struct patron *o);
void patron_done(struct deliver *d, struct patron *o);

/* figures.c: one came to nothing; also where it was not even begun. */
void desk_attempt_failed(struct desk *k, const struct delivery_failure *f,
                         bool is_last);

/* Its state but for what it reports of itself. */
enum agent_state desk_derived(const struct deliver *d, const struct agent *a,
                              const struct desk *k);

/* The median of its last answers; -1: there are none. That of its week; zero:
 * there are too few. */
int64_t desk_last_median(const struct desk *k);
int64_t desk_usual(const struct desk *k, int64_t now_ms);

/* hour.c: what it did, minute by minute, and what went wrong last. */
enum minute_what { MINUTE_COMPLETED, MINUTE_FAILED, MINUTE_CANCELLED };
void hour_count(struct desk *k, enum minute_what what, int64_t ms);
void hour_error(struct desk *k, struct str code, struct str words);
void hour_paused(struct desk *k, struct str by, int64_t at_ms);
void hour_free(struct desk *k);
/* Before anything is counted or told: who has a name that another agent had is
 * not told what that one did. */
void hour_settle(struct desk *k);

/* Its figures are told by its agent's name from now on, if that may be and
 * there is room; and not any more. */
void desk_show(struct deliver *d, struct desk *k);
void desk_hide(struct deliver *d, struct desk *k);

/* Its agent was away and is back: what failed before does not count. */
void desk_arrived(struct desk *k);

#endif
