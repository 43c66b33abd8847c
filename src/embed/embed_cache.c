/* Hash buckets for lookups, a doubly linked ring for the order of use, and one
 * block of memory for all vectors.
 *
 * A text is stored as its hash under two keys, 128 bits that an attacker cannot
 * steer, and its length. Storing the text would cost more than the vector of a
 * short one, and comparing it would prevent only errors that are less likely
 * than one of the memory chip. */
#include "embed/cache.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"

enum { NO_ENTRY = UINT32_MAX };

void cache_init(struct cache *c, const uint64_t seed[2])
{
    *c = (struct cache){.seed = {{seed[0], seed[1]}}};
    /* A second key, derived from the first. */
    c->seed[1][0] = hash_bytes(STR("left"), seed);
    c->seed[1][1] = hash_bytes(STR("right"), seed);
}

void cache_fini(struct cache *c)
{
    free(c->entries);
    free(c->buckets);
    free(c->vectors);
    c->entries = NULL;
    c->buckets = NULL;
    c->vectors = NULL;
    c->cap = c->n = c->dims = 0;
    c->newest = c->oldest = NO_ENTRY;
}

void cache_set(struct cache *c, size_t entries, uint32_t dims)
{
    size_t most = dims ? CACHE_BYTES_MAX / (dims * sizeof(float)) : 0;
    size_t n_buckets = 1;

    cache_fini(c);
    entries = entries < most ? entries : most;
    if (!entries)
        return;
    while (n_buckets < entries)
        n_buckets *= 2;
    if (!FAULT("embed.cache")) {
        c->entries = calloc(entries, sizeof(*c->entries));
        c->buckets = malloc(n_buckets * sizeof(*c->buckets));
        /* Untouched pages cost nothing: memory use grows with the entries. */
        c->vectors = calloc(entries, dims * sizeof(float));
    }
    if (!c->entries || !c->buckets || !c->vectors) {
        cache_fini(c); /* the cache is optional */
        return;
    }
    memset(c->buckets, 0xff, n_buckets * sizeof(*c->buckets));
    c->mask = (uint32_t)(n_buckets - 1);
    c->cap = (uint32_t)entries;
    c->dims = dims;
}

/* The order of use. */

static void cache_order_remove(struct cache *c, uint32_t i)
{
    struct cache_entry *e = &c->entries[i];

    if (e->newer == NO_ENTRY)
        c->newest = e->older;
    else
        c->entries[e->newer].older = e->older;
    if (e->older == NO_ENTRY)
        c->oldest = e->newer;
    else
        c->entries[e->older].newer = e->newer;
}

static void order_add(struct cache *c, uint32_t i)
{
    c->entries[i].newer = NO_ENTRY;
    c->entries[i].older = c->newest;
    if (c->newest == NO_ENTRY)
        c->oldest = i;
    else
        c->entries[c->newest].newer = i;
    c->newest = i;
}

/* Lookups. */

struct cache_scope cache_scope(const struct cache *c, struct str scope)
{
    if (PLANTED("embed.one_cache"))
        scope = STR("");
    return (struct cache_scope){
        {hash_bytes(scope, c->seed[0]), hash_bytes(scope, c->seed[1])}};
}

/* Each scope has its own keys. */
static struct cache_entry cache_key(const struct cache *c,
                                    struct cache_scope by, struct str text)
{
    const uint64_t keys[2][2] = {{c->seed[0][0], by.hash[0]},
                                 {c->seed[1][0], by.hash[1]}};

    return (struct cache_entry){
        .hash = {hash_bytes(text, keys[0]), hash_bytes(text, keys[1])},
        .text_bytes = text.n,
    };
}

static uint32_t *cache_bucket(const struct cache *c,
                              const struct cache_entry *e)
{
    return &c->buckets[e->hash[0] & c->mask];
}

static uint32_t cache_find(const struct cache *c, const struct cache_entry *key)
{
    uint32_t i = *cache_bucket(c, key);

    while (i != NO_ENTRY) {
        const struct cache_entry *e = &c->entries[i];

        if (e->hash[0] == key->hash[0] && e->hash[1] == key->hash[1] &&
            e->text_bytes == key->text_bytes)
            break;
        i = e->next;
    }
    return i;
}

static float *vector_of(const struct cache *c, uint32_t i)
{
    return c->vectors + (size_t)i * c->dims;
}

const float *cache_get(struct cache *c, struct cache_scope by, struct str text)
{
    struct cache_entry key;
    uint32_t i;

    if (!c->n)
        return NULL;
    key = cache_key(c, by, text);
    i = cache_find(c, &key);
    if (i == NO_ENTRY)
        return NULL;
    cache_order_remove(c, i);
    order_add(c, i);
    return vector_of(c, i);
}

/* A free entry, or the least recently used one. */
static uint32_t cache_take_entry(struct cache *c)
{
    uint32_t i = c->oldest, *at;

    if (c->n < c->cap)
        return c->n++;
    cache_order_remove(c, i);
    for (at = cache_bucket(c, &c->entries[i]); *at != i;)
        at = &c->entries[*at].next;
    *at = c->entries[i].next;
    return i;
}

void cache_put(struct cache *c, struct cache_scope by, struct str text,
               const float *vector)
{
    struct cache_entry key;
    uint32_t i, *bucket;

    if (!c->cap)
        return;
    key = cache_key(c, by, text);
    i = cache_find(c, &key);
    if (i == NO_ENTRY) {
        i = cache_take_entry(c);
        bucket = cache_bucket(c, &key);
        key.next = *bucket;
        c->entries[i] = key;
        *bucket = i;
    } else {
        cache_order_remove(c, i);
    }
    order_add(c, i);
    memcpy(vector_of(c, i), vector, c->dims * sizeof(float));
}

bool cache_check(const struct cache *c)
{
    uint32_t n = 0, newer = NO_ENTRY;

    if (!c->cap)
        return c->n == 0;
    for (uint32_t i = c->newest; i != NO_ENTRY; i = c->entries[i].older) {
        if (n++ == c->n || c->entries[i].newer != newer ||
            cache_find(c, &c->entries[i]) != i)
            return false;
        newer = i;
    }
    return n == c->n && c->oldest == newer && n <= c->cap;
}
