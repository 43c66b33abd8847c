#ifndef CLI_LINT_FLEET_H
#define CLI_LINT_FLEET_H

/* lint_fleet: the agents that lint looks at, with what they are compared by:
 * vectors by the model of the configuration, made here, as routing makes them;
 * an index of their words; and their own examples, as texts that ought to reach
 * them. Owns all of it. Threads: the main one. */

#include "cli/cli.h"
#include "cli/eval_model.h"
#include "cli/lint_rules.h"

enum { LINT_LEFT_OUT_SHOWN = 5 };

struct lint_house {
    struct cli *cli;
    const struct config *config;
    struct choose_settings settings;
    struct arena arena; /* cards, texts */
    struct agent *agents;
    struct lint_known *known;
    size_t n, cap;
    size_t n_left_out; /* beyond LINT_AGENTS_MAX, or not to be read */
    struct str left_out[LINT_LEFT_OUT_SHOWN]; /* the first of them */
    struct lint_try *tries;
    float *vectors;
    uint8_t *try_rows;
    struct advice_against against;
    struct lint_fleet fleet;
    struct eval_model model;
};

void lint_house_init(struct lint_house *h, struct cli *c,
                     const struct config *config);
void lint_house_fini(struct lint_house *h);

/* The agents of the configuration; or those of a server, one after another.
 * False: memory is gone. */
bool lint_house_take_configured(struct lint_house *h);
bool lint_house_take(struct lint_house *h, const struct json *card);

/* Whether only the server can check some of the agent's card: its model, or
 * the addresses that it names. */
bool lint_house_needs_server(const struct lint_house *h, size_t i);
/* Keep the warnings of that server about an agent: the list of its card, or
 * NULL. False: memory is gone. */
bool lint_house_warn(struct lint_house *h, size_t i,
                     const struct json *warnings);

/* Make h->fleet of them. Errors have words. */
MUST_USE enum err lint_house_close(struct lint_house *h, struct why *why);

#endif
