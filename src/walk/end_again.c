/* Ends of tasks that failed to commit: the task has changed meanwhile, its
 * reservation is wrong, or the disk is full. They are tried again if possible;
 * if a result cannot be held, its agent has to do the task again. */
#include "walk/internal.h"

enum { CARRY_AGAIN_MS = 1000 /* for a task whose result was dropped */ };

void walk_forget_attempt(struct walk *w, struct str task_id, enum err e)
{
    log_error(w->opts.log, "walk.result_dropped", LOG_S("task_id", task_id),
              LOG_C("because", err_row(e)->wording));
    walk_give_up_attempt(w, task_id);
    task_retry(w->tasks, task_id, CARRY_AGAIN_MS);
}

void walk_keep_unwritten(struct walk *w, struct task_change *c)
{
    if (retry_commit_hold(&w->retry_commit, c,
                          w->opts.limits.max_unfinished_bytes))
        return;
    walk_tell_agent(w, c, c->err);
    if (!c->is_unmatched)
        walk_forget_attempt(w, str_of(c->task_id.text), c->err);
    task_change_free(c);
}

/* The task was released, held or reassigned while its end was on the way: the
 * end counts for the new state, unless the deadline has started over. */
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

/* The reservation is wrong. A task that never ends helps no user: it ends
 * without moving money, and the ledger check finds it. */
static bool ends_unpaid(struct walk *w, struct task_change *c)
{
    if (!ledger_is_broken(&c->tx) || c->is_unpaid)
        return false;
    log_error(
        w->opts.log, "ledger.broken", LOG_C("task_id", c->task_id.text),
        LOG_I("turn", c->turn), LOG_C("table", c->tx.failed_op->table->name),
        LOG_S("because",
              STR("the reservation is wrong; the task ends, and its money "
                  "stays reserved (see signalbox ledger check)")));
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
    walk_tell_agent(w, c, e); /* it was ended meanwhile, or moved on */
    task_change_free(c);
}
