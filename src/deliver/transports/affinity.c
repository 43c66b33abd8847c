/* The child of each conversation.
 *
 * A conversation returns to the child that had it before, as long as that
 * lives, because the child remembers it. The table is bounded: beyond the limit
 * the conversation that was unused longest is dropped, and may get another
 * child when it returns. */
#include <stdlib.h>

#include "deliver/transports/pool.h"

static void affinity_drop(struct pool *p, struct affinity *k)
{
    map_take(&p->affinities, (struct str){k->key, k->n});
    list_remove(&k->by_worker);
    list_remove(&k->by_use);
    free(k);
}

struct pool_worker *affinity_find(struct pool *p, struct str key)
{
    struct affinity *k = map_get(&p->affinities, key);

    return k ? k->pool_worker : NULL;
}

/* NULL: the map cannot grow. The conversation may then get another child next
 * time, as after the loss of a child. */
static struct affinity *affinity_new(struct pool *p, struct str key)
{
    struct affinity *k = mem_new(sizeof(*k) + key.n);

    memcpy(k->key, key.p, key.n);
    k->n = key.n;
    if (map_put(&p->affinities, (struct str){k->key, k->n}, k) == OK)
        return k;
    free(k);
    return NULL;
}

void affinity_put(struct pool *p, struct str key, struct pool_worker *h)
{
    struct affinity *k = map_get(&p->affinities, key);

    if (!k && p->affinities.n >= AFFINITIES_MAX)
        affinity_drop(p, LIST_OF(list_first(&p->affinities_by_use),
                                 struct affinity, by_use));
    if (!k)
        k = affinity_new(p, key);
    if (!k)
        return;
    list_remove(&k->by_worker);
    k->pool_worker = h;
    list_append(&h->affinities, &k->by_worker);
    list_remove(&k->by_use);
    list_append(&p->affinities_by_use, &k->by_use);
}

void affinities_drop(struct pool_worker *h)
{
    struct list_node *n;

    while ((n = list_first(&h->affinities)))
        affinity_drop(h->pool, LIST_OF(n, struct affinity, by_worker));
}

void affinities_free(struct pool *p)
{
    struct list_node *n;

    while ((n = list_first(&p->affinities_by_use)))
        affinity_drop(p, LIST_OF(n, struct affinity, by_use));
    map_fini(&p->affinities);
}
