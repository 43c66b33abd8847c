/* One lane per order key, in the order of acceptance. The first entry of a lane
 * is a head if it is queued, and only heads are offered. The list that a head
 * is in says why it waits:
 *
 *     READY -> on_ready -> taken: no longer a head
 *       |              +-> LATER   -> READY    a second later
 *       |              +-> OFFERED             until it is moved
 *       |              +-> WAITING -> READY    when the agents have changed, or
 *       |              |                       its first input was read
 *       |              +-> NO_TURN -> READY    when its turn has come
 *       |   PAUSED -> READY        when the pause after a failed attempt is
 *       |                          over
 *       +-> WRITING -> READY       when this life has an unwritten attempt
 *               +----> LATER       when it could not be written
 *
 * Rejected: a priority queue. Order within a conversation is a promise, and
 * across conversations first ready, first served cannot starve any task.
 *
 * WRITING keeps attempt numbers unique. A start computes the attempts of a row
 * as the written ones plus one for every life since, which is right as long as
 * no life has two unwritten ones. So the number is written before a second
 * attempt is handed out. The version stays, because the write does not affect a
 * change that ends the task. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { READY_PER_TURN = 256 };

struct lane *lane_of_key(struct tasks *ts, struct str key)
{
    struct lane *l = map_get(&ts->lanes, key);

    if (l)
        return l;
    l = mem_new(sizeof(*l) + key.n);
    list_init(&l->entries);
    l->key_bytes = key.n;
    if (key.n)
        memcpy(l->key, key.p, key.n);
    if (map_put(&ts->lanes, (struct str){l->key, key.n}, l) != OK) {
        free(l);
        return NULL;
    }
    return l;
}

void lane_release(struct tasks *ts, struct lane *l)
{
    if (l->n_claims || !list_is_empty(&l->entries))
        return;
    map_take(&ts->lanes, (struct str){l->key, l->key_bytes});
    free(l);
}

void head_move(struct task_entry *e, enum head_state to)
{
    if (e->head == HEAD_PAUSED)
        loop_timer_cancel(e->ts->opts.loop, &e->pause);
    list_remove(&e->head_node);
    e->load->n_behind -= e->head == HEAD_NO_TURN;
    e->head = to;
    e->load->n_behind += e->head == HEAD_NO_TURN;
    if (to == HEAD_NONE)
        return;
    list_append(&e->ts->heads[to], &e->head_node);
    if (to == HEAD_READY)
        loop_at_end(e->ts->opts.loop, &e->ts->ready_job);
}

void head_pause(struct task_entry *e, int64_t delay_ms)
{
    head_move(e, HEAD_PAUSED);
    loop_timer_set(e->ts->opts.loop, &e->pause, delay_ms);
}

void head_on_pause_over(struct timer *t)
{
    head_move(LIST_OF(t, struct task_entry, pause), HEAD_READY);
}

static void lane_look_at_head(struct lane *l)
{
    struct list_node *n = list_first(&l->entries);
    struct task_entry *e = n ? LIST_OF(n, struct task_entry, lane_node) : NULL;

    if (e && e->t.status == TASK_QUEUED && e->head == HEAD_NONE)
        head_move(e, HEAD_READY);
}

/* An entry behind a waiting one does not count as load: otherwise a task that
 * waits for capacity would wait for tasks that wait for it. Its deadline does
 * not run either; it starts when no entry before it waits any more. All entries
 * between two waiting ones are alike, so an update stops at the first that is
 * right.
 *
 * When an entry ends, its tx also writes the new begin of the next entry's time
 * (lane_write_next). After a restart, the entries behind that one derive theirs
 * from the entry before them (lane_take_up): one row for a lane of any
 * length. */

bool lane_waits_before(const struct task_entry *e)
{
    const struct list *all = &e->lane->entries;
    const struct list_node *n =
        list_has(&e->lane_node) ? e->lane_node.prev : all->head.prev;
    const struct task_entry *before =
        n == &all->head ? NULL : LIST_OF(n, struct task_entry, lane_node);

    return before && (task_waits(before->t.status) || before->is_behind);
}

static void entry_set_began(struct task_entry *e, int64_t began_ms)
{
    e->t.budget_ms = entry_budget_ms(e, began_ms);
    e->t.deadline_ms = began_ms + e->t.budget_ms;
    e->is_time_unwritten = true;
    timers_set(&e->ts->began, &e->began, began_ms);
}

bool task_is_first(const struct task *t)
{
    const struct task_entry *e =
        (const void *)((const char *)t - offsetof(struct task_entry, t));

    return !e->lane || entry_is_first(e);
}

static void entry_set_behind(struct task_entry *e, bool is_behind)
{
    bool was_behind = e->is_behind;

    e->load->n_behind -= e->is_behind;
    e->is_behind = is_behind;
    e->load->n_behind += e->is_behind;
    if (!timer_is_set(&e->deadline) || task_waits(e->t.status))
        return;
    if (PLANTED("task.time_runs_on"))
        return;
    if (is_behind) {
        loop_timer_set(e->ts->opts.loop, &e->deadline, WAITS_MS);
    } else if (was_behind) {
        entry_set_began(e, loop_wall_ms(e->ts->opts.loop));
        loop_timer_set(e->ts->opts.loop, &e->deadline, e->t.budget_ms);
    }
}

static struct task_entry *lane_next(const struct task_entry *e)
{
    struct list_node *n = list_next(&e->lane->entries, &e->lane_node);

    return n ? LIST_OF(n, struct task_entry, lane_node) : NULL;
}

/* Also for an entry that stays behind another one: that one may be about to end
 * too, and time must not be lost. */
void lane_write_next(const struct task_entry *e, struct tx *tx, int64_t now_ms)
{
    const struct task_entry *next = lane_next(e);
    int64_t began_ms, budget_ms;
    struct tx_op *op;

    if (!next || task_waits(next->t.status) ||
        !(next->is_behind || next->is_time_unwritten))
        return;
    began_ms = next->is_behind ? now_ms : task_began_ms(&next->t);
    budget_ms = entry_budget_ms(next, began_ms);
    op = tx_update(tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(next->t.id.text)));
    tx_set(op, TASK_BUDGET_MS, value_int(budget_ms));
    tx_set(op, TASK_DEADLINE_MS, value_int(began_ms + budget_ms));
}

void lane_take_up(struct task_entry *e, int64_t now_ms)
{
    const struct list_node *n = e->lane_node.prev;
    const struct task_entry *before;

    if (entry_is_first(e) || e->is_behind || task_waits(e->t.status))
        return;
    before = LIST_OF(n, struct task_entry, lane_node);
    if (task_began_ms(&before->t) <= task_began_ms(&e->t))
        return;
    entry_set_began(e, task_began_ms(&before->t));
    loop_timer_set(e->ts->opts.loop, &e->deadline, task_left_ms(&e->t, now_ms));
}

static void lane_set_behind_after(struct task_entry *e, bool is_behind)
{
    const struct list *all = &e->lane->entries;

    for (struct list_node *n = list_next(all, &e->lane_node); n;
         n = list_next(all, n)) {
        struct task_entry *next = LIST_OF(n, struct task_entry, lane_node);

        if (task_waits(next->t.status) || next->is_behind == is_behind)
            return;
        entry_set_behind(next, is_behind);
    }
}

void lane_moved(struct task_entry *e)
{
    bool waits = task_waits(e->t.status);
    bool is_blocked = lane_waits_before(e);

    entry_set_behind(e, is_blocked && !waits);
    if (!is_blocked)
        lane_set_behind_after(e, waits);
}

/* Always at the end: places are assigned in the order of acceptance, commits
 * keep that order, and a start sorts by it. */
void lane_add(struct task_entry *e)
{
    list_append(&e->lane->entries, &e->lane_node);
    lane_moved(e);
    lane_look_at_head(e->lane);
}

void lane_remove(struct task_entry *e)
{
    struct lane *l = e->lane;

    head_move(e, HEAD_NONE);
    if (!lane_waits_before(e))
        lane_set_behind_after(e, false);
    list_remove(&e->lane_node);
    e->lane = NULL;
    lane_look_at_head(l);
    lane_release(e->ts, l);
}

/* A pending write of an attempt. */
struct attempt_write {
    struct tx tx;
    struct tasks *ts;
    struct id task_id;
    int64_t turn, attempt, version;
};

static void on_attempt_written(struct tx *tx, void *ctx)
{
    struct attempt_write *w = ctx;
    struct tasks *ts = w->ts;
    struct task_entry *e = task_entry_find(ts, str_of(w->task_id.text));

    ts->n_writing--;
    if (e && e->t.turn == w->turn && e->t.version == w->version &&
        e->head == HEAD_WRITING) {
        if (tx->result == TX_COMMITTED) {
            if (!e->must_count)
                e->t.epoch = ts->epoch;
            e->must_count = false;
            e->written_attempt = w->attempt;
        }
        /* If the store has failed, or another writer has changed the row, a
         * retry after a while does not help. */
        head_move(e, tx->result == TX_COMMITTED ? HEAD_READY
                     : tx->result == TX_REFUSED ? HEAD_LATER
                                                : HEAD_WAITING);
    }
    if (tx->result == TX_REFUSED) {
        log_warn(ts->opts.log, "task.attempt_not_written",
                 LOG_C("task_id", w->task_id.text),
                 LOG_C("because", err_row(tx->err)->wording));
        offer_later_soon(ts);
    }
    tx_fini(tx);
    free(w);
}

void entry_write_attempt(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    struct attempt_write *w = mem_new(sizeof(*w));
    struct tx_op *op;

    w->ts = ts;
    w->task_id = e->t.id;
    w->turn = e->t.turn;
    w->attempt = e->t.attempt;
    w->version = e->t.version;
    tx_init(&w->tx);
    op = tx_update(&w->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(e->t.id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(e->t.version));
    if (e->must_count) {
        tx_set(op, TASK_INTERRUPTED, value_int(e->t.interrupted + 1));
    } else {
        tx_set(op, TASK_ATTEMPT, value_int(e->t.attempt));
        tx_set(op, TASK_EPOCH, value_int(ts->epoch));
    }
    head_move(e, HEAD_WRITING);
    ts->n_writing++;
    store_submit(ts->opts.store, &w->tx, on_attempt_written, w);
}

/* Logged once per turn and life: the agents may change every minute. */
static void head_wait_for_agent(struct task_entry *e)
{
    head_move(e, HEAD_WAITING);
    if (e->has_waited)
        return;
    e->has_waited = true;
    log_info(e->ts->opts.log, "task.waits_for_agent",
             LOG_C("task_id", e->t.id.text), LOG_S("agent", e->t.agent));
}

static void head_offer(struct task_entry *e)
{
    struct tasks *ts = e->ts;

    head_move(e, HEAD_LATER);
    switch (ts->opts.on_ready(ts->opts.ctx, &e->t)) {
    case READY_TAKEN: assert(e->head != HEAD_LATER); break;
    case READY_LATER: offer_later_soon(ts); break;
    case READY_OFFERED: head_move(e, HEAD_OFFERED); break;
    case READY_NO_AGENT: head_wait_for_agent(e); break;
    case READY_NOT_YET: head_move(e, HEAD_WAITING); break;
    case READY_NO_TURN: head_move(e, HEAD_NO_TURN); break;
    }
}

void order_on_end_of_turn(struct loop_job *job)
{
    struct tasks *ts = LIST_OF(job, struct tasks, ready_job);
    struct list *ready = &ts->heads[HEAD_READY];
    struct list_node *n;

    for (int i = 0; i < READY_PER_TURN && (n = list_first(ready)); i++) {
        struct task_entry *e = LIST_OF(n, struct task_entry, head_node);

        if (e->t.attempt > e->written_attempt)
            entry_write_attempt(e);
        else
            head_offer(e);
    }
    loop_not_at_end(job);
    if (!list_is_empty(ready))
        loop_next_turn(ts->opts.loop, job);
}

void heads_offer_all(struct tasks *ts, enum head_state from)
{
    struct list *heads = &ts->heads[from];

    for (struct list_node *n = list_first(heads); n; n = list_next(heads, n))
        LIST_OF(n, struct task_entry, head_node)->head = HEAD_READY;
    list_append_all(&ts->heads[HEAD_READY], heads);
    if (!list_is_empty(&ts->heads[HEAD_READY]))
        loop_at_end(ts->opts.loop, &ts->ready_job);
}

void task_put_back(struct tasks *ts, struct str id)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (e && e->head == HEAD_OFFERED)
        head_wait_for_agent(e);
}

void task_offer(struct tasks *ts, struct str id)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (e && (e->head == HEAD_WAITING || e->head == HEAD_NO_TURN))
        head_move(e, HEAD_READY);
}

void tasks_offer_again(struct tasks *ts)
{
    heads_offer_all(ts, HEAD_LATER);
    heads_offer_all(ts, HEAD_WAITING);
}
