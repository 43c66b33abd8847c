/* What hangs on a task that failed, was cancelled or is too late goes with it:
 * nobody is there any more to take what it would bring. A bounded number in
 * each turn of the loop; each that ends takes its own children with it. */
#include "hire/internal.h"

void hire_end_below(struct hires *h, struct str task_id)
{
    const struct kids *k = map_get(&h->kids, task_id);

    if (!k)
        return;
    for (struct list_node *n = list_first(&k->list); n;
         n = list_next(&k->list, n)) {
        struct hire *x = LIST_OF(n, struct hire, kid_node);

        if (!list_has(&x->ending_node))
            list_append(&h->ending, &x->ending_node);
    }
    loop_at_end(h->opts.loop, &h->end_job);
}

static void end_one(struct hires *h, struct hire *x)
{
    static const struct task_result r = {
        .status = TASK_CANCELLED,
        .error_code = STR("parent_ended"),
        .error = STR("the task that this was part of came to no result")};
    enum err e = h->opts.end_task(h->opts.ctx, str_of(x->d.task_id.text), &r);

    if (e && e != ERR_TASK_IS_OVER && e != ERR_NOT_FOUND)
        log_warn(h->opts.log, "hire.not_ended",
                 LOG_C("task_id", x->d.task_id.text),
                 LOG_C("because", err_row(e)->wording));
}

void hire_on_ending(struct loop_job *job)
{
    struct hires *h = LIST_OF(job, struct hires, end_job);
    struct list_node *n;

    for (int i = 0; i < HIRE_PER_TURN && (n = list_pop(&h->ending)); i++)
        end_one(h, LIST_OF(n, struct hire, ending_node));
    if (!list_is_empty(&h->ending))
        loop_at_end(h->opts.loop, &h->end_job);
}
