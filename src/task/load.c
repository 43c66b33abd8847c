/* The two ends of a row's life in the store: a start takes up what is not over,
 * retention removes what has been over for long.
 *
 * Nothing is written at the start, so ten thousand tasks cost a read of ten
 * thousand rows. How far the last attempt came nobody knows; it counts as one
 * that failed, and so does one for every start since the row was written,
 * whether there was an attempt in it or not: numbers may be left out, but none
 * is given twice (task.h, order.c).
 *
 * Rows are read by seq, pages of which need no index of their own, and begin
 * by place, for a further turn has the seq of its task and stands behind what
 * came before it: all of them are claimed first, sorted, and then begun. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { LOAD_PAGE = 500 };

static enum err too_many(struct why *why)
{
    return why_err(why, ERR_NOMEM,
                   "there is not enough memory for the unfinished tasks");
}

static enum err take_up(struct tasks *ts, const struct row *r, int64_t now_ms,
                        struct why *why)
{
    struct task_entry *e;
    struct task t;

    task_from_row(&t, r);
    if (!id_is_valid(str_of(t.id.text), "task") ||
        !task_status_name(t.status).n || task_is_over(t.status))
        return why_err(why, ERR_BAD_CONFIG,
                       "the task with seq %lld cannot be understood: it was "
                       "written by a newer version, or the database is "
                       "damaged; restore a backup or use that version",
                       (long long)t.seq);
    /* Never written, but it would mean the same. */
    if (t.status == TASK_DISPATCHED || t.status == TASK_WORKING)
        t.status = TASK_QUEUED;
    if (ts->epoch > t.epoch)
        t.attempt += ts->epoch - t.epoch;
    e = task_entry_new(ts, &t, task_left_ms(&t, now_ms));
    return e ? OK : too_many(why);
}

static int by_place(const void *left, const void *right)
{
    const struct task *a = &(*(struct task_entry *const *)left)->t;
    const struct task *b = &(*(struct task_entry *const *)right)->t;

    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Everything that was taken up goes on, in the order of its acceptance. */
static enum err begin_all(struct tasks *ts, int64_t now_ms, struct why *why)
{
    size_t n = ts->n_entries[CLAIMED], i = 0;
    struct list *claimed = &ts->entries[CLAIMED];
    struct task_entry **all;

    if (!n)
        return OK;
    all = FAULT("task.sort") ? NULL : calloc(n, sizeof(struct task_entry *));
    if (!all)
        return too_many(why);
    for (struct list_node *at = list_first(claimed); at;
         at = list_next(claimed, at))
        all[i++] = entry_of_node(at);
    qsort(all, n, sizeof(struct task_entry *), by_place);
    for (i = 0; i < n; i++) {
        entry_begin(all[i]);
        lane_take_up(all[i], now_ms);
    }
    free(all);
    return OK;
}

static enum err find_newest(struct tasks *ts, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &task_table, 1);
    query_order(&q, TASK_SEQ, true);
    e = store_look(ts->opts.store, &q);
    if (e)
        why_err(why, e, "the tasks cannot be read: %s", err_row(e)->wording);
    else if (q.rows)
        ts->newest_seq = row_int(q.rows, TASK_SEQ);
    query_fini(&q);
    return e;
}

/* One page behind *seq; *seq becomes that of its last row. */
static enum err load_page(struct tasks *ts, int64_t *seq, bool *has_more,
                          int64_t now_ms, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &task_table, LOAD_PAGE);
    query_if(&q, TASK_FINISHED_MS, IS, value_null());
    query_if(&q, TASK_SEQ, IS_MORE, value_int(*seq));
    query_order(&q, TASK_SEQ, false);
    e = store_look(ts->opts.store, &q);
    if (e)
        why_err(why, e, "the tasks cannot be read: %s", err_row(e)->wording);
    for (const struct row *r = q.rows; r && !e; r = r->next) {
        e = take_up(ts, r, now_ms, why);
        *seq = row_int(r, TASK_SEQ);
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

enum err tasks_load(struct tasks *ts, int64_t now_ms, struct why *why)
{
    enum err e = find_newest(ts, why);
    bool has_more = !e;
    int64_t seq = 0;

    while (has_more && !e)
        e = load_page(ts, &seq, &has_more, now_ms, why);
    if (!e)
        e = begin_all(ts, now_ms, why);
    if (!e && ts->n_entries[GOING_ON])
        log_info(ts->opts.log, "task.taken_up",
                 LOG_I("tasks", (int64_t)ts->n_entries[GOING_ON]),
                 LOG_I("epoch", ts->epoch));
    return e;
}

/* A conversation goes when its last task has gone: when it was used before the
 * oldest that is kept began. It was used at the latest when the youngest of its
 * turns began, so nothing used since the oldest unfinished turn may go. */
static int64_t unused_since_ms(const struct tasks *ts,
                               const struct tasks_keep *keep)
{
    int64_t began_ms = timers_next_ms(&ts->began);

    return began_ms < keep->oldest_ms ? began_ms : keep->oldest_ms;
}

void tasks_oldest(struct query *q)
{
    query_init(q, &task_table, 1);
    query_order(q, TASK_SEQ, false);
}

void tasks_prune(struct tasks *ts, struct tx *tx, const struct tasks_keep *keep)
{
    int64_t needed_ms = keep->needed_ms ? keep->needed_ms : INT64_MAX;
    size_t limit = keep->limit;
    struct tx_op *op = tx_prune(tx, &task_table, limit);

    /* What is not over has no time of its end, and NULL is not less. */
    tx_if(op, TASK_FINISHED_MS, IS_LESS,
          value_int(keep->before_ms < needed_ms ? keep->before_ms : needed_ms));
    if (keep->rows > 0 && ts->newest_seq > keep->rows) {
        op = tx_prune(tx, &task_table, limit);
        tx_if(op, TASK_SEQ, IS_AT_MOST, value_int(ts->newest_seq - keep->rows));
        tx_if(op, TASK_FINISHED_MS, IS_LESS, value_int(needed_ms));
    }
    op = tx_prune(tx, &conversation_table, limit);
    tx_if(op, CONVERSATION_USED_MS, IS_LESS,
          value_int(unused_since_ms(ts, keep)));
    op = tx_prune(tx, &key_table, limit);
    tx_if(op, KEY_EXPIRES_MS, IS_AT_MOST, value_int(keep->now_ms));
}
