#ifndef CLI_NAMES_HELD_H
#define CLI_NAMES_HELD_H

/* names_held: names of agents that rules or settings mention and that somebody
 * else holds in the data folder, while a server may be using it. For check and
 * doctor. Threads: the main one. */

#include "cli/cli.h"
#include "names.h"

/* Call `each` with what is to be said of each of them. A data folder that
 * cannot be read has none: others say what is wrong with it. */
void names_held(const struct config *c, const struct gate_rules *rules,
                void (*each)(void *ctx, const struct name_taken *t,
                             const char *words),
                void *ctx);

/* The rules that a configuration means, as far as they can be read; none where
 * they cannot, which others say. To be freed with gate_rules_free where *own is
 * not NULL. */
const struct gate_rules *names_rules(const struct config *c,
                                     struct gate_rules **own);

#endif
