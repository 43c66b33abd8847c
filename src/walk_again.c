/* Ends that did not go to the disk as they were meant: the task had changed
 * under way, its reservation was not as it must be, or there was no room. What
 * can be is tried again; what cannot be kept is done again by its agent. */
#include "walk_internal.h"

enum { CARRY_AGAIN_MS = 1000 /* a task whose result was forgotten */ };

void walk_forget_attempt(struct walk *w, struct str task_id, enum err e)
{
    log_error(w->opts.log, "walk.result_dropped", LOG_S("task_id", task_id),
              LOG_C("because", err_row(e)->wording));
    walk_give_up_attempt(w, task_id);
    task_retry(w->tasks, task_id, CARRY_AGAIN_MS);
}

void walk_keep_unwritten(struct walk *w, struct task_change *c)
{
    if (unwritten_hold(&w->unwritten, c, w->opts.limits.max_unfinished_bytes))
        return;
    walk_tell_agent(w, c, c->err);
    if (!c->is_stray)
        walk_forget_attempt(w, str_of(c->task_id.text), c->err);
    task_change_free(c);
}

/* The task was let go, held or given to another while its end was on the way:
 * the end counts for what it is now, unless its time has begun anew. */
static bool ends_as_it_is(struct walk *w, struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));

    if (c->err != ERR_BUSY || !t || t->version == c->version ||
        c->result.status == TASK_EXPIRED)
        return false;
    c->err = task_change_again(w->tasks, c);
    if (c->err)
        return false;
    walk_submit(w, c);
    return true;
}

bool walk_is_outrun(const struct walk *w, const struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));

    return c->result.status == TASK_EXPIRED && t && t->version != c->version &&
           (c->is_deadline || !task_waits(t->status));
}

/* Its reservation is not as it must be. Nobody is helped by a task that never
 * ends: it does, nothing is moved, and who checks the books finds it. */
static bool ends_unpaid(struct walk *w, struct task_change *c)
{
    if (!ledger_is_broken(&c->tx) || c->is_unpaid)
        return false;
    log_error(w->opts.log, "ledger.broken", LOG_C("task_id", c->task_id.text),
              LOG_I("turn", c->turn),
              LOG_C("table", c->tx.failed_op->table->name),
              LOG_S("because",
                    STR("the reservation is not as it must be; the task ends, "
                        "and its money stays where it is (signalbox ledger "
                        "check)")));
    c->is_unpaid = true;
    c->err = task_change_again(w->tasks, c);
    if (c->err)
        return false;
    walk_submit(w, c);
    return true;
}

bool walk_ends_anew(struct walk *w, struct task_change *c)
{
    return ends_unpaid(w, c) || ends_as_it_is(w, c);
}

void walk_on_again(void *ctx, struct task_change *c)
{
    struct walk *w = ctx;
    enum err e = walk_is_outrun(w, c) ? c->err : task_change_again(w->tasks, c);

    if (!e) {
        walk_submit(w, c);
        return;
    }
    walk_tell_agent(w, c, e); /* somebody ended it meanwhile, or it went on */
    task_change_free(c);
}
