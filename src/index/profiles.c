/* What each agent is routed by as a whole: one vector, side by side with those
 * of all others, so that a text is compared with everyone in one walk over
 * memory. */
#include "index/data.h"

#include <assert.h>
#include <stdlib.h>

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
        grown = index_grow(p->level, more, sizeof(*p->level));
        if (!grown)
            return ERR_NOMEM;
        p->level = grown;
        grown = index_grow(p->has_vector, more, sizeof(*p->has_vector));
        if (!grown)
            return ERR_NOMEM;
        p->has_vector = grown;
        grown = index_grow(p->is_quick, more, sizeof(*p->is_quick));
        if (!grown)
            return ERR_NOMEM;
        p->is_quick = grown;
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
}

size_t profiles_bytes(const struct index *x)
{
    const struct index_profiles *p = &x->profiles;

    return p->cap *
           (sizeof(*p->agent) + sizeof(*p->free) + sizeof(*p->generic) +
            sizeof(*p->has_vector) + sizeof(*p->is_quick) + sizeof(*p->level));
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
