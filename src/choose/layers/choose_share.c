/* Strangers' share of an org's messages.
 *
 *     is spent:  strangers + 1 > CHOOSE_SHARE * (all + FIRST)
 *
 * so the first stranger passes at once, and then about one in thirty-three. All
 * counts are halved at WINDOW, so the last few thousand messages matter.
 *
 * The table has a fixed size. An org is found by a hash that outsiders cannot
 * predict, in one of WAYS adjacent slots. So a user with many names evicts few
 * other orgs' counts, and an org whose counts are evicted lets one more
 * stranger pass.
 *
 * Rejected: a share for each owner (owners are free to create), and shares in
 * the store (a row written with every message, for a limit that a restart
 * hardly changes). */
#include "choose/layers/internal.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

enum { FIRST = 34, WINDOW = 4096, WAYS = 8 };

struct share {
    uint64_t key; /* zero: free */
    uint64_t used;
    uint32_t n_all, n_strangers;
};

struct choose_shares {
    uint64_t seed[2];
    uint64_t now; /* a counter of calls, for `used` */
    struct share table[CHOOSE_SHARES_MAX];
};

struct choose_shares *choose_shares_new(const uint64_t seed[2])
{
    struct choose_shares *s = mem_new(sizeof(*s));

    memcpy(s->seed, seed, sizeof(s->seed));
    return s;
}

void choose_shares_free(struct choose_shares *s)
{
    free(s);
}

static uint64_t share_key(const struct choose_shares *s, struct str org)
{
    uint64_t key = hash_bytes(org, s->seed);

    return key ? key : 1;
}

/* The slot of the key, or the one to reuse for it. */
static size_t share_slot(const struct choose_shares *s, uint64_t key)
{
    size_t first = key % (CHOOSE_SHARES_MAX / WAYS) * WAYS, oldest = first;

    for (size_t i = first; i < first + WAYS; i++) {
        if (s->table[i].key == key)
            return i;
        if (s->table[i].used < s->table[oldest].used)
            oldest = i;
    }
    return oldest;
}

bool choose_share_is_spent(const struct choose_shares *s, struct str org)
{
    uint64_t key = share_key(s, org);
    struct share one = s->table[share_slot(s, key)];

    if (one.key != key)
        one = (struct share){.key = key};
    return (double)one.n_strangers + 1 >
           CHOOSE_SHARE * ((double)one.n_all + FIRST);
}

void choose_share_count(struct choose_shares *s, struct str org,
                        const struct msg *m)
{
    uint64_t key = share_key(s, org);
    struct share *one = &s->table[share_slot(s, key)];
    bool has_trusted = false, is_theirs = false;

    /* A stranger behind the first place is chosen if those before it are not
     * sure. */
    for (size_t i = 0; i < m->choice.n_candidates; i++) {
        const struct candidate *c = &m->choice.candidates[i];
        bool is_stranger = choose_is_stranger(c);

        has_trusted = has_trusted || !is_stranger;
        is_theirs =
            is_theirs || (is_stranger &&
                          (i == 0 || str_eq_nocase(c->agent, m->choice.agent)));
    }
    if (!has_trusted)
        return; /* nothing to protect */
    if (one->key != key)
        *one = (struct share){.key = key};
    one->used = ++s->now;
    one->n_all++;
    one->n_strangers += is_theirs;
    if (one->n_all >= WINDOW) {
        one->n_all /= 2;
        one->n_strangers = (one->n_strangers + 1) / 2;
    }
}
