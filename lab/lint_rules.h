#ifndef LAB_LINT_RULES_H
#define LAB_LINT_RULES_H

/* lint_rules: problems of cards that make choosing worse, found before the
 * first message.
 *
 *   keywords   a word that most messages contain, or that several agents have
 *   twins      two agents with similar descriptions
 *   reach      an agent that is invisible, that no layer can choose, or whose
 *              own examples go to another agent
 *   bindings   a binding that an earlier one hides
 *   cards      a valid card that will not work (model/advice.h)
 *
 * The caller provides vectors if it has them; without vectors agents are not
 * compared by meaning. Pure; keeps nothing. Threads: any. */

#include "base/buf.h"
#include "choose/layers/choose.h"
#include "model/advice.h"
#include "registry/index/index.h"

enum {
    LINT_AGENTS_MAX = 5000, /* each is compared with each */
    LINT_TEXT_MAX = 512,
    LINT_NAMED_MAX = 8, /* agents that one finding names */
};

/* A text that should reach an agent: one of its examples, or its description if
 * it has none. */
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
    const struct advice *advice; /* its warnings; NULL: none were read */
};

struct lint_fleet {
    const struct agent *agents;
    size_t n;
    const struct lint_known *known; /* NULL: the agents are not a server's */
    const float *vectors; /* one for each agent, `dims` numbers, of length one;
                           * all zero: none. NULL: no agent has one */
    uint32_t dims, quick; /* of the model's stamp */
    const struct lint_try *tries;
    size_t n_tries;
    struct index *index; /* of all agents, by number; NULL: no tries */
    const struct choose_settings *settings;
    double twins;                         /* from this similarity on */
    const struct advice_against *against; /* the server's models and addresses;
                                           * NULL: unknown */
    bool is_configured; /* from a configuration, so they have no creator */
};

/* Borrowed for the call. */
struct lint_finding {
    const char *check; /* "keywords" */
    const char *rule;  /* "generic" */
    bool is_note;      /* may be intended */
    struct str agents[LINT_NAMED_MAX];
    size_t n_agents;
    struct str keyword;
    char text[LINT_TEXT_MAX], advice[320];
};

typedef void lint_fn(void *ctx, const struct lint_finding *f);

/* ERR_NOMEM: the check is incomplete. */
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

/* For the rules: set the text, the advice and the agents of a finding. */
void lint_say(struct lint_finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void lint_advise(struct lint_finding *f, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
void lint_name(struct lint_finding *f, struct str agent);

#endif
