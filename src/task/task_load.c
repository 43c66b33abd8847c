/* Loading unfinished tasks at the start, and deleting old ones.
 *
 * The start writes nothing, so ten thousand tasks cost ten thousand row reads.
 * The progress of the last attempt is unknown. It counts as failed, and so does
 * one attempt for every start since the row was written, whether there was one
 * or not: numbers may be skipped, but none is given twice (task.h,
 * task_order.c).
 *
 * A task may be the reason why the server ended. So from the second life on its
 * row counts each attempt before it begins (task_move). When it has been
 * interrupted SUSPECT_AFTER times in this way, the suspects begin one after the
 * other: the task that aborts the server then interrupts few others, and fails
 * after deliver.maxAttempts. No task aborted a server that was stopped in
 * order, so the start after that counts nothing. Rejected: counting every first
 * attempt, too, which would cost one more write per task.
 *
 * Rows are read by seq, whose pages need no index of their own. They begin in
 * the order of place, because a further turn has the seq of its task but comes
 * after work accepted meanwhile. So all are claimed first, sorted, then begun.
 */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { LOAD_PAGE = 500, SUSPECT_AFTER = 2, SUSPECT_MS = 1000 };

static enum err tasks_no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM,
                   "there is not enough memory for the unfinished tasks");
}

static enum err tasks_take_up(struct tasks *ts, const struct row *r,
                              int64_t now_ms, struct why *why)
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
    /* Never written, but they would mean the same. */
    if (t.status == TASK_DISPATCHED || t.status == TASK_WORKING)
        t.status = TASK_QUEUED;
    if (ts->epoch > t.epoch)
        t.attempt += ts->epoch - t.epoch;
    if (ts->was_stopped)
        t.interrupted = 0;
    e = task_entry_new(ts, &t, task_left_ms(&t, now_ms));
    if (!e)
        return tasks_no_memory(why);
    e->must_count = ts->epoch > t.epoch && !ts->was_stopped;
    return OK;
}

static int entries_by_place(const void *left, const void *right)
{
    const struct task *a = &(*(struct task_entry *const *)left)->t;
    const struct task *b = &(*(struct task_entry *const *)right)->t;

    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Begin all loaded entries in the order of acceptance. */
static enum err tasks_begin_all(struct tasks *ts, int64_t now_ms,
                                struct why *why)
{
    size_t n = ts->n_entries[CLAIMED], i = 0;
    struct list *claimed = &ts->entries[CLAIMED];
    struct task_entry **all;
    int64_t n_suspects = 0;

    if (!n)
        return OK;
    all = FAULT("task.sort") ? NULL : calloc(n, sizeof(struct task_entry *));
    if (!all)
        return tasks_no_memory(why);
    for (struct list_node *at = list_first(claimed); at;
         at = list_next(claimed, at))
        all[i++] = entry_of_node(at);
    qsort(all, n, sizeof(struct task_entry *), entries_by_place);
    for (i = 0; i < n; i++) {
        entry_begin(all[i]);
        lane_take_up(all[i], now_ms);
        if (all[i]->t.interrupted >= SUSPECT_AFTER &&
            all[i]->head == HEAD_READY)
            head_pause(all[i], SUSPECT_MS * ++n_suspects);
    }
    free(all);
    return OK;
}

static enum err tasks_find_newest(struct tasks *ts, struct why *why)
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

/* Load one page behind *seq, and move *seq to its last row. */
static enum err tasks_load_page(struct tasks *ts, int64_t *seq, bool *has_more,
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
        e = tasks_take_up(ts, r, now_ms, why);
        *seq = row_int(r, TASK_SEQ);
    }
    *has_more = !e && q.has_more;
    query_fini(&q);
    return e;
}

enum err tasks_load(struct tasks *ts, int64_t now_ms, struct why *why)
{
    enum err e = tasks_find_newest(ts, why);
    bool has_more = !e;
    int64_t seq = 0;

    while (has_more && !e)
        e = tasks_load_page(ts, &seq, &has_more, now_ms, why);
    if (!e)
        e = tasks_begin_all(ts, now_ms, why);
    if (!e && ts->n_entries[GOING_ON])
        log_info(ts->opts.log, "task.taken_up",
                 LOG_I("tasks", (int64_t)ts->n_entries[GOING_ON]),
                 LOG_I("epoch", ts->epoch));
    return e;
}

void tasks_oldest(struct query *q)
{
    query_init(q, &task_table, 1);
    query_order(q, TASK_SEQ, false);
}

void tasks_prune(struct tasks *ts, struct tx *tx, const struct tasks_keep *keep)
{
    int64_t needed_ms = keep->needed_ms ? keep->needed_ms : INT64_MAX;
    int64_t began_ms = timers_next_ms(&ts->began);
    size_t limit = keep->limit;
    struct tx_op *op = tx_prune(tx, &task_table, limit);

    /* Unfinished tasks have NULL here, which is never less. */
    tx_if(op, TASK_FINISHED_MS, IS_LESS,
          value_int(keep->before_ms < needed_ms ? keep->before_ms : needed_ms));
    if (keep->rows > 0 && ts->newest_seq > keep->rows) {
        op = tx_prune(tx, &task_table, limit);
        tx_if(op, TASK_SEQ, IS_AT_MOST, value_int(ts->newest_seq - keep->rows));
        tx_if(op, TASK_FINISHED_MS, IS_LESS, value_int(needed_ms));
    }
    /* A conversation is deleted after its last task, that is, when it was last
     * used before the oldest kept task began. Its last use is no earlier than
     * the begin of its youngest turn, so one that was used since the oldest
     * unfinished turn began must stay. */
    op = tx_prune(tx, &conversation_table, limit);
    tx_if(op, CONVERSATION_USED_MS, IS_LESS,
          value_int(began_ms < keep->oldest_ms ? began_ms : keep->oldest_ms));
    op = tx_prune(tx, &key_table, limit);
    tx_if(op, KEY_EXPIRES_MS, IS_AT_MOST, value_int(keep->now_ms));
}
