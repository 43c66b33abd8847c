#ifndef LEARN_FOLD_THRESHOLDS_H
#define LEARN_FOLD_THRESHOLDS_H

/* thresholds: the results of many decisions with other thresholds. A fold over
 * the steps that choose_sweep makes of each record: a row for every hundredth
 * from 0 to 1, and the newest decisions that one threshold changes; and the
 * same for the alpha of decisions made with "auto".
 *
 * Pure. Owns copies of what it keeps. Threads: one at a time. */

#include "base/err.h"
#include "model/decision.h"

enum {
    THRESHOLDS = 101,         /* 0.00, 0.01, ... 1.00 */
    THRESHOLD_CHANGES = 100,  /* that are kept of one threshold */
    THRESHOLD_TEXT_MAX = 160, /* bytes of a text */
};

/* same + changed + unsaid is the number of all decisions. */
struct threshold_row {
    int64_t by_score;   /* would go to an agent by the semantic layer */
    int64_t by_default; /* would go to the default agent */
    int64_t same;       /* the same agent as recorded */
    int64_t changed;    /* another or none; of these: */
    int64_t to_default; /* would go to the default agent, by that layer */
    int64_t to_agent;   /* were the default layer's or rejected, and would go to
                         * an agent by score */
    int64_t to_nobody;
    int64_t by_hindsight[N_HINDSIGHTS]; /* of the changed */
    int64_t unsaid; /* unknown: depends on inputs that were not recorded */
};

/* The decisions for which alpha mattered, by one value of it. */
struct alpha_row {
    int64_t by_band[4]; /* by enum band */
    int64_t same;       /* the same agent as recorded */
    int64_t changed;    /* another or none; of these: */
    int64_t to_nobody;
    int64_t by_hindsight[N_HINDSIGHTS];
    int64_t unsaid; /* unknown: depends on inputs that were not recorded */
};

/* A decision that would change. */
struct threshold_change {
    struct id id;
    int64_t at_ms;
    struct str text, from, to; /* to is empty: no agent */
    enum layer from_layer, to_layer;
    double score; /* of the best candidate */
    enum hindsight hindsight;
};

struct thresholds;

/* at: the threshold whose changes are kept; NaN: none. */
MUST_USE struct thresholds *thresholds_new(double at);
void thresholds_free(struct thresholds *t);

/* Add a decision with its steps. ERR_NOMEM: the fold cannot be used any
 * more. */
MUST_USE enum err thresholds_add(struct thresholds *t, const struct decision *d,
                                 const struct decision_step *steps);

/* Add a decision for which alpha mattered, by each of decision_alphas. */
void thresholds_add_alphas(struct thresholds *t, const struct decision *d,
                           const struct decision_other others[ALPHAS]);

/* ALPHAS rows. */
const struct alpha_row *thresholds_alphas(const struct thresholds *t);

/* The changes are full: more decisions add none. */
bool thresholds_has_enough(const struct thresholds *t);

/* Borrowed until the next decision is added. */
const struct threshold_row *thresholds_rows(const struct thresholds *t);
const struct threshold_change *thresholds_changes(const struct thresholds *t,
                                                  size_t *n);

#endif
