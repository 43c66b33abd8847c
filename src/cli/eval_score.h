#ifndef CLI_EVAL_SCORE_H
#define CLI_EVAL_SCORE_H

/* eval_score: from rankings to figures. Pure: no text, no model, no clock.
 *
 * Agents are numbers, in the order of their names. A query names the agents
 * that would be right, any of them; one that names none is out of scope. What
 * the figures mean is said here and nowhere else:
 *
 *   accuracy at k  the part of the queries in scope where one of the first k
 *                  is right
 *   recall at k    of the agents that would be right, the part that is among
 *                  the first k, averaged over the queries in scope: accuracy
 *                  where each names one
 *   NDCG at k      the right ones among the first k, each worth 1 / log2(1 +
 *                  its place), against what the best order gives; averaged
 *   MRR            one over the place of the first right one, zero beyond
 *                  EVAL_TOP; averaged
 *   macro F1       each agent's F1 as first place, averaged over the agents
 *                  that were right or chosen at least once. A query that more
 *                  than one could have answered counts, if missed, for each
 *                  of them in equal parts
 *   AUROC          how likely the best score of a query in scope is above that
 *                  of one out of scope; equal ones count half
 *   out-of-scope F1  of saying "nobody" to whatever scores below a threshold,
 *                  at the threshold that is best on these very queries: a
 *                  bound, not a promise */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVAL_TOP = 10 };

#define EVAL_NOBODY UINT32_MAX

/* The best few, best first. n is zero where the text had nothing in it that a
 * model could go by: then nobody was chosen. */
struct eval_ranked {
    uint32_t agents[EVAL_TOP];
    float scores[EVAL_TOP];
    unsigned n;
};

/* Of equal scores the smaller number comes first; one that is no finite number
 * is 0. */
void eval_rank(const float *scores, size_t n, struct eval_ranked *out);

struct eval_outcome {
    const uint32_t *expected; /* borrowed */
    size_t n_expected;        /* zero: out of scope */
    struct eval_ranked ranked;
};

/* Where the first right one stands, from 1; zero: not among them. */
unsigned eval_place(const struct eval_outcome *o);

/* The best score, zero where nobody was chosen. */
float eval_best(const struct eval_outcome *o);

/* Of one agent. */
struct eval_tally {
    size_t n_right;  /* chosen, and right */
    size_t n_taken;  /* chosen, and wrong */
    double n_missed; /* another was chosen, in parts */
};
double eval_f1(const struct eval_tally *t);

struct eval_mixup {
    uint32_t expected; /* the one that was named first */
    uint32_t chosen;   /* or EVAL_NOBODY */
    size_t n;
    size_t example; /* the first query it happened to */
};

struct eval_score {
    size_t n;                    /* in scope */
    size_t n_out;                /* out of scope */
    size_t n_right_at[EVAL_TOP]; /* within the first 1, 2, ... */
    /* NaN: no query in scope. [k - 1]: at k. */
    double recall_at[EVAL_TOP], ndcg_at[EVAL_TOP], mrr;
    double macro_f1;
    struct eval_tally *tallies; /* of every agent */
    struct eval_mixup *mixups;  /* most frequent first */
    size_t n_mixups;

    /* NaN without queries on both sides. */
    double auroc, out_f1;
    float threshold;     /* below it a query counts as out of scope */
    double scoped_right; /* part of all queries that are answered right with
                          * it: nobody out of scope, a right one in scope */
};

/* ERR_NOMEM; *out is then empty. */
MUST_USE enum err eval_score(const struct eval_outcome *all, size_t n,
                             size_t n_agents, struct eval_score *out);
void eval_score_fini(struct eval_score *s);

/* n_right_at[k - 1] / n; NaN without queries. */
double eval_accuracy(const struct eval_score *s, unsigned k);

#endif
