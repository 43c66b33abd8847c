#ifndef CLI_NAMES_HELD_H
#define CLI_NAMES_HELD_H

/* names_held: find names of agents that rules or settings mention and that
 * another user holds in the data folder. A server may be using the folder. For
 * check and doctor. Threads: the main one. */

#include "cli/cli.h"
#include "server/reserved_names.h"

/* Call `each` for each name, with a message. An unreadable data folder has
 * none: other checks report it. */
void names_held(const struct config *c, const struct gate_rules *rules,
                void (*each)(void *ctx, const struct name_taken *t,
                             const char *words),
                void *ctx);

/* The rules of a configuration; empty rules if they cannot be read, which other
 * checks report. The caller frees *own with gate_rules_free. */
const struct gate_rules *names_rules(const struct config *c,
                                     struct gate_rules **own);

#endif
