/* One vector per agent as a whole, stored contiguously, so that a text is
 * compared with every agent in one pass over memory. */
#include "registry/index/data.h"

#include <assert.h>
#include <stdlib.h>

/* There is always a slot for every promised profile. */

enum err profiles_promise(struct index *x)
{
    struct index_profiles *p = &x->profiles;
    size_t promised = p->n_promised + 1;
    size_t need = p->n + (promised > p->n_free ? promised - p->n_free : 0);
    size_t more = (need + need / 2 + 64) / 64 * 64;
    enum err e = index_vecs_reserve(&p->vecs, need);

    if (!e && need > p->cap) {
        if (!INDEX_GROW(p->agent, more) || !INDEX_GROW(p->free, more) ||
            !INDEX_GROW(p->generic, more) || !INDEX_GROW(p->level, more) ||
            !INDEX_GROW(p->has_vector, more) ||
            !INDEX_GROW(p->is_quick, more) || !INDEX_GROW(p->is_aside, more))
            return ERR_NOMEM;
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
    p->is_aside[e->slot] = index_class_is_aside(x, e->cls);
    p->level[e->slot] = NO_LEVELS;
    index_vecs_set(&p->vecs, e->slot, packed);
    p->is_quick[e->slot] = index_vecs_is_quick(&p->vecs, e->slot);
    generic_enter(x, e);
}

void profiles_drop(struct index *x, const struct index_entry *e)
{
    struct index_profiles *p = &x->profiles;

    generic_leave(x, e);
    index_vecs_set(&p->vecs, e->slot, NULL);
    p->agent[e->slot] = NO_AGENT;
    p->free[p->n_free++] = e->slot;
}

void profiles_fini(struct index *x)
{
    struct index_profiles *p = &x->profiles;

    index_vecs_reset(&p->vecs, 0, 0);
    free(p->agent);
    free(p->free);
    free(p->generic);
    free(p->level);
    free(p->has_vector);
    free(p->is_quick);
    free(p->is_aside);
}

size_t profiles_bytes(const struct index *x)
{
    const struct index_profiles *p = &x->profiles;

    return p->cap *
           (sizeof(*p->agent) + sizeof(*p->free) + sizeof(*p->generic) +
            sizeof(*p->has_vector) + sizeof(*p->is_quick) +
            sizeof(*p->is_aside) + sizeof(*p->level));
}

uint64_t profiles_used(const struct index_profiles *p, size_t i)
{
    uint64_t bits = 0;

    for (size_t k = 0; k < 64 && i + k < p->n; k++)
        bits |= (uint64_t)(p->agent[i + k] != NO_AGENT) << k;
    return bits;
}

uint64_t profiles_in_front(const struct index_profiles *p, size_t i)
{
    uint64_t bits = profiles_used(p, i);

    for (size_t k = 0; k < 64 && i + k < p->n; k++)
        bits &= ~((uint64_t)p->is_aside[i + k] << k);
    return bits;
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
