#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

/* registry: who exists. So far the agents of the configuration, replaced as a
 * whole when that is loaded again.
 *
 * Owns copies of all of them. Threads: the loop's. */

#include "model/agent.h"

struct registry;

enum { REGISTRY_AGENTS_MAX = 10000 };

/* NULL: memory is gone. */
MUST_USE struct registry *registry_new(const uint64_t seed[2]);
void registry_free(struct registry *r);

/* These and no others. ERR_EXISTS: two of one name, whatever their case (why
 * names it); ERR_LIMIT; ERR_NOMEM. On error it is as it was. */
MUST_USE enum err registry_set(struct registry *r, const struct agent *list,
                               size_t n, struct why *why);

/* Borrowed until the next registry_set. */
struct agents registry_agents(const struct registry *r);

#endif
