/* Everyone who could get a message, and how near it is to each: by what the
 * index finds, agent by agent. */
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

static bool is_candidate(struct registry *r, const struct agent *a,
                         const struct eyes *eyes)
{
    return !a->routing.is_unroutable && agent_is_visible(a, eyes) &&
           !(eyes->self.n && str_eq_nocase(a->name, eyes->self)) &&
           registry_state(r, a) != AGENT_DEAD;
}

static enum err make_room(struct registry *r)
{
    struct registry_near *more;

    if (r->near_cap >= r->n && r->near)
        return OK;
    more = FAULT("near.room") ? NULL
                              : realloc(r->near, (r->n + 16) * sizeof(*more));
    if (!more)
        return ERR_NOMEM;
    r->near = more;
    r->near_cap = r->n + 16;
    return OK;
}

static void unpack(const struct vec_packed *p, float *out)
{
    for (size_t i = 0; i < p->n; i++)
        out[i] = p->scale * (float)(256 * p->high[i] + p->low[i]);
}

static void note(struct registry_near *of, const struct index_hit *h)
{
    for (size_t i = 0; i < h->n_matches; i++) {
        const struct index_match *m = &h->matches[i];

        if (m->semantic > of->cosine) {
            of->cosine = m->semantic;
            of->skill =
                m->skill == INDEX_AGENT ? NULL : &of->agent->skills[m->skill];
        }
        if (m->text > of->text)
            of->text = m->text;
    }
}

static int by_agent(const void *key, const void *one)
{
    const struct registry_near *near = one;

    return str_cmp_nocase(*(const struct str *)key, near->agent->name);
}

enum err registry_near(struct registry *r, const struct registry_near_query *q,
                       const struct registry_near **list, size_t *n)
{
    float v[EMBED_DIMS_MAX];
    struct vec_packed packed;
    struct index_query iq = {
        .text = q->text, .mode = INDEX_HYBRID, .sees_all = true};
    struct index_hit hit;
    enum err e = make_room(r);

    *n = 0;
    if (e)
        return e;
    for (size_t i = 0; i < r->n; i++)
        if (is_candidate(r, r->list[i], &q->eyes))
            r->near[(*n)++] = (struct registry_near){.agent = r->list[i]};
    if (q->vector.n && vec_packed_open(&packed, (const uint8_t *)q->vector.p,
                                       q->vector.n, index_dims(r->index))) {
        unpack(&packed, v);
        iq.vector = v;
    }
    *list = r->near;
    e = index_search_begin(r->index, &iq);
    if (e)
        return e;
    while (index_next(r->index, &hit)) {
        struct str name = r->by_number[hit.number]->agent.name;
        struct registry_near *of =
            bsearch(&name, r->near, *n, sizeof(*of), by_agent);

        if (of)
            note(of, &hit);
    }
    index_search_end(r->index);
    return OK;
}
