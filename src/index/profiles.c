/* What each agent is routed by as a whole: one vector, side by side with those
 * of all others, so that a text is compared with everyone in one walk over
 * memory.
 *
 * And how like everything each of them is. A card that says something of every
 * topic lies in the midst of all others, and would win whatever is not clearly
 * somebody else's: so it is seen how near each is to the sum of all public
 * ones, and those that are out of the common run are marked down:
 *
 *     c         cosine with the sum
 *     z         (c - median) / (1.4826 * median of |c - median|)
 *     generic   0.03 * (z - 2), from 0 to 0.15
 *
 * The public ones alone, since everybody sees them: nobody's answer tells of
 * what somebody keeps private. The sum is of whole numbers, so that it does not
 * depend on the order they came in. It is made anew when one of them has come,
 * changed or gone and somebody asks. */
#include "index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"

enum { GENERIC_LEAST = 20 }; /* of fewer there is no common run */

/* Places. There is always room for those that were promised. */

enum err profiles_promise(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    size_t promised = p->n_promised + 1;
    size_t need = p->n + (promised > p->n_free ? promised - p->n_free : 0);
    size_t more = (need + need / 2 + 64) / 64 * 64;
    void *grown;
    enum err e = index_vecs_reserve(&p->vecs, need);

    if (!e && need > p->cap) {
        grown = index_grow(p->agent, more, sizeof(*p->agent));
        if (!grown)
            return ERR_NOMEM;
        p->agent = grown;
        grown = index_grow(p->free, more, sizeof(*p->free));
        if (!grown)
            return ERR_NOMEM;
        p->free = grown;
        grown = index_grow(p->generic, more, sizeof(*p->generic));
        if (!grown)
            return ERR_NOMEM;
        p->generic = grown;
        grown = index_grow(p->has_vector, more, sizeof(*p->has_vector));
        if (!grown)
            return ERR_NOMEM;
        p->has_vector = grown;
        for (; p->cap < more; p->cap++)
            p->agent[p->cap] = NO_AGENT;
    }
    if (!e)
        p->n_promised++;
    return e;
}

void profiles_forget(struct index *x)
{
    x->profiles.n_promised--;
}

void profiles_put(struct index *x, struct index_entry *e, const uint8_t *packed)
{
    struct index_profiles *p = &x->profiles;

    if (p->n_free) {
        e->slot = p->free[--p->n_free];
    } else {
        assert(p->n < p->cap);
        e->slot = (uint32_t)p->n++;
    }
    p->n_promised--;
    p->agent[e->slot] = e->number;
    p->has_vector[e->slot] = packed != NULL;
    p->is_stale = true;
    index_vecs_set(&p->vecs, e->slot, packed);
}

void profiles_drop(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;

    index_vecs_set(&p->vecs, e->slot, NULL);
    p->agent[e->slot] = NO_AGENT;
    p->free[p->n_free++] = e->slot;
    p->is_stale = true;
}

void profiles_fini(struct index *x)
{
    struct index_profiles *p = &x->profiles;

    index_vecs_reset(&p->vecs, 0);
    free(p->agent);
    free(p->free);
    free(p->generic);
    free(p->has_vector);
}

size_t profiles_bytes(const struct index *x)
{
    const struct index_profiles *p = &x->profiles;

    return p->cap * (sizeof(*p->agent) + sizeof(*p->free) +
                     sizeof(*p->generic) + sizeof(*p->has_vector));
}

bool index_profile(const struct index *x, uint32_t number, struct buf *out)
{
    const struct index_entry *e =
        number < x->agents_end ? x->agents[number] : NULL;
    size_t bytes = vec_packed_bytes(x->vectors.dims);
    char *p;

    if (!e || !e->has_vectors)
        return false;
    p = buf_reserve(out, bytes);
    if (!p)
        return false;
    index_vecs_get(&x->profiles.vecs, e->slot, (uint8_t *)p);
    buf_commit(out, bytes);
    return true;
}

/* How like everything. */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? -1 : x > y;
}

static float median(float *list, size_t n)
{
    qsort(list, n, sizeof(*list), by_value);
    return list[n / 2];
}

static bool counts(const struct index *x, uint32_t cls, size_t slot)
{
    uint32_t number = x->profiles.agent[slot];

    return number != NO_AGENT && x->agents[number]->cls == cls &&
           x->agents[number]->has_vectors;
}

/* The sum of all that count, packed; how many those are. */
static size_t add_up(const struct index *x, uint32_t cls, double *sum,
                     uint8_t *packed)
{
    const struct index_vecs *v = &x->profiles.vecs;
    float direction[INDEX_DIMS_MAX];
    size_t n = 0;

    memset(sum, 0, v->dims * sizeof(*sum));
    for (size_t i = 0; i < x->profiles.n; i++)
        if (counts(x, cls, i)) {
            index_vecs_add(v, (uint32_t)i, sum);
            n++;
        }
    for (size_t i = 0; i < v->dims; i++)
        direction[i] = (float)sum[i];
    return vec_pack(direction, v->dims, packed) ? n : 0;
}

static void mark_down(struct index_profiles *p, float middle, float spread)
{
    for (size_t i = 0; i < p->n; i++) {
        double z = ((double)p->generic[i] - (double)middle) /
                   (1.4826 * (double)spread);
        double off = 0.03 * (z - 2);

        p->generic[i] = off < 0 ? 0 : off > 0.15 ? 0.15F : (float)off;
    }
}

/* From p->generic, which has the cosines. False: there is no common run. */
static bool judge(struct index *x, uint32_t cls, size_t n, float *list)
{
    struct index_profiles *p = &x->profiles;
    float middle, spread;
    size_t k = 0;

    for (size_t i = 0; i < p->n; i++)
        if (counts(x, cls, i))
            list[k++] = p->generic[i];
    assert(k == n);
    middle = median(list, n);
    for (size_t i = 0; i < n; i++)
        list[i] = fabsf(list[i] - middle);
    spread = median(list, n);
    if (!(spread > 0))
        return false;
    mark_down(p, middle, spread);
    return true;
}

enum err profiles_judge(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    size_t dims = p->vecs.dims, room = dims > p->n ? dims : p->n, n = 0;
    const struct index_class everybody = {INDEX_PUBLIC, {NULL, 0}};
    uint32_t cls;
    uint8_t *packed;
    double *scratch;
    enum err e;

    if (!p->is_stale)
        return OK;
    e = index_class_find(x, everybody, &cls);
    if (e)
        return e;
    scratch = FAULT("index.generic") ? NULL
                                     : malloc((room + 1) * sizeof(*scratch) +
                                              2 * vec_packed_bytes(dims) + 256);
    if (!scratch)
        return ERR_NOMEM;
    packed = (uint8_t *)(scratch + room + 1);
    if (dims && cls != NO_CLASS)
        n = add_up(x, cls, scratch, packed);
    if (n >= GENERIC_LEAST)
        profiles_likeness(x, packed, p->generic);
    if (n < GENERIC_LEAST || !judge(x, cls, n, (float *)scratch))
        for (size_t i = 0; i < p->n; i++)
            p->generic[i] = 0;
    free(scratch);
    p->is_stale = false;
    return OK;
}

void profiles_likeness(const struct index *x, const uint8_t *packed, float *out)
{
    const struct index_vecs *v = &x->profiles.vecs;
    struct vec_packed q;

    if (!vec_packed_open(&q, packed, vec_packed_bytes(v->dims), v->dims))
        q = (struct vec_packed){0};
    for (size_t i = 0; i < x->profiles.n; i++)
        out[i] = index_vecs_likeness(v, &q, (uint32_t)i);
}
