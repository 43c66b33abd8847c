/* How much of an org's traffic strangers have had.
 *
 *     is spent:  strangers + 1 > CHOOSE_SHARE * (all + FIRST)
 *
 * so the first stranger is let through at once, and then about one in
 * thirty-three.
 * All are halved when they reach WINDOW: what counts is the last few thousand
 * messages.
 *
 * A table of a fixed size is looked up by a hash that outsiders cannot guess,
 * WAYS places side by side for each. So a user who comes under many names
 * forgets few other orgs' counts; and an org whose counts are lost lets
 * one stranger more through.
 *
 * Considered and rejected: a share for each owner (owners are free to make),
 * and shares in the store (a row written for every message, to keep a bound
 * that a restart hardly moves). */
#include "choose/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/map.h"

enum { FIRST = 34, WINDOW = 4096, WAYS = 8 };

struct share {
    uint64_t key; /* zero: free */
    uint64_t used;
    uint32_t n_all, n_strangers;
};

struct choose_shares {
    uint64_t seed[2];
    uint64_t now; /* one more with every count */
    struct share table[CHOOSE_SHARES_MAX];
};

struct choose_shares *choose_shares_new(const uint64_t seed[2])
{
    struct choose_shares *s =
        FAULT("choose.shares") ? NULL : calloc(1, sizeof(*s));

    if (s)
        memcpy(s->seed, seed, sizeof(s->seed));
    return s;
}

void choose_shares_free(struct choose_shares *s)
{
    free(s);
}

static uint64_t key_of(const struct choose_shares *s, struct str org)
{
    uint64_t key = hash_bytes(org, s->seed);

    return key ? key : 1;
}

/* Its place, or the one to take for it. */
static size_t place_of(const struct choose_shares *s, uint64_t key)
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
    uint64_t key = key_of(s, org);
    struct share one = s->table[place_of(s, key)];

    if (one.key != key)
        one = (struct share){.key = key};
    return (double)one.n_strangers + 1 >
           CHOOSE_SHARE * ((double)one.n_all + FIRST);
}

void choose_share_count(struct choose_shares *s, struct str org,
                        const struct msg *m)
{
    uint64_t key = key_of(s, org);
    struct share *one = &s->table[place_of(s, key)];
    bool has_trusted = false, is_theirs = false;

    /* A stranger behind the first place is chosen where those before it are
     * not sure. */
    for (size_t i = 0; i < m->choice.n_candidates; i++) {
        const struct candidate *c = &m->choice.candidates[i];
        bool is_stranger = choose_is_stranger(c);

        has_trusted = has_trusted || !is_stranger;
        is_theirs =
            is_theirs || (is_stranger &&
                          (i == 0 || str_eq_nocase(c->agent, m->choice.agent)));
    }
    if (!has_trusted)
        return; /* there is nothing that strangers could take */
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
