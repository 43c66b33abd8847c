/* Which conversation has which child.
 *
 * A conversation goes to the child that has had it before, as long as that
 * lives: there its memory is. The table is bounded; beyond it the conversation
 * that was longest unused is forgotten and, when it comes again, may be given
 * to another child. */
#include <stdlib.h>

#include "deliver/pool.h"

static void drop(struct pool *p, struct keep *k)
{
    map_take(&p->keeps, (struct str){k->key, k->n});
    list_remove(&k->by_hand);
    list_remove(&k->by_use);
    free(k);
}

static void touch(struct pool *p, struct keep *k)
{
    list_remove(&k->by_use);
    list_append(&p->keeps_by_use, &k->by_use);
}

struct hand *keep_find(struct pool *p, struct str key)
{
    struct keep *k = map_get(&p->keeps, key);

    return k ? k->hand : NULL;
}

/* Without memory it is not kept: the conversation may have another child the
 * next time, which is what a lost one means too. */
static struct keep *keep_new(struct pool *p, struct str key)
{
    struct keep *k =
        FAULT("deliver.keep") ? NULL : calloc(1, sizeof(*k) + key.n);

    if (!k)
        return NULL;
    memcpy(k->key, key.p, key.n);
    k->n = key.n;
    if (map_put(&p->keeps, (struct str){k->key, k->n}, k) == OK)
        return k;
    free(k);
    return NULL;
}

void keep_put(struct pool *p, struct str key, struct hand *h)
{
    struct keep *k = map_get(&p->keeps, key);

    if (!k && p->keeps.n >= KEEPS_MAX)
        drop(p, LIST_OF(list_first(&p->keeps_by_use), struct keep, by_use));
    if (!k)
        k = keep_new(p, key);
    if (!k)
        return;
    list_remove(&k->by_hand);
    k->hand = h;
    list_append(&h->keeps, &k->by_hand);
    touch(p, k);
}

void keeps_drop(struct hand *h)
{
    struct list_node *n;

    while ((n = list_first(&h->keeps)))
        drop(h->pool, LIST_OF(n, struct keep, by_hand));
}

void keeps_free(struct pool *p)
{
    struct list_node *n;

    while ((n = list_first(&p->keeps_by_use)))
        drop(p, LIST_OF(n, struct keep, by_use));
    map_fini(&p->keeps);
}
