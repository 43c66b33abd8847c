#ifndef EMBED_CACHE_H
#define EMBED_CACHE_H

/* cache: text -> vector, the least recently used goes.
 *
 * What one scope (an org, or a user without one) has asked, no other finds: it
 * could tell what was asked by the time that an answer takes, or by what is
 * answered while the provider is down. A text is known by 128 bits of keyed
 * hash and its length: nobody outside can choose two that are taken for one.
 * The memory for all entries is there from cache_set on, so that neither a hit
 * nor a new entry allocates. */

#include "base/str.h"

enum { CACHE_BYTES_MAX = 64 << 20 }; /* of vectors, whatever they are */

struct cache_entry {
    uint64_t hash[2];
    size_t text_bytes;
    uint32_t newer, older; /* in the order of use */
    uint32_t next;         /* in its bucket */
};

struct cache {
    uint64_t seed[2][2];
    struct cache_entry *entries; /* cap of them; NULL: nothing is kept */
    uint32_t *buckets;
    float *vectors;
    uint32_t cap, n, mask, dims;
    uint32_t newest, oldest;
};

void cache_init(struct cache *c, const uint64_t seed[2]);
void cache_fini(struct cache *c);

/* Empty, with room for so many vectors of so many numbers, or as many as
 * CACHE_BYTES_MAX holds. Zero of either, and no memory: nothing is kept. Must
 * be called whenever the model is another one. */
void cache_set(struct cache *c, size_t entries, uint32_t dims);

/* Who asks. */
struct cache_scope {
    uint64_t hash[2];
};
struct cache_scope cache_scope(const struct cache *c, struct str scope);

/* Borrowed until the next call; NULL: not there. */
const float *cache_get(struct cache *c, struct cache_scope by, struct str text);
void cache_put(struct cache *c, struct cache_scope by, struct str text,
               const float *vector);

/* Every entry is found by its hash and is in the order once. For tests. */
bool cache_check(const struct cache *c);

#endif
