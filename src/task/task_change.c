/* A task ends once. A change is prepared from the version in memory; of two
 * prepared from the same version, the store commits the first and the other
 * learns that the task is over. So "one result per turn" is a property of the
 * row and does not depend on the order of events here.
 *
 * The result is copied when the change is made, and the entry takes over the
 * copy at the commit: nothing is allocated after that.
 *
 * A deadline must not compete with an answer that came in time: the store may
 * refuse a large answer for lack of space where the few bytes of "expired"
 * still fit. So an entry knows its answers that are not on disk yet, and its
 * deadline waits while there is one. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

static enum err entry_may_end(const struct task_entry *e, enum task_status to)
{
    if (entry_is_over(e))
        return ERR_TASK_IS_OVER;
    return task_may_move(e->t.status, to) ? OK : ERR_NOT_ALLOWED;
}

static void change_build_end(struct task_change *c, const struct task_entry *e)
{
    struct tasks *ts = e->ts;
    int64_t now_ms = loop_wall_ms(ts->opts.loop);
    struct tx_op *op;

    tx_init(&c->tx);
    c->version = e->t.version;
    c->at_ms = now_ms;
    op = tx_update(&c->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(e->t.id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(e->t.version));
    tx_set(op, TASK_STATUS, value_int(c->result.status));
    tx_set(op, TASK_VERSION, value_int(e->t.version + 1));
    tx_set(op, TASK_ATTEMPT, value_int(e->t.attempt));
    tx_set(op, TASK_EPOCH, value_int(ts->epoch));
    tx_set(op, TASK_UPDATED_MS, value_int(now_ms));
    tx_set(op, TASK_FINISHED_MS, value_int(now_ms));
    tx_set(op, TASK_STARTED_MS,
           e->t.started_ms ? value_int(e->t.started_ms) : value_null());
    task_result_to_row(op, &c->result);
    lane_write_next(e, &c->tx, now_ms);
    task_tell_feed(&c->tx, &e->t, now_ms, NULL, &c->result);
}

/* An answer of the agent, as opposed to a cancellation or an expiry. */
static bool status_is_answer(enum task_status s)
{
    return s == TASK_COMPLETED || s == TASK_FAILED;
}

static int64_t change_answer_bytes(const struct task_change *c)
{
    return (int64_t)(c->result.text.n + c->result.metadata.n);
}

static void change_forget_answer(struct task_change *c)
{
    if (!c->entry)
        return;
    c->entry->ts->stats.held_result_bytes -= change_answer_bytes(c);
    c->entry = NULL;
    list_remove(&c->answer_node);
}

void entry_forget_answers(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->answers)))
        change_forget_answer(LIST_OF(n, struct task_change, answer_node));
}

/* Error texts are shown to people unchanged, so they must not control a
 * terminal. s is one of the change's own strings. */
static void change_tame(struct task_change *c, struct str *s,
                        size_t (*tamer)(char *p, size_t n))
{
    if (s->n)
        s->n = tamer(c->strings + (s->p - c->strings), s->n);
}

static struct task_change *change_make_end(struct task_entry *e,
                                           const struct task_result *result)
{
    struct task_change *c = mem_new(sizeof(*c));

    c->task_id = e->t.id;
    c->turn = e->t.turn;
    c->n_handed_over = e->n_handed_over;
    c->result = *result;
    c->result.error_code = str_head(result->error_code, TASK_ERROR_CODE_MAX);
    c->result.error = str_head(result->error, TASK_ERROR_MAX);
    c->strings = FAULT("task.change") ? NULL : result_keep(&c->result);
    if (!c->strings) {
        free(c);
        return NULL;
    }
    change_tame(c, &c->result.error_code, str_tame);
    change_tame(c, &c->result.error, str_tame_text);
    change_build_end(c, e);
    if (status_is_answer(result->status)) {
        c->entry = e;
        list_append(&e->answers, &c->answer_node);
        e->ts->stats.held_result_bytes += change_answer_bytes(c);
    }
    return c;
}

struct task_change *task_change_new(struct tasks *ts, struct str id,
                                    const struct task_result *result,
                                    enum err *e)
{
    struct task_entry *entry = task_entry_find(ts, id);
    struct task_change *c = NULL;

    assert(task_is_over(result->status));
    assert(result->text.n <= MSG_TEXT_MAX);
    assert(result->metadata.n <= MSG_METADATA_MAX);
    assert(result->by.n <= PRINCIPAL_NAME_MAX);
    *e = entry ? entry_may_end(entry, result->status) : ERR_NOT_FOUND;
    if (!*e) {
        c = change_make_end(entry, result);
        *e = c ? OK : ERR_NOMEM;
    } else if (status_is_answer(result->status)) {
        ts->stats.late_total++;
    }
    return c;
}

/* The entry of a change; NULL when its turn is not in memory. */
static struct task_entry *change_entry(const struct tasks *ts,
                                       const struct task_change *c)
{
    struct task_entry *e = task_entry_find(ts, str_of(c->task_id.text));

    return e && e->t.turn == c->turn ? e : NULL;
}

enum err task_change_again(struct tasks *ts, struct task_change *c)
{
    const struct task_entry *entry = change_entry(ts, c);
    enum err e =
        entry ? entry_may_end(entry, c->result.status) : ERR_TASK_IS_OVER;

    assert(!c->is_pass);
    if (!e && status_is_answer(c->result.status) &&
        c->n_handed_over != entry->n_handed_over)
        e = ERR_NOT_FOUND;
    if (e)
        return e;
    tx_fini(&c->tx);
    change_build_end(c, entry);
    return OK;
}

static enum err change_error(const struct tasks *ts,
                             const struct task_change *c)
{
    const struct task_entry *e = change_entry(ts, c);

    switch (c->tx.result) {
    case TX_COMMITTED: return OK;
    case TX_GUARD_FAILED:
        /* While the task is unfinished here, it has moved meanwhile, or its
         * row was written from elsewhere. */
        return e && !entry_is_over(e) ? ERR_BUSY : ERR_TASK_IS_OVER;
    case TX_REFUSED: return c->tx.err;
    case TX_FATAL: break;
    }
    return ERR_OUTCOME_UNKNOWN;
}

void task_changed(struct tasks *ts, struct task_change *c)
{
    struct task_entry *e;
    char *strings = c->strings;

    c->err = change_error(ts, c);
    if (c->err == ERR_TASK_IS_OVER && status_is_answer(c->result.status))
        ts->stats.late_total++;
    if (c->err)
        return;
    e = change_entry(ts, c);
    assert(e && !entry_is_over(e) && e->t.version == c->version);
    e->t.version++;
    e->t.epoch = ts->epoch;
    if (c->is_pass) {
        entry_pass(e, c);
        return;
    }
    e->t.updated_ms = e->t.finished_ms = c->at_ms;
    c->strings = NULL;
    entry_end(e, &c->result, strings);
}

void task_change_free(struct task_change *c)
{
    if (!c)
        return;
    change_forget_answer(c);
    if (c->load)
        load_forget(c->tasks, c->load);
    tx_fini(&c->tx);
    free(c->strings);
    free(c);
}
