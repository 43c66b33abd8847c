/* How generic each agent is. A card that mentions every topic lies in the
 * centre of all others, and would win every message that is not clearly about
 * another agent. So each profile is compared with the total of all public ones,
 * and outliers get a penalty:
 *
 *     c         cosine with the total of the votes
 *     z         (c - median) / (1.4826 * median of |c - median|)
 *     generic   0.03 * (z - 2), from 0 to 0.15
 *
 * A vote is the vector of one public agent of the platform, or the mean of all
 * public agents of one creator, so that many cards do not move the centre. The
 * medians also have one figure per vote, the mean of the cosines of its agents.
 * Only public agents vote, because all requesters see them: no answer may
 * depend on what another user keeps private.
 *
 * Where vectors have two parts, only the first parts are used. They are there
 * from the beginning, so no penalty changes when the rest arrives.
 *
 * The total is maintained while agents come and go; the cosines are recomputed
 * when it has changed and a query needs them. Sums and votes are integers, so
 * the order of changes does not matter.
 *
 *     class of a creator   sum of its vectors  --/n-->  vote  --+
 *     the platform's       vectors  ----------------------------+-->  total
 *
 * A creator whose agents change is first taken out of the total, with the vote
 * it has there, and added back when a query needs it. */
#include "registry/index/data.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { GENERIC_LEAST = 20 }; /* votes; with fewer there is no distribution */

static bool generic_counts(const struct index *x, const struct index_entry *e)
{
    return e->has_vectors &&
           x->classes[e->cls]->key.p[0] == (char)('0' + INDEX_PUBLIC);
}

/* NULL: it votes for itself. */
static struct class *voter_class(const struct index *x,
                                 const struct index_entry *e)
{
    return e->owner == NO_CLASS ? NULL : x->classes[e->owner];
}

/* The agent in a slot, NULL if none that votes. */
static const struct index_entry *voter_at_slot(const struct index *x,
                                               size_t slot)
{
    uint32_t number = x->profiles.agent[slot];
    const struct index_entry *e;

    if (number == NO_AGENT || x->profiles.is_aside[slot])
        return NULL;
    e = x->agents[number];
    return e && generic_counts(x, e) ? e : NULL;
}

static void generic_subtract(struct index *x, double *from, uint32_t slot)
{
    size_t dims = index_vecs_reach(&x->profiles.vecs);
    double *room = x->profiles.total + dims;

    memset(room, 0, dims * sizeof(*room));
    index_vecs_add(&x->profiles.vecs, slot, room);
    for (size_t i = 0; i < dims; i++)
        from[i] -= room[i];
}

static void vote_add(struct index *x, const struct class *c, double sign)
{
    for (size_t i = 0; i < index_vecs_reach(&x->profiles.vecs); i++)
        x->profiles.total[i] += sign * rint(c->sum[i] / (double)c->n_public);
}

/* Take the vote of a creator out, before its agents change. */
static void vote_withdraw(struct index *x, struct class *c)
{
    if (c->is_voting && c->sum)
        vote_add(x, c, -1);
    else if (c->is_voting)
        generic_subtract(x, x->profiles.total, c->slot);
    c->is_voting = false;
}

static float generic_penalty(const struct index_profiles *p, float cosine)
{
    double z =
        ((double)cosine - (double)p->middle) / (1.4826 * (double)p->spread);
    double off = 0.03 * (z - 2);

    return off < 0 ? 0 : off > 0.15 ? 0.15F : (float)off;
}

/* An agent without a vote is judged by the present total, at once. */
void generic_enter(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;
    struct class *c = voter_class(x, e);

    p->generic[e->slot] = 0;
    if (!generic_counts(x, e)) {
        if (!p->is_stale && p->spread > 0 && e->has_vectors)
            p->generic[e->slot] = generic_penalty(
                p, index_vecs_likeness(&p->vecs, &p->centre, e->slot));
        return;
    }
    p->is_stale = true;
    if (!c && p->total)
        index_vecs_add(&p->vecs, e->slot, p->total);
    if (!c)
        return;
    vote_withdraw(x, c);
    c->n_public++;
    if (c->sum)
        index_vecs_add(&p->vecs, e->slot, c->sum);
}

void generic_leave(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;
    struct class *c = voter_class(x, e);

    if (!generic_counts(x, e))
        return;
    p->is_stale = true;
    if (!c && p->total)
        generic_subtract(x, p->total, e->slot);
    if (!c)
        return;
    vote_withdraw(x, c);
    c->n_public--;
    if (c->sum)
        generic_subtract(x, c->sum, e->slot);
    if (!c->n_public) {
        free(c->sum);
        c->sum = NULL;
    }
}

void generic_reset(struct index *x)
{
    for (size_t i = 0; i < x->n_classes; i++) {
        struct class *c = x->classes[i];

        if (!c)
            continue;
        free(c->sum);
        c->sum = NULL;
        c->is_voting = c->is_new = false;
        c->n_public = 0;
    }
    free(x->profiles.total);
    x->profiles.total = NULL;
    x->profiles.is_stale = true;
}

/* The total, scratch space for one vector, and the total packed, twice. */
static size_t total_bytes(const struct index_profiles *p)
{
    return 2 * p->vecs.dims * sizeof(*p->total) + 2 * p->vecs.stride +
           vec_packed_bytes(p->vecs.dims);
}

size_t generic_bytes(const struct index *x)
{
    size_t each = index_vecs_reach(&x->profiles.vecs) * sizeof(double);
    size_t bytes = x->profiles.total ? total_bytes(&x->profiles) : 0;

    for (size_t i = 0; i < x->n_classes; i++)
        bytes += x->classes[i] && x->classes[i]->sum ? each : 0;
    return bytes;
}

/* Add every vote to the total; returns how many there are. */
static size_t votes_add_all(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    bool is_first = !p->total;
    size_t n = 0;
    size_t dims = index_vecs_reach(&p->vecs);

    if (!p->total)
        p->total = mem_new(total_bytes(p));
    /* A creator with one agent needs no sum. */
    for (size_t i = 0; i < x->n_classes; i++) {
        struct class *c = x->classes[i];

        if (!c || c->n_public < 2 || c->sum)
            continue;
        c->sum = mem_array(dims, sizeof(*c->sum));
        c->is_new = true;
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *one = voter_at_slot(x, i);
        struct class *c = one ? voter_class(x, one) : NULL;

        n += one && !c;
        if (one && !c && is_first)
            index_vecs_add(&p->vecs, (uint32_t)i, p->total);
        if (c && c->is_new)
            index_vecs_add(&p->vecs, (uint32_t)i, c->sum);
        if (c && !c->sum && !c->is_voting) {
            index_vecs_add(&p->vecs, (uint32_t)i, p->total);
            c->slot = (uint32_t)i;
            c->is_voting = true;
        }
    }
    for (size_t i = 0; i < x->n_classes; i++) {
        struct class *c = x->classes[i];

        if (!c || !c->n_public)
            continue;
        if (!c->is_voting)
            vote_add(x, c, 1);
        c->is_voting = true;
        c->is_new = false;
        n++;
    }
    return n;
}

/* One figure per vote, from p->generic, which holds the cosines. */
static size_t votes_list(struct index *x, float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n = 0;

    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            x->classes[i]->likeness = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *e = voter_at_slot(x, i);
        struct class *c = e ? voter_class(x, e) : NULL;

        if (c)
            c->likeness += llrint((double)p->generic[i] * 0x1p30);
        else if (e)
            list[n++] = p->generic[i];
    }
    for (size_t i = 0; i < x->n_classes; i++) {
        const struct class *c = x->classes[i];

        if (c && c->n_public)
            list[n++] =
                (float)((double)c->likeness / (double)c->n_public * 0x1p-30);
    }
    return n;
}

/* The total as a query, with planes as long as a row. False: it has no
 * direction. */
static bool generic_open_centre(struct index_profiles *p)
{
    size_t dims = index_vecs_reach(&p->vecs), bytes = vec_packed_bytes(dims);
    float *direction = (float *)(p->total + dims);
    int8_t *planes = (int8_t *)(p->total + 2 * p->vecs.dims);
    uint8_t *packed = (uint8_t *)planes + 2 * p->vecs.stride;
    struct vec_packed centre;

    for (size_t i = 0; i < dims; i++)
        direction[i] = (float)p->total[i];
    if (!vec_pack(direction, (uint32_t)dims, packed) ||
        !vec_packed_open(&centre, packed, bytes, (uint32_t)dims))
        return false;
    p->centre = index_vecs_lay(&p->vecs, &centre, planes);
    return true;
}

/* Judge all profiles by the total. False: there is no spread. */
static bool generic_judge(struct index *x, float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n;

    if (!generic_open_centre(p))
        return false;
    for (size_t i = 0; i < p->n; i += 64) {
        uint64_t some = profiles_in_front(p, i);

        if (__builtin_popcountll(some) > SPARSE) {
            index_vecs_likeness_64(&p->vecs, &p->centre, (uint32_t)i,
                                   p->generic + i);
            continue;
        }
        for (; some; some &= some - 1) {
            size_t at = i + (size_t)__builtin_ctzll(some);

            p->generic[at] =
                index_vecs_likeness(&p->vecs, &p->centre, (uint32_t)at);
        }
    }
    n = votes_list(x, list);
    p->middle = index_nth(list, n, n / 2);
    for (size_t i = 0; i < n; i++)
        list[i] = fabsf(list[i] - p->middle);
    p->spread = index_nth(list, n, n / 2);
    for (size_t i = 0; p->spread > 0 && i < p->n; i++)
        p->generic[i] = generic_penalty(p, p->generic[i]);
    return p->spread > 0;
}

/* The level that a third of the votes lie below. The vote of a creator is the
 * lowest level of its cards, so that many cards with a high level do not make
 * that common. A third, because many of the creators may be hostile. */
static float votes_common_level(struct index *x, enum query_kind tier,
                                float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n = 0;

    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            x->classes[i]->level = -1;
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *e = voter_at_slot(x, i);
        struct class *c = e ? voter_class(x, e) : NULL;
        float high = e ? p->level[i].of[tier].high : -1;

        if (high < 0)
            continue;
        if (!c)
            list[n++] = high;
        else if (c->level < 0 || high < c->level)
            c->level = high;
    }
    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i] && x->classes[i]->level >= 0)
            list[n++] = x->classes[i]->level;
    return n ? index_nth(list, n, n / 3) : 0;
}

enum err profiles_judge(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    size_t n;
    float *list;

    if (!p->is_stale)
        return OK;
    n = p->vecs.dims ? votes_add_all(x) : 0;
    list = FAULT("index.generic") ? NULL : calloc(n + 1, sizeof(*list));
    if (!list)
        return ERR_NOMEM;
    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        p->common[t] = votes_common_level(x, t, list);
    if (n < GENERIC_LEAST || !generic_judge(x, list)) {
        p->spread = 0;
        for (size_t i = 0; i < p->n; i++)
            p->generic[i] = 0;
    }
    free(list);
    p->is_stale = false;
    return OK;
}
