/* Quotas of deliveries in flight, per creator of agents.
 *
 * The limit on all deliveries is shared. One agent gets at most a quarter of
 * it, regardless of its card, and all agents of one creator together get half,
 * so that agents that never answer cannot use it up for all users. Every agent
 * gets at least settings.in_flight. Configured agents belong to the operator
 * and count for no creator.
 *
 * A queue that is blocked by its owner's quota waits in a list of the quota.
 * Each finished delivery wakes one of them, and a queue that then has nothing
 * to do wakes the next: so the cost of an end does not depend on the number of
 * waiting queues. */
#include "deliver/queue/agent_queue.h"

enum { AGENTS_PART = 4, OWNER_QUOTAS_PART = 2 };

static size_t in_flight_part(const struct deliver *d, size_t part)
{
    const struct deliver_settings *s = &d->opts.settings;
    size_t n = s->max_in_flight / part;

    return n > (size_t)s->in_flight ? n : (size_t)s->in_flight;
}

size_t agent_in_flight_max(const struct deliver *d)
{
    return in_flight_part(d, AGENTS_PART);
}

static bool owner_quota_has_room(const struct deliver *d,
                                 const struct owner_quota *o)
{
    return o->n_in_flight < in_flight_part(d, OWNER_QUOTAS_PART);
}

static bool owner_quota_is_current(const struct agent_queue *k,
                                   const struct agent *a)
{
    if (a->is_configured)
        return !k->owner_quota;
    return k->owner_quota &&
           str_eq_nocase(k->owner_quota->share.key, a->creator);
}

void owner_quota_take(struct deliver *d, struct agent_queue *k,
                      const struct agent *a)
{
    char lower[PRINCIPAL_NAME_MAX];
    struct owner_quota *o = NULL;

    if (owner_quota_is_current(k, a))
        return;
    if (!a->is_configured) {
        o = share_take(&d->owner_quotas,
                       str_lowered(a->creator, lower, sizeof(lower)));
        if (o && o->share.n == 1)
            list_init(&o->held);
    }
    share_give(&d->owner_quotas, k->owner_quota);
    k->owner_quota = o;
}

bool owner_quota_holds(struct deliver *d, struct agent_queue *k)
{
    if (!k->owner_quota || owner_quota_has_room(d, k->owner_quota))
        return false;
    list_append(&k->owner_quota->held, &k->ready);
    return true;
}

void owner_quota_wake_one(struct deliver *d, struct owner_quota *o)
{
    struct list_node *n =
        o && owner_quota_has_room(d, o) ? list_pop(&o->held) : NULL;

    if (n)
        agent_queue_wake(d, LIST_OF(n, struct agent_queue, ready));
}

void owner_quota_begun(struct delivery *y, struct owner_quota *o)
{
    y->owner_quota = o;
    if (!o)
        return;
    o->share.n++;
    o->n_in_flight++;
}

void owner_quota_done(struct deliver *d, struct owner_quota *o)
{
    if (!o)
        return;
    o->n_in_flight--;
    owner_quota_wake_one(d, o);
    share_give(&d->owner_quotas, o);
}
