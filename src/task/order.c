/* One lane for each order key, in the order of acceptance; whoever is first in
 * a lane and queued is a head, and only heads are offered. Where a head waits
 * is the list it is in:
 *
 *     READY -> on_ready -> taken: no head any more
 *       |              +-> LATER   -> READY    a second later
 *       |              +-> OFFERED             until it is moved
 *       |              +-> WAITING -> READY    when the agents have changed, or
 *       |              |                       what it begins with was read
 *       |              +-> NO_TURN -> READY    when its turn has come
 *       |   PAUSED -> READY        an attempt came to nothing, and the pause
 *       |                          after it is over
 *       +-> WRITING -> READY       when this life has an unwritten attempt
 *               +----> LATER       when it could not be written
 *
 * A priority queue was turned down: order within a conversation is a promise,
 * and across conversations whoever became ready first is served first, which
 * nobody can be starved by.
 *
 * WRITING is what keeps the numbers of attempts apart. A start reckons the
 * attempts of a row as those written in it and one for every life since, which
 * is right for as long as no life has two that are not written. So the number
 * is written before a second one is handed out: the version stays as it is,
 * because the write says nothing new to whoever wants to end the task. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { READY_PER_TURN = 256 };

struct lane *lane_get(struct tasks *ts, struct str key)
{
    struct lane *l = map_get(&ts->lanes, key);

    if (l)
        return l;
    l = FAULT("task.lane") ? NULL : calloc(1, sizeof(*l) + key.n);
    if (!l)
        return NULL;
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

/* Without memory for its timer it waits for that of all. */
void head_pause(struct task_entry *e, int64_t delay_ms)
{
    head_move(e, HEAD_PAUSED);
    if (loop_timer_set(e->ts->opts.loop, &e->pause, delay_ms) == OK)
        return;
    head_move(e, HEAD_LATER);
    offer_later_soon(e->ts);
}

void head_on_pause_over(struct timer *t)
{
    head_move(LIST_OF(t, struct task_entry, pause), HEAD_READY);
}

/* Whoever is first now, if it waits and nobody has been told. */
static void look_at_head(struct lane *l)
{
    struct list_node *n = list_first(&l->entries);
    struct task_entry *e = n ? LIST_OF(n, struct task_entry, lane_node) : NULL;

    if (e && e->t.status == TASK_QUEUED && e->head == HEAD_NONE)
        head_move(e, HEAD_READY);
}

/* Who stands behind one that waits does not count as load: else the one that
 * waits for room would wait for those that wait for it. Nor does its time run:
 * it begins when nobody before it waits any more. All between two that wait are
 * alike, so that a change stops at the first that is right.
 *
 * That a time began anew is written for the next of whoever ends, in its tx
 * (lane_write_next). Those behind that one have theirs from those before them
 * again when a start takes them up (lane_take_up): one row for a lane of any
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

/* A timer that is not set has fired, and the end is on its way; one that is
 * moves without memory. */
static void move_deadline(struct task_entry *e, int64_t left_ms)
{
    enum err set = loop_timer_set(e->ts->opts.loop, &e->deadline, left_ms);

    assert(set == OK);
    (void)set;
}

static void set_began(struct task_entry *e, int64_t began_ms)
{
    enum err set;

    e->t.budget_ms = entry_budget_ms(e, began_ms);
    e->t.deadline_ms = began_ms + e->t.budget_ms;
    e->is_time_unwritten = true;
    set = timers_set(&e->ts->began, &e->began, began_ms);
    assert(set == OK); /* it is set, and only moves */
    (void)set;
}

bool task_is_first(const struct task *t)
{
    const struct task_entry *e =
        (const void *)((const char *)t - offsetof(struct task_entry, t));

    return !e->lane || entry_is_first(e);
}

static void set_behind(struct task_entry *e, bool is_behind)
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
        move_deadline(e, WAITS_MS);
    } else if (was_behind) {
        set_began(e, loop_wall_ms(e->ts->opts.loop));
        move_deadline(e, e->t.budget_ms);
    }
}

static struct task_entry *next_of(const struct task_entry *e)
{
    struct list_node *n = list_next(&e->lane->entries, &e->lane_node);

    return n ? LIST_OF(n, struct task_entry, lane_node) : NULL;
}

/* Also of one that is still behind another: that one may be on its way out
 * too, and who stands there has no time to lose. */
void lane_write_next(const struct task_entry *e, struct tx *tx, int64_t now_ms)
{
    const struct task_entry *next = next_of(e);
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
    set_began(e, task_began_ms(&before->t));
    move_deadline(e, task_left_ms(&e->t, now_ms));
}

static void set_behind_after(struct task_entry *e, bool is_behind)
{
    const struct list *all = &e->lane->entries;

    for (struct list_node *n = list_next(all, &e->lane_node); n;
         n = list_next(all, n)) {
        struct task_entry *next = LIST_OF(n, struct task_entry, lane_node);

        if (task_waits(next->t.status) || next->is_behind == is_behind)
            return;
        set_behind(next, is_behind);
    }
}

void lane_moved(struct task_entry *e)
{
    bool waits = task_waits(e->t.status);
    bool is_blocked = lane_waits_before(e);

    set_behind(e, is_blocked && !waits);
    if (!is_blocked)
        set_behind_after(e, waits);
}

/* Always at the end: places are given in the order of acceptance, commits come
 * in it, and a start sorts by it. */
void lane_add(struct task_entry *e)
{
    list_append(&e->lane->entries, &e->lane_node);
    lane_moved(e);
    look_at_head(e->lane);
}

void lane_remove(struct task_entry *e)
{
    struct lane *l = e->lane;

    head_move(e, HEAD_NONE);
    if (!lane_waits_before(e))
        set_behind_after(e, false);
    list_remove(&e->lane_node);
    e->lane = NULL;
    look_at_head(l);
    lane_release(e->ts, l);
}

/* An attempt on its way to the disk. */
struct attempt_write {
    struct tx tx;
    struct tasks *ts;
    struct id task_id;
    int64_t turn, attempt, version;
};

/* With the store gone, or the row somebody else's, time alone helps nobody. */
static enum head_state after_write(enum tx_result r)
{
    if (r == TX_COMMITTED)
        return HEAD_READY;
    return r == TX_REFUSED ? HEAD_LATER : HEAD_WAITING;
}

static void on_attempt_written(struct tx *tx, void *ctx)
{
    struct attempt_write *w = ctx;
    struct tasks *ts = w->ts;
    struct task_entry *e = task_entry_find(ts, str_of(w->task_id.text));

    ts->n_writing--;
    if (e && e->t.turn == w->turn && e->t.version == w->version &&
        e->head == HEAD_WRITING) {
        if (tx->result == TX_COMMITTED) {
            e->written_attempt = w->attempt;
            e->t.epoch = ts->epoch;
        }
        head_move(e, after_write(tx->result));
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

static void write_attempt(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    struct attempt_write *w =
        FAULT("task.attempt") ? NULL : calloc(1, sizeof(*w));
    struct tx_op *op;

    if (!w) {
        head_move(e, HEAD_LATER);
        offer_later_soon(ts);
        return;
    }
    w->ts = ts;
    w->task_id = e->t.id;
    w->turn = e->t.turn;
    w->attempt = e->t.attempt;
    w->version = e->t.version;
    tx_init(&w->tx);
    op = tx_update(&w->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(e->t.id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(e->t.version));
    tx_set(op, TASK_ATTEMPT, value_int(e->t.attempt));
    tx_set(op, TASK_EPOCH, value_int(ts->epoch));
    head_move(e, HEAD_WRITING);
    ts->n_writing++;
    store_submit(ts->opts.store, &w->tx, on_attempt_written, w);
}

/* Once in this life for each turn: the agents may change every minute. */
static void wait_for_agent(struct task_entry *e)
{
    head_move(e, HEAD_WAITING);
    if (e->has_waited)
        return;
    e->has_waited = true;
    log_info(e->ts->opts.log, "task.waits_for_agent",
             LOG_C("task_id", e->t.id.text), LOG_S("agent", e->t.agent));
}

static void offer(struct task_entry *e)
{
    struct tasks *ts = e->ts;

    head_move(e, HEAD_LATER);
    switch (ts->opts.on_ready(ts->opts.ctx, &e->t)) {
    case READY_TAKEN: assert(e->head == HEAD_NONE); break;
    case READY_LATER: offer_later_soon(ts); break;
    case READY_OFFERED: head_move(e, HEAD_OFFERED); break;
    case READY_NO_AGENT: wait_for_agent(e); break;
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
            write_attempt(e);
        else
            offer(e);
    }
    loop_not_at_end(job);
    if (!list_is_empty(ready))
        loop_next_turn(ts->opts.loop, job);
}

void heads_offer(struct tasks *ts, enum head_state from)
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
        wait_for_agent(e);
}

void task_offer(struct tasks *ts, struct str id)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (e && (e->head == HEAD_WAITING || e->head == HEAD_NO_TURN))
        head_move(e, HEAD_READY);
}

void tasks_offer_again(struct tasks *ts)
{
    heads_offer(ts, HEAD_LATER);
    heads_offer(ts, HEAD_WAITING);
}
