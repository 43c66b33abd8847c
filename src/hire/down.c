/* What hangs on a task that failed, was cancelled or is too late goes with it:
 * nobody is there any more to take what it would bring. The same for what was
 * to end with its line, and what nobody waits for any more. A bounded number in
 * each turn of the loop; each that ends takes its own children with it, in the
 * turn after its end is written, so a tree of depth D and N tasks needs no more
 * than a few turns for each level and for every HIRE_PER_TURN of them. */
#include "hire/internal.h"

enum { AGAIN_MS = 1000 };

void hire_end(struct hire *x, enum ending why)
{
    struct hires *h = x->h;

    if (x->d.state != DELEGATION_OPEN || list_has(&x->ending_node))
        return;
    x->ending_for = why;
    if (!x->is_going && !PLANTED("hire.begins_what_ends")) {
        hire_give_up_turn(x); /* it does not begin meanwhile */
        x->is_ending = true;
    }
    list_append(&h->ending, &x->ending_node);
    loop_next_turn(h->opts.loop, &h->end_job);
}

void hire_end_below(struct hires *h, struct str task_id, enum ending why)
{
    const struct kids *k = map_get(&h->kids, task_id);

    if (!k || PLANTED("hire.leaves_children"))
        return;
    for (struct list_node *n = list_first(&k->list); n;
         n = list_next(&k->list, n))
        hire_end(LIST_OF(n, struct hire, kid_node), why);
    for (struct list_node *n = list_first(&k->claims); n;
         n = list_next(&k->claims, n))
        LIST_OF(n, struct hire, kid_node)->is_doomed = true;
}

void hire_attempt_over(struct hires *h, struct str task_id)
{
    hire_end_below(h, task_id, FOR_ATTEMPT);
}

static const struct task_result results[N_ENDINGS] = {
    [FOR_PARENT] = {.status = TASK_CANCELLED,
                    .error_code = STR("parent_ended"),
                    .error = STR("the task that this was part of came to no "
                                 "result")},
    [FOR_LINE] = {.status = TASK_CANCELLED,
                  .error_code = STR("disconnected"),
                  .error = STR("the agent that asked for it went away, and "
                               "wanted it to end then (onDisconnect)")},
    [FOR_TIME] = {.status = TASK_CANCELLED,
                  .error_code = STR("timeout"),
                  .error = STR("the agent that asked for it waited no longer "
                               "(timeoutMs)")},
    [FOR_ATTEMPT] = {.status = TASK_CANCELLED,
                     .error_code = STR("parent_ended"),
                     .error = STR("the task that this was part of is begun "
                                  "anew")},
};

/* False: not now, for want of memory. */
static bool end_one(struct hires *h, struct hire *x)
{
    const struct task_result *r = &results[x->ending_for];
    enum err e = h->opts.end_task(h->opts.ctx, str_of(x->d.task_id.text), r);

    if (e == ERR_NOMEM)
        return false;
    if (!e)
        h->stats.ended_below_total++;
    else if (e != ERR_TASK_IS_OVER)
        log_warn(h->opts.log, "hire.not_ended",
                 LOG_C("task_id", x->d.task_id.text),
                 LOG_C("because", err_row(e)->wording));
    return true;
}

void hire_try_again(struct hires *h)
{
    enum err set = loop_timer_set(h->opts.loop, &h->again, AGAIN_MS);

    assert(set == OK); /* it is set, and only moves */
    (void)set;
}

void hire_on_ending(struct loop_job *job)
{
    struct hires *h = LIST_OF(job, struct hires, end_job);
    struct list_node *n;

    for (int i = 0; i < HIRE_PER_TURN && (n = list_pop(&h->ending)); i++) {
        struct hire *x = LIST_OF(n, struct hire, ending_node);

        if (end_one(h, x))
            continue;
        list_append(&h->ending, &x->ending_node);
        hire_try_again(h);
        return;
    }
    if (!list_is_empty(&h->ending))
        loop_next_turn(h->opts.loop, &h->end_job);
}

void hire_on_again(struct timer *t)
{
    struct hires *h = LIST_OF(t, struct hires, again);
    enum err set = loop_timer_set(h->opts.loop, t, HIRE_NOTHING_MS);

    assert(set == OK); /* it has just left its place in the heap */
    (void)set;
    h->is_tired = false;
    loop_at_end(h->opts.loop, &h->end_job);
    loop_at_end(h->opts.loop, &h->tell_job);
}
