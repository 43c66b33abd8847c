/* Which public cards strangers search, when there are more than can be searched
 * in a few milliseconds.
 *
 * Every routing decision and every search looks at all visible documents, and
 * public ones are visible to all. One owner has a limit (holding.c), but
 * hundreds of owners together may publish half a million skills. So only
 * registry.maxSearched of the published documents are in front. The rest is put
 * aside in the index: available by name, in lists and to requesters who see
 * all, but not found by searches and not chosen for messages. A few owners who
 * publish very much cannot push others aside:
 *
 *     share     the same for each owner, such that all shares fill the limit;
 *               an owner below it keeps everything in front
 *     an owner  the smallest cards first, ties by age
 *
 * Up to the limit nothing is put aside. Beyond it the share leaves an eighth
 * free. It is recomputed when that is used up, or when another eighth has
 * become free, so one change never moves thousands of cards.
 *
 * Cards of the platform, of an org and private ones do not count: they are few
 * or trusted, and have limits of their own.
 *
 * Rejected: comparing only agents whose mean is near. That is still a pass over
 * a hundred thousand of them, and over the words of all. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "registry/internal.h"

static size_t front_documents(const struct entry *e)
{
    const struct agent *a = &e->agent;
    bool counts = e->owner && a->kind != AGENT_PLATFORM &&
                  a->visibility == VISIBILITY_PUBLIC;

    return counts ? a->n_skills + 1 : 0;
}

struct index_class front_class(const struct entry *e)
{
    return e->is_aside ? (struct index_class){.kind = INDEX_ASIDE}
                       : index_class_of(&e->agent);
}

/* An entry enters the mirror, in front, or leaves it. */

void front_add(struct registry *r, struct entry *e)
{
    size_t n = front_documents(e);

    e->is_aside = false;
    if (!n)
        return;
    e->owner->n_public += n;
    e->owner->n_front += n;
    r->n_public += n;
    r->n_front += n;
}

void front_take(struct registry *r, struct entry *e)
{
    size_t n = front_documents(e);

    if (!n)
        return;
    e->owner->n_public -= n;
    r->n_public -= n;
    if (e->is_aside)
        return;
    e->owner->n_front -= n;
    r->n_front -= n;
}

static void front_move(struct registry *r, struct entry *e, bool is_aside)
{
    size_t n = front_documents(e);

    if (e->is_aside == is_aside)
        return;
    front_take(r, e);
    e->is_aside = is_aside;
    e->owner->n_public += n;
    r->n_public += n;
    e->owner->n_front += is_aside ? 0 : n;
    r->n_front += is_aside ? 0 : n;
    index_follow(r, e);
}

static int front_order(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a,
                       *y = *(struct entry *const *)b;

    if (x->agent.n_skills != y->agent.n_skills)
        return x->agent.n_skills < y->agent.n_skills ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

void front_owner(struct registry *r, struct owner *o)
{
    size_t n = o ? list_length(&o->entries) : 0, at = 0, taken = 0;
    struct entry **list;

    if (!o || (o->n_front <= r->share && o->n_front == o->n_public))
        return;
    list = mem_array(n, sizeof(struct entry *));
    for (struct list_node *i = list_first(&o->entries); i;
         i = list_next(&o->entries, i)) {
        struct entry *e = LIST_OF(i, struct entry, owned);

        if (front_documents(e))
            list[at++] = e;
    }
    qsort(list, at, sizeof(struct entry *), front_order);
    for (size_t i = 0; i < at; i++) {
        size_t more = front_documents(list[i]);
        bool fits = taken + more <= r->share;

        taken += fits ? more : 0;
        front_move(r, list[i], !fits);
    }
    free(list);
}

static size_t front_docs_with_share(const struct registry *r, size_t share)
{
    const struct map_slot *slot;
    size_t at = 0, sum = 0;

    while ((slot = map_next(&r->owners.by_key, &at))) {
        const struct owner *o = slot->value;

        sum += o->n_public < share ? o->n_public : share;
    }
    return sum;
}

/* The largest share with at most `limit` documents in front. */
static size_t front_share_for(const struct registry *r, size_t limit)
{
    size_t from = 0, to = limit;

    while (from < to) {
        size_t middle = from + (to - from + 1) / 2;

        if (front_docs_with_share(r, middle) <= limit)
            from = middle;
        else
            to = middle - 1;
    }
    return from;
}

static void front_set_share(struct registry *r, size_t share)
{
    const struct map_slot *slot;
    size_t at = 0;

    r->share = share;
    while ((slot = map_next(&r->owners.by_key, &at)))
        front_owner(r, slot->value);
}

/* Whether an eighth more would exceed the limit, or an eighth less would be
 * enough. Cards larger than a share leave room that stays unused; that alone
 * does not change the share. */
static bool front_is_unbalanced(const struct registry *r, size_t limit)
{
    size_t least = limit / 8 * 6;

    if (r->share == SIZE_MAX)
        return r->n_front > limit;
    return r->n_public <= least || r->n_front > limit ||
           (r->n_front < least && front_docs_with_share(r, r->share) < least);
}

void front_settle(struct registry *r)
{
    size_t limit = r->opts.limits.max_searched;

    if (!limit || PLANTED("registry.all_in_front"))
        limit = SIZE_MAX;
    if (front_is_unbalanced(r, limit))
        front_set_share(r, r->n_public <= limit / 8 * 6
                               ? SIZE_MAX
                               : front_share_for(r, limit / 8 * 7));
}
