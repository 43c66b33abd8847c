/* Whether everything is where it says it is: counts what the room only keeps
 * sums of. Slow on purpose; tests ask after every step. */
#include "hire/internal.h"

static bool list_holds(const struct list *l, const struct list_node *node)
{
    for (struct list_node *n = list_first(l); n; n = list_next(l, n))
        if (n == node)
            return true;
    return false;
}

static bool is_found(const struct hires *h, const struct hire *x)
{
    const struct hire *of_task = hire_of_task(h, str_of(x->d.task_id.text));

    while (of_task && of_task != x)
        of_task = of_task->older;
    return hire_of_key(h, str_of(x->d.key.text)) == x && of_task == x &&
           (!x->older ||
            (x->older->newer == x && x->older->d.turn < x->d.turn)) &&
           (!x->d.original_id.n || x->is_displaced ||
            hire_of_request(h, x->d.agent, x->d.original_id) == x);
}

static bool open_is_right(const struct hires *h, const struct hire *x)
{
    const struct kids *k = map_get(&h->kids, x->d.parent_id);

    return list_holds(&x->hirer->open, &x->hirer_node) &&
           !(x->is_going && list_has(&x->turn_node)) &&
           (x->d.parent_id.n
                ? x->kids && x->kids == k && list_holds(&k->list, &x->kid_node)
                : !x->kids) &&
           !list_has(&x->tell_node);
}

static bool ready_is_right(const struct hire *x)
{
    return list_holds(&x->hirer->ready, &x->hirer_node) && !x->kids &&
           !x->is_going && !list_has(&x->turn_node) &&
           !list_has(&x->ending_node) &&
           (list_is_empty(&x->waiters) || list_has(&x->tell_node) ||
            x->h->is_reading);
}

static bool hire_is_right(const struct hires *h, const struct hire *x)
{
    if (x->h != h || x->is_claimed || !is_found(h, x) ||
        !list_is_empty(&x->behind) || hirer_find(h, x->d.agent) != x->hirer)
        return false;
    return x->d.state == DELEGATION_OPEN ? open_is_right(h, x)
                                         : ready_is_right(x);
}

static size_t count_going(const struct hirer *r)
{
    size_t n = 0;

    for (struct list_node *at = list_first(&r->open); at;
         at = list_next(&r->open, at))
        n += LIST_OF(at, struct hire, hirer_node)->is_going;
    return n;
}

static bool turns_are_right(const struct hirer *r)
{
    return count_going(r) == r->n_going &&
           r->n_going + list_length(&r->waiting) <= r->n_open &&
           list_is_empty(&r->waiting) == !list_has(&r->crowd_node);
}

static bool hirers_are_right(const struct hires *h)
{
    const struct map_slot *slot;
    size_t at = 0, n_open = 0, n_ready = 0, n_claimed = 0, n_waiting = 0;

    while ((slot = map_next(&h->hirers, &at))) {
        const struct hirer *r = slot->value;

        if (list_length(&r->open) != r->n_open ||
            list_length(&r->ready) != r->n_ready || !turns_are_right(r) ||
            (!r->n_open && !r->n_claimed && list_is_empty(&r->ready)))
            return false;
        n_open += r->n_open;
        n_ready += r->n_ready;
        n_claimed += r->n_claimed;
        n_waiting += list_length(&r->waiting);
    }
    return n_open == h->n_open && n_open + n_ready == h->n &&
           n_claimed == h->n_claimed && n_waiting == h->n_waiting;
}

static bool kids_are_right(const struct hires *h)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&h->kids, &at))) {
        const struct kids *k = slot->value;

        if (list_is_empty(&k->list) && list_is_empty(&k->claims))
            return false;
    }
    return true;
}

bool hire_check(const struct hires *h)
{
    size_t n = 0;

    for (int s = DELEGATION_OPEN; s <= DELEGATION_HAD; s++)
        for (struct list_node *at = list_first(&h->by_state[s]); at;
             at = list_next(&h->by_state[s], at), n++) {
            const struct hire *x = LIST_OF(at, struct hire, node);

            if ((int)x->d.state != s || !hire_is_right(h, x))
                return false;
        }
    return n == h->n && h->by_key.n == h->n &&
           list_is_empty(&h->by_state[DELEGATION_HAD]) && hirers_are_right(h) &&
           kids_are_right(h) && map_check(&h->by_key) &&
           map_check(&h->by_task) && map_check(&h->by_request) &&
           map_check(&h->hirers) && map_check(&h->kids) &&
           timer_is_set(&h->again);
}
