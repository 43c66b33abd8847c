/* Everyone who could get a message, and how near it is to each.
 *
 * The index says of every number what its words and its meaning have in common
 * with the text, and who is seen; here they get their names and their order,
 * and those who cannot be sent anything are left out. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"

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

static bool is_candidate(const struct registry *r, const struct agent *a)
{
    return !a->routing.is_unroutable && registry_state(r, a) != AGENT_DEAD;
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
        e = keywords_look(r, q->text);
    if (!e)
        e = ranked_near(r, q, &near, &n_near);
    if (e)
        return e;
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *one = entry_of(r->list[i]);
        const struct agent *a = &one->agent;
        const struct index_near *x = &near[one->number];
        bool is_outsider = agent_is_outsider(a, &q->eyes);

        if (one->number >= n_near || !x->is_seen || one == self ||
            !is_candidate(r, a))
            continue;
        r->near[(*n)++] = (struct registry_near){
            .agent = a,
            .skill = x->skill == INDEX_AGENT ? NULL : &a->skills[x->skill],
            .cosine = x->cosine,
            .text = x->text,
            .discount = is_outsider ? x->generic : 0,
            /* A stranger's could be "the", "what" and "please". */
            .keyword = is_outsider ? STR("") : keyword_said(r, one),
        };
    }
    *list = r->near;
    return OK;
}
