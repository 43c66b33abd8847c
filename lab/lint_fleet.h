#ifndef LAB_LINT_FLEET_H
#define LAB_LINT_FLEET_H

/* lint_fleet: the agents that lint checks, and the data to compare them:
 * vectors by the configured model, made as routing makes them; an index of
 * their words; and their own examples, as texts that should reach them. Owns
 * all of it. Threads: the main one. */

#include "cli/cli.h"
#include "lab/eval_model.h"
#include "lab/lint_rules.h"

enum { LINT_LEFT_OUT_SHOWN = 5 };

struct lint_agents {
    struct cli *cli;
    const struct config *config;
    struct choose_settings settings;
    struct arena arena; /* cards, texts */
    struct agent *agents;
    struct lint_known *known;
    size_t n, cap;
    size_t n_left_out; /* beyond LINT_AGENTS_MAX, or unreadable */
    struct str left_out[LINT_LEFT_OUT_SHOWN]; /* the first of them */
    struct lint_try *tries;
    float *vectors;
    uint8_t *try_rows;
    struct advice_against against;
    struct lint_fleet fleet;
    struct eval_model model;
};

void lint_agents_init(struct lint_agents *h, struct cli *c,
                      const struct config *config);
void lint_agents_fini(struct lint_agents *h);

/* Add the agents of the configuration, or one agent of a server. False: out of
 * memory. */
bool lint_agents_add_configured(struct lint_agents *h);
bool lint_agents_add(struct lint_agents *h, const struct json *card);

/* Whether only the server can check parts of the card: its model, or the
 * addresses in it. */
bool lint_agents_needs_server(const struct lint_agents *h, size_t i);

/* Keep the server's warnings about an agent: the list in its card, or NULL.
 * False: out of memory. */
bool lint_agents_warn(struct lint_agents *h, size_t i,
                      const struct json *warnings);

/* Build h->fleet from them. Errors set why. */
MUST_USE enum err lint_agents_build(struct lint_agents *h, struct why *why);

#endif
