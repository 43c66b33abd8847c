#ifndef DELIVER_QUEUE_AGENT_QUEUE_H
#define DELIVER_QUEUE_AGENT_QUEUE_H

/* Declarations shared by the files of queue/: agent_queue.c (the next job),
 * agent_figures.c (outcomes, and the agent's state derived from them),
 * owner_quota.c, last_hour.c, state_reason.c and queue_check.c. */

#include "deliver/internal.h"

enum {
    AGENT_QUEUE_NAME_BYTES = AGENT_NAME_MAX + 1,
    AGENT_QUEUE_PRIORITIES = PRIORITY_LOW + 1,
    /* Jobs of higher priority that may pass the one that has waited longest,
     * in a row; then it goes. */
    AGENT_QUEUE_PASSED_MAX = 15,
    AGENT_QUEUE_LAST = 20, /* answers in the median of the current latency */
};

/* Latencies by day, in buckets of a third of a power of two of milliseconds. */
enum { PAST_DAYS = 7, PAST_BUCKETS = 72 };
struct agent_queue_past {
    int64_t day[PAST_DAYS]; /* the day that the slot holds */
    uint16_t n[PAST_DAYS][PAST_BUCKETS];
};

/* The last hour; box `minute % DELIVER_HOUR` is the newest. Only agents that
 * work have one, so 10 000 of them use less than 10 MB. */
struct agent_queue_hour {
    int64_t minute;
    struct agent_queue_minute box[DELIVER_HOUR];
};

/* The last error; its text is cut to fit. */
enum { AGENT_QUEUE_CODE_BYTES = 48, AGENT_QUEUE_WORDS_BYTES = 256 };
struct agent_queue_error {
    char code[AGENT_QUEUE_CODE_BYTES], words[AGENT_QUEUE_WORDS_BYTES];
};

struct agent_queue_pause {
    int64_t at_ms;
    char by[PRINCIPAL_NAME_MAX + 1];
};

/* Jobs offered before this moment fail: their agent did not wake up. */
struct agent_queue_doom {
    int64_t before_ms;
    struct delivery_failure failure;
    char strings[];
};

/* owner_quota.c: deliveries to the agents of one creator. */
struct owner_quota {
    struct share share; /* of the queues and deliveries that refer to it */
    size_t n_in_flight;
    struct list held; /* queues that wait for quota */
};

struct agent_queue {
    struct deliver *deliver;
    char name[AGENT_QUEUE_NAME_BYTES]; /* lower case */
    struct list_node node;             /* d->all_queues */
    struct list_node ready; /* d->ready, d->able or owner_quota->held */
    struct owner_quota *owner_quota; /* as when it was last served */
    int64_t priority;                /* likewise */
    struct timers waiting[AGENT_QUEUE_PRIORITIES]; /* jobs by place */
    struct list arrivals;                          /* the same, by arrival */
    struct list below;                             /* those that is_below */
    size_t n_waiting, n_in_flight, n_holds;
    size_t gathered_bytes; /* chunks of its deliveries in flight */
    unsigned n_passed;     /* jobs that passed the first of arrivals */
    bool is_away;          /* as when it was last served */
    bool is_paused;        /* by a user; the queue is held meanwhile */
    bool is_called;        /* its transport wakes the queue when its agent can
                            * take more */
    struct agent_queue_doom *doom;
    struct breaker breaker;
    bool is_open;       /* counted in breakers_open */
    struct timer pause; /* the breaker's */

    struct agent_queue_stats stats;
    struct agent_queue_stats before_shown; /* `stats` when it was shown */
    struct agent_queue_stats of_another;   /* `stats` of an earlier agent of
                                            * this name */
    bool is_of_agent;                      /* made_ms is known */
    int64_t made_ms;
    bool is_shown;
    struct list_node shown; /* d->shown */
    enum agent_state reported;
    int64_t data_at_ms; /* reported age of its data; zero: not reported */
    bool has_worked;
    int64_t worked_ms;                 /* the last time; monotonic */
    int n_failures;                    /* in a row */
    int64_t failed_ms;                 /* the last of them */
    int32_t last_ms[AGENT_QUEUE_LAST]; /* of completed ones */
    unsigned n_last;
    int64_t answered_ms;           /* the last of them */
    struct agent_queue_past *past; /* NULL: nothing yet */
    struct agent_queue_hour *hour; /* likewise, and these too */
    struct agent_queue_error *error;
    int64_t error_ms; /* Unix time; zero: none */
    struct agent_queue_pause *paused;
};

static inline struct deliver_job *deliver_job_at(const struct timers *ts,
                                                 size_t i)
{
    return LIST_OF(ts->heap[i], struct deliver_job, place);
}

/* The agent of the queue as it is now; NULL: there is none. */
const struct agent *agent_queue_agent(const struct deliver *d,
                                      const struct agent_queue *k);

/* Whether the limit of deliveries to the agent is reached. */
bool agent_queue_is_full(const struct deliver *d, const struct agent_queue *k,
                         const struct agent *a);

/* owner_quota.c */
/* The part of all deliveries in flight that one agent may have. */
size_t agent_in_flight_max(const struct deliver *d);
/* Account k to the creator of a; to no owner if a map cannot grow. */
void owner_quota_take(struct deliver *d, struct agent_queue *k,
                      const struct agent *a);
/* Whether the quota is used up; then k waits in its list. */
MUST_USE bool owner_quota_holds(struct deliver *d, struct agent_queue *k);
void owner_quota_wake_one(struct deliver *d, struct owner_quota *o);
void owner_quota_begun(struct delivery *y, struct owner_quota *o);
void owner_quota_done(struct deliver *d, struct owner_quota *o);

/* agent_figures.c: an attempt failed, even if it was not begun. */
void agent_queue_attempt_failed(struct agent_queue *k,
                                const struct delivery_failure *f, bool is_last);

/* The state of the agent without its own report. */
enum agent_state agent_queue_derived(const struct deliver *d,
                                     const struct agent *a,
                                     const struct agent_queue *k);

/* The median latency of the last answers; -1: there are none. The median of the
 * week; zero: too few answers. */
int64_t agent_queue_last_median(const struct agent_queue *k);
int64_t agent_queue_usual(const struct agent_queue *k, int64_t now_ms);

/* last_hour.c: counts per minute, the last error, and the pause. */
enum minute_outcome { MINUTE_COMPLETED, MINUTE_FAILED, MINUTE_CANCELLED };
void last_hour_count(struct agent_queue *k, enum minute_outcome outcome,
                     int64_t ms);
void last_hour_error(struct agent_queue *k, struct str code, struct str words);
void last_hour_paused(struct agent_queue *k, struct str by, int64_t at_ms);
void last_hour_free(struct agent_queue *k);
/* Call before figures are counted or shown: an agent with the name of a removed
 * one must not show the figures of that one. */
void last_hour_settle(struct agent_queue *k);

/* Show the figures under the agent's name, if it is public and there is room.
 * Stop showing them. */
void agent_queue_show(struct deliver *d, struct agent_queue *k);
void agent_queue_hide(struct deliver *d, struct agent_queue *k);

/* The agent was away and is back: forget its earlier failures. */
void agent_queue_arrived(struct agent_queue *k);

#endif
