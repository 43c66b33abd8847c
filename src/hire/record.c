/* What is written of a delegation: when it is accepted, and when its task is
 * over. */
#include "hire/internal.h"

enum { FLAG_STREAM = 1, FLAG_ENDS_WITH_LINE = 2, FLAG_GOES_ON = 4 };

static int64_t flags_of(const struct delegation *d)
{
    return (d->is_stream ? FLAG_STREAM : 0) |
           (d->ends_with_line ? FLAG_ENDS_WITH_LINE : 0) |
           (d->goes_on ? FLAG_GOES_ON : 0);
}

static void write_delegation(struct tx_op *op, const struct hire *x,
                             const struct delegation *d)
{
    struct str hash = {(const char *)x->body_hash, MSG_BODY_HASH_BYTES};

    tx_set(op, DELEGATION_KEY, value_text(str_of(d->key.text)));
    tx_set(op, DELEGATION_AGENT, value_text(d->agent));
    tx_set(op, DELEGATION_ORIGINAL_ID, value_text_or_null(d->original_id));
    tx_set(op, DELEGATION_TASK_ID, value_text(str_of(d->task_id.text)));
    tx_set(op, DELEGATION_TURN, value_int(d->turn));
    tx_set(op, DELEGATION_PARENT_ID, value_text_or_null(d->parent_id));
    tx_set(op, DELEGATION_ROOT_ID,
           value_text(d->root_id.n ? d->root_id : str_of(d->task_id.text)));
    tx_set(op, DELEGATION_MODE, value_int(d->mode));
    tx_set(op, DELEGATION_FLAGS, value_int(flags_of(d)));
    tx_set(op, DELEGATION_STATE, value_int(d->state));
    tx_set(op, DELEGATION_BODY_HASH, value_blob(hash));
    tx_set(op, DELEGATION_CREATED_MS, value_int(d->created_ms));
    tx_set(op, DELEGATION_CREATOR, value_text_or_null(d->creator));
    tx_set(op, DELEGATION_OWNER, value_text_or_null(d->owner));
    tx_set(op, DELEGATION_CONVERSATION, value_text_or_null(d->conversation));
    if (d->state == DELEGATION_READY)
        tx_set(op, DELEGATION_EXPIRES_MS, value_int(d->expires_ms));
}

void hire_from_row(struct delegation *d, const struct row *r)
{
    int64_t flags = row_int(r, DELEGATION_FLAGS);
    struct str root = row_str(r, DELEGATION_ROOT_ID);

    *d = (struct delegation){
        .key = id_from(row_str(r, DELEGATION_KEY)),
        .agent = row_str(r, DELEGATION_AGENT),
        .creator = row_str(r, DELEGATION_CREATOR),
        .original_id = row_str(r, DELEGATION_ORIGINAL_ID),
        .task_id = id_from(row_str(r, DELEGATION_TASK_ID)),
        .turn = row_int(r, DELEGATION_TURN),
        .parent_id = row_str(r, DELEGATION_PARENT_ID),
        .owner = row_str(r, DELEGATION_OWNER),
        .conversation = row_str(r, DELEGATION_CONVERSATION),
        .mode = (enum delegation_mode)row_int(r, DELEGATION_MODE),
        .state = (enum delegation_state)row_int(r, DELEGATION_STATE),
        .is_stream = flags & FLAG_STREAM,
        .ends_with_line = flags & FLAG_ENDS_WITH_LINE,
        .goes_on = flags & FLAG_GOES_ON,
        .created_ms = row_int(r, DELEGATION_CREATED_MS),
        .expires_ms = row_int(r, DELEGATION_EXPIRES_MS),
    };
    if (!str_eq(root, row_str(r, DELEGATION_TASK_ID)))
        d->root_id = root;
}

void hire_tree_query(struct query *q, struct str root_id)
{
    query_init(q, &tree_table, 1);
    query_if(q, TREE_ROOT_ID, IS, value_text(root_id));
}

/* One more under the root, if there may be. */
static void write_tree(struct hires *h, struct msg *m)
{
    struct str root =
        m->hire.root_id.n ? m->hire.root_id : str_of(m->task.id.text);
    struct tx_op *op = tx_put(&m->tx, &tree_table);

    tx_set(op, TREE_ROOT_ID, value_text(root));
    tx_set(op, TREE_ROOT_USER,
           value_text(m->hire.root_user.n ? m->hire.root_user
                                          : caller_name(&m->in.caller)));
    tx_set_new(op, TREE_N_TASKS, value_int(0));
    op = tx_add(&m->tx, &tree_table, TREE_N_TASKS, 1, 0);
    tx_if(op, TREE_ROOT_ID, IS, value_text(root));
    tx_if(op, TREE_N_TASKS, IS_LESS, value_int(h->opts.settings.max_per_root));
    tx_set(op, TREE_UPDATED_MS, value_int(m->in.at_ms));
}

/* What the gate drops is over from the beginning. */
static bool is_dropped(const struct msg *m)
{
    return pass_status(m->gate.pass.answer) == TASK_DROPPED;
}

void hire_record(struct hires *h, struct msg *m)
{
    struct hire *x = m->hire.claim;

    if (!x)
        return;
    x->d.task_id = m->task.id;
    x->d.turn = m->task.turn;
    if (is_dropped(m)) {
        x->d.state = DELEGATION_READY;
        x->d.expires_ms = m->in.at_ms + h->opts.settings.keep_ms;
    }
    write_delegation(tx_insert(&m->tx, &delegation_table), x, &x->d);
    write_tree(h, m);
}

enum err hire_refused(struct hires *h, struct msg *m)
{
    if (m->tx.result != TX_GUARD_FAILED ||
        m->tx.failed_op->table != &tree_table)
        return OK;
    hire_count_refusal(h, ERR_DELEGATIONS);
    return why_err(&m->why, ERR_DELEGATIONS,
                   "%lld tasks hang on the same root, as many as may "
                   "(delegation.maxPerRoot)",
                   (long long)h->opts.settings.max_per_root);
}

/* Those who asked for the very same while it was on its way. */
static void answer_repeats(struct hires *h, struct list *behind,
                           const struct delegation *d)
{
    struct list_node *n;

    while ((n = list_pop(behind))) {
        struct msg *m = LIST_OF(n, struct msg, hire.node);

        m->hire.is_repeat = d;
        if (d) {
            m->hire.key = d->key;
            m->task.id = d->task_id;
            m->task.turn = d->turn;
        }
        h->opts.on_known(m);
    }
}

static void unclaim(struct hires *h, struct hire *x)
{
    struct list behind;

    list_init(&behind);
    list_append_all(&behind, &x->behind);
    hire_unclaim(x);
    answer_repeats(h, &behind, NULL);
}

void hire_settle(struct hires *h, struct msg *m)
{
    struct hire *x = m->hire.claim;

    m->hire.claim = NULL;
    if (!x)
        return;
    if (m->tx.result != TX_COMMITTED) {
        unclaim(h, x);
        return;
    }
    hire_enter(x);
    h->stats.delegated_total++;
    if (x->d.state == DELEGATION_READY)
        hire_tell(x);
    answer_repeats(h, &x->behind, &x->d);
}

void hire_leave(struct hires *h, struct msg *m)
{
    struct hire *x = m->hire.claim;

    m->hire.claim = NULL;
    if (x)
        unclaim(h, x);
}

/* The end. */

/* Whole, and without a guard: no task goes on for ever because a damaged
 * database has lost this row, and the result is kept all the same. */
void hire_record_end(struct hires *h, const struct task *t, struct tx *tx)
{
    const struct hire *x = hire_of_task(h, str_of(t->id.text));
    struct delegation ready;

    if (!x || x->d.state != DELEGATION_OPEN || x->d.turn != t->turn)
        return;
    ready = x->d;
    ready.state = DELEGATION_READY;
    ready.expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
    write_delegation(tx_put(tx, &delegation_table), x, &ready);
}

void hire_settle_end(struct hires *h, const struct task *t,
                     const struct task_result *r)
{
    struct hire *x = hire_of_task(h, str_of(t->id.text));

    if (r->status != TASK_COMPLETED)
        hire_end_below(h, str_of(t->id.text), FOR_PARENT);
    if (!x || x->d.state != DELEGATION_OPEN || x->d.turn != t->turn)
        return;
    x->d.expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
    hire_ready(x);
    if (hire_tell_waiters(x, t) || x->is_unwanted)
        hire_is_had(x);
    else if (h->opts.on_ready && hire_is_own(h, &x->d) &&
             !PLANTED("hire.silent"))
        h->opts.on_ready(h->opts.ctx, &x->d, t);
}
