#ifndef CLI_EVAL_ROUTE_H
#define CLI_EVAL_ROUTE_H

/* eval_route: every query of a set through the whole of choosing, and, where
 * that is asked for, what learning and hostile cards change. Threads: the main
 * one. */

#include "cli/eval_fleet.h"
#include "cli/eval_run.h"

/* Vectors of texts, packed; one a text, and empty where there is none. */
struct eval_vectors {
    uint8_t *rows;
    size_t each, n;
    bool *has;
};

/* A fleet with queries at hand. */
struct eval_route {
    struct cli *cli;
    const struct eval_plan *plan;
    struct eval_model model;
    struct eval_fleet *fleet;
    struct eval_vectors queries, examples;
    size_t asked;       /* the query whose full vector is being made */
    struct strs *shots; /* for each agent */
    struct str *shot_texts;
    struct eval_run *run;
    float *took_us;
    double last_s;
    struct cli_bar bar;
    enum err e; /* what went wrong while vectors came in */
    struct why *why;
};

/* As eval_run, for EVAL_ROUTING; outcomes and decided are there and empty. */
MUST_USE enum err eval_route(struct cli *c, const struct eval_plan *plan,
                             struct eval_run *out, struct why *why);

/* The same in two steps, for who wants more of it than that: fleet and vectors
 * of the queries, each of them decided once. `close` also after an error. */
MUST_USE enum err eval_route_open(struct eval_route *r, struct cli *c,
                                  const struct eval_plan *plan,
                                  struct eval_run *out, struct why *why);
void eval_route_close(struct eval_route *r);

struct str eval_vector(const struct eval_vectors *v, size_t i);

/* The vectors of all queries: with a model of two tiers deciding makes only
 * those that it needs. */
MUST_USE enum err eval_route_embed_queries(struct eval_route *r);

/* The vectors of the set's examples. */
MUST_USE enum err eval_route_embed_examples(struct eval_route *r);

/* The best few of a choice. */
struct eval_ranked eval_ranked_of(const struct eval_choice *c);

/* What is embedded and compared of a text. */
struct str eval_head(struct str text);

/* One more of what became of messages. Whether a right one got it. */
bool eval_gate_count(struct eval_gate *g, const struct eval_query *q,
                     const struct eval_choice *c);
void eval_gate_add(struct eval_gate *to, const struct eval_gate *from);

/* (eval_learn.c) */

/* A stream of outcomes: so many queries, in that order. */
struct eval_stream {
    const struct eval_query *queries;
    const struct eval_vectors *vectors;
    const uint32_t *order;
    size_t n;
    int64_t now_ms; /* one a minute */
    size_t n_done, n_corrections;
};

#define EVAL_BEGIN_MS INT64_C(1700000000000)

/* Go on until so many outcomes are there. ERR_NOMEM. */
MUST_USE enum err eval_stream_to(struct eval_route *r, struct eval_stream *s,
                                 size_t outcomes);

/* 0 .. n - 1 as chance has it. */
void eval_shuffle(uint32_t *order, size_t n, uint64_t seed);

MUST_USE enum err eval_learn(struct eval_route *r);

/* (eval_capture.c) */
MUST_USE enum err eval_capture(struct eval_route *r);

/* (eval_questions.c) */
MUST_USE enum err eval_capture_questions(struct eval_route *r);

#endif
