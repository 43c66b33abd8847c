#ifndef LEARN_THRESHOLDS_H
#define LEARN_THRESHOLDS_H

/* thresholds: what other thresholds would have made of many decisions. Another
 * fold, over the steps that choosing makes of each record: a row for every
 * hundredth from 0 to 1, and the newest of those that one threshold changes;
 * and the same for the alpha of decisions made by "auto".
 *
 * Pure. Owns copies of what it keeps. Threads: one at a time. */

#include "base/err.h"
#include "model/decision.h"

enum {
    THRESHOLDS = 101,         /* 0.00, 0.01, ... 1.00 */
    THRESHOLD_CHANGES = 100,  /* that are kept of one threshold */
    THRESHOLD_TEXT_MAX = 160, /* bytes of a text */
};

/* Of all decisions: same, changed and unsaid are together all there are. */
struct threshold_row {
    int64_t by_score;   /* would go to an agent by the semantic layer */
    int64_t by_default; /* would go to the default agent */
    int64_t same;       /* the same agent as then */
    int64_t changed;    /* another or nobody; of these: */
    int64_t to_default; /* the default agent would get them, by that layer */
    int64_t to_agent;   /* of the default layer's and of refusals, those that
                         * would   be an agent's by score */
    int64_t to_nobody;
    int64_t by_hindsight[N_HINDSIGHTS]; /* of those that change */
    int64_t unsaid; /* it hangs on what nobody looked at then */
};

/* The decisions that alpha counted for, by one value of it. */
struct alpha_row {
    int64_t by_band[4]; /* by enum band */
    int64_t same;       /* the same agent as then */
    int64_t changed;    /* another or none; of these: */
    int64_t to_nobody;
    int64_t by_hindsight[N_HINDSIGHTS];
    int64_t unsaid; /* it hangs on what the record does not have */
};

/* One that would change. */
struct threshold_change {
    struct id id;
    int64_t at_ms;
    struct str text, from, to; /* to is empty: nobody */
    enum layer from_layer, to_layer;
    double score; /* the best there was */
    enum hindsight hindsight;
};

struct thresholds;

/* at: the threshold whose changes are kept; NaN: none are. NULL: no memory. */
MUST_USE struct thresholds *thresholds_new(double at);
void thresholds_free(struct thresholds *t);

/* One more, with its steps. ERR_NOMEM: what it says is of no use any more. */
MUST_USE enum err thresholds_add(struct thresholds *t, const struct decision *d,
                                 const struct decision_step *steps);

/* One more that alpha counted for, by each of decision_alphas. */
void thresholds_add_alphas(struct thresholds *t, const struct decision *d,
                           const struct decision_other others[ALPHAS]);

/* ALPHAS of them. */
const struct alpha_row *thresholds_alphas(const struct thresholds *t);

/* All that are kept are there: further decisions add none to the changes. */
bool thresholds_has_enough(const struct thresholds *t);

/* Borrowed until the next is added. */
const struct threshold_row *thresholds_rows(const struct thresholds *t);
const struct threshold_change *thresholds_changes(const struct thresholds *t,
                                                  size_t *n);

#endif
