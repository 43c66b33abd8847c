/* Turns. At most maxConcurrent delegations of an agent are active at once.
 * Further ones wait in the order in which they were ready, which is that of
 * acceptance, and their timeout runs. A held or escalated task, or one behind
 * such a task in its order, neither is active nor waits: it comes up when it is
 * released.
 *
 * Turns are not stored. A start loads the open delegations by key, and keys are
 * in the order of acceptance. So those that were active before are first again,
 * and those that waited are behind them in the same order, except for tasks
 * that were held in between.
 *
 * A delegation inside a delegation (depth above 1) never waits: without space
 * it is rejected, and once accepted it runs, whatever the limit is by then. So
 * agents cannot wait for each other in a ring. A queue moves when an active
 * delegation ends, and everything below that one runs without waiting. */
#include "delegation/internal.h"

#include "model/agent.h"

int64_t delegation_max_active(const struct delegations *h,
                              const struct agent *by)
{
    return by && by->delegation.max_concurrent >= 0
               ? by->delegation.max_concurrent
               : h->opts.settings.max_concurrent;
}

static void delegation_leave_queue(struct live_delegation *x)
{
    if (!list_has(&x->turn_node))
        return;
    list_remove(&x->turn_node);
    x->h->n_waiting--;
    if (list_is_empty(&x->delegator->waiting))
        list_remove(&x->delegator->crowd_node);
}

static void delegation_activate(struct live_delegation *x)
{
    x->is_active = true;
    x->delegator->n_active++;
    gatekeeper_turn_came(x->h->opts.gatekeeper, str_of(x->d.task_id.text));
    task_offer(x->h->opts.tasks, str_of(x->d.task_id.text));
}

static void delegation_activate_next(struct delegations *h, struct delegator *r)
{
    int64_t max = delegation_max_active(
        h, registry_agent(h->opts.registry, r->share.key));
    struct list_node *n;

    if (PLANTED("hire.all_at_once"))
        max = INT64_MAX;
    while ((int64_t)r->n_active < max && (n = list_first(&r->waiting))) {
        struct live_delegation *x =
            LIST_OF(n, struct live_delegation, turn_node);

        delegation_leave_queue(x);
        delegation_activate(x);
    }
}

bool delegation_may_wait(int64_t depth)
{
    return depth <= 1 || PLANTED("hire.rings");
}

static void delegation_queue_up(struct live_delegation *x, const struct task *t)
{
    struct delegator *r = x->delegator;

    if (!delegation_may_wait(t->depth)) {
        delegation_activate(x);
        return;
    }
    list_append(&r->waiting, &x->turn_node);
    x->h->n_waiting++;
    if (!list_has(&r->crowd_node))
        list_append(&x->h->crowded, &r->crowd_node);
    delegation_activate_next(x->h, r);
    if (!x->is_active)
        gatekeeper_put_off(x->h->opts.gatekeeper, t);
}

void delegation_give_up_turn(struct live_delegation *x)
{
    delegation_leave_queue(x);
    x->delegator->n_active -= x->is_active;
    x->is_active = false;
}

void delegation_turn_is_over(struct live_delegation *x)
{
    delegation_give_up_turn(x);
    if (!PLANTED("hire.nobody_next"))
        delegation_activate_next(x->h, x->delegator);
}

void delegation_look_at_turns(struct delegations *h)
{
    struct list_node *next;

    for (struct list_node *n = list_first(&h->crowded); n; n = next) {
        next = list_next(&h->crowded, n);
        delegation_activate_next(h, LIST_OF(n, struct delegator, crowd_node));
    }
}

/* NULL: t is not a delegation, or its result is known. */
static struct live_delegation *open_delegation(const struct delegations *h,
                                               const struct task *t)
{
    struct live_delegation *x = delegation_of_task(h, str_of(t->id.text));

    return x && x->d.turn == t->turn && x->d.state == DELEGATION_OPEN ? x
                                                                      : NULL;
}

bool delegation_come_up(struct delegations *h, const struct task *t)
{
    struct live_delegation *x = open_delegation(h, t);

    if (x && !x->is_active && !x->is_ending && !list_has(&x->turn_node))
        delegation_queue_up(x, t);
    return !x || x->is_active;
}

void delegation_moved(struct delegations *h, const struct task *t)
{
    struct live_delegation *x = open_delegation(h, t);

    if (x && task_waits(t->status))
        delegation_turn_is_over(x);
}
