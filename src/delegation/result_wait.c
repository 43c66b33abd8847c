/* Waiting for a result. A result given to a waiter counts as acknowledged. When
 * the last waiter gives up, the task ends, unless the request asked to
 * continue: then the result is reported later like any other. */
#include "delegation/internal.h"

static void delegation_waiter_stop(struct delegation_waiter *w)
{
    loop_timer_cancel(w->delegation->h->opts.loop, &w->timer);
    list_remove(&w->node);
    w->delegation = NULL;
}

static void on_wait_timeout(struct timer *t)
{
    struct delegation_waiter *w = LIST_OF(t, struct delegation_waiter, timer);
    struct live_delegation *x = w->delegation;

    delegation_waiter_stop(w);
    if (x->d.state == DELEGATION_OPEN && !x->d.goes_on &&
        list_is_empty(&x->waiters)) {
        x->is_unwanted = true;
        delegation_end(x, FOR_TIME);
    }
    w->on_over(w, ERR_TIMEOUT, &x->d,
               task_find(x->h->opts.tasks, str_of(x->d.task_id.text)));
}

enum err delegation_wait(struct delegations *h, struct str key, int64_t wait_ms,
                         struct delegation_waiter *w)
{
    struct live_delegation *x = delegation_of_key(h, key);

    if (!x)
        return ERR_NOT_FOUND;
    if (x->is_had)
        return ERR_TASK_IS_OVER;
    w->timer = (struct timer){.fire = on_wait_timeout};
    loop_timer_set(h->opts.loop, &w->timer, wait_ms);
    w->delegation = x;
    w->node = (struct list_node){0};
    list_append(&x->waiters, &w->node);
    if (x->d.state == DELEGATION_READY)
        delegation_tell(x);
    return OK;
}

void delegation_unwait(struct delegations *h, struct delegation_waiter *w)
{
    (void)h;
    if (w->delegation)
        delegation_waiter_stop(w);
}

bool delegation_tell_waiters(struct live_delegation *x, const struct task *t)
{
    bool has_any = false;
    struct list_node *n;

    while ((n = list_first(&x->waiters))) {
        struct delegation_waiter *w =
            LIST_OF(n, struct delegation_waiter, node);

        delegation_waiter_stop(w);
        w->on_over(w, OK, &x->d, t);
        has_any = true;
    }
    return has_any;
}

void delegation_forget_waiters(struct live_delegation *x)
{
    struct list_node *n;

    while ((n = list_first(&x->waiters)))
        delegation_waiter_stop(LIST_OF(n, struct delegation_waiter, node));
}
