/* Checks that all tables agree, and counts what the module only keeps sums of.
 * Slow on purpose; tests call it after every step. */
#include "delegation/internal.h"

static bool list_has_node(const struct list *l, const struct list_node *node)
{
    for (struct list_node *n = list_first(l); n; n = list_next(l, n))
        if (n == node)
            return true;
    return false;
}

static bool delegation_is_indexed(const struct delegations *h,
                                  const struct live_delegation *x)
{
    const struct live_delegation *of_task =
        delegation_of_task(h, str_of(x->d.task_id.text));

    while (of_task && of_task != x)
        of_task = of_task->older;
    return delegation_of_key(h, str_of(x->d.key.text)) == x && of_task == x &&
           (!x->older ||
            (x->older->newer == x && x->older->d.turn < x->d.turn)) &&
           (!x->d.original_id.n || x->is_displaced ||
            delegation_of_request(h, x->d.agent, x->d.original_id) == x);
}

static bool open_delegation_is_right(const struct delegations *h,
                                     const struct live_delegation *x)
{
    const struct children *k = share_find(&h->children, x->d.parent_id);

    return list_has_node(&x->delegator->open, &x->delegator_node) &&
           !(x->is_active && list_has(&x->turn_node)) &&
           (x->d.parent_id.n ? x->siblings && x->siblings == k &&
                                   list_has_node(&k->list, &x->child_node)
                             : !x->siblings) &&
           !list_has(&x->tell_node);
}

static bool ready_delegation_is_right(const struct live_delegation *x)
{
    return list_has_node(&x->delegator->ready, &x->delegator_node) &&
           !x->siblings && !x->is_active && !list_has(&x->turn_node) &&
           !list_has(&x->ending_node) &&
           (list_is_empty(&x->waiters) || list_has(&x->tell_node) ||
            x->h->is_reading);
}

static bool delegation_is_right(const struct delegations *h,
                                const struct live_delegation *x)
{
    if (x->h != h || x->is_claimed || !delegation_is_indexed(h, x) ||
        !list_is_empty(&x->behind) ||
        delegator_find(h, x->d.agent) != x->delegator)
        return false;
    return x->d.state == DELEGATION_OPEN ? open_delegation_is_right(h, x)
                                         : ready_delegation_is_right(x);
}

static size_t delegator_count_active(const struct delegator *r)
{
    size_t n = 0;

    for (struct list_node *at = list_first(&r->open); at;
         at = list_next(&r->open, at))
        n += LIST_OF(at, struct live_delegation, delegator_node)->is_active;
    return n;
}

static bool delegator_turns_are_right(const struct delegator *r)
{
    return delegator_count_active(r) == r->n_active &&
           r->n_active + list_length(&r->waiting) <= r->n_open &&
           list_is_empty(&r->waiting) == !list_has(&r->crowd_node);
}

static bool delegators_are_right(const struct delegations *h)
{
    const struct map_slot *slot;
    size_t at = 0, n_open = 0, n_ready = 0, n_claimed = 0, n_waiting = 0;

    while ((slot = map_next(&h->delegators.by_key, &at))) {
        const struct delegator *r = slot->value;

        if (list_length(&r->open) != r->n_open ||
            list_length(&r->ready) != r->n_ready ||
            !delegator_turns_are_right(r) ||
            r->share.n != r->n_open + r->n_ready + r->n_claimed ||
            r->share.n == 0)
            return false;
        n_open += r->n_open;
        n_ready += r->n_ready;
        n_claimed += r->n_claimed;
        n_waiting += list_length(&r->waiting);
    }
    return n_open == h->n_open && n_open + n_ready == h->n &&
           n_claimed == h->n_claimed && n_waiting == h->n_waiting;
}

static bool children_are_right(const struct delegations *h)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&h->children.by_key, &at))) {
        const struct children *k = slot->value;

        if (k->share.n == 0 ||
            k->share.n != list_length(&k->list) + list_length(&k->claims))
            return false;
    }
    return true;
}

bool delegation_check(const struct delegations *h)
{
    size_t n = 0;

    for (int s = DELEGATION_OPEN; s <= DELEGATION_HAD; s++)
        for (struct list_node *at = list_first(&h->by_state[s]); at;
             at = list_next(&h->by_state[s], at), n++) {
            const struct live_delegation *x =
                LIST_OF(at, struct live_delegation, node);

            if ((int)x->d.state != s || !delegation_is_right(h, x))
                return false;
        }
    return n == h->n && h->by_key.n == h->n &&
           list_is_empty(&h->by_state[DELEGATION_HAD]) &&
           delegators_are_right(h) && children_are_right(h) &&
           map_check(&h->by_key) && map_check(&h->by_task) &&
           map_check(&h->by_request) && map_check(&h->delegators.by_key) &&
           map_check(&h->children.by_key) && timer_is_set(&h->again);
}
