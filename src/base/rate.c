/* A bucket stores how much it lacks, in parts: 60 000 parts are one take. Each
 * millisecond adds exactly per_minute parts, so all sums are integers and
 * nothing drifts.
 *
 * The table is set-associative: the hash of a key selects a set, and the key is
 * in one of its eight places or nowhere. A lookup costs a hash and two or three
 * cache lines, however full the table is, and so does eviction. Rejected: a
 * heap over all buckets, which would find the very fullest one at a dozen steps
 * for every request. A bucket that lacks nothing is an empty place. */
#include "base/rate.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

enum { WAYS = 8, WHOLE = 60 * 1000 };

struct set {
    uint64_t hash[WAYS];
    int64_t lacks[WAYS]; /* parts, as of at_ms; zero: the place is empty */
    int64_t at_ms[WAYS];
};

struct rates {
    uint64_t seed[2];
    size_t n_sets; /* a power of two */
    size_t n_keys;
    struct set *sets;
};

struct rates *rates_new(size_t max_keys, const uint64_t seed[2])
{
    struct rates *r = mem_new(sizeof(*r));

    r->seed[0] = seed[0];
    r->seed[1] = seed[1];
    r->n_sets = 1;
    while (r->n_sets < max_keys / WAYS + (max_keys % WAYS != 0) &&
           r->n_sets <= SIZE_MAX / 2 / sizeof(struct set))
        r->n_sets *= 2;
    r->sets = mem_array(r->n_sets, sizeof(struct set));
    return r;
}

void rates_free(struct rates *r)
{
    if (!r)
        return;
    free(r->sets);
    free(r);
}

/* The parts that an empty bucket lacks. */
static int64_t rate_capacity(const struct rate_limit *l)
{
    int64_t burst = l->burst < 1 ? 1 : l->burst;

    return burst > INT64_MAX / WHOLE ? INT64_MAX / WHOLE * WHOLE
                                     : burst * WHOLE;
}

static int64_t rate_lacks_now(const struct set *s, size_t i,
                              const struct rate_limit *l, int64_t now_ms)
{
    int64_t most = rate_capacity(l), since_ms, came;
    int64_t lacks = s->lacks[i] < most ? s->lacks[i] : most;

    if (now_ms <= s->at_ms[i])
        return lacks;
    if (__builtin_sub_overflow(now_ms, s->at_ms[i], &since_ms) ||
        __builtin_mul_overflow(since_ms, l->per_minute, &came) || came >= lacks)
        return 0;
    return lacks - came;
}

/* The time until `parts` can be taken from a bucket that lacks so much. */
static int64_t rate_wait_ms(int64_t lacks, int64_t parts,
                            const struct rate_limit *l)
{
    int64_t over = lacks - (rate_capacity(l) - parts);

    if (over <= 0)
        return 0;
    return over / l->per_minute + (over % l->per_minute != 0);
}

static struct set *rate_set(const struct rates *r, uint64_t hash)
{
    return &r->sets[hash & (r->n_sets - 1)];
}

/* The place of the key, or WAYS if it has none. */
static size_t rate_find(const struct set *s, uint64_t hash)
{
    size_t i = 0;

    while (i < WAYS && (s->hash[i] != hash || !s->lacks[i]))
        i++;
    return i;
}

/* The place for a new key: the fullest bucket is evicted. */
static size_t rate_evict(struct rates *r, struct set *s,
                         const struct rate_limit *l, int64_t now_ms)
{
    size_t fullest = 0;
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < WAYS; i++) {
        int64_t lacks = rate_lacks_now(s, i, l, now_ms);

        if (lacks < least) {
            least = lacks;
            fullest = i;
        }
    }
    r->n_keys += s->lacks[fullest] == 0;
    return fullest;
}

static int64_t rate_parts(int64_t n)
{
    return n > INT64_MAX / WHOLE ? INT64_MAX / WHOLE * WHOLE : n * WHOLE;
}

int64_t rates_take_many(struct rates *r, struct str key, int64_t n,
                        const struct rate_limit *l, int64_t now_ms)
{
    uint64_t hash;
    struct set *s;
    size_t i;
    int64_t lacks = 0, wait, parts = rate_parts(n);

    if (l->per_minute <= 0)
        return 0;
    if (parts > rate_capacity(l))
        parts = rate_capacity(l);
    hash = hash_bytes(key, r->seed);
    s = rate_set(r, hash);
    i = rate_find(s, hash);
    if (i < WAYS)
        lacks = rate_lacks_now(s, i, l, now_ms);
    else
        i = rate_evict(r, s, l, now_ms);
    wait = rate_wait_ms(lacks, parts, l);
    s->hash[i] = hash;
    s->lacks[i] = wait ? lacks : lacks + parts;
    s->at_ms[i] = now_ms;
    return wait;
}

int64_t rates_take(struct rates *r, struct str key, const struct rate_limit *l,
                   int64_t now_ms)
{
    return rates_take_many(r, key, 1, l, now_ms);
}

void rates_give_back_many(struct rates *r, struct str key, int64_t n)
{
    int64_t parts = rate_parts(n);
    uint64_t hash = hash_bytes(key, r->seed);
    struct set *s = rate_set(r, hash);
    size_t i = rate_find(s, hash);

    if (i == WAYS)
        return; /* full again, or evicted: nothing to give back to */
    s->lacks[i] -= s->lacks[i] < parts ? s->lacks[i] : parts;
    r->n_keys -= s->lacks[i] == 0;
}

void rates_give_back(struct rates *r, struct str key)
{
    rates_give_back_many(r, key, 1);
}

size_t rates_n_keys(const struct rates *r)
{
    return r->n_keys;
}
