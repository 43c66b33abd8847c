#ifndef BASE_LOOP_H
#define BASE_LOOP_H

/* loop: libuv's event loop with three additions: a clock that is read once per
 * turn, one heap of timers, and an end of the turn.
 *
 *     wait for events -> their callbacks -> end of turn -> again
 *                                           timers that are due, then jobs
 *
 * The end of the turn runs the jobs that were requested with loop_at_end:
 * connections write what they gathered during the turn (one write each), and
 * objects marked for closing are freed, so that no callback ever finds a freed
 * object. A job with too much work for one turn continues with loop_next_turn
 * and lets others run in between. Threads: the one that runs it. */

#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/timers.h"

struct loop_job {
    struct list_node node;
    void (*run)(struct loop_job *job);
    bool is_next; /* waits for the end of the next turn, not this one */
};

struct loop {
    uv_loop_t uv;
    struct clock clock;
    struct timers timers;
    struct list at_end, at_next_end;
    uint64_t n_turns; /* number of turns that have ended */
    uv_prepare_t end_of_turn;
    uv_timer_t alarm; /* wakes the loop for the first timer */
    uv_idle_t again;  /* keeps the loop from sleeping while jobs are left */
    int64_t wall_ms, mono_ms;
    bool is_fresh; /* the two above were read in this turn */
};

MUST_USE enum err loop_init(struct loop *l, struct clock clock);

/* The caller must have closed all its handles before. */
void loop_fini(struct loop *l);

/* Run until loop_stop. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* One turn without waiting, including its end. For tests and shutdown. */
void loop_turn(struct loop *l);

/* The time of this turn. */
int64_t loop_wall_ms(struct loop *l);
int64_t loop_mono_ms(struct loop *l);

/* The time now, read at every call, to measure work within a turn. */
int64_t loop_mono_us(struct loop *l);

/* Run job at the end of this turn, once, however often it is requested. The
 * caller has set `run`. The job may request itself again while it runs. */
void loop_at_end(struct loop *l, struct loop_job *job);
void loop_not_at_end(struct loop_job *job);

/* Run job at the end of the next turn, after the events in between. Until then
 * the loop does not wait for events. A job that is also requested for this turn
 * runs only in this one. */
void loop_next_turn(struct loop *l, struct loop_job *job);

/* The number of the current turn, different in each turn. */
static inline uint64_t loop_turn_number(const struct loop *l)
{
    return l->n_turns;
}

/* Set or move t to fire delay_ms from now. */
void loop_timer_set(struct loop *l, struct timer *t, int64_t delay_ms);
void loop_timer_cancel(struct loop *l, struct timer *t);

#endif
