#ifndef CLI_CALIB_H
#define CLI_CALIB_H

/* calib: a threshold, and weights, from labelled queries. Pure: no text, no
 * model, no clock.
 *
 * A query has its best candidates with their signals, and says who is right;
 * who has nobody is out of scope. With weights and a threshold it is answered
 * right if a right one has the best score, at or above the threshold, or if
 * nobody is right and the best score is below.
 *
 * What is aimed at is the mean of two shares: of the queries in scope, those
 * that go to a right agent, and of those out of scope, those that are noticed.
 * So it does not hang on how many of each there are. Without any out of scope
 * it is the highest threshold that costs at most CALIB_COST of the queries in
 * scope that would go to a right agent.
 *
 * Cross-validation: each part is judged by what was chosen on all others, so
 * the figures are what to expect of new queries. What is proposed is chosen on
 * all of them. */

#include "base/err.h"
#include "model/decision.h"

#define CALIB_COST 0.02

struct calib_candidate {
    uint32_t agent;
    bool is_right;
    float semantic, performance, keyword, recency;
};

struct calib_query {
    size_t first, n; /* of its candidates, best first */
    bool is_out;
    unsigned fold;
};

struct calib_set {
    const struct calib_query *queries;
    size_t n;
    const struct calib_candidate *candidates;
    unsigned folds;
};

struct calib_figures {
    size_t n, n_right, n_refused; /* in scope; refused: below the threshold */
    size_t n_out, n_noticed;
};
void calib_add(struct calib_figures *to, const struct calib_figures *from);

/* What is aimed at, 0 to 1. */
double calib_worth(const struct calib_figures *f);

/* With these, on all queries or on one part. */
enum { CALIB_ALL = 0xffff };
void calib_judge(const struct calib_set *s, const struct signal_weights *w,
                 double threshold, unsigned fold, struct calib_figures *out);

struct calib_result {
    struct signal_weights weights; /* those given, or the best */
    double threshold;
    double least, most;         /* of the thresholds of the parts */
    struct calib_figures found; /* what to expect: of the parts together */
};

/* The best threshold; with is_free also the best weights, near which the
 * threshold was best. Weights are tried in twentieths that make one. ERR_NOMEM.
 */
MUST_USE enum err calib_run(const struct calib_set *s,
                            const struct signal_weights *w, bool is_free,
                            struct calib_result *out);

#endif
