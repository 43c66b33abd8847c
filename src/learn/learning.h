#ifndef LEARN_LEARNING_H
#define LEARN_LEARNING_H

/* learning: turns decisions into outcomes, and outcomes into the learned state.
 *
 * A job, periodic or on request, judges decisions whose window is over: it
 * reads the result (the task, the next message of the conversation) and writes
 * verdict and outcome in one tx. Corrections and feedback are written at once,
 * in the tx that they are part of. Committed outcomes are applied to the
 * learned state (fold/), in order. The state is written separately, with the
 * number of the last outcome: so a crash at any point neither loses an outcome
 * nor counts it twice.
 *
 * Owns: the learned state, the job. Threads: the loop's. */

#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "learn/fold/learn.h"
#include "model/msg.h"
#include "store/store.h"

struct learning;

struct learning_settings {
    struct learn_settings learn;
    int64_t every_ms;        /* learning.everyMs; zero: only on request */
    int64_t follow_up_ms;    /* learning.followUpMs: the window */
    int64_t substantial;     /* learning.substantialChars */
    int64_t uselessly_short; /* learning.shortChars */
};

/* The relation of the requester to the chosen agent, as it is registered now.
 * Verdicts by an agent's own people count for them only. */
enum learning_standing {
    STANDS_OUTSIDE, /* unrelated: counts for all */
    STANDS_INSIDE,  /* its creator or their org; for agents of the platform,
                     * every requester */
    STANDS_ALONE,   /* the agent is gone, or another agent has its name */
};
typedef enum learning_standing learning_stands(void *ctx,
                                               const struct decision *d);

struct learning_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct str model_hash; /* of the model that makes the vectors */
    size_t quick_dims;     /* of that model, as in learn_new */
    /* Whether the task is in progress; then the decision is not judged yet. */
    bool (*is_going_on)(void *ctx, struct str task_id);
    learning_stands *stands; /* NULL: all are unrelated */
    /* The creator of the agent of that name; empty: the platform's, or no such
     * agent. Borrowed for the call. NULL: all are the platform's. */
    struct str (*owner_of)(void *ctx, struct str agent);
    void *ctx;
    uint64_t seed[2];
    struct learning_settings settings;
};

MUST_USE struct learning *learning_new(const struct learning_opts *opts);

/* After the store has returned all txs and queries. */
void learning_free(struct learning *l);

/* Load the stored state and apply the outcomes since. Once, before the loop
 * runs; from then on the job runs periodically. */
MUST_USE enum err learning_load(struct learning *l, struct why *why);
void learning_set(struct learning *l, const struct learning_settings *s);

/* Before the loop ends: waiting calls end with ERR_STOPPING, and unwritten
 * changes are submitted to the store. */
void learning_stop(struct learning *l);

/* How long after its answer a decision is judged. */
int64_t learning_follow_up_ms(const struct learning *l);

/* The learned state, for queries. Borrowed until the loop's turn ends. */
struct learn *learning_learn(struct learning *l);

/* "org:acme" or "user:ann", into out. */
struct str learning_scope(const struct caller *c,
                          char out[PRINCIPAL_NAME_MAX + 8]);

/* Run the job now; if it is running, once more after that. done is called once,
 * perhaps before this returns, with the number of decisions judged, and the
 * error that kept others from it. ERR_OVERLOADED: too many calls wait;
 * ERR_STOPPING. */
enum { LEARNING_WAITING_MAX = 64 };
void learning_run(struct learning *l,
                  void (*done)(void *ctx, enum err e, int64_t n), void *ctx);

/* A user's verdict about a decision: `right` should have got it, or, if `right`
 * is empty, whether it was right (verdict: positive or negative).
 * learning_append updates the decision and appends the outcome to the tx.
 *
 * A guard on decision_table checks that the decision exists and still has d's
 * verdict and override. So of two equal verdicts at once only one counts; the
 * caller leaves out a verdict that d has already.
 *
 * A decision moves averages once, by the first verdict that is not neutral.
 * Later verdicts only change the decision and its example; otherwise a series
 * of right, wrong, right … could ruin any agent's average. */
struct learning_word {
    const struct decision *decision;
    struct str right; /* the agent that was right; empty: not named */
    enum verdict verdict;
    struct str by;
    int64_t at_ms;
    bool is_switch; /* the user did not say so but went to another agent; no
                     * correction if the router did not choose */
    struct str vector,
        model_hash; /* of the text, if the decision has none of
                     * the present model; empty: the decision's */
};

/* The decision's text for learning: without a leading agent's name. */
struct str learning_text(const struct decision *d);

void learning_append(struct learning *l, struct tx *tx,
                     const struct learning_word *word);

/* A turn that the decision gave to an agent ends with this tx: record latency,
 * length and error of the answer in the decision, if it still exists. The
 * verdict comes later. */
void learning_record_end(void *learning, const struct turn_end *end,
                         struct tx *tx);

/* A tx was committed: apply the outcomes in it. Call for every tx in the order
 * of commits: for store_opts.on_committed. */
void learning_committed(struct learning *l, const struct tx *tx);

/* Forget everything, or an agent. Rebuild the state from all outcomes. done as
 * above; n: the number of outcomes. ERR_BUSY: a rebuilding is in progress. */
void learning_forget(struct learning *l, struct str agent, struct str by,
                     void (*done)(void *ctx, enum err e), void *ctx);
void learning_rebuild(struct learning *l,
                      void (*done)(void *ctx, enum err e, int64_t n),
                      void *ctx);

/* Void earlier verdicts: of a user, given by them or derived from their
 * messages ("user:NAME"); or of an owner, the same and all about the owner's
 * agents ("owner:NAME"). The outcomes stay in the store, and the state is
 * folded again without them, from all that are kept. done: once that is in
 * effect and written; n: the outcomes that remain, n_voided: those that are
 * newly voided. If there are none, nothing is written. ERR_BUSY: another void
 * is in progress; ERR_LIMIT: LEARN_VOIDS_MAX users and owners have been
 * voided. After an error that follows the void's commit, the fold is
 * retried. */
typedef void learning_voided(void *ctx, enum err e, int64_t n,
                             int64_t n_voided);
void learning_void(struct learning *l, struct str target, struct str by,
                   learning_voided *done, void *ctx);

/* Time of the last void, Unix time; zero: none. */
int64_t learning_voided_ms(const struct learning *l);

/* An agent is removed in this tx: its learned data goes too, before another
 * agent can take its name. */
void learning_agent_gone(struct tx *tx, struct str agent, int64_t at_ms);

/* Retention: remove a limited number of old decisions and outcomes. Decisions
 * whose tasks may be in progress stay, and so do outcomes that the written
 * state does not cover. The caller reads the first row of each before. */
struct learning_keep {
    int64_t before_ms;      /* older ones are removed */
    int64_t unfinished_ms;  /* decisions from here on stay */
    int64_t rows;           /* of each that stay; zero: any number */
    int64_t first_decision; /* its number; zero: there is none */
    int64_t first_outcome;
    size_t limit;
};
void learning_first(struct query *q, const struct table *t); /* the first row */
void learning_prune(const struct learning *l, struct tx *tx,
                    const struct learning_keep *keep);

struct learning_stats {
    struct learn_stats learn;
    int64_t runs_total, judged_total, outcomes_total;
    int64_t behind;  /* outcomes applied but not written down yet */
    int64_t newest;  /* the last outcome's number; zero: none */
    int64_t written; /* up to which it is written down */
    bool is_running, is_rebuilding;
};
struct learning_stats learning_stats(const struct learning *l);

#endif
