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

/* How who asked stands to the agent that was chosen, as it is registered now.
 * What an agent's own people say of it counts among them alone. */
enum lessons_standing {
    STANDS_OUTSIDE, /* from elsewhere: counts for all */
    STANDS_INSIDE,  /* its creator, their org; of the platform's agents,
                     * everybody, and for everybody */
    STANDS_ALONE,   /* the agent is gone, or its name somebody else's since */
};
typedef enum lessons_standing lessons_stands(void *ctx,
                                             const struct decision *d);

struct lessons_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct str model_hash; /* of what makes the vectors */
    size_t quick_dims;     /* of the same: as in learn_new */
    /* Whether the task is still going on: the decision waits. */
    bool (*is_going_on)(void *ctx, struct str task_id);
    lessons_stands *stands; /* NULL: everybody from elsewhere */
    /* The creator of the agent of that name; empty: it is the platform's, or
     * there is none. Borrowed for the call. NULL: all are the platform's. */
    struct str (*owner_of)(void *ctx, struct str agent);
    void *ctx;
    uint64_t seed[2];
    struct lessons_settings settings;
};

/* NULL: memory is gone. */
MUST_USE struct lessons *lessons_new(const struct lessons_opts *opts);

/* After the store has given everything back. */
void lessons_free(struct lessons *l);

/* What was learnt, as it was kept, and the outcomes since. Once, before the
 * loop runs; from then on the job runs by itself. */
MUST_USE enum err lessons_load(struct lessons *l, struct why *why);
void lessons_set(struct lessons *l, const struct lessons_settings *s);

/* The loop is about to end: whoever waits is told ERR_STOPPING, and what is not
 * written down goes to the store. */
void lessons_stop(struct lessons *l);

/* How long after its answer a decision is looked at. */
int64_t lessons_follow_up_ms(const struct lessons *l);

/* What is learnt, to ask it. Borrowed until the loop's turn ends. */
struct learn *lessons_learn(struct lessons *l);

/* "org:acme" or "user:ann", into out. */
struct str lessons_scope(const struct caller *c,
                         char out[PRINCIPAL_NAME_MAX + 8]);

/* Run the job now; should it be running already, once more after that. done is
 * called once, perhaps before this returns: how many were judged, and what kept
 * others from it. ERR_OVERLOADED: too many wait for that; ERR_STOPPING. */
enum { LESSONS_WAITING_MAX = 64 };
void lessons_run(struct lessons *l,
                 void (*done)(void *ctx, enum err e, int64_t n), void *ctx);

/* Somebody says that d should have gone to `right`: into the tx, marks d and
 * appends the outcome. `right` empty: only whether it was right (verdict:
 * positive or negative).
 *
 * The op on decision_table is guarded: the decision is there, with the verdict
 * that d has and overridden to whom d says. So what is said twice at once
 * counts once; saying again what d says already is for the caller to leave out.
 *
 * A decision moves averages once, by the first verdict that is not neutral;
 * whatever is said after that changes the decision and its example alone. Or
 * right, wrong, right … would wear out anybody's good name. */
struct lessons_word {
    const struct decision *decision;
    struct str right; /* the agent that was right; empty: not said */
    enum verdict verdict;
    struct str by;
    int64_t at_ms;
    bool is_switch; /* it was not said: they went to another agent. Of what
                     * was not chosen by us that is no correction */
    struct str vector, model_hash; /* of the text, where the decision has none
                                    * of the model in use; empty: as it is */
};

/* The decision's text as it is learnt from: without the agent's name that it
 * begins with. */
struct str lessons_text(const struct decision *d);

void lessons_append(struct lessons *l, struct tx *tx,
                    const struct lessons_word *word);

/* A turn that the decision gave to an agent ends with this tx: how long it took
 * and is, and its error, go with it into the decision, where it is still there.
 * A verdict takes longer. */
void lessons_record_end(struct tx *tx, const struct id *decision,
                        const struct task_result *r, int64_t at_ms);

/* A tx that may have outcomes in it was committed: they are applied. Of every
 * tx, in the order of the commits: for store_opts.on_committed. */
void lessons_committed(struct lessons *l, const struct tx *tx);

/* Forget everything, or an agent; read everything again from the records, into
 * a new state that takes the place of the old. done as above; n: how many
 * records there are. ERR_BUSY: that is going on already. */
void lessons_forget(struct lessons *l, struct str agent, struct str by,
                    void (*done)(void *ctx, enum err e), void *ctx);
void lessons_rebuild(struct lessons *l,
                     void (*done)(void *ctx, enum err e, int64_t n), void *ctx);

/* Void verdicts that were given before: of a user, who gave them or whose
 * messages they came of ("user:NAME"); or of an owner, the same and all about
 * the owner's agents ("owner:NAME"). The outcomes stay in the store, and what
 * is learnt is folded again without them, from all that are kept. done: once
 * that has effect and is written; n: the outcomes that are left, n_voided:
 * those that are voided and were not before. Where there are none, nothing is
 * written. ERR_BUSY: another void is on its way; ERR_LIMIT: LEARN_VOIDS_MAX
 * users and owners have been voided. An error after the void was committed
 * leaves the fold to be tried again. */
typedef void lessons_voided(void *ctx, enum err e, int64_t n, int64_t n_voided);
void lessons_void(struct lessons *l, struct str target, struct str by,
                  lessons_voided *done, void *ctx);

/* When verdicts were voided last, Unix time; zero: never. */
int64_t lessons_voided_ms(const struct lessons *l);

/* An agent goes, in this tx: what was learnt of it goes too, before somebody
 * else has its name. */
void lessons_agent_gone(struct tx *tx, struct str agent, int64_t at_ms);

/* What is old, removed: at most so many decisions and outcomes of each. Those
 * whose tasks may not be over stay, and so do outcomes whose effect is not
 * written down yet. The first of each is looked for first. */
struct lessons_keep {
    int64_t before_ms;      /* older ones go */
    int64_t unfinished_ms;  /* but not decisions from here on */
    int64_t rows;           /* of each that stay; zero: any number */
    int64_t first_decision; /* its number; zero: there is none */
    int64_t first_outcome;
    size_t limit;
};
void lessons_first(struct query *q, const struct table *t); /* the first row */
void lessons_prune(const struct lessons *l, struct tx *tx,
                   const struct lessons_keep *keep);

struct lessons_stats {
    struct learn_stats learn;
    int64_t runs_total, judged_total, outcomes_total;
    int64_t behind;  /* outcomes applied but not written down yet */
    int64_t newest;  /* the last outcome's number; zero: none */
    int64_t written; /* up to which it is written down */
    bool is_running, is_rebuilding;
};
struct lessons_stats lessons_stats(const struct lessons *l);

#endif
