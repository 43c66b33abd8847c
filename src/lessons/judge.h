#ifndef JUDGE_H
#define JUDGE_H

/* judge: the job that finds out what came of decisions.
 *
 *     open decisions, oldest first -> its task -> what was said next
 *         -> verdict on the decision and an outcome, in one tx
 *
 * Open are those that the job has not seen (`followed` is NULL). One that
 * somebody has judged before gets its facts (how long the answer took and is,
 * its error, whether more was said) and keeps its verdict, without an outcome.
 * All but the last are there from the end of the turn on (lessons_record_end);
 * a turn from before that was so gets them here.
 *
 * Two runs, or a run and somebody's word, never both count: whoever finds the
 * decision without a verdict writes it, in the same tx as the outcome. What is
 * read one moment and decided the next may be out of date only in what was said
 * next, and by then the window is over.
 *
 * Inside lessons.c; nobody else has one. Threads: the loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "choose/choose.h"
#include "learn/learn.h"
#include "lessons/lessons.h"
#include "store/store.h"
#include "task/task.h"

/* What is known of a turn that is over, and what followed. */
struct judge_facts {
    bool is_known; /* else the task is not there any more */
    enum task_status status;
    int64_t chars; /* of the answer */
    int64_t finished_ms;
    struct str error_code;
    bool is_followed; /* the same agent was told more, in time */
    bool is_switched; /* or the conversation given to another by its owner */
};

struct judge_rules {
    int64_t follow_up_ms, substantial, uselessly_short;
};

/* Positive: a substantial answer, no error, more was said to the same agent.
 * Negative: an error, a switch, or an answer too short to be one. */
enum verdict judge_verdict(const struct judge_rules *rules,
                           const struct judge_facts *f);

/* Who counts it: "org:acme", or "user:ann" where there is no org. */
enum { JUDGE_SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str judge_scope(struct str org, struct str user,
                       char out[JUDGE_SCOPE_BYTES]);

/* What an outcome of d has of it; kind and verdict are the caller's. Borrows
 * from both. */
struct outcome judge_outcome(const struct decision *d,
                             char scope[JUDGE_SCOPE_BYTES]);
/* Who is meant by it: nobody whose name is somebody else's now. */
void judge_stand(struct outcome *o, enum lessons_standing standing);

struct judge {
    struct loop *loop;
    struct log *log;
    struct store *store;
    bool (*is_going_on)(void *ctx, struct str task_id);
    lessons_stands *stands;
    struct str (*owner_of)(void *ctx, struct str agent);
    /* A run is over: how many were judged. Never from inside judge_run. */
    void (*on_over)(void *ctx, enum err e, int64_t n);
    void *ctx;
    struct judge_rules rules;

    bool is_running, is_stopping;
    int64_t now_ms;       /* of the run */
    struct query page;    /* of open decisions */
    const struct row *at; /* the one that is looked at; NULL: none is left */
    bool has_old;         /* one of the page is old enough */
    int64_t last_seq;     /* of the page */
    struct arena arena;   /* of the decision */
    struct decision d;
    struct query look; /* for its task, its turn, what came next */
    struct judge_facts facts;
    size_t n_out; /* txs on their way */
    int64_t n_judged;
    enum err err; /* the first of the run */
};

/* The first part is filled in. */
void judge_init(struct judge *j);

/* After the store has given everything back. */
void judge_fini(struct judge *j);

/* Look at all that are open. It is not running. */
void judge_run(struct judge *j);

/* A run ends at its next step, with ERR_STOPPING. */
void judge_stop(struct judge *j);

#endif
