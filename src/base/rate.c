/* What is kept of a bucket is how much it lacks, in parts of which a minute
 * has 60 000 for each that comes in: so a millisecond brings exactly
 * per_minute parts, every sum is one of whole numbers, and nothing drifts.
 *
 * The table is one of sets: a key's hash says which, and it is in one of the
 * eight places there or nowhere. A look costs a hash and two or three lines
 * of memory, however full the table is, and so does making room; a heap over
 * all buckets would find the very fullest one, at a dozen steps for every
 * request. A bucket that lacks nothing is an empty place. */
#include "base/rate.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"

enum { WAYS = 8, WHOLE = 60 * 1000 };

struct set {
    uint64_t hash[WAYS];
    int64_t lacks[WAYS]; /* parts, as of at_ms; zero: nobody's */
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
    struct rates *r = FAULT("rate.new") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->seed[0] = seed[0];
    r->seed[1] = seed[1];
    r->n_sets = 1;
    while (r->n_sets < max_keys / WAYS + (max_keys % WAYS != 0) &&
           r->n_sets <= SIZE_MAX / 2 / sizeof(struct set))
        r->n_sets *= 2;
    r->sets = FAULT("rate.sets") ? NULL : calloc(r->n_sets, sizeof(struct set));
    if (r->sets)
        return r;
    free(r);
    return NULL;
}

void rates_free(struct rates *r)
{
    if (!r)
        return;
    free(r->sets);
    free(r);
}

/* What an empty bucket lacks. */
static int64_t all_of(const struct rate_limit *l)
{
    int64_t burst = l->burst < 1 ? 1 : l->burst;

    return burst > INT64_MAX / WHOLE ? INT64_MAX / WHOLE * WHOLE
                                     : burst * WHOLE;
}

static int64_t lacks_now(const struct set *s, size_t i,
                         const struct rate_limit *l, int64_t now_ms)
{
    int64_t most = all_of(l), since_ms, came;
    int64_t lacks = s->lacks[i] < most ? s->lacks[i] : most;

    if (now_ms <= s->at_ms[i])
        return lacks;
    if (__builtin_sub_overflow(now_ms, s->at_ms[i], &since_ms) ||
        __builtin_mul_overflow(since_ms, l->per_minute, &came) || came >= lacks)
        return 0;
    return lacks - came;
}

/* Until one can be taken from a bucket that lacks so much. */
static int64_t wait_ms(int64_t lacks, const struct rate_limit *l)
{
    int64_t over = lacks - (all_of(l) - WHOLE);

    if (over <= 0)
        return 0;
    return over / l->per_minute + (over % l->per_minute != 0);
}

static struct set *set_of(const struct rates *r, uint64_t hash)
{
    return &r->sets[hash & (r->n_sets - 1)];
}

/* WAYS: it is not there. */
static size_t find(const struct set *s, uint64_t hash)
{
    size_t i = 0;

    while (i < WAYS && (s->hash[i] != hash || !s->lacks[i]))
        i++;
    return i;
}

/* A place for a new key. */
static size_t make_room(struct rates *r, struct set *s,
                        const struct rate_limit *l, int64_t now_ms)
{
    size_t fullest = 0;
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < WAYS; i++) {
        int64_t lacks = lacks_now(s, i, l, now_ms);

        if (lacks < least) {
            least = lacks;
            fullest = i;
        }
    }
    r->n_keys += s->lacks[fullest] == 0;
    return fullest;
}

int64_t rates_take(struct rates *r, struct str key, const struct rate_limit *l,
                   int64_t now_ms)
{
    uint64_t hash;
    struct set *s;
    size_t i;
    int64_t lacks = 0, wait;

    if (l->per_minute <= 0)
        return 0;
    hash = hash_bytes(key, r->seed);
    s = set_of(r, hash);
    i = find(s, hash);
    if (i < WAYS)
        lacks = lacks_now(s, i, l, now_ms);
    else
        i = make_room(r, s, l, now_ms);
    wait = wait_ms(lacks, l);
    s->hash[i] = hash;
    s->lacks[i] = wait ? lacks : lacks + WHOLE;
    s->at_ms[i] = now_ms;
    return wait;
}

void rates_give_back(struct rates *r, struct str key)
{
    uint64_t hash = hash_bytes(key, r->seed);
    struct set *s = set_of(r, hash);
    size_t i = find(s, hash);

    if (i == WAYS)
        return; /* full again, or it made room: nothing to give back to */
    s->lacks[i] -= s->lacks[i] < WHOLE ? s->lacks[i] : WHOLE;
    r->n_keys -= s->lacks[i] == 0;
}

size_t rates_n_keys(const struct rates *r)
{
    return r->n_keys;
}
