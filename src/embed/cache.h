#ifndef EMBED_CACHE_H
#define EMBED_CACHE_H

/* cache: text -> vector, with eviction of the least recently used entry.
 *
 * An entry is found only by the scope (an org, or a user without one) that made
 * it. Otherwise one scope could tell what another has asked, from the time that
 * an answer takes or from answers while the provider is down. A text is known
 * by 128 bits of keyed hash and its length, so an attacker cannot choose two
 * texts that are taken for one. cache_set allocates the memory for all entries;
 * neither a hit nor a new entry allocates. */

#include "base/str.h"

enum { CACHE_BYTES_MAX = 64 << 20 }; /* of all vectors together */

struct cache_entry {
    uint64_t hash[2];
    size_t text_bytes;
    uint32_t newer, older; /* neighbours in the order of use */
    uint32_t next;         /* in its bucket */
};

struct cache {
    uint64_t seed[2][2];
    struct cache_entry *entries; /* cap of them; NULL: caching is off */
    uint32_t *buckets;
    float *vectors;
    uint32_t cap, n, mask, dims;
    uint32_t newest, oldest;
};

void cache_init(struct cache *c, const uint64_t seed[2]);
void cache_fini(struct cache *c);

/* Empty the cache and make room for so many vectors of that many numbers, or
 * for as many as CACHE_BYTES_MAX holds. Caching is off if either is zero or
 * memory is missing. Call it whenever the model changes. */
void cache_set(struct cache *c, size_t entries, uint32_t dims);

/* The asking org or user. */
struct cache_scope {
    uint64_t hash[2];
};
struct cache_scope cache_scope(const struct cache *c, struct str scope);

/* Borrowed until the next call; NULL: not cached. */
const float *cache_get(struct cache *c, struct cache_scope by, struct str text);
void cache_put(struct cache *c, struct cache_scope by, struct str text,
               const float *vector);

/* For tests: every entry is found by its hash, and is in the order exactly
 * once. */
bool cache_check(const struct cache *c);

#endif
