/* A table of buckets for finding, a ring of numbers for the order of use, and
 * one piece of memory for all vectors.
 *
 * What is kept of a text is its hash under two keys, 128 bits that nobody
 * outside can steer, and its length. The text itself would cost more than the
 * vector of a short one, and comparing it would find no mistake that is not
 * already less likely than one of the memory chip. */
#include "embed/cache.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"

enum { NOBODY = UINT32_MAX };

void cache_init(struct cache *c, const uint64_t seed[2])
{
    *c = (struct cache){.seed = {{seed[0], seed[1]}}};
    /* A second key from the first. */
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
    c->newest = c->oldest = NOBODY;
}

static size_t buckets_for(size_t entries)
{
    size_t n = 1;

    while (n < entries)
        n *= 2;
    return n;
}

void cache_set(struct cache *c, size_t entries, uint32_t dims)
{
    size_t most = dims ? CACHE_BYTES_MAX / (dims * sizeof(float)) : 0;
    size_t n_buckets;

    cache_fini(c);
    entries = entries < most ? entries : most;
    if (!entries)
        return;
    n_buckets = buckets_for(entries);
    if (!FAULT("embed.cache")) {
        c->entries = calloc(entries, sizeof(*c->entries));
        c->buckets = malloc(n_buckets * sizeof(*c->buckets));
        /* Untouched pages cost nothing: it grows with what is in it. */
        c->vectors = calloc(entries, dims * sizeof(float));
    }
    if (!c->entries || !c->buckets || !c->vectors) {
        cache_fini(c); /* one can do without */
        return;
    }
    memset(c->buckets, 0xff, n_buckets * sizeof(*c->buckets));
    c->mask = (uint32_t)(n_buckets - 1);
    c->cap = (uint32_t)entries;
    c->dims = dims;
}

/* The order of use. */

static void order_remove(struct cache *c, uint32_t i)
{
    struct cache_entry *e = &c->entries[i];

    if (e->newer == NOBODY)
        c->newest = e->older;
    else
        c->entries[e->newer].older = e->older;
    if (e->older == NOBODY)
        c->oldest = e->newer;
    else
        c->entries[e->older].newer = e->newer;
}

static void order_add(struct cache *c, uint32_t i)
{
    c->entries[i].newer = NOBODY;
    c->entries[i].older = c->newest;
    if (c->newest == NOBODY)
        c->oldest = i;
    else
        c->entries[c->newest].newer = i;
    c->newest = i;
}

/* Finding. */

struct cache_scope cache_scope(const struct cache *c, struct str scope)
{
    if (PLANTED("embed.one_cache"))
        scope = STR("");
    return (struct cache_scope){
        {hash_bytes(scope, c->seed[0]), hash_bytes(scope, c->seed[1])}};
}

/* Each scope has keys of its own. */
static struct cache_entry key_of(const struct cache *c, struct cache_scope by,
                                 struct str text)
{
    const uint64_t keys[2][2] = {{c->seed[0][0], by.hash[0]},
                                 {c->seed[1][0], by.hash[1]}};

    return (struct cache_entry){
        .hash = {hash_bytes(text, keys[0]), hash_bytes(text, keys[1])},
        .text_bytes = text.n,
    };
}

static uint32_t *bucket_of(const struct cache *c, const struct cache_entry *e)
{
    return &c->buckets[e->hash[0] & c->mask];
}

static uint32_t find(const struct cache *c, const struct cache_entry *key)
{
    uint32_t i = *bucket_of(c, key);

    while (i != NOBODY) {
        const struct cache_entry *e = &c->entries[i];

        if (e->hash[0] == key->hash[0] && e->hash[1] == key->hash[1] &&
            e->text_bytes == key->text_bytes)
            break;
        i = e->next;
    }
    return i;
}

static void bucket_remove(struct cache *c, uint32_t i)
{
    uint32_t *at = bucket_of(c, &c->entries[i]);

    while (*at != i)
        at = &c->entries[*at].next;
    *at = c->entries[i].next;
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
    key = key_of(c, by, text);
    i = find(c, &key);
    if (i == NOBODY)
        return NULL;
    order_remove(c, i);
    order_add(c, i);
    return vector_of(c, i);
}

/* A free entry, or that of who was not asked for longest. */
static uint32_t take_entry(struct cache *c)
{
    uint32_t i = c->oldest;

    if (c->n < c->cap)
        return c->n++;
    order_remove(c, i);
    bucket_remove(c, i);
    return i;
}

void cache_put(struct cache *c, struct cache_scope by, struct str text,
               const float *vector)
{
    struct cache_entry key;
    uint32_t i, *bucket;

    if (!c->cap)
        return;
    key = key_of(c, by, text);
    i = find(c, &key);
    if (i == NOBODY) {
        i = take_entry(c);
        bucket = bucket_of(c, &key);
        key.next = *bucket;
        c->entries[i] = key;
        *bucket = i;
    } else {
        order_remove(c, i);
    }
    order_add(c, i);
    memcpy(vector_of(c, i), vector, c->dims * sizeof(float));
}

bool cache_check(const struct cache *c)
{
    uint32_t n = 0, newer = NOBODY;

    if (!c->cap)
        return c->n == 0;
    for (uint32_t i = c->newest; i != NOBODY; i = c->entries[i].older) {
        if (n++ == c->n || c->entries[i].newer != newer ||
            find(c, &c->entries[i]) != i)
            return false;
        newer = i;
    }
    return n == c->n && c->oldest == newer && n <= c->cap;
}
