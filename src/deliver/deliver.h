#ifndef DELIVER_DELIVER_H
#define DELIVER_DELIVER_H

/* deliver: after task. Carries a task to its agent over the road that the
 * agent's url names, and brings back what the agent says.
 *
 * One table has a row per road; a road is one file. Whatever comes back
 * carries task, turn and attempt, so that a late word can be told from one
 * that is awaited. Owns: what is on its way. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "model/agent.h"
#include "model/task.h"

struct deliver;

/* Which delivery a word belongs to. */
struct delivery_id {
    struct id task_id;
    int64_t turn, attempt;
};

struct deliver_opts {
    struct loop *loop;
    struct log *log;
    size_t max_on_the_way; /* deliveries at once */
    uint64_t seed[2];

    /* All from the loop, never before deliver_start has returned. */
    void (*on_working)(void *ctx, const struct delivery_id *d);
    void (*on_chunk)(void *ctx, const struct delivery_id *d, struct str text);
    /* The last word. `r` is borrowed for the call. */
    void (*on_result)(void *ctx, const struct delivery_id *d,
                      const struct task_result *r);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct deliver *deliver_new(const struct deliver_opts *opts);

/* Drops what is on its way; nobody hears of it. */
void deliver_free(struct deliver *d);

/* Whether there is a road to it at all. ERR_AGENT_OFFLINE, ERR_NOT_IMPLEMENTED
 * with words that name it. */
MUST_USE enum err deliver_reaches(const struct agent *a, struct why *why);

/* Carry t. Borrows everything for the call. ERR_NOMEM, ERR_OVERLOADED (at
 * max_on_the_way), or what deliver_reaches says: nothing was started. */
MUST_USE enum err deliver_start(struct deliver *d, const struct task *t,
                                const struct agent *a);

/* Stop it: on_result will not come for this task any more. Harmless when it
 * is not on its way. */
void deliver_cancel(struct deliver *d, struct str task_id);

struct deliver_stats {
    int64_t on_the_way;
    int64_t started_total, results_total, cancelled_total;
};

struct deliver_stats deliver_stats(const struct deliver *d);

#endif
