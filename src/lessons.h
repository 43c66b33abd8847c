#ifndef LESSONS_H
#define LESSONS_H

/* lessons: how decisions become outcomes, and outcomes what is learnt.
 *
 * A job, every ten minutes or when asked, looks at the decisions whose window
 * is over, finds out what came of each (its task, what was said next in the
 * conversation) and writes verdict and outcome in one tx. Corrections and
 * feedback are written when they come, in the tx that they are part of.
 * Whatever was committed is applied to what is learnt (learn/), in order, and
 * that is written down by itself, with the number of the last outcome: so a
 * crash anywhere neither loses one nor counts it twice.
 *
 * Owns: the learnt state, the job. Threads: the loop's. */

#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "learn/learn.h"
#include "model/msg.h"
#include "store/store.h"

struct lessons;

struct lessons_settings {
    struct learn_settings learn;
    int64_t every_ms;        /* learning.everyMs; zero: only when asked */
    int64_t follow_up_ms;    /* learning.followUpMs: the window */
    int64_t substantial;     /* learning.substantialChars */
    int64_t uselessly_short; /* learning.shortChars */
};

struct lessons_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct str model, model_hash; /* that makes the vectors */
    /* Whether the task is still going on: the decision waits. */
    bool (*is_going_on)(void *ctx, struct str task_id);
    void *ctx;
    uint64_t seed[2];
    struct lessons_settings settings;
};

MUST_USE struct lessons *lessons_new(const struct lessons_opts *opts);
void lessons_free(struct lessons *l);
MUST_USE enum err lessons_load(struct lessons *l, struct why *why);
void lessons_set(struct lessons *l, const struct lessons_settings *s);
void lessons_stop(struct lessons *l);

/* What is learnt, to ask it. */
struct learn *lessons_learn(struct lessons *l);

/* "org:acme" or "user:ann", into out. */
struct str lessons_scope(const struct caller *c,
                         char out[PRINCIPAL_NAME_MAX + 8]);

/* Run the job now. done: how many were judged, once; ERR_BUSY: it runs
 * already and `done` is told when that is over. */
void lessons_run(struct lessons *l,
                 void (*done)(void *ctx, enum err e, int64_t n), void *ctx);

/* Somebody says that d should have gone to `right`: into the tx, marks d and
 * appends the outcome. After the commit of that tx: lessons_committed. `right`
 * empty: only that it was wrong, or right (verdict). ERR_BUSY when d was
 * overridden to the same already. */
struct lessons_word {
    const struct decision *decision;
    struct str right; /* the agent that was right; empty: not said */
    enum verdict verdict;
    struct str by;
    int64_t at_ms;
};
void lessons_append(struct lessons *l, struct tx *tx,
                    const struct lessons_word *word);

/* A tx that may have outcomes in it was committed: they are applied. */
void lessons_committed(struct lessons *l, const struct tx *tx);

/* Forget everything, or an agent; read everything again from the records, into
 * a new state that takes the place of the old. */
void lessons_forget(struct lessons *l, struct str agent, struct str by,
                    void (*done)(void *ctx, enum err e), void *ctx);
void lessons_rebuild(struct lessons *l,
                     void (*done)(void *ctx, enum err e, int64_t n), void *ctx);

struct lessons_stats {
    struct learn_stats learn;
    int64_t runs_total, judged_total, outcomes_total;
    int64_t behind; /* outcomes applied but not written down yet */
};
struct lessons_stats lessons_stats(const struct lessons *l);

#endif
