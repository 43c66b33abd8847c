#ifndef WALK_RETRY_COMMIT_H
#define WALK_RETRY_COMMIT_H

/* retry_commit: ends of tasks that the store rejected for now, because the disk
 * is full or memory is short. They are held and tried again: an agent's work is
 * not thrown away for lack of space.
 *
 * Owns the changes it holds. Borrows: loop, log. Threads: loop thread only. */

#include "base/log.h"
#include "base/loop.h"
#include "task/task.h"

struct retry_commit {
    struct loop *loop;
    struct log *log;
    void (*again)(void *ctx, struct task_change *c); /* takes c */
    void *ctx;

    struct list held; /* struct task_change */
    int64_t n;
    size_t bytes; /* of their results */
    struct timer timer;
    bool is_full;       /* by the last result of a tx */
    int64_t full_at_ms; /* when that was logged */
};

/* The caller has set loop, log, again and ctx. */
void retry_commit_init(struct retry_commit *u);
void retry_commit_fini(struct retry_commit *u);

/* A tx that was rejected with e may succeed later. */
bool retry_commit_may_be(enum err e);

/* Hold c and try again later; takes c. False: more than max_bytes of results
 * would be held, and c stays the caller's. */
MUST_USE bool retry_commit_hold(struct retry_commit *u, struct task_change *c,
                                size_t max_bytes);

/* Note the result of any tx: logs a full disk, and tries held changes at once
 * when there is space. */
void retry_commit_note(struct retry_commit *u, const struct tx *tx);

#endif
