#ifndef STRAY_H
#define STRAY_H

/* stray: results that nobody waits for, because their task is over.
 *
 * A task that is over is not in memory, so the store is asked whose it was:
 * its own agent hears that it is over, and everybody else that there is no such
 * thing. What came too late is told in the feed, once for each task, and no
 * more than so many times a minute, because nobody but an agent decides how
 * often that happens. No agent can use up more than half of any limit here.
 *
 * Owns what is on its way to and from the store. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "model/task.h"
#include "store/store.h"
#include "wire/wire.h"

struct strays;

enum {
    STRAYS_ASKED_MAX = 64, /* at the same time */
    STRAYS_TOLD_PER_MINUTE = 60,
    STRAYS_REMEMBERED = 64, /* tasks that were told of last */
    /* Of these for one agent. */
    STRAYS_ASKED_OF_ONE = STRAYS_ASKED_MAX / 2,
    STRAYS_TOLD_OF_ONE = STRAYS_TOLD_PER_MINUTE / 2,
};

struct strays_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    /* What a result for that turn of t is, of who goes by that name on its
     * line: ERR_TASK_IS_OVER, ERR_NOT_FOUND (not theirs), ERR_BAD_REQUEST; OK:
     * that turn is going on. */
    enum err (*judge)(void *ctx, struct str agent, const struct task *t,
                      int64_t turn);
    /* What it was: as judge says, ERR_BUSY (too many at once, or the turn has
     * begun meanwhile: try again), or why it cannot be known. Perhaps before
     * stray_ask has returned. */
    void (*on_known)(void *ctx, uint64_t receipt, enum err e);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct strays *strays_new(const struct strays_opts *opts);

/* After the store has given back everything. */
void strays_free(struct strays *s);

/* `agent` has a result for a task that is not in memory. */
void stray_ask(struct strays *s, struct str agent, const struct wire_word *w,
               uint64_t receipt);

/* t, which is over (or NULL: nobody knows), had one more result of its own
 * agent. */
void stray_tell(struct strays *s, const struct task *t, int64_t turn,
                int64_t attempt);

#endif
