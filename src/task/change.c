/* A task comes to its end, once. Whoever wants to end it prepares a change from
 * the version that is in memory; of two that were prepared from the same one
 * the store lets the first through, and the other hears that it is over. So
 * "one result for each turn" is a property of the row and not of any order of
 * events here.
 *
 * The result is copied when the change is made and those bytes become the
 * entry's when it is committed: nothing is allocated after that.
 *
 * A deadline is no such rival to an answer that came in time: a large answer
 * may be refused for want of space where the few bytes of "expired" still fit.
 * So an entry knows the answers that are not on the disk yet, whoever holds
 * them, and its deadline waits for as long as there is one. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

/* Whether e may go there from where it is. */
static enum err may_end(const struct task_entry *e, enum task_status to)
{
    if (entry_is_over(e))
        return ERR_TASK_IS_OVER;
    return task_may_move(e->t.status, to) ? OK : ERR_NOT_ALLOWED;
}

static void build(struct task_change *c, const struct task_entry *e)
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

/* The words of an agent, not somebody's wish. */
static bool is_result(enum task_status s)
{
    return s == TASK_COMPLETED || s == TASK_FAILED;
}

static int64_t answer_bytes(const struct task_change *c)
{
    return (int64_t)(c->result.text.n + c->result.metadata.n);
}

static void await_answer(struct task_entry *e, struct task_change *c)
{
    c->entry = e;
    list_append(&e->answers, &c->answer_node);
    e->ts->stats.held_result_bytes += answer_bytes(c);
}

static void forget_answer(struct task_change *c)
{
    if (!c->entry)
        return;
    c->entry->ts->stats.held_result_bytes -= answer_bytes(c);
    c->entry = NULL;
    list_remove(&c->answer_node);
}

void entry_forget_answers(struct task_entry *e)
{
    struct list_node *n;

    while ((n = list_first(&e->answers)))
        forget_answer(LIST_OF(n, struct task_change, answer_node));
}

/* Whoever made them: the words of a failure are shown to people as they stand,
 * and do nothing to a terminal. s is one of the change's own strings. */
static void tame(struct task_change *c, struct str *s,
                 size_t (*tamer)(char *p, size_t n))
{
    if (s->n)
        s->n = tamer(c->strings + (s->p - c->strings), s->n);
}

static struct task_change *make(struct task_entry *e,
                                const struct task_result *result)
{
    struct task_change *c = FAULT("task.change") ? NULL : calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->task_id = e->t.id;
    c->turn = e->t.turn;
    c->n_handed_over = e->n_handed_over;
    c->result = *result;
    c->result.error_code = str_head(result->error_code, TASK_ERROR_CODE_MAX);
    c->result.error = str_head(result->error, TASK_ERROR_MAX);
    c->strings = result_keep(&c->result);
    if (!c->strings) {
        free(c);
        return NULL;
    }
    tame(c, &c->result.error_code, str_tame);
    tame(c, &c->result.error, str_tame_text);
    build(c, e);
    if (is_result(result->status))
        await_answer(e, c);
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
    *e = entry ? may_end(entry, result->status) : ERR_NOT_FOUND;
    if (!*e) {
        c = make(entry, result);
        *e = c ? OK : ERR_NOMEM;
    } else if (is_result(result->status)) {
        ts->stats.late_total++;
    }
    return c;
}

/* The entry that a change is about; NULL when that turn is not there. */
static struct task_entry *entry_of(const struct tasks *ts,
                                   const struct task_change *c)
{
    struct task_entry *e = task_entry_find(ts, str_of(c->task_id.text));

    return e && e->t.turn == c->turn ? e : NULL;
}

enum err task_change_again(struct tasks *ts, struct task_change *c)
{
    const struct task_entry *entry = entry_of(ts, c);
    enum err e = entry ? may_end(entry, c->result.status) : ERR_TASK_IS_OVER;

    assert(!c->is_pass);
    if (!e && is_result(c->result.status) &&
        c->n_handed_over != entry->n_handed_over)
        e = ERR_NOT_FOUND;
    if (e)
        return e;
    tx_fini(&c->tx);
    build(c, entry);
    return OK;
}

static enum err why_not(const struct tasks *ts, const struct task_change *c)
{
    const struct task_entry *e = entry_of(ts, c);

    switch (c->tx.result) {
    case TX_COMMITTED: return OK;
    case TX_GUARD_FAILED:
        /* With the task still going on here it moved on meanwhile, or somebody
         * else wrote its row. */
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

    c->err = why_not(ts, c);
    if (c->err == ERR_TASK_IS_OVER && is_result(c->result.status))
        ts->stats.late_total++;
    if (c->err)
        return;
    e = entry_of(ts, c);
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
    forget_answer(c);
    if (c->load)
        load_forget(c->tasks, c->load);
    tx_fini(&c->tx);
    free(c->strings);
    free(c);
}
