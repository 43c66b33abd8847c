/* The desks: what waits for each agent, and who may go next.
 *
 * A desk that has something waiting and could be served is in d->ready; at the
 * end of the turn each gets what it may have. */
#include <stdlib.h>

#include "deliver/internal.h"

enum { NAME_BYTES = AGENT_NAME_MAX + 1 };

struct desk {
    char name[NAME_BYTES]; /* lower case */
    struct list waiting;
    size_t n_waiting, n_in_flight;
    struct list_node ready;
};

static struct str key_of(struct str name, char out[NAME_BYTES])
{
    size_t n = name.n < AGENT_NAME_MAX ? name.n : AGENT_NAME_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = name.p[i] >= 'A' && name.p[i] <= 'Z'
                     ? (char)(name.p[i] - 'A' + 'a')
                     : name.p[i];
    out[n] = '\0';
    return (struct str){out, n};
}

struct desk *desk_find(const struct deliver *d, struct str agent)
{
    char key[NAME_BYTES];

    return map_get(&d->desks, key_of(agent, key));
}

struct desk *desk_of(struct deliver *d, const struct agent *a)
{
    struct desk *k = desk_find(d, a->name);

    if (k)
        return k;
    k = FAULT("deliver.desk") ? NULL : calloc(1, sizeof(*k));
    if (!k)
        return NULL;
    list_init(&k->waiting);
    if (map_put(&d->desks, key_of(a->name, k->name), k) == OK)
        return k;
    free(k);
    return NULL;
}

void desk_wake(struct deliver *d, struct desk *k)
{
    if (!list_has(&k->ready))
        list_append(&d->ready, &k->ready);
    loop_at_end(d->opts.loop, &d->go_job);
}

void desk_add(struct deliver *d, struct desk *k, struct errand *e)
{
    e->desk = k;
    e->state = ERRAND_WAITING;
    list_append(&k->waiting, &e->node);
    k->n_waiting++;
    d->stats.waiting++;
    desk_wake(d, k);
}

void desk_take(struct deliver *d, struct errand *e)
{
    list_remove(&e->node);
    e->desk->n_waiting--;
    e->state = ERRAND_RESTING;
    d->stats.waiting--;
}

void desk_begun(struct desk *k)
{
    k->n_in_flight++;
}

void desk_done(struct deliver *d, struct desk *k)
{
    k->n_in_flight--;
    desk_wake(d, k);
}

void desk_fail(struct deliver *d, struct desk *k, int64_t before_ms,
               const struct delivery_failure *f)
{
    (void)d;
    (void)k;
    (void)before_ms;
    (void)f;
}

static void serve(struct deliver *d, struct desk *k)
{
    struct list_node *n;

    while ((n = list_first(&k->waiting))) {
        struct errand *e = LIST_OF(n, struct errand, node);

        desk_take(d, e);
        errand_go(d, e);
    }
}

void desks_on_end_of_turn(struct loop_job *job)
{
    struct deliver *d = LIST_OF(job, struct deliver, go_job);
    struct list_node *n;

    while ((n = list_pop(&d->ready)))
        serve(d, LIST_OF(n, struct desk, ready));
}

void desks_free(struct deliver *d)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&d->errands, &at)))
        free(slot->value);
    for (at = 0; (slot = map_next(&d->desks, &at));)
        free(slot->value);
}
