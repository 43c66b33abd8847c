/* Ends the children of a task that failed, was cancelled or expired: nothing
 * will use their results. The same for delegations that were to end with their
 * connection, or that the requester stopped waiting for.
 *
 * A bounded number ends in each turn of the loop. A task that ends takes its
 * own children with it in the turn after its end is stored, so a tree of depth
 * D and N tasks needs only a few turns per level and per DELEGATION_PER_TURN
 * tasks. */
#include "delegation/internal.h"

enum { AGAIN_MS = 1000 };

void delegation_end(struct live_delegation *x, enum ending why)
{
    struct delegations *h = x->h;

    if (x->d.state != DELEGATION_OPEN || list_has(&x->ending_node))
        return;
    x->ending_for = why;
    if (!x->is_active && !PLANTED("hire.begins_what_ends")) {
        delegation_give_up_turn(x); /* it must not start meanwhile */
        x->is_ending = true;
    }
    list_append(&h->ending, &x->ending_node);
    loop_next_turn(h->opts.loop, &h->end_job);
}

void delegation_end_below(struct delegations *h, struct str task_id,
                          enum ending why)
{
    const struct children *k = share_find(&h->children, task_id);

    if (!k || PLANTED("hire.leaves_children"))
        return;
    for (struct list_node *n = list_first(&k->list); n;
         n = list_next(&k->list, n))
        delegation_end(LIST_OF(n, struct live_delegation, child_node), why);
    for (struct list_node *n = list_first(&k->claims); n;
         n = list_next(&k->claims, n))
        LIST_OF(n, struct live_delegation, child_node)->is_doomed = true;
}

void delegation_attempt_over(struct delegations *h, struct str task_id)
{
    delegation_end_below(h, task_id, FOR_ATTEMPT);
}

bool delegation_agent_comes_back(const struct delegations *h,
                                 const struct task *t)
{
    const struct agent *a = registry_agent_for(h->opts.registry, t);
    struct agent_url url;

    return !a || agent_url_read(a->url, &url, NULL) != OK ||
           url.transport == TRANSPORT_HUB;
}

void delegation_attempt_failed(struct delegations *h, struct str task_id)
{
    const struct task *t = task_find(h->opts.tasks, task_id);

    if (t && !task_is_over(t->status) && !delegation_agent_comes_back(h, t))
        delegation_attempt_over(h, task_id);
}

static const struct task_result ending_results[N_ENDINGS] = {
    [FOR_PARENT] = {.status = TASK_CANCELLED,
                    .error_code = STR("parent_ended"),
                    .error = STR("the parent task ended without a result")},
    [FOR_LINE] = {.status = TASK_CANCELLED,
                  .error_code = STR("disconnected"),
                  .error = STR("the requesting agent disconnected "
                               "(onDisconnect: cancel)")},
    [FOR_TIME] = {.status = TASK_CANCELLED,
                  .error_code = STR("timeout"),
                  .error = STR("the requesting agent stopped waiting "
                               "(timeoutMs)")},
    [FOR_ATTEMPT] = {.status = TASK_CANCELLED,
                     .error_code = STR("parent_ended"),
                     .error = STR("the parent task starts over")},
};

/* False: no memory now, try again later. */
static bool delegation_end_one(struct delegations *h, struct live_delegation *x)
{
    const struct task_result *r = &ending_results[x->ending_for];
    enum err e =
        h->opts.end(h->opts.ctx, str_of(x->d.task_id.text), r, NULL, NULL);

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

void delegation_try_again(struct delegations *h)
{
    loop_timer_set(h->opts.loop, &h->again, AGAIN_MS);
}

void delegation_on_ending(struct loop_job *job)
{
    struct delegations *h = LIST_OF(job, struct delegations, end_job);
    struct list_node *n;

    for (int i = 0; i < DELEGATION_PER_TURN && (n = list_pop(&h->ending));
         i++) {
        struct live_delegation *x =
            LIST_OF(n, struct live_delegation, ending_node);

        if (delegation_end_one(h, x))
            continue;
        list_append(&h->ending, &x->ending_node);
        delegation_try_again(h);
        return;
    }
    if (!list_is_empty(&h->ending))
        loop_next_turn(h->opts.loop, &h->end_job);
}

void delegation_on_again(struct timer *t)
{
    struct delegations *h = LIST_OF(t, struct delegations, again);

    loop_timer_set(h->opts.loop, t, DELEGATION_NOTHING_MS);
    h->is_tired = false;
    loop_at_end(h->opts.loop, &h->end_job);
    loop_at_end(h->opts.loop, &h->tell_job);
}
