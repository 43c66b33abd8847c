#ifndef LAB_CALIB_H
#define LAB_CALIB_H

/* calib: finds a threshold and weights from labelled queries. Pure: no text, no
 * model, no clock.
 *
 * A query has its best candidates with their signals, and the right agents; a
 * query without a right agent is out of scope. With given weights and threshold
 * it is answered right if a right agent has the best score, at or above the
 * threshold, or if there is no right agent and the best score is below.
 *
 * The target is the mean of two shares: the queries in scope that go to a right
 * agent, and the queries out of scope that are detected. So it does not depend
 * on their numbers. Without queries out of scope, the result is the highest
 * threshold that costs at most CALIB_COST of the queries in scope that would go
 * to a right agent.
 *
 * Cross-validation: each part is judged with the choice made on all others, so
 * the figures are what to expect for new queries. The proposal is chosen on all
 * queries. */

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

/* The target, 0 to 1. */
double calib_worth(const struct calib_figures *f);

/* Count the results with these weights, on all queries or on one part. */
enum { CALIB_ALL = 0xffff };
void calib_judge(const struct calib_set *s, const struct signal_weights *w,
                 double threshold, unsigned fold, struct calib_figures *out);

struct calib_result {
    struct signal_weights weights; /* the given ones, or the best */
    double threshold;
    double least, most;         /* thresholds of the parts */
    struct calib_figures found; /* expected results: of all parts together */
};

/* Find the best threshold, and with is_free also the best weights, in
 * twentieths with a sum of one. ERR_NOMEM. */
MUST_USE enum err calib_run(const struct calib_set *s,
                            const struct signal_weights *w, bool is_free,
                            struct calib_result *out);

#endif
