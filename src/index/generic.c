/* How like everything each agent is. A card that says something of every topic
 * lies in the midst of all others, and would win whatever is not clearly
 * somebody else's: so it is seen how near each is to what all public ones say
 * together, and those that are out of the common run are marked down:
 *
 *     c         cosine with the total of the votes
 *     z         (c - median) / (1.4826 * median of |c - median|)
 *     generic   0.03 * (z - 2), from 0 to 0.15
 *
 * A vote is the vector of one public agent that the platform answers for, or
 * the mean of all public ones of one creator, so that nobody moves the midst by
 * having many cards; the medians have one figure for each vote, too, the mean
 * of the cosines of its agents. Public ones alone, since everybody sees them:
 * nobody's answer tells of what somebody keeps private.
 *
 * Where vectors have two parts, all of this is of the first parts: those are
 * there from the beginning, and no agent's mark changes when the rest comes.
 *
 * The total is kept while agents come and go; the cosines are made anew when it
 * has changed and somebody asks. Sums and votes are whole numbers, and nothing
 * depends on the order things came in.
 *
 *     class of a creator   sum of its vectors  --/n-->  vote  --+
 *     the platform's       vectors  ----------------------------+-->  total
 *
 * A creator whose agents change is taken out of the total first, with the vote
 * it has there, and put back when somebody asks. */
#include "index/data.h"

#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum { GENERIC_LEAST = 20 }; /* votes; of fewer there is no common run */

/* Who counts, for whom. */

static bool counts(const struct index *x, const struct index_entry *e)
{
    return e->has_vectors &&
           x->classes[e->cls]->key.p[0] == (char)('0' + INDEX_PUBLIC);
}

/* NULL: it votes for itself. */
static struct class *voter_of(const struct index *x,
                              const struct index_entry *e)
{
    return e->owner == NO_CLASS ? NULL : x->classes[e->owner];
}

/* NULL: nobody who counts is there. */
static const struct index_entry *voter_at(const struct index *x, size_t slot)
{
    uint32_t number = x->profiles.agent[slot];
    const struct index_entry *e = number == NO_AGENT ? NULL : x->agents[number];

    return e && counts(x, e) ? e : NULL;
}

/* The total. */

static void subtract(struct index *x, double *from, uint32_t slot)
{
    size_t dims = index_vecs_reach(&x->profiles.vecs);
    double *room = x->profiles.total + dims;

    memset(room, 0, dims * sizeof(*room));
    index_vecs_add(&x->profiles.vecs, slot, room);
    for (size_t i = 0; i < dims; i++)
        from[i] -= room[i];
}

static void add_vote(struct index *x, const struct class *c, double sign)
{
    for (size_t i = 0; i < index_vecs_reach(&x->profiles.vecs); i++)
        x->profiles.total[i] += sign * rint(c->sum[i] / (double)c->n_public);
}

/* Before its agents change. */
static void withdraw(struct index *x, struct class *c)
{
    if (c->is_voting && c->sum)
        add_vote(x, c, -1);
    else if (c->is_voting)
        subtract(x, x->profiles.total, c->slot);
    c->is_voting = false;
}

static float off_for(const struct index_profiles *p, float cosine)
{
    double z =
        ((double)cosine - (double)p->middle) / (1.4826 * (double)p->spread);
    double off = 0.03 * (z - 2);

    return off < 0 ? 0 : off > 0.15 ? 0.15F : (float)off;
}

/* Whoever has no say is judged by what there is, at once. */
void generic_enter(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;
    struct class *c = voter_of(x, e);

    p->generic[e->slot] = 0;
    if (!counts(x, e)) {
        if (!p->is_stale && p->spread > 0 && e->has_vectors)
            p->generic[e->slot] =
                off_for(p, index_vecs_likeness(&p->vecs, &p->midst, e->slot));
        return;
    }
    p->is_stale = true;
    if (!c && p->total)
        index_vecs_add(&p->vecs, e->slot, p->total);
    if (!c)
        return;
    withdraw(x, c);
    c->n_public++;
    if (c->sum)
        index_vecs_add(&p->vecs, e->slot, c->sum);
}

void generic_leave(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;
    struct class *c = voter_of(x, e);

    if (!counts(x, e))
        return;
    p->is_stale = true;
    if (!c && p->total)
        subtract(x, p->total, e->slot);
    if (!c)
        return;
    withdraw(x, c);
    c->n_public--;
    if (c->sum)
        subtract(x, c->sum, e->slot);
    if (!c->n_public) {
        free(c->sum);
        c->sum = NULL;
    }
}

/* From then on they are made from the beginning. */
static void drop_sums(struct index *x)
{
    for (size_t i = 0; i < x->n_classes; i++) {
        struct class *c = x->classes[i];

        if (!c)
            continue;
        free(c->sum);
        c->sum = NULL;
        c->is_voting = c->is_new = false;
    }
    free(x->profiles.total);
    x->profiles.total = NULL;
}

void generic_reset(struct index *x)
{
    drop_sums(x);
    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            x->classes[i]->n_public = 0;
    x->profiles.is_stale = true;
}

/* The total, room for one vector, and the total packed, twice. */
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

/* Room for what is to be summed up: a creator of one agent needs none. */
static enum err make_room(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    size_t dims = index_vecs_reach(&p->vecs);

    if (!p->total) {
        p->total = FAULT("index.total") ? NULL : calloc(1, total_bytes(p));
        if (!p->total)
            return ERR_NOMEM;
    }
    for (size_t i = 0; i < x->n_classes; i++) {
        struct class *c = x->classes[i];

        if (!c || c->n_public < 2 || c->sum)
            continue;
        c->sum = FAULT("index.vote") ? NULL : calloc(dims, sizeof(*c->sum));
        if (!c->sum)
            return ERR_NOMEM;
        c->is_new = true;
    }
    return OK;
}

/* Everyone's vote into the total; how many there are, in *n. */
static enum err vote(struct index *x, size_t *n)
{
    struct index_profiles *p = &x->profiles;
    bool is_first = !p->total;
    enum err e = make_room(x);

    *n = 0;
    if (e) {
        drop_sums(x);
        return e;
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *one = voter_at(x, i);
        struct class *c = one ? voter_of(x, one) : NULL;

        *n += one && !c;
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
            add_vote(x, c, 1);
        c->is_voting = true;
        c->is_new = false;
        ++*n;
    }
    return OK;
}

/* Judging. */

/* One figure for each vote; from p->generic, which has the cosines. */
static size_t list_votes(struct index *x, float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n = 0;

    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            x->classes[i]->likeness = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *e = voter_at(x, i);
        struct class *c = e ? voter_of(x, e) : NULL;

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
static bool open_midst(struct index_profiles *p)
{
    size_t dims = index_vecs_reach(&p->vecs), bytes = vec_packed_bytes(dims);
    float *direction = (float *)(p->total + dims);
    int8_t *planes = (int8_t *)(p->total + 2 * p->vecs.dims);
    uint8_t *packed = (uint8_t *)planes + 2 * p->vecs.stride;
    struct vec_packed midst;

    for (size_t i = 0; i < dims; i++)
        direction[i] = (float)p->total[i];
    if (!vec_pack(direction, (uint32_t)dims, packed) ||
        !vec_packed_open(&midst, packed, bytes, (uint32_t)dims))
        return false;
    p->midst = index_vecs_lay(&p->vecs, &midst, planes);
    return true;
}

/* Everyone, by the total. False: there is no common run. */
static bool judge(struct index *x, float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n;

    if (!open_midst(p))
        return false;
    for (size_t i = 0; i < p->n; i += 64)
        index_vecs_likeness_64(&p->vecs, &p->midst, (uint32_t)i,
                               p->generic + i);
    n = list_votes(x, list);
    p->middle = index_nth(list, n, n / 2);
    for (size_t i = 0; i < n; i++)
        list[i] = fabsf(list[i] - p->middle);
    p->spread = index_nth(list, n, n / 2);
    for (size_t i = 0; p->spread > 0 && i < p->n; i++)
        p->generic[i] = off_for(p, p->generic[i]);
    return p->spread > 0;
}

/* The level that a third of the votes lie below. A creator's vote is the lowest
 * level of its cards, so that many cards that score high for everything do not
 * make that common. A third, since many of the creators may be hostile. */
static float common_level(struct index *x, enum query_kind tier, float *list)
{
    struct index_profiles *p = &x->profiles;
    size_t n = 0;

    for (size_t i = 0; i < x->n_classes; i++)
        if (x->classes[i])
            x->classes[i]->level = -1;
    for (size_t i = 0; i < p->n; i++) {
        const struct index_entry *e = voter_at(x, i);
        struct class *c = e ? voter_of(x, e) : NULL;
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
    size_t n = 0;
    float *list;
    enum err e = OK;

    if (!p->is_stale)
        return OK;
    if (p->vecs.dims)
        e = vote(x, &n);
    if (e)
        return e;
    list = FAULT("index.generic") ? NULL : calloc(n + 1, sizeof(*list));
    if (!list)
        return ERR_NOMEM;
    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        p->common[t] = common_level(x, t, list);
    if (n < GENERIC_LEAST || !judge(x, list)) {
        p->spread = 0;
        for (size_t i = 0; i < p->n; i++)
            p->generic[i] = 0;
    }
    free(list);
    p->is_stale = false;
    return OK;
}
