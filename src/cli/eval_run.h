#ifndef CLI_EVAL_RUN_H
#define CLI_EVAL_RUN_H

/* eval_run: every query of a set against every agent, by one model or as
 * a search has it. Threads: the main one. */

#include "cli/cli.h"
#include "cli/eval_bands.h"
#include "cli/eval_data.h"
#include "embed/embed.h"
#include "model/decision.h"

/* By what an agent is found. EVAL_ROUTING: as messages are routed, by all of
 * choosing; EVAL_VECTORS: the mean of the vectors of all its texts, to compare
 * models by; the others: the index, by vectors alone, by words alone or by
 * both, as agent.search finds it. */
enum eval_mode {
    EVAL_ROUTING,
    EVAL_VECTORS,
    EVAL_SEMANTIC,
    EVAL_TEXT,
    EVAL_HYBRID
};
const char *eval_mode_name(enum eval_mode mode);

/* Cards of a stranger's that are to win what is not theirs. */
enum eval_capture {
    EVAL_NO_CAPTURE,
    EVAL_STUFFED,
    EVAL_CROWD,
    EVAL_KEYWORDS,
    EVAL_QUESTIONS,
};

/* The relation of the requester to the agents of the set. */
enum eval_relation {
    EVAL_PLATFORM,  /* the configuration's */
    EVAL_OWN,       /* the requester's own */
    EVAL_ORG,       /* a colleague's */
    EVAL_RATED,     /* each has an owner elsewhere; the org rated all well */
    EVAL_STRANGERS, /* each has an owner elsewhere, and no org knows them */
};
const char *eval_relation_name(enum eval_relation r);

enum { EVAL_CHECKPOINTS_MAX = 16, EVAL_RAIDS_MAX = 16, EVAL_FOLDS_MAX = 100 };

/* Borrowed. */
struct eval_plan {
    enum eval_mode mode;
    const struct eval_set *set;
    const struct config *config;
    enum embed_kind kind;
    size_t shots;         /* examples an agent is found by; zero: none, but by
                           * what it says of itself */
    const uint64_t *seed; /* of their choice; NULL: the first */
    bool has_own;         /* with examples, its own texts count as well */
    bool is_best;         /* the nearest text counts, not the mean of all */

    /* EVAL_ROUTING */
    struct str default_agent;
    enum eval_capture capture;
    enum eval_relation relation;
    size_t checkpoints[EVAL_CHECKPOINTS_MAX]; /* outcomes, ascending */
    size_t n_checkpoints;                     /* zero: nothing is learnt */
    size_t folds;   /* of the queries; zero: from the examples */
    uint64_t order; /* the seed of the order that outcomes come in */
};

/* What became of messages, with the threshold that the configuration says. */
struct eval_gate {
    size_t n, n_first; /* in scope; one of the right ones has the best score */
    size_t n_right;    /* a right one got it */
    size_t n_refused;  /* it was under the threshold: a false alarm */
    size_t n_out, n_out_refused;
    size_t by_layer[N_LAYERS]; /* LAYER_NONE: no agent got it */
    size_t by_tier[N_TIERS]; /* TIER_NONE: no vector, or a model of one tier */
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
    double seconds;       /* that the queries took, without the agents */
    size_t n_few, n_bare; /* agents with fewer examples than shots; none */

    /* EVAL_ROUTING */
    struct eval_decided *decided; /* one a query */
    bool is_auto;                 /* routing.threshold is "auto" */
    double threshold;             /* else */
    bool has_levels;              /* of the cards, which auto goes by */
    struct eval_gate gate;
    double p50_us, p99_us; /* from text to decision */
    struct eval_checkpoint checkpoints[EVAL_CHECKPOINTS_MAX];
    size_t n_checkpoints;
    struct eval_raid raids[EVAL_RAIDS_MAX];
    size_t n_raids;
};

/* Errors have words. *out is then empty. */
MUST_USE enum err eval_run(struct cli *c, const struct eval_plan *plan,
                           struct eval_run *out, struct why *why);
void eval_run_fini(struct eval_run *r);

#endif
