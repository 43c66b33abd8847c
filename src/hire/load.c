/* The two ends of a row's life: what was kept comes back, and what nobody needs
 * any more goes.
 *
 * Of an open one the task was taken up by task/ before; what hangs on a parent
 * that is over otherwise than well, or on an attempt that went with the server,
 * is ended in the first turns of the loop. */
#include "hire/internal.h"

enum {
    LOAD_PAGE = 500,
    WRITTEN_MS = 60 * 1000, /* what was begun before that is written */
};

static enum err no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM,
                   "there is not enough memory for the delegations");
}

/* The row of a task, or none; query_fini follows. */
static enum err read_task(struct hires *h, struct str id, struct query *q,
                          struct why *why)
{
    enum err e;

    query_init(q, &task_table, 1);
    query_if(q, TASK_ID, IS, value_text(id));
    e = store_look(h->opts.store, q);
    if (e)
        why_err(why, e, "the tasks cannot be read: %s", err_row(e)->wording);
    return e;
}

/* *status is zero where there is no such task. */
static enum err look_at(struct hires *h, struct str id,
                        enum task_status *status, struct why *why)
{
    struct query q;
    enum err e = read_task(h, id, &q, why);

    *status = !e && q.rows ? (enum task_status)row_int(q.rows, TASK_STATUS) : 0;
    query_fini(&q);
    return e;
}

/* Open, and its task not to be found: never written so, but who asked is to
 * hear of it rather than wait for ever. */
static void look_for_task(struct hires *h, struct delegation *d)
{
    const struct task *t = task_find(h->opts.tasks, str_of(d->task_id.text));

    if (d->state != DELEGATION_OPEN || (t && t->turn == d->turn))
        return;
    d->state = DELEGATION_READY;
    d->expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
}

/* Now, and not when it is offered: what had begun is offered after what had
 * not, and has its place before it. */
static void come_up(const struct hire *x)
{
    const struct task *t =
        task_find(x->h->opts.tasks, str_of(x->d.task_id.text));

    if (t && !task_waits(t->status) && task_is_first(t))
        hire_come_up(x->h, t);
}

static enum err enter(struct hires *h, struct delegation d, const struct row *r,
                      struct why *why)
{
    struct str hash = row_str(r, DELEGATION_BODY_HASH);
    struct hire *x;

    if (!id_is_valid(str_of(d.key.text), "del") ||
        !id_is_valid(str_of(d.task_id.text), "task"))
        return why_err(why, ERR_BAD_CONFIG,
                       "the delegation \"%s\" cannot be understood: it was "
                       "written by a newer version, or the database is "
                       "damaged; restore a backup or use that version",
                       d.key.text);
    look_for_task(h, &d);
    x = hire_make(h, &d);
    if (!x)
        return no_memory(why);
    if (hash.n == MSG_BODY_HASH_BYTES)
        memcpy(x->body_hash, hash.p, hash.n);
    if (hire_claim(x) != OK) {
        hire_unclaim(x);
        return no_memory(why);
    }
    hire_enter(x);
    come_up(x);
    return OK;
}

/* Before version 4 only the parent had these. Lent by q. */
static enum err find_owner(struct hires *h, struct delegation *d,
                           struct query *q, struct why *why)
{
    enum err e = read_task(h, d->parent_id, q, why);

    if (e || !q->rows)
        return e;
    d->owner = row_str(q->rows, TASK_REQUESTER);
    d->conversation = row_str(q->rows, TASK_CONVERSATION_ID);
    return OK;
}

static enum err take_up(struct hires *h, const struct row *r, struct why *why)
{
    struct delegation d;
    struct query q;
    enum err e;

    hire_from_row(&d, r);
    if (!d.parent_id.n || d.conversation.n)
        return enter(h, d, r, why);
    e = find_owner(h, &d, &q, why);
    if (!e)
        e = enter(h, d, r, why);
    query_fini(&q);
    return e;
}

static enum err load_page(struct hires *h, enum delegation_state state,
                          struct id *last, bool *has_more, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &delegation_table, LOAD_PAGE);
    query_if(&q, DELEGATION_STATE, IS, value_int(state));
    if (state == DELEGATION_READY)
        query_if(&q, DELEGATION_EXPIRES_MS, IS_MORE,
                 value_int(loop_wall_ms(h->opts.loop)));
    query_if(&q, DELEGATION_KEY, IS_MORE, value_text(str_of(last->text)));
    query_order(&q, DELEGATION_KEY, false);
    e = store_look(h->opts.store, &q);
    if (e)
        why_err(why, e, "the delegations cannot be read: %s",
                err_row(e)->wording);
    for (const struct row *r = q.rows; r && !e; r = r->next) {
        e = take_up(h, r, why);
        *last = id_from(row_str(r, DELEGATION_KEY));
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

static enum err load_all(struct hires *h, enum delegation_state state,
                         struct why *why)
{
    struct id last = {""};
    bool has_more = true;
    enum err e = OK;

    while (has_more && !e)
        e = load_page(h, state, &last, &has_more, why);
    return e;
}

/* Whether what hangs on it is to end. */
static enum err judge_parent(struct hires *h, struct str id, bool *is_lost,
                             enum ending *because, struct why *why)
{
    const struct task *t = task_find(h->opts.tasks, id);
    enum task_status status;
    enum err e;

    *because = FOR_PARENT;
    if (t) { /* whatever attempt there was went with the server */
        *because = FOR_ATTEMPT;
        *is_lost = !h->opts.comes_back(h->opts.ctx, t);
        return OK;
    }
    e = look_at(h, id, &status, why);
    *is_lost = !e && status && status != TASK_COMPLETED;
    return e;
}

static enum err end_orphans(struct hires *h, struct why *why)
{
    const struct map_slot *slot;
    enum ending because;
    size_t at = 0;
    bool is_lost;
    enum err e = OK;

    while (!e && (slot = map_next(&h->kids, &at))) {
        e = judge_parent(h, slot->key, &is_lost, &because, why);
        if (!e && is_lost)
            hire_end_below(h, slot->key, because);
    }
    return e;
}

enum err hire_load(struct hires *h, struct why *why)
{
    enum err e = load_all(h, DELEGATION_OPEN, why);

    if (!e)
        e = load_all(h, DELEGATION_READY, why);
    if (!e && !PLANTED("hire.orphans"))
        e = end_orphans(h, why);
    if (!e)
        hire_tell_by_notes(h);
    if (!e && h->n)
        log_info(h->opts.log, "hire.taken_up",
                 LOG_I("open", (int64_t)h->n_open),
                 LOG_I("ready", (int64_t)(h->n - h->n_open)));
    return e;
}

/* Results that nobody fetched: they are in the order in which they came to be,
 * but for a change of keep_ms. */
static void expire(struct hires *h, int64_t now_ms)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];
    struct list_node *next;

    for (struct list_node *n = list_first(ready); n; n = next) {
        struct hire *x = LIST_OF(n, struct hire, node);

        next = list_next(ready, n);
        if (x->d.expires_ms > now_ms || !list_is_empty(&x->waiters))
            continue;
        h->stats.expired_total++;
        hire_drop(x);
    }
}

/* A root's count stays as long as anything is open that may be under it. */
static int64_t unused_since_ms(const struct hires *h, int64_t before_ms)
{
    const struct list *open = &h->by_state[DELEGATION_OPEN];

    for (struct list_node *n = list_first(open); n; n = list_next(open, n)) {
        int64_t ms = LIST_OF(n, struct hire, node)->d.created_ms;

        if (ms < before_ms)
            before_ms = ms;
    }
    return before_ms;
}

/* A task is over after it was given away. The end of an open one may be on its
 * way to the disk, and is no older than that takes. */
int64_t hire_needed_ms(const struct hires *h)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];
    int64_t ms = INT64_MAX;

    if (PLANTED("hire.eaten"))
        return ms;
    if (h->n_open || h->n_claimed)
        ms = loop_wall_ms(h->opts.loop) - WRITTEN_MS;
    for (struct list_node *n = list_first(ready); n; n = list_next(ready, n)) {
        int64_t created_ms = LIST_OF(n, struct hire, node)->d.created_ms;

        if (created_ms < ms)
            ms = created_ms;
    }
    return ms;
}

void hire_prune(struct hires *h, struct tx *tx, int64_t now_ms,
                int64_t before_ms, size_t limit)
{
    struct tx_op *op = tx_prune(tx, &delegation_table, limit);

    tx_if(op, DELEGATION_STATE, IS, value_int(DELEGATION_HAD));
    tx_if(op, DELEGATION_EXPIRES_MS, IS_LESS, value_int(before_ms));
    op = tx_prune(tx, &delegation_table, limit);
    tx_if(op, DELEGATION_STATE, IS, value_int(DELEGATION_READY));
    tx_if(op, DELEGATION_EXPIRES_MS, IS_AT_MOST, value_int(now_ms));
    op = tx_prune(tx, &note_table, limit);
    tx_if(op, NOTE_AT_MS, IS_LESS, value_int(before_ms));
    op = tx_prune(tx, &tree_table, limit);
    tx_if(op, TREE_UPDATED_MS, IS_LESS,
          value_int(unused_since_ms(h, before_ms)));
    expire(h, now_ms);
}
