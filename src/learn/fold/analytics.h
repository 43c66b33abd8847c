#ifndef LEARN_FOLD_ANALYTICS_H
#define LEARN_FOLD_ANALYTICS_H

/* analytics: statistics of many decisions. A fold over recorded decisions, in
 * any order, into tables:
 *
 *   summary   how many, by which layer, how sure, how often overridden
 *   agents    the same for each agent
 *   types     for each type of query and the agents that got it
 *   gaps      types of query that no agent covers well, with samples
 *   signals   how many decisions would differ without each signal
 *   keywords  keywords that fired, and how often that was wrong
 *   times     the figures of each hour or day
 *
 * Apart from their number, the figures of a group of decisions only cover those
 * that the router made (layer_is_routed): follow-ups that stay with their agent
 * and messages that name one would dilute them. Pure. Owns copies of what it
 * keeps. Threads: one at a time. */

#include "base/err.h"
#include "model/decision.h"

enum {
    ANALYTICS_ROWS_MAX = 10 * 1000, /* of each table; decisions that would need
                                     * more are counted in `left_out` */
    ANALYTICS_SAMPLES = 5,          /* of a gap */
    ANALYTICS_SAMPLE_MAX = 160,     /* bytes of one */
};

struct analytics;

/* span_ms: length of a row of the times; zero: none. close_margin: a score
 * within this distance above the threshold, or above the second, is not
 * sure. */
MUST_USE struct analytics *analytics_new(double close_margin, int64_t span_ms,
                                         const uint64_t seed[2]);
void analytics_free(struct analytics *a);

/* Add a decision. ERR_NOMEM: only some tables have it, so none can be used any
 * more. */
MUST_USE enum err analytics_add(struct analytics *a, const struct decision *d);

/* After analytics_add, for the signals and the `pulled` of keywords: the
 * results of the decision without each signal (choose_without). */
void analytics_add_without(struct analytics *a, const struct decision *d,
                           const struct decision_other without[N_SIGNALS]);

/* Figures of a group of decisions: n counts all, the rest those that were
 * routed. */
struct figures {
    int64_t n, n_routed;
    int64_t n_scored; /* by the semantic layer */
    double score_sum, margin_sum;
    int64_t overridden, errors;
    int64_t verdicts[4]; /* by enum verdict */
    int64_t n_answered;  /* with a known length of the answer */
    int64_t chars_sum;
    int64_t n_ended; /* with a known end */
    int64_t latency_sum_ms;
};

/* NaN for a division by zero. */
double figures_confidence(const struct figures *f);
double figures_margin(const struct figures *f);
double figures_override_rate(const struct figures *f);
double figures_error_rate(const struct figures *f); /* of those that ended */
double figures_answer_chars(const struct figures *f);
double figures_latency_ms(const struct figures *f);

struct analytics_summary {
    struct figures all;
    int64_t by_layer[N_LAYERS];
    int64_t explored;
    int64_t first_ms, last_ms; /* of the decisions; zero: there are none */
    int64_t left_out; /* how often a table had no room for a decision's row */
};
struct analytics_summary analytics_summary(const struct analytics *a);

/* The tables: borrowed until the next call of any of these, or analytics_add.
 * Most decisions first; equal ones by name. NULL: out of memory. */

struct analytics_agent {
    struct str agent;
    struct figures f;
};
MUST_USE const struct analytics_agent *analytics_agents(struct analytics *a,
                                                        size_t *n);

struct analytics_type {
    int64_t type; /* zero: none */
    struct str agent;
    struct figures f;
};
MUST_USE const struct analytics_type *analytics_types(struct analytics *a,
                                                      size_t *n);

/* Decisions that were not sure: no agent reached the threshold and the default
 * agent got the message, or it was rejected, or the best was close to the
 * threshold or to the second. */
struct analytics_gap {
    int64_t type;
    int64_t n, n_default, n_refused;
    int64_t n_compared; /* with candidates */
    double best_sum;    /* of their best scores */
    struct str nearest; /* agent of the best of those scores; may be empty */
    double nearest_score;
    struct str samples[ANALYTICS_SAMPLES]; /* texts, all different */
    size_t n_samples;
};
MUST_USE const struct analytics_gap *analytics_gaps(struct analytics *a,
                                                    size_t *n);

/* Figures of the decisions of the semantic layer. */
struct analytics_signal {
    int64_t n;       /* decisions compared */
    int64_t changed; /* without it another agent would get it, or none would be
                      * a confident choice */
    int64_t changed_good, changed_bad; /* of those, positive: it helped; and
                                        * negative or overridden: it hurt */
};
void analytics_signals(const struct analytics *a,
                       struct analytics_signal out[N_SIGNALS]);

struct analytics_keyword {
    struct str keyword, agent;
    int64_t fired;  /* for that agent */
    int64_t won;    /* and the agent was chosen */
    int64_t wrong;  /* and that was negative or overridden */
    int64_t right;  /* and that was positive */
    int64_t pulled; /* won, and without keywords another agent would have, or
                     * none confidently */
};
MUST_USE const struct analytics_keyword *analytics_keywords(struct analytics *a,
                                                            size_t *n);

/* Whole spans since 1970 that have decisions, the earliest first. */
struct analytics_time {
    int64_t from_ms;
    struct figures f;
};
MUST_USE const struct analytics_time *analytics_times(struct analytics *a,
                                                      size_t *n);

#endif
