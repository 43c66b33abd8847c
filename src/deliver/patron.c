/* Whose agents have how much on its way.
 *
 * The limit of all is shared: one agent has a quarter of it at most, whatever
 * its card says, and all agents of one creator together have half, so that
 * nobody who never answers can use it up for everybody. What settings.in_flight
 * gives an agent it has in any case. The agents of the configuration are the
 * operator's, and count for no creator.
 *
 * A desk that is held up by its patron's share waits in the list of its patron.
 * Whatever ends wakes one of them, and a desk that then finds that it has
 * nothing to do wakes the next: so an end costs the same however many wait. */
#include <stdlib.h>

#include "deliver/desk.h"

enum { AGENTS_PART = 4, PATRONS_PART = 2 };

static size_t part_of(const struct deliver *d, size_t part)
{
    const struct deliver_settings *s = &d->opts.settings;
    size_t n = s->max_in_flight / part;

    return n > (size_t)s->in_flight ? n : (size_t)s->in_flight;
}

size_t share_of_agent(const struct deliver *d)
{
    return part_of(d, AGENTS_PART);
}

static bool has_room(const struct deliver *d, const struct patron *o)
{
    return o->n_in_flight < part_of(d, PATRONS_PART);
}

void patron_leave(struct deliver *d, struct patron *o)
{
    if (!o || --o->n_users)
        return;
    map_take(&d->patrons, (struct str){o->name, o->n});
    free(o);
}

static struct patron *patron_new(struct deliver *d, struct str name)
{
    struct patron *o =
        FAULT("deliver.patron") ? NULL : calloc(1, sizeof(*o) + name.n);

    if (!o)
        return NULL;
    list_init(&o->held);
    o->n = name.n;
    if (name.n)
        memcpy(o->name, name.p, name.n);
    if (map_put(&d->patrons, (struct str){o->name, o->n}, o) == OK)
        return o;
    free(o);
    return NULL;
}

static bool is_of(const struct desk *k, const struct agent *a)
{
    if (a->is_configured)
        return !k->patron;
    return k->patron &&
           str_eq_nocase((struct str){k->patron->name, k->patron->n},
                         a->creator);
}

void patron_take(struct deliver *d, struct desk *k, const struct agent *a)
{
    char lower[PRINCIPAL_NAME_MAX];
    struct patron *o = NULL;

    if (is_of(k, a))
        return;
    if (!a->is_configured) {
        struct str name = str_lowered(a->creator, lower, sizeof(lower));

        o = map_get(&d->patrons, name);
        if (!o)
            o = patron_new(d, name);
        if (o)
            o->n_users++;
    }
    patron_leave(d, k->patron);
    k->patron = o;
}

bool patron_holds(struct deliver *d, struct desk *k)
{
    if (!k->patron || has_room(d, k->patron))
        return false;
    list_append(&k->patron->held, &k->ready);
    return true;
}

void patron_wake_one(struct deliver *d, struct patron *o)
{
    struct list_node *n = o && has_room(d, o) ? list_pop(&o->held) : NULL;

    if (n)
        desk_wake(d, LIST_OF(n, struct desk, ready));
}

void patron_begun(struct delivery *y, struct patron *o)
{
    y->patron = o;
    if (!o)
        return;
    o->n_users++;
    o->n_in_flight++;
}

void patron_done(struct deliver *d, struct patron *o)
{
    if (!o)
        return;
    o->n_in_flight--;
    patron_wake_one(d, o);
    patron_leave(d, o);
}
