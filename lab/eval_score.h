#ifndef LAB_EVAL_SCORE_H
#define LAB_EVAL_SCORE_H

/* eval_score: computes the figures from rankings. Pure: no text, no model, no
 * clock.
 *
 * Agents are numbers, sorted by name. A query names the right agents, any of
 * which will do; a query without one is out of scope. The figures:
 *
 *   accuracy at k  the share of the queries in scope with a right agent among
 *                  the first k
 *   recall at k    the share of a query's right agents among the first k,
 *                  averaged over the queries in scope; equals accuracy if each
 *                  query names one agent
 *   NDCG at k      the right agents among the first k, each worth 1 / log2(1 +
 *                  its place), relative to the best order; averaged
 *   MRR            one over the place of the first right agent, zero beyond
 *                  EVAL_TOP; averaged
 *   macro F1       each agent's F1 in first place, averaged over the agents
 *                  that were right or chosen at least once. A missed query
 *                  with several right agents counts in equal parts for each
 *   AUROC          the probability that the best score of a query in scope is
 *                  above that of one out of scope; equal scores count half
 *   out-of-scope F1  of choosing no agent below a threshold, at the threshold
 *                  that is best for these queries: a bound, not a promise */

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVAL_TOP = 10 };

#define EVAL_NOBODY UINT32_MAX

/* The best agents, best first. n is zero if the model knew nothing in the text:
 * then no agent was chosen. */
struct eval_ranked {
    uint32_t agents[EVAL_TOP];
    float scores[EVAL_TOP];
    unsigned n;
};

/* Rank the scores. Equal ones are in the order of their numbers; a score that
 * is not finite counts as 0. */
void eval_rank(const float *scores, size_t n, struct eval_ranked *out);

struct eval_outcome {
    const uint32_t *expected; /* borrowed */
    size_t n_expected;        /* zero: out of scope */
    struct eval_ranked ranked;
};

/* Whether the agent is right. */
bool eval_outcome_names(const struct eval_outcome *o, uint32_t agent);

/* The place of the first right agent, from 1; zero: it is not ranked. */
unsigned eval_place(const struct eval_outcome *o);

/* The best score; zero if no agent was chosen. */
float eval_best(const struct eval_outcome *o);

/* The counts of one agent. */
struct eval_tally {
    size_t n_right;  /* chosen, and right */
    size_t n_taken;  /* chosen, and wrong */
    double n_missed; /* another was chosen, counted in parts */
};
double eval_f1(const struct eval_tally *t);

struct eval_mixup {
    uint32_t expected; /* the first right agent of the query */
    uint32_t chosen;   /* or EVAL_NOBODY */
    size_t n;
    size_t example; /* the first such query */
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
    double scoped_right; /* share of all queries answered right with it: no
                          * agent out of scope, a right one in scope */
};

/* ERR_NOMEM; *out is then empty. */
MUST_USE enum err eval_score(const struct eval_outcome *all, size_t n,
                             size_t n_agents, struct eval_score *out);
void eval_score_fini(struct eval_score *s);

/* n / of; NaN of nothing. */
double eval_share(size_t n, size_t of);

/* n_right_at[k - 1] / n; NaN without queries. */
double eval_accuracy(const struct eval_score *s, unsigned k);

#endif
