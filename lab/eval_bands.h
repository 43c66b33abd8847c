#ifndef LAB_EVAL_BANDS_H
#define LAB_EVAL_BANDS_H

/* eval_bands: how far routing trusts its choices, and how often that trust is
 * justified. Pure: no text, no model, no clock.
 *
 * Every query in scope is in exactly one of four groups: confident and right,
 * confident and wrong, unsure, taken for out of scope. Queries out of scope are
 * counted apart: each one that is not confident has been detected. */

#include "lab/eval_score.h"
#include "model/decision.h"

/* The decision on one query. */
struct eval_decided {
    enum band band; /* never BAND_NOT_ASKED */
    uint32_t agent; /* that gets the query; EVAL_NOBODY: none does */
    bool is_unsure; /* the agent gets it although the choice is unsure */
};

struct eval_bands {
    size_t n; /* in scope */
    size_t n_confident_right, n_confident_wrong;
    size_t n_unsure;
    size_t n_refused; /* taken for out of scope */

    size_t n_first;           /* top-1 is right */
    size_t n_first_confident; /* of those, confident and right */
    size_t n_unsure_right;    /* of the unsure ones, those that routing.unsure
                               * `best` delivers to a right agent */
    size_t n_unsure_three; /* and those with a right agent in the first three */

    size_t n_out; /* out of scope */
    size_t n_out_confident, n_out_unsure;
};

/* Add one query. */
void eval_bands_count(struct eval_bands *b, const struct eval_outcome *o,
                      const struct eval_decided *d);

/* Shares, NaN of nothing. The first: of the queries whose top-1 is right, those
 * that are confident and right. */
double eval_confident_share(const struct eval_bands *b);
double eval_detected_share(const struct eval_bands *b);

#endif
