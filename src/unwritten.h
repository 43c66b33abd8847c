#ifndef UNWRITTEN_H
#define UNWRITTEN_H

/* unwritten: changes of tasks that the store refused for now, because the disk
 * is full or memory is short. They are held and tried again by themselves: an
 * agent's work is not thrown away for want of space.
 *
 * Owns the changes it holds. Borrows: loop, log. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "task/task.h"

struct unwritten {
    struct loop *loop;
    struct log *log;
    void (*again)(void *ctx, struct task_change *c); /* takes it */
    void *ctx;

    struct list held; /* struct task_change */
    int64_t n;
    size_t bytes; /* of their results */
    struct timer timer;
    bool is_full;       /* the store said so last */
    int64_t full_at_ms; /* and when that was logged */
};

/* loop, log, again and ctx are filled in. */
void unwritten_init(struct unwritten *u);
void unwritten_fini(struct unwritten *u);

/* Whether what was refused for e may be taken another time. */
bool unwritten_may_be(enum err e);

/* Hold c until then. False: that would be more than max_bytes of results, and
 * it is the caller's still. */
MUST_USE bool unwritten_hold(struct unwritten *u, struct task_change *c,
                             size_t max_bytes);

/* What became of some tx: a full disk is said in the log, and space that was
 * found again is made use of. */
void unwritten_note(struct unwritten *u, const struct tx *tx);

/* Now and then, for where a timer could not be set. */
void unwritten_look(struct unwritten *u);

#endif
