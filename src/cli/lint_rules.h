#ifndef CLI_LINT_RULES_H
#define CLI_LINT_RULES_H

/* lint_rules: what makes choosing worse than it need be, found by looking at
 * the agents, before anybody has sent anything.
 *
 *   keywords   a word that most messages have, or that several agents have
 *   twins      two agents that say the same of themselves
 *   reach      an agent that nobody sees, or that no layer can choose, or whose
 *              own examples go to another
 *   bindings   one that an earlier one stands in the way of
 *   cards      one that is valid and will not work (model/advice.h)
 *
 * Whoever looks gives vectors if it has any; without them nobody is compared by
 * meaning. Pure; nothing is kept. Threads: any. */

#include "base/buf.h"
#include "choose/choose.h"
#include "index/index.h"
#include "model/advice.h"

enum {
    LINT_AGENTS_MAX = 5000, /* each is compared with each */
    LINT_TEXT_MAX = 512,
    LINT_NAMED_MAX = 8, /* agents that one finding names */
};

/* A text that ought to reach an agent: one of its examples, or where it has
 * none, its description. */
struct lint_try {
    uint32_t agent;
    bool is_description;
    struct str text;
    struct str vector; /* packed; empty: none */
};

/* The state of an agent as its server reports it. */
struct lint_known {
    enum agent_state state;
    struct str reason;           /* for that state; empty: none */
    const struct advice *advice; /* its warnings; NULL: it told none */
};

struct lint_fleet {
    const struct agent *agents;
    size_t n;
    const struct lint_known *known; /* NULL: the agents are not a server's */
    const float *vectors; /* of what each is routed by, `dims` each, one long;
                           * all zero: it has none. NULL: nobody has */
    uint32_t dims, quick; /* of the model's stamp */
    const struct lint_try *tries;
    size_t n_tries;
    struct index *index; /* of all, by their place; may be NULL: then no tries
                          * are made */
    const struct choose_settings *settings;
    double twins;                         /* as alike as this is too much */
    const struct advice_against *against; /* NULL: what the agents' server
                                           * knows is not known here */
    bool is_configured; /* they are of a configuration: nobody created them */
};

/* Borrowed for the call. */
struct lint_finding {
    const char *check; /* "keywords" */
    const char *rule;  /* "generic" */
    bool is_note;      /* to know, and perhaps as it should be */
    struct str agents[LINT_NAMED_MAX];
    size_t n_agents;
    struct str keyword;
    char text[LINT_TEXT_MAX], advice[320];
};

typedef void lint_fn(void *ctx, const struct lint_finding *f);

/* ERR_NOMEM: some were not looked for. */
MUST_USE enum err lint_keywords(const struct lint_fleet *fleet, lint_fn *each,
                                void *ctx);
MUST_USE enum err lint_twins(const struct lint_fleet *fleet, lint_fn *each,
                             void *ctx);
MUST_USE enum err lint_reach(const struct lint_fleet *fleet, lint_fn *each,
                             void *ctx);
MUST_USE enum err lint_bindings(const struct lint_fleet *fleet, lint_fn *each,
                                void *ctx);
MUST_USE enum err lint_cards(const struct lint_fleet *fleet, lint_fn *each,
                             void *ctx);

/* For the above: words into a finding. */
void lint_say(struct lint_finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void lint_advise(struct lint_finding *f, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
void lint_name(struct lint_finding *f, struct str agent);

#endif
