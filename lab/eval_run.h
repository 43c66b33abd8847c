#ifndef LAB_EVAL_RUN_H
#define LAB_EVAL_RUN_H

/* eval_run: ranks all agents for every query of a set, by routing, by one
 * model, or by search. Threads: the main one. */

#include "cli/cli.h"
#include "embed/embed.h"
#include "lab/eval_bands.h"
#include "lab/eval_data.h"
#include "model/decision.h"

/* How agents are ranked. EVAL_ROUTING: as messages are routed, with all layers;
 * EVAL_VECTORS: by the mean of the vectors of all texts, to compare models; the
 * others: by the index, with vectors, words or both, like agent.search. */
enum eval_mode {
    EVAL_ROUTING,
    EVAL_VECTORS,
    EVAL_SEMANTIC,
    EVAL_TEXT,
    EVAL_HYBRID
};
const char *eval_mode_name(enum eval_mode mode);

/* Kinds of hostile cards, which try to win messages for other agents. */
enum eval_capture {
    EVAL_NO_CAPTURE,
    EVAL_STUFFED,
    EVAL_CROWD,
    EVAL_KEYWORDS,
    EVAL_QUESTIONS,
};

/* The relation of the requester to the agents of the set. */
enum eval_relation {
    EVAL_PLATFORM, /* the configuration's */
    EVAL_OWN,      /* the requester's own */
    EVAL_ORG,      /* a colleague's */
    EVAL_RATED, /* each has an owner in another org; the org rated all well */
    EVAL_STRANGERS, /* each has an owner in another org, and is not rated */
};
const char *eval_relation_name(enum eval_relation r);

enum { EVAL_CHECKPOINTS_MAX = 16, EVAL_RAIDS_MAX = 16, EVAL_FOLDS_MAX = 100 };

/* Borrowed. */
struct eval_plan {
    enum eval_mode mode;
    const struct eval_set *set;
    const struct config *config;
    enum embed_kind kind;
    size_t shots;         /* examples for each agent; zero: its own texts */
    const uint64_t *seed; /* to choose them; NULL: the first */
    bool has_own;         /* with examples, use its own texts as well */
    bool is_best;         /* use the nearest text, not the mean of all */

    /* EVAL_ROUTING */
    struct str default_agent;
    enum eval_capture capture;
    enum eval_relation relation;
    size_t checkpoints[EVAL_CHECKPOINTS_MAX]; /* outcomes, ascending */
    size_t n_checkpoints;                     /* zero: nothing is learnt */
    size_t folds;   /* of the queries; zero: learn from the examples */
    uint64_t order; /* the seed of the order of outcomes */
};

/* The results of messages, with the configured threshold. */
struct eval_gate {
    size_t n, n_first; /* in scope; a right agent has the best score */
    size_t n_right;    /* a right agent got it */
    size_t n_refused;  /* below the threshold: a false alarm */
    size_t n_out, n_out_refused;
    size_t by_layer[N_LAYERS]; /* LAYER_NONE: no agent got it */
    size_t by_tier[N_TIERS];   /* TIER_NONE: no vector, or only one tier */
};

struct eval_checkpoint {
    size_t outcomes;
    struct eval_gate gate;
    size_t corrections, examples, types; /* of all folds */
};

struct eval_raid {
    const char *how;
    size_t cards, owners; /* hostile ones */
    struct eval_gate gate;
    size_t n_captured; /* first places, of all queries in scope */
};

struct eval_run {
    struct eval_outcome *outcomes; /* one a query */
    size_t n_empty;                /* queries without a vector */
    struct embed_stamp first;      /* the model; EVAL_TEXT: none */
    double seconds;                /* for the queries, without the agents */
    size_t n_few, n_bare;          /* agents with too few examples; with none */

    /* EVAL_ROUTING */
    struct eval_decided *decided; /* one a query */
    bool is_auto;                 /* routing.threshold is "auto" */
    double threshold;             /* otherwise */
    bool has_levels;              /* of the cards, which "auto" needs */
    struct eval_gate gate;
    double p50_us, p99_us; /* from text to decision */
    struct eval_checkpoint checkpoints[EVAL_CHECKPOINTS_MAX];
    size_t n_checkpoints;
    struct eval_raid raids[EVAL_RAIDS_MAX];
    size_t n_raids;
};

/* Errors set why, and *out is empty. */
MUST_USE enum err eval_run(struct cli *c, const struct eval_plan *plan,
                           struct eval_run *out, struct why *why);
void eval_run_fini(struct eval_run *r);

#endif
