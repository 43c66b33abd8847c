#ifndef CLI_EVAL_RUN_H
#define CLI_EVAL_RUN_H

/* eval_run: every query of a set against every agent, by one model, by a
 * cascade of two, or as a search has it. Threads: the main one. */

#include "cli/cli.h"
#include "cli/eval_data.h"
#include "cli/eval_score.h"
#include "embed/embed.h"

/* By what an agent is found. EVAL_ROUTING: the mean of the vectors of all its
 * texts, as messages are routed; the others: the index, by vectors alone, by
 * words alone or by both, as agent.search finds it. */
enum eval_mode { EVAL_ROUTING, EVAL_SEMANTIC, EVAL_TEXT, EVAL_HYBRID };
const char *eval_mode_name(enum eval_mode mode);

/* Borrowed. */
struct eval_plan {
    enum eval_mode mode;
    const struct eval_set *set;
    const struct config *config;
    enum embed_kind kind;
    bool is_cascade; /* another is asked where kind is not sure */
    enum embed_kind second;
    double margin;        /* how near the second agent is then */
    size_t shots;         /* examples an agent is found by; zero: none, but by
                           * what it says of itself */
    const uint64_t *seed; /* of their choice; NULL: the first */
    bool has_own;         /* with examples, its own texts count as well */
    bool is_best;         /* the nearest text counts, not the mean of all */
};

struct eval_run {
    struct eval_outcome *outcomes;    /* one a query */
    bool *is_asked;                   /* the second model decided */
    size_t n_asked, n_empty;          /* queries; n_empty: without a vector */
    struct embed_stamp first, second; /* EVAL_TEXT: neither */
    double seconds;       /* that the queries took, without the agents */
    size_t n_few, n_bare; /* agents with fewer examples than shots; none */
};

/* Errors have words. *out is then empty. */
MUST_USE enum err eval_run(struct cli *c, const struct eval_plan *plan,
                           struct eval_run *out, struct why *why);
void eval_run_fini(struct eval_run *r);

#endif
