#ifndef LAB_EVAL_ROUTE_H
#define LAB_EVAL_ROUTE_H

/* eval_route: routes every query of a set through all layers, and measures on
 * request the effects of learning and of hostile cards. Threads: the main one.
 */

#include "lab/eval_fleet.h"
#include "lab/eval_run.h"

/* Packed vectors, one for each text; some may be empty. */
struct eval_vectors {
    uint8_t *rows;
    size_t each, n;
    bool *has;
};

void eval_vectors_init(struct eval_vectors *v, size_t n);
void eval_vectors_fini(struct eval_vectors *v);

/* Set the ith vector; NULL: none. ERR_NOMEM. */
MUST_USE enum err eval_vectors_put(struct eval_vectors *v, size_t i,
                                   const float *vector, uint32_t dims);

/* A fleet and its queries. */
struct eval_route {
    struct cli *cli;
    const struct eval_plan *plan;
    struct eval_model model;
    struct eval_fleet *fleet;
    struct eval_vectors queries, examples;
    size_t full_at;     /* the query whose full vector is being computed */
    struct strs *shots; /* for each agent */
    struct str *shot_texts;
    struct eval_run *run;
    float *took_us;
    double last_s;
    struct cli_bar bar;
    enum err e; /* of a callback */
    struct why *why;
};

/* Like eval_run, for EVAL_ROUTING. outcomes and decided are allocated and
 * empty. */
MUST_USE enum err eval_route(struct cli *c, const struct eval_plan *plan,
                             struct eval_run *out, struct why *why);

/* The same in two steps: open creates the fleet and the vectors of the queries,
 * and decides each query once. eval_route_close must follow, also after an
 * error.
 */
MUST_USE enum err eval_route_open(struct eval_route *r, struct cli *c,
                                  const struct eval_plan *plan,
                                  struct eval_run *out, struct why *why);
void eval_route_close(struct eval_route *r);

struct str eval_vector(const struct eval_vectors *v, size_t i);

/* Embed all queries. With a model of two tiers, deciding embeds only the
 * queries that need it. */
MUST_USE enum err eval_route_embed_queries(struct eval_route *r);

/* Embed the set's examples. */
MUST_USE enum err eval_route_embed_examples(struct eval_route *r);

/* The best agents of a choice. */
struct eval_ranked eval_ranked_of(const struct eval_choice *c);

/* The part of a text that is embedded and compared. */
struct str eval_head(struct str text);

/* Count one result. Returns whether it is right. */
bool eval_gate_count(struct eval_gate *g, const struct eval_query *q,
                     const struct eval_choice *c);

/* (eval_learn.c) */

/* A stream of n outcomes: the queries in the given order. */
struct eval_stream {
    const struct eval_query *queries;
    const struct eval_vectors *vectors;
    const uint32_t *order;
    size_t n;
    int64_t now_ms; /* one a minute */
    size_t n_done, n_corrections;
};

#define EVAL_BEGIN_MS INT64_C(1700000000000)

/* Continue to the given number of outcomes. ERR_NOMEM. */
MUST_USE enum err eval_stream_to(struct eval_route *r, struct eval_stream *s,
                                 size_t outcomes);

/* 0 .. n - 1 in random order. */
void eval_shuffle(uint32_t *order, size_t n, uint64_t seed);

MUST_USE enum err eval_learn(struct eval_route *r);

/* (eval_capture.c) */
MUST_USE enum err eval_capture(struct eval_route *r);

/* (eval_questions.c) */
MUST_USE enum err eval_capture_questions(struct eval_route *r);

#endif
