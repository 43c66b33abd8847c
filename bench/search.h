#ifndef BENCH_SEARCH_H
#define BENCH_SEARCH_H

/* What the two sides of bench_search share: who can be found, and what is
 * asked. */

#include "base/arena.h"
#include "registry/index/index.h"

enum { DIMS = 256 };

struct crowd {
    struct agent *agents;
    struct skill *skills; /* per_agent of each */
    size_t n, per_agent;
    float *vectors; /* of each agent: its own, and its skills' */
    struct arena arena;
};

struct question {
    struct str text;
    float vector[DIMS];
};

/* The packaged peer, bench/search_peer.c. */
struct packaged;
struct packaged *packaged_new(const struct crowd *c);
/* is_wide: with the products of src/base/vec.c, not with plain C. */
void packaged_ask(struct packaged *p, const struct question *q, bool is_wide,
                  uint32_t *best, size_t limit);
void packaged_free(struct packaged *p);

#endif
