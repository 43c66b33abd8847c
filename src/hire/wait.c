/* Whoever waits for an answer. What they are given counts as had. Where they
 * wait no longer the work ends with them, unless they wished that it goes on:
 * then it is told as any other, later. */
#include "hire/internal.h"

static void stop(struct hire_waiter *w)
{
    loop_timer_cancel(w->hire->h->opts.loop, &w->timer);
    list_remove(&w->node);
    w->hire = NULL;
}

static void on_time(struct timer *t)
{
    struct hire_waiter *w = LIST_OF(t, struct hire_waiter, timer);
    struct hire *x = w->hire;

    stop(w);
    if (x->d.state == DELEGATION_OPEN && !x->d.goes_on &&
        list_is_empty(&x->waiters)) {
        x->is_unwanted = true;
        hire_end(x, FOR_TIME);
    }
    w->on_over(w, ERR_TIMEOUT, &x->d,
               task_find(x->h->opts.tasks, str_of(x->d.task_id.text)));
}

enum err hire_wait(struct hires *h, struct str key, int64_t wait_ms,
                   struct hire_waiter *w)
{
    struct hire *x = hire_of_key(h, key);

    if (!x)
        return ERR_NOT_FOUND;
    if (x->is_had)
        return ERR_TASK_IS_OVER;
    w->timer = (struct timer){.fire = on_time};
    if (FAULT("hire.wait") ||
        loop_timer_set(h->opts.loop, &w->timer, wait_ms) != OK)
        return ERR_NOMEM;
    w->hire = x;
    w->node = (struct list_node){0};
    list_append(&x->waiters, &w->node);
    if (x->d.state == DELEGATION_READY)
        hire_tell(x);
    return OK;
}

void hire_unwait(struct hires *h, struct hire_waiter *w)
{
    (void)h;
    if (w->hire)
        stop(w);
}

bool hire_tell_waiters(struct hire *x, const struct task *t)
{
    bool anybody = false;
    struct list_node *n;

    while ((n = list_first(&x->waiters))) {
        struct hire_waiter *w = LIST_OF(n, struct hire_waiter, node);

        stop(w);
        w->on_over(w, OK, &x->d, t);
        anybody = true;
    }
    return anybody;
}

void hire_forget_waiters(struct hire *x)
{
    struct list_node *n;

    while ((n = list_first(&x->waiters)))
        stop(LIST_OF(n, struct hire_waiter, node));
}
