#ifndef LEARN_JUDGE_H
#define LEARN_JUDGE_H

/* judge: the job that finds the results of decisions.
 *
 *     open decisions, oldest first -> its task -> the next message
 *         -> verdict on the decision and an outcome, in one tx
 *
 * A decision is open until the job has processed it (`followed` is NULL). A
 * decision that a user has judged before gets its facts (latency and length of
 * the answer, its error, whether there was a follow-up) and keeps its verdict,
 * without an outcome. All facts but the last are written at the end of the turn
 * (learning_record_end); older turns get them here.
 *
 * Two runs, or a run and a user's verdict, never both count: the one that finds
 * the decision without a verdict writes it, in the same tx as the outcome.
 * Between reading and writing only the next message may change, and by then the
 * window is over.
 *
 * Used by learning.c only. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "choose/layers/choose.h"
#include "learn/fold/learn.h"
#include "learn/learning.h"
#include "store/store.h"
#include "task/task.h"

/* Facts about a turn that is over, and what followed. */
struct judge_facts {
    bool is_known; /* false: the task was removed */
    enum task_status status;
    int64_t chars; /* of the answer */
    int64_t finished_ms;
    struct str error_code;
    bool is_followed; /* a follow-up to the same agent, within the window */
    bool is_switched; /* its owner gave the conversation to another agent */
};

struct judge_rules {
    int64_t follow_up_ms, substantial, uselessly_short;
};

/* Positive: a substantial answer, no error, and a follow-up to the same agent.
 * Negative: an error, a switch, or an answer too short to be one. */
enum verdict judge_verdict(const struct judge_rules *rules,
                           const struct judge_facts *f);

/* The scope of a verdict: "org:acme", or "user:ann" without an org. */
enum { JUDGE_SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str judge_scope(struct str org, struct str user,
                       char out[JUDGE_SCOPE_BYTES]);

/* An outcome with the fields of d; the caller sets kind and verdict. Borrows
 * from both. */
struct outcome judge_outcome(const struct decision *d,
                             char scope[JUDGE_SCOPE_BYTES]);
/* Apply the standing: limits the outcome to insiders, or removes an agent that
 * is gone. */
void judge_stand(struct outcome *o, enum learning_standing standing);

struct judge {
    struct loop *loop;
    struct log *log;
    struct store *store;
    bool (*is_going_on)(void *ctx, struct str task_id);
    learning_stands *stands;
    struct str (*owner_of)(void *ctx, struct str agent);
    /* A run is over; n decisions were judged. Never called from judge_run. */
    void (*on_over)(void *ctx, enum err e, int64_t n);
    void *ctx;
    struct judge_rules rules;

    bool is_running, is_stopping;
    int64_t now_ms;       /* of the run */
    struct query page;    /* of open decisions */
    const struct row *at; /* the present one; NULL: none is left */
    bool has_old;         /* one of the page is old enough */
    int64_t last_seq;     /* of the page */
    struct arena arena;   /* of the present decision */
    struct decision d;
    struct query look; /* for its task, its turn, the next message */
    struct judge_facts facts;
    size_t n_out; /* pending txs */
    int64_t n_judged;
    enum err err; /* the first of the run */
};

/* The caller has set the first part. */
void judge_init(struct judge *j);

/* After the store has returned all txs and queries. */
void judge_fini(struct judge *j);

/* Judge all open decisions. The job must not be running. */
void judge_run(struct judge *j);

/* A run ends at its next step with ERR_STOPPING. */
void judge_stop(struct judge *j);

#endif
