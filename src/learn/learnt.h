#ifndef LEARN_LEARNT_H
#define LEARN_LEARNT_H

/* learnt: keeps the learned state in the store.
 *
 *     outcome, committed -> learn_apply -> changes
 *     changes, a moment later -> rows, in one tx with the last outcome's number
 *     start -> rows, then the outcomes after that number
 *
 * The outcomes are the log and the rows a checkpoint of their fold: all changes
 * and the number of the last outcome, in one tx. So wherever a crash falls,
 * each outcome counts once.
 *
 * Rebuilding folds all outcomes that are kept into a new state, which then
 * replaces the other. Its rows may be too many for one tx; they say that they
 * are incomplete until the last is committed, and a start that finds them so
 * starts over from the outcomes, as the rebuilding did.
 *
 * A void (OUTCOME_VOID) begins a rebuilding that leaves out the outcomes it
 * covers. Until the new state has replaced the other, no rows are written: so a
 * start meanwhile finds rows that are older than the void, ignores them, and
 * folds all outcomes that are kept, without those that are voided.
 *
 * Used by learning.c only. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "learn/fold/learn.h"
#include "store/store.h"

enum { LEARNT_WAITING_MAX = 16 };

typedef void learnt_rebuilt(void *ctx, enum err e, int64_t n);

struct learnt_waiting {
    learnt_rebuilt *done;
    void *ctx;
};

/* Reads the outcomes after the last one of a state, page by page. */
struct learnt_fold {
    struct learnt *learnt;
    struct learn *into;        /* NULL: no fold is in progress */
    struct learn_voids *voids; /* borrowed; NULL: none */
    struct query query;
    bool is_reading; /* the store has the query */
    int64_t upto;    /* the newest outcome at the time of the query */
    int64_t n;       /* outcomes that the state was folded from */
};

struct learnt {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct learn_settings settings;
    struct str model_hash;
    size_t quick_dims; /* of that model, as in learn_new */
    uint64_t seed[2];

    struct learn *learn;
    int64_t newest;  /* the last committed outcome */
    int64_t written; /* the number in the rows */
    int64_t behind;  /* outcomes applied since the last write */

    /* Writing; one tx at a time. */
    struct tx tx;
    struct timer write_timer;
    bool is_writing;
    bool is_last;         /* the tx has all changes */
    bool is_new;          /* the state replaces another's rows */
    int64_t taken;        /* the number in the tx */
    int64_t behind_taken; /* `behind` when the tx was made */

    /* Outcomes that could not be applied when they were committed, for lack of
     * memory, are read again. */
    struct learnt_fold catching_up;
    struct timer catch_up_timer;

    /* Rebuilding: first the voids are read, then the outcomes are folded. */
    struct learnt_fold rebuilding;
    struct learn_voids *voids;
    int64_t last_void; /* the last one read */
    int64_t voided_ms; /* its time; zero: there is none */
    bool is_rebuilding;
    bool is_ready;     /* replaces the state once the pending tx is back */
    bool is_overtaken; /* a void was committed since the voids were read */
    bool must_rebuild; /* a void is not in effect yet: no rows are written */
    struct timer void_timer;
    struct learnt_waiting waiting[LEARNT_WAITING_MAX];
    size_t n_waiting;
    bool is_stopping;
};

enum {
    LEARNT_WRITE_MS = 1000,   /* after a change, at the latest */
    LEARNT_WRITE_BEHIND = 256 /* or after so many outcomes */
};

/* The caller has set loop, log, store, settings, model_hash, quick_dims and
 * seed. */
void learnt_init(struct learnt *l);

/* After the store has returned all txs and queries. Harmless for a zeroed
 * one. */
void learnt_fini(struct learnt *l);

/* Load the rows, and apply the outcomes after them. Once, before the loop
 * runs. */
MUST_USE enum err learnt_load(struct learnt *l, struct why *why);

void learnt_set(struct learnt *l, const struct learn_settings *s);

/* Submits unwritten changes before it returns, if it can. Waiting calls end
 * with ERR_STOPPING. */
void learnt_stop(struct learnt *l);

/* Apply o, which was committed. In the order of outcome numbers. */
void learnt_take(struct learnt *l, const struct outcome *o);

/* ERR_BUSY: a rebuilding is in progress. done is called once, never before this
 * returns; n: the number of outcomes folded. */
MUST_USE enum err learnt_rebuild(struct learnt *l, learnt_rebuilt *done,
                                 void *ctx);

/* Wait for the rebuilding that a void has begun; if it is over, done is called
 * at once. ERR_OVERLOADED: too many calls wait; ERR_NOMEM: it failed and will
 * be retried; ERR_STOPPING. */
MUST_USE enum err learnt_await(struct learnt *l, learnt_rebuilt *done,
                               void *ctx);

/* A query for a page of the outcomes, or of the voids, after that number. */
void learnt_ask_outcomes(struct query *q, int64_t after);
void learnt_ask_voids(struct query *q, int64_t after);

#endif
