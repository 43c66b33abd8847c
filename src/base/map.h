#ifndef BASE_MAP_H
#define BASE_MAP_H

/* map: from a string to a pointer.
 *
 * Keys and values are borrowed: the key usually lies inside the value and must
 * outlive its entry. The hash is keyed (SipHash-1-3) with a seed from the
 * caller, so an attacker cannot choose colliding keys. The limit given at the
 * start bounds growth. Threads: one at a time. */

#include "base/str.h"

struct map_slot {
    struct str key;
    void *value;
    uint64_t hash;
};

struct map {
    struct map_slot *slots;
    size_t n;     /* entries */
    size_t cap;   /* slots, zero or a power of two */
    size_t limit; /* entries at most */
    uint64_t seed[2];
};

void map_init(struct map *m, size_t limit, const uint64_t seed[2]);
void map_fini(struct map *m);

void *map_get(const struct map *m, struct str key);

/* Put or replace. ERR_LIMIT at the limit; ERR_NOMEM if a table of more than
 * MEM_SMALL_BYTES cannot be allocated. The map is then unchanged. */
MUST_USE enum err map_put(struct map *m, struct str key, void *value);

/* Make room for n more entries, so that n calls of map_put cannot fail. Fails
 * as map_put does. */
MUST_USE enum err map_reserve(struct map *m, size_t n);

/* Remove the entry and return its value, or NULL if there is none. */
void *map_take(struct map *m, struct str key);

/* Walk all entries in no particular order; *at starts at zero. NULL at the end.
 * The map must not change during the walk. */
const struct map_slot *map_next(const struct map *m, size_t *at);

/* The keyed hash, for other tables. */
uint64_t hash_bytes(struct str s, const uint64_t seed[2]);

/* For tests: every entry is found by its hash, and the count is right. */
bool map_check(const struct map *m);

#endif
