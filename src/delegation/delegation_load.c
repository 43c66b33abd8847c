/* Loading delegation rows at the start, and removing rows that are not needed
 * any more.
 *
 * The tasks of open delegations were loaded by task/ before. Children whose
 * parent is over without completing, or whose parent's attempt ended with the
 * server, are ended in the first turns of the loop. */
#include "delegation/internal.h"

enum {
    LOAD_PAGE = 500,
    WRITTEN_MS = 60 * 1000, /* what began before that is stored */
};

/* The row of a task, or none. The caller calls query_fini. */
static enum err delegation_read_task(struct delegations *h, struct str id,
                                     struct query *q, struct why *why)
{
    enum err e;

    query_init(q, &task_table, 1);
    query_if(q, TASK_ID, IS, value_text(id));
    e = store_look(h->opts.store, q);
    if (e)
        why_err(why, e, "the tasks cannot be read: %s", err_row(e)->wording);
    return e;
}

/* An open delegation without its task is never written. If it is found all the
 * same, the requester is told rather than left waiting for ever. */
static void delegation_close_if_lost(struct delegations *h,
                                     struct delegation *d)
{
    const struct task *t = task_find(h->opts.tasks, str_of(d->task_id.text));

    if (d->state != DELEGATION_OPEN || (t && t->turn == d->turn))
        return;
    d->state = DELEGATION_READY;
    d->expires_ms = loop_wall_ms(h->opts.loop) + h->opts.settings.keep_ms;
}

/* Take the turn now, not when the task is offered: tasks that had started are
 * offered after new ones, but have their turn before them. */
static void delegation_load_turn(const struct live_delegation *x)
{
    const struct task *t =
        task_find(x->h->opts.tasks, str_of(x->d.task_id.text));

    if (t && !task_waits(t->status) && task_is_first(t))
        delegation_come_up(x->h, t);
}

static enum err delegation_load_row(struct delegations *h, struct delegation d,
                                    const struct row *r, struct why *why)
{
    struct str hash = row_str(r, DELEGATION_BODY_HASH);
    struct live_delegation *x;

    if (!id_is_valid(str_of(d.key.text), "del") ||
        !id_is_valid(str_of(d.task_id.text), "task"))
        return why_err(why, ERR_BAD_CONFIG,
                       "the delegation \"%s\" cannot be read: it was written "
                       "by a newer version, or the database is damaged; "
                       "restore a backup or use that version",
                       d.key.text);
    delegation_close_if_lost(h, &d);
    x = delegation_make(h, &d);
    if (hash.n == MSG_BODY_HASH_BYTES)
        memcpy(x->body_hash, hash.p, hash.n);
    if (delegation_claim(x) != OK) {
        delegation_unclaim(x);
        return why_err(why, ERR_NOMEM, "not enough memory for the delegations");
    }
    delegation_enter(x);
    delegation_load_turn(x);
    return OK;
}

static enum err delegation_load_with_owner(struct delegations *h,
                                           const struct row *r, struct why *why)
{
    struct delegation d;
    struct query q;
    enum err e;

    delegation_from_row(&d, r);
    if (!d.parent_id.n || d.conversation.n)
        return delegation_load_row(h, d, r, why);
    /* Rows older than schema version 4 have no owner and conversation: take
     * them from the parent, valid as long as q. */
    e = delegation_read_task(h, d.parent_id, &q, why);
    if (!e && q.rows) {
        d.owner = row_str(q.rows, TASK_REQUESTER);
        d.conversation = row_str(q.rows, TASK_CONVERSATION_ID);
    }
    if (!e)
        e = delegation_load_row(h, d, r, why);
    query_fini(&q);
    return e;
}

static enum err delegation_load_page(struct delegations *h,
                                     enum delegation_state state,
                                     struct id *last, bool *has_more,
                                     struct why *why)
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
        e = delegation_load_with_owner(h, r, why);
        *last = id_from(row_str(r, DELEGATION_KEY));
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

static enum err delegation_load_state(struct delegations *h,
                                      enum delegation_state state,
                                      struct why *why)
{
    struct id last = {""};
    bool has_more = true;
    enum err e = OK;

    while (has_more && !e)
        e = delegation_load_page(h, state, &last, &has_more, why);
    return e;
}

/* Decide whether the children of a task must end. */
static enum err delegation_judge_parent(struct delegations *h, struct str id,
                                        bool *is_lost, enum ending *because,
                                        struct why *why)
{
    const struct task *t = task_find(h->opts.tasks, id);
    struct query q;
    enum err e;

    *because = FOR_PARENT;
    if (t) { /* its attempt ended with the server */
        *because = FOR_ATTEMPT;
        *is_lost = !delegation_agent_comes_back(h, t);
        return OK;
    }
    e = delegation_read_task(h, id, &q, why);
    *is_lost = !e && q.rows && row_int(q.rows, TASK_STATUS) != TASK_COMPLETED;
    query_fini(&q);
    return e;
}

static enum err delegation_end_orphans(struct delegations *h, struct why *why)
{
    const struct map_slot *slot;
    enum ending because;
    size_t at = 0;
    bool is_lost;
    enum err e = OK;

    while (!e && (slot = map_next(&h->children.by_key, &at))) {
        e = delegation_judge_parent(h, slot->key, &is_lost, &because, why);
        if (!e && is_lost)
            delegation_end_below(h, slot->key, because);
    }
    return e;
}

enum err delegation_load(struct delegations *h, struct why *why)
{
    enum err e = delegation_load_state(h, DELEGATION_OPEN, why);

    if (!e)
        e = delegation_load_state(h, DELEGATION_READY, why);
    if (!e && !PLANTED("hire.orphans"))
        e = delegation_end_orphans(h, why);
    if (!e)
        delegation_tell_by_notes(h);
    if (!e && h->n)
        log_info(h->opts.log, "hire.taken_up",
                 LOG_I("open", (int64_t)h->n_open),
                 LOG_I("ready", (int64_t)(h->n - h->n_open)));
    return e;
}

/* Unfetched results are in the order of their end, unless keep_ms was changed,
 * so all are looked at. */
static void delegation_expire(struct delegations *h, int64_t now_ms)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];
    struct list_node *next;

    for (struct list_node *n = list_first(ready); n; n = next) {
        struct live_delegation *x = LIST_OF(n, struct live_delegation, node);

        next = list_next(ready, n);
        if (x->d.expires_ms > now_ms || !list_is_empty(&x->waiters))
            continue;
        h->stats.expired_total++;
        delegation_drop(x);
    }
}

/* The count of a root stays as long as an open delegation may be under it. */
static int64_t tree_unused_since_ms(const struct delegations *h,
                                    int64_t before_ms)
{
    const struct list *open = &h->by_state[DELEGATION_OPEN];

    for (struct list_node *n = list_first(open); n; n = list_next(open, n)) {
        int64_t ms = LIST_OF(n, struct live_delegation, node)->d.created_ms;

        if (ms < before_ms)
            before_ms = ms;
    }
    return before_ms;
}

/* A task ends after it was delegated. The end of an open delegation may be on
 * its way to the disk, and cannot be older than WRITTEN_MS. */
int64_t delegation_needed_ms(const struct delegations *h)
{
    const struct list *ready = &h->by_state[DELEGATION_READY];
    int64_t ms = INT64_MAX;

    if (PLANTED("hire.eaten"))
        return ms;
    if (h->n_open || h->n_claimed)
        ms = loop_wall_ms(h->opts.loop) - WRITTEN_MS;
    for (struct list_node *n = list_first(ready); n; n = list_next(ready, n)) {
        int64_t created_ms =
            LIST_OF(n, struct live_delegation, node)->d.created_ms;

        if (created_ms < ms)
            ms = created_ms;
    }
    return ms;
}

void delegation_prune(struct delegations *h, struct tx *tx, int64_t now_ms,
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
          value_int(tree_unused_since_ms(h, before_ms)));
    delegation_expire(h, now_ms);
}
