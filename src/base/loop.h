#ifndef BASE_LOOP_H
#define BASE_LOOP_H

/* loop: libuv's event loop with three additions: a clock that is read once per
 * turn, one heap of timers, and an end of the turn.
 *
 *     wait for events -> their callbacks -> end of turn -> again
 *                                           timers that are due, then jobs
 *
 * At the end of the turn everything that asked with loop_at_end is run: here
 * connections write what gathered during the turn (one write each) and things
 * marked for closing are freed, so that no callback ever finds the ground gone
 * beneath it. Whoever has too much to do for one turn asks with loop_next_turn
 * and lets others have theirs. Threads: the one that runs it. */

#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/timers.h"

struct loop_job {
    struct list_node node;
    void (*run)(struct loop_job *job);
    bool is_next; /* waits for the end of the next turn, not of this one */
};

struct loop {
    uv_loop_t uv;
    struct clock clock;
    struct timers timers;
    struct list at_end, at_next_end;
    uint64_t n_turns; /* that have ended */
    uv_prepare_t end_of_turn;
    uv_timer_t alarm; /* wakes the loop for the first timer */
    uv_idle_t again;  /* keeps it from waiting while jobs are left */
    int64_t wall_ms, mono_ms;
    bool is_fresh; /* the two above were read in this turn */
};

MUST_USE enum err loop_init(struct loop *l, struct clock clock);

/* Every handle of the caller must have been closed before. */
void loop_fini(struct loop *l);

/* Turn until loop_stop. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* One turn without waiting, its end included. For tests and for taking down. */
void loop_turn(struct loop *l);

/* The time of this turn. */
int64_t loop_wall_ms(struct loop *l);
int64_t loop_mono_ms(struct loop *l);

/* The time now, read at every call: to measure work within a turn. */
int64_t loop_mono_us(struct loop *l);

/* Run job at the end of this turn, once however often it was asked. `run` is
 * filled in; job may ask again from inside and then has its turn again. */
void loop_at_end(struct loop *l, struct loop_job *job);
void loop_not_at_end(struct loop_job *job);

/* Run job at the end of the next turn, when everybody else's events have been
 * looked at in between. The loop does not wait for events meanwhile. A job
 * that asked for this turn too is run in this one alone. */
void loop_next_turn(struct loop *l, struct loop_job *job);

/* A number for this turn, another for the next. */
static inline uint64_t loop_turn_number(const struct loop *l)
{
    return l->n_turns;
}

/* (Re)set t to fire delay_ms from now. */
MUST_USE enum err loop_timer_set(struct loop *l, struct timer *t,
                                 int64_t delay_ms);
void loop_timer_cancel(struct loop *l, struct timer *t);

#endif
