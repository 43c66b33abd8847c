#ifndef LEARNT_H
#define LEARNT_H

/* learnt: what is learnt, as it is kept.
 *
 *     outcome, committed -> learn_apply -> changed
 *     changed, a moment later -> rows, in one tx with the last outcome's number
 *     start -> rows, then the outcomes after that number
 *
 * The outcomes are the log and the rows a picture of their fold, taken now and
 * then: all that changed and the number up to which, in one tx. So wherever a
 * crash falls, each outcome counts once.
 *
 * Rebuilding folds all outcomes that are kept into a state of its own, which
 * then takes the place of the other. Its rows may be too many for one tx; they
 * say that they are not whole until the last of them is there, and a start that
 * finds them so begins anew from the outcomes, which is what the rebuilding
 * did.
 *
 * A void (OUTCOME_VOID) begins a rebuilding that leaves out what it covers.
 * From then until the new state has taken its place no rows are written: so a
 * start that comes before finds rows that are older than the void, takes none
 * of them, and folds all outcomes that are kept, without those that are voided.
 *
 * Inside lessons.c; nobody else has one. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "learn/learn.h"
#include "store/store.h"

enum { LEARNT_WAITING_MAX = 16 };

typedef void learnt_rebuilt(void *ctx, enum err e, int64_t n);

struct learnt_waiting {
    learnt_rebuilt *done;
    void *ctx;
};

/* Reads the outcomes after the last that a state has, page by page. */
struct learnt_fold {
    struct learnt *learnt;
    struct learn *into;        /* NULL: nothing is folded */
    struct learn_voids *voids; /* borrowed; NULL: none */
    struct query query;
    bool is_reading; /* a page is with the store */
    int64_t upto;    /* the newest when it was asked for */
    int64_t n;       /* that the state was learnt from */
};

struct learnt {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct learn_settings settings;
    struct str model_hash;
    size_t quick_dims; /* of that model: as in learn_new */
    uint64_t seed[2];

    struct learn *learn;
    int64_t newest;  /* outcome that was committed */
    int64_t written; /* the number that the rows have */
    int64_t behind;  /* outcomes applied since it was taken */

    /* Writing; one tx at a time. */
    struct tx tx;
    struct timer write_timer;
    bool is_writing;
    bool is_last;         /* all that changed is in the tx */
    bool is_new;          /* the state takes the place of another's rows */
    int64_t taken;        /* the number in the tx */
    int64_t behind_taken; /* and how many were behind */

    /* Outcomes that could not be applied when they came, for want of memory,
     * are read again. */
    struct learnt_fold catching_up;
    struct timer catch_up_timer;

    /* A state being made again: first the voids are read, then it is folded. */
    struct learnt_fold rebuilding;
    struct learn_voids *voids;
    int64_t last_void; /* that was read */
    int64_t voided_ms; /* when it was given; zero: none was */
    bool is_rebuilding;
    bool is_ready;     /* to take its place, once the tx is back */
    bool is_overtaken; /* a void was committed since the voids were read */
    bool must_rebuild; /* a void has not taken effect yet: no row is written */
    struct timer void_timer;
    struct learnt_waiting waiting[LEARNT_WAITING_MAX];
    size_t n_waiting;
    bool is_stopping;
};

enum {
    LEARNT_WRITE_MS = 1000,   /* after a change, at the latest */
    LEARNT_WRITE_BEHIND = 256 /* or once so many are not written */
};

/* loop, log, store, settings, model_hash, quick_dims and seed are filled in.
 * ERR_NOMEM. */
MUST_USE enum err learnt_init(struct learnt *l);

/* After the store has given everything back. Harmless for one that is zero. */
void learnt_fini(struct learnt *l);

/* Rows, and outcomes behind them. Once, before the loop runs. */
MUST_USE enum err learnt_load(struct learnt *l, struct why *why);

void learnt_set(struct learnt *l, const struct learn_settings *s);

/* What is not written is on its way to the store when this returns, as far as
 * it can be; whoever waits is told ERR_STOPPING. */
void learnt_stop(struct learnt *l);

/* o was committed: in the order of their numbers. */
void learnt_take(struct learnt *l, const struct outcome *o);

/* ERR_BUSY: one is going on already. done is called once, never before this
 * has returned; n: from how many outcomes. */
MUST_USE enum err learnt_rebuild(struct learnt *l, learnt_rebuilt *done,
                                 void *ctx);

/* Wait for the rebuilding that a void has begun, which may be over: then done
 * is called at once. ERR_OVERLOADED: too many wait; ERR_NOMEM: it has failed
 * and will be tried again; ERR_STOPPING. */
MUST_USE enum err learnt_await(struct learnt *l, learnt_rebuilt *done,
                               void *ctx);

/* A page of the outcomes, or of the voids, there are behind that number. */
void learnt_ask_outcomes(struct query *q, int64_t after);
void learnt_ask_voids(struct query *q, int64_t after);

#endif
