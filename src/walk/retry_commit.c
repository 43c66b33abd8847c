/* Ends of tasks that failed to commit: the task has changed meanwhile, its
 * reservation is wrong, or the store rejects them for now, because the disk is
 * full or memory is short. They are tried again, at once or later: an agent's
 * work is not thrown away for lack of space. If a result cannot even be held,
 * its agent has to do the task again. */
#include "walk/internal.h"

enum {
    AGAIN_MS = 500,      /* delay before the next try */
    AGAIN_AT_ONCE = 256, /* changes per try */
    SAY_FULL_MS = 10 * 1000,
    CARRY_AGAIN_MS = 1000, /* for a task whose result was dropped */
};

static size_t task_change_bytes(const struct task_change *c)
{
    return c->result.text.n + c->result.metadata.n;
}

/* A delay of zero moves a try that is already scheduled. */
static void retry_commit_in(struct walk *w, int64_t delay_ms)
{
    struct timer *t = &w->retry_commit.timer;

    if (delay_ms == 0 || !timer_is_set(t))
        loop_timer_set(w->opts.loop, t, delay_ms);
}

/* The task expired or was held too long, but it moved on first and has a new
 * deadline. */
static bool is_outrun(const struct walk *w, const struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));

    return c->result.status == TASK_EXPIRED && t && t->version != c->version &&
           (c->is_deadline || !task_waits(t->status));
}

void retry_commit_on_timer(struct timer *t)
{
    struct walk *w = LIST_OF(t, struct walk, retry_commit.timer);
    struct retry_commit *u = &w->retry_commit;
    struct list_node *n;

    for (int i = 0; i < AGAIN_AT_ONCE && (n = list_pop(&u->held)); i++) {
        struct task_change *c = LIST_OF(n, struct task_change, node);
        enum err e;

        u->n--;
        u->bytes -= task_change_bytes(c);
        e = is_outrun(w, c) ? c->err : task_change_again(w->tasks, c);
        if (!e) {
            walk_submit(w, c);
            continue;
        }
        /* The task was ended meanwhile, or moved on. */
        deliver_recorded(w->deliver, c->receipt, e);
        task_change_free(c);
    }
    if (!list_is_empty(&u->held))
        retry_commit_in(w, AGAIN_MS);
}

void retry_commit_fini(struct walk *w)
{
    struct list_node *n;

    loop_timer_cancel(w->opts.loop, &w->retry_commit.timer);
    while ((n = list_pop(&w->retry_commit.held)))
        task_change_free(LIST_OF(n, struct task_change, node));
}

bool retry_commit_later(struct walk *w, struct task_change *c)
{
    struct retry_commit *u = &w->retry_commit;
    bool is_result =
        c->result.status == TASK_COMPLETED || c->result.status == TASK_FAILED;
    bool may_commit = c->err == ERR_NO_SPACE || c->err == ERR_NOMEM ||
                      c->err == ERR_BUSY || c->err == ERR_OVERLOADED;

    if (!may_commit || is_outrun(w, c))
        return false;
    if (is_result &&
        u->bytes + task_change_bytes(c) > w->opts.limits.max_unfinished_bytes) {
        deliver_recorded(w->deliver, c->receipt, c->err);
        if (!c->is_unmatched)
            walk_forget_attempt(w, str_of(c->task_id.text), c->err);
        task_change_free(c);
        return true;
    }
    list_append(&u->held, &c->node);
    u->bytes += task_change_bytes(c);
    u->n++;
    retry_commit_in(w, AGAIN_MS);
    return true;
}

/* A full disk is logged when it starts and when it is over, but not again and
 * again while small txs find space and large ones do not. */
void retry_commit_note(struct walk *w, const struct tx *tx)
{
    struct retry_commit *u = &w->retry_commit;
    bool is_full = tx->result == TX_REFUSED && tx->err == ERR_NO_SPACE;
    bool is_committed = tx->result == TX_COMMITTED;
    int64_t now_ms = loop_mono_ms(w->opts.loop);

    if (is_full && !u->is_full &&
        (!u->full_at_ms || now_ms - u->full_at_ms >= SAY_FULL_MS)) {
        u->is_full = true;
        u->full_at_ms = now_ms;
        log_error(w->opts.log, "store.full",
                  LOG_C("because", "the disk is full; new work is rejected "
                                   "until there is space"));
    } else if (is_committed && u->is_full) {
        u->is_full = false;
        log_info(w->opts.log, "store.has_space");
    }
    if (is_committed && !list_is_empty(&u->held))
        retry_commit_in(w, 0);
}

bool retry_commit_at_once(struct walk *w, struct task_change *c)
{
    const struct task *t = task_find(w->tasks, str_of(c->task_id.text));
    bool is_broken = ledger_is_broken(&c->tx) && !c->is_unpaid;
    /* Released, held or reassigned meanwhile: the end counts for the new state,
     * unless it is an expiry, since the deadline has started over. */
    bool has_moved = c->err == ERR_BUSY && t && t->version != c->version &&
                     c->result.status != TASK_EXPIRED;

    if (!is_broken && !has_moved)
        return false;
    if (is_broken) {
        /* A task that never ends helps no user: it ends without moving money,
         * and the ledger check finds it. */
        log_error(w->opts.log, "ledger.broken",
                  LOG_C("task_id", c->task_id.text), LOG_I("turn", c->turn),
                  LOG_C("table", c->tx.failed_op->table->name),
                  LOG_C("because",
                        "the reservation is wrong; the task ends, and its "
                        "money stays reserved (see signalbox ledger check)"));
        c->is_unpaid = true;
    }
    c->err = task_change_again(w->tasks, c);
    if (!c->err)
        walk_submit(w, c);
    return !c->err;
}

void walk_forget_attempt(struct walk *w, struct str task_id, enum err e)
{
    log_error(w->opts.log, "walk.result_dropped", LOG_S("task_id", task_id),
              LOG_C("because", err_row(e)->wording));
    delegation_attempt_failed(w->delegations, task_id);
    task_retry(w->tasks, task_id, CARRY_AGAIN_MS);
}
