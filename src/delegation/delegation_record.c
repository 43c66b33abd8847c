/* Writes a delegation: when it is accepted, and when its task is over. */
#include "delegation/internal.h"

enum { FLAG_STREAM = 1, FLAG_ENDS_WITH_LINE = 2, FLAG_GOES_ON = 4 };

static void delegation_write_row(struct tx_op *op,
                                 const struct live_delegation *x,
                                 const struct delegation *d)
{
    struct str hash = {(const char *)x->body_hash, MSG_BODY_HASH_BYTES};

    record_to_tx(op, d, DELEGATION_PLAIN);
    tx_set(op, DELEGATION_ROOT_ID,
           value_text(d->root_id.n ? d->root_id : str_of(d->task_id.text)));
    tx_set(op, DELEGATION_FLAGS,
           value_int((d->is_stream ? FLAG_STREAM : 0) |
                     (d->ends_with_line ? FLAG_ENDS_WITH_LINE : 0) |
                     (d->goes_on ? FLAG_GOES_ON : 0)));
    tx_set(op, DELEGATION_BODY_HASH, value_blob(hash));
    if (d->state == DELEGATION_READY)
        tx_set(op, DELEGATION_EXPIRES_MS, value_int(d->expires_ms));
}

void delegation_from_row(struct delegation *d, const struct row *r)
{
    int64_t flags = row_int(r, DELEGATION_FLAGS);

    *d = (struct delegation){.turn = 0};
    record_from_row(d, &delegation_table, r);
    d->is_stream = flags & FLAG_STREAM;
    d->ends_with_line = flags & FLAG_ENDS_WITH_LINE;
    d->goes_on = flags & FLAG_GOES_ON;
    if (str_eq(d->root_id, row_str(r, DELEGATION_TASK_ID)))
        d->root_id = STR("");
}

void delegation_tree_query(struct query *q, struct str root_id)
{
    query_init(q, &tree_table, 1);
    query_if(q, TREE_ROOT_ID, IS, value_text(root_id));
}

/* Count one more task under the root, within maxPerRoot. */
static void tree_write_row(struct delegations *h, struct msg *m)
{
    struct str root = m->delegation.root_id.n ? m->delegation.root_id
                                              : str_of(m->task.id.text);
    struct tx_op *op = tx_put(&m->tx, &tree_table);

    tx_set(op, TREE_ROOT_ID, value_text(root));
    tx_set(op, TREE_ROOT_USER,
           value_text(m->delegation.root_user.n ? m->delegation.root_user
                                                : caller_name(&m->in.caller)));
    tx_set_new(op, TREE_N_TASKS, value_int(0));
    op = tx_add(&m->tx, &tree_table, TREE_N_TASKS, 1, 0);
    tx_if(op, TREE_ROOT_ID, IS, value_text(root));
    tx_if(op, TREE_N_TASKS, IS_LESS, value_int(h->opts.settings.max_per_root));
    tx_set(op, TREE_UPDATED_MS, value_int(m->in.at_ms));
}

void delegation_record(void *delegations, struct msg *m)
{
    struct delegations *h = delegations;
    struct live_delegation *x = m->delegation.claim;

    if (!x)
        return;
    x->d.task_id = m->task.id;
    x->d.turn = m->task.turn;
    if (gate_result_status(m->gate.gate_result.answer) == TASK_DROPPED) {
        x->d.state = DELEGATION_READY;
        x->d.expires_ms = m->in.at_ms + h->opts.settings.keep_ms;
    }
    delegation_write_row(tx_insert(&m->tx, &delegation_table), x, &x->d);
    tree_write_row(h, m);
}

enum err delegation_refused(void *delegations, struct msg *m)
{
    struct delegations *h = delegations;

    if (m->tx.result != TX_GUARD_FAILED ||
        m->tx.failed_op->table != &tree_table)
        return OK;
    delegation_count_refusal(h, ERR_DELEGATIONS);
    return why_err(&m->why, ERR_DELEGATIONS,
                   "%lld tasks are under the same root, the limit "
                   "(delegation.maxPerRoot)",
                   (long long)h->opts.settings.max_per_root);
}

/* Answer the repeats that came while the original was on its way. */
static void answer_repeats(struct delegations *h, struct list *behind,
                           const struct delegation *d)
{
    struct list_node *n;

    while ((n = list_pop(behind))) {
        struct msg *m = LIST_OF(n, struct msg, delegation.node);

        m->delegation.is_repeat = d;
        if (d) {
            m->delegation.key = d->key;
            m->task.id = d->task_id;
            m->task.turn = d->turn;
        }
        h->opts.on_known(m);
    }
}

static void delegation_unclaim_and_answer(struct delegations *h,
                                          struct live_delegation *x)
{
    struct list behind;

    list_init(&behind);
    list_append_all(&behind, &x->behind);
    delegation_unclaim(x);
    answer_repeats(h, &behind, NULL);
}

void delegation_settle(void *delegations, struct msg *m)
{
    struct delegations *h = delegations;
    struct live_delegation *x = m->delegation.claim;

    m->delegation.claim = NULL;
    if (!x)
        return;
    if (m->tx.result != TX_COMMITTED) {
        delegation_unclaim_and_answer(h, x);
        return;
    }
    delegation_enter(x);
    h->stats.delegated_total++;
    if (x->d.state == DELEGATION_READY)
        delegation_tell(x);
    answer_repeats(h, &x->behind, &x->d);
}

void delegation_leave(void *delegations, struct msg *m)
{
    struct delegations *h = delegations;
    struct live_delegation *x = m->delegation.claim;

    m->delegation.claim = NULL;
    if (x)
        delegation_unclaim_and_answer(h, x);
}

/* The end. */

/* Put the whole row, without a guard: a damaged database that lost it must not
 * keep the task from ending, and the result is kept all the same. */
void delegation_record_end(void *delegations, const struct turn_end *end,
                           struct tx *tx)
{
    struct delegations *h = delegations;
    const struct task *t = end->task;
    const struct live_delegation *x = delegation_of_task(h, str_of(t->id.text));
    struct delegation ready;

    if (!x || x->d.state != DELEGATION_OPEN || x->d.turn != t->turn)
        return;
    ready = x->d;
    ready.state = DELEGATION_READY;
    ready.expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
    delegation_write_row(tx_put(tx, &delegation_table), x, &ready);
}

void delegation_settle_end(void *delegations, const struct turn_end *end)
{
    struct delegations *h = delegations;
    const struct task *t = end->task;
    struct live_delegation *x = delegation_of_task(h, str_of(t->id.text));

    if (end->result->status != TASK_COMPLETED)
        delegation_end_below(h, str_of(t->id.text), FOR_PARENT);
    if (!x || x->d.state != DELEGATION_OPEN || x->d.turn != t->turn)
        return;
    x->d.expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
    delegation_ready(x);
    if (delegation_tell_waiters(x, t) || x->is_unwanted)
        delegation_is_had(x);
    else if (h->opts.on_ready && delegation_is_own(h, &x->d) &&
             !PLANTED("hire.silent"))
        h->opts.on_ready(h->opts.ctx, &x->d, t);
}
