#ifndef WALK_LATE_RESULT_H
#define WALK_LATE_RESULT_H

/* late_result: results of tasks that are over.
 *
 * Such a task is not in memory, so the store is read to find its agent: that
 * agent is told that the task is over, and all others that there is no such
 * task. A late result is reported in the feed, once per task and at most
 * LATE_RESULTS_TOLD_PER_MINUTE times a minute, because only the agents decide
 * how often that happens. One agent can use at most half of any limit here.
 *
 * Owns its reads and its writes under way. Threads: loop thread only. */

#include "base/log.h"
#include "base/loop.h"
#include "model/task.h"
#include "store/store.h"
#include "wire/wire.h"

struct late_results;

enum {
    LATE_RESULTS_ASKED_MAX = 64, /* at the same time */
    LATE_RESULTS_TOLD_PER_MINUTE = 60,
    LATE_RESULTS_REMEMBERED = 64, /* tasks that were reported last */
    /* For one agent. */
    LATE_RESULTS_ASKED_OF_ONE = LATE_RESULTS_ASKED_MAX / 2,
    LATE_RESULTS_TOLD_OF_ONE = LATE_RESULTS_TOLD_PER_MINUTE / 2,
};

struct late_results_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    /* Judge a result for that turn of t, from the agent with that name on its
     * connection: ERR_TASK_IS_OVER, ERR_NOT_FOUND (not its task),
     * ERR_BAD_REQUEST; OK: the turn is not over. */
    enum err (*judge)(void *ctx, struct str agent, const struct task *t,
                      int64_t turn);
    /* The answer for late_result_ask: as judge, ERR_BUSY (too many at once, or
     * the turn has started meanwhile: try again), or the error of the read. It
     * may come before late_result_ask has returned. */
    void (*on_known)(void *ctx, uint64_t receipt, enum err e);
    void *ctx;
};

/* opts are copied. */
MUST_USE struct late_results *
late_results_new(const struct late_results_opts *opts);

/* Call after the store has given everything back. */
void late_results_free(struct late_results *s);

/* `agent` sent a result for a task that is not in memory. */
void late_result_ask(struct late_results *s, struct str agent,
                     const struct wire_word *w, uint64_t receipt);

/* t, which is over, got another result from its own agent. NULL is ignored. */
void late_result_tell(struct late_results *s, const struct task *t,
                      int64_t turn, int64_t attempt);

#endif
