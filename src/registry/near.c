/* Everyone who could get a message, and how near it is to each.
 *
 * The index says of every number what its words and its meaning have in common
 * with the text, and who is seen; here they get their names and their order.
 * With ten thousand agents most of the time goes into waiting for memory: so
 * what is looked at of each lies side by side, and is asked for a few agents
 * ahead. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { AHEAD = 12 };

static enum err near_room(struct registry *r)
{
    struct registry_near *more;

    if (r->n <= r->near_cap)
        return OK;
    more = FAULT("registry.near")
               ? NULL
               : realloc(r->near, (r->n + r->n / 4) * sizeof(*more));
    if (!more)
        return ERR_NOMEM;
    r->near = more;
    r->near_cap = r->n + r->n / 4;
    return OK;
}

/* A hint to the processor, and nothing else. */
static void fetch_ahead(const struct registry *r, size_t i)
{
    const struct entry *e;

    if (i >= r->n)
        return;
    e = entry_of(r->list[i]);
    __builtin_prefetch(&e->number);
    __builtin_prefetch(&e->agent.name);
    __builtin_prefetch(&e->agent.skills);
}

static struct registry_near near_of(const struct registry *r,
                                    const struct registry_near_query *q,
                                    const struct entry *e,
                                    const struct index_near *x)
{
    const struct agent *a = &e->agent;
    struct registry_near near = {
        .agent = a,
        .skill = x->skill == INDEX_AGENT ? NULL : &a->skills[x->skill],
        .cosine = x->cosine,
        .text = x->text,
        .keyword = keyword_said(r, e),
    };

    if (near.skill)
        __builtin_prefetch(near.skill);
    if ((x->generic > 0 || near.keyword.n) && agent_is_outsider(a, &q->eyes)) {
        near.discount = x->generic;
        /* A stranger's could be "the", "what" and "please". */
        near.keyword = STR("");
    }
    return near;
}

enum err registry_near(struct registry *r, const struct registry_near_query *q,
                       const struct registry_near **list, size_t *n)
{
    const struct entry *self =
        q->eyes.self.n ? entry_find(r, q->eyes.self) : NULL;
    const struct index_near *near;
    size_t n_near;
    enum err e = near_room(r);

    *n = 0;
    if (!e)
        e = keywords_look(r, &q->eyes, q->text);
    if (!e)
        e = ranked_near(r, q, &near, &n_near);
    if (e)
        return e;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *one = entry_of(r->list[i]);

        fetch_ahead(r, i + AHEAD);
        if (one->number < n_near && near[one->number].is_seen && one != self &&
            !one->is_unroutable)
            r->near[(*n)++] = near_of(r, q, one, &near[one->number]);
    }
    *list = r->near;
    return OK;
}

bool registry_is_there(void *ctx, const struct agent *a)
{
    return registry_state(ctx, a) != AGENT_DEAD;
}

int64_t registry_version(const struct registry *r)
{
    return r->seq;
}
