/* Entries: how they come to be, change their state and go, and the one mover
 * of a status.
 *
 * Everything an entry needs is there before its tx is submitted: its memory,
 * its lane, its timer in the heap and a free place in the map. What comes after
 * the commit only links things together and cannot fail; a task that is on the
 * disk and not in memory would not be carried before the next start.
 *
 * Deadlines run on the monotonic clock, so a wall clock that jumps ends nothing
 * early. A timer that has fired is set again before anybody is told, which
 * needs no memory then, and cancelled if all went well: so a deadline that
 * could not be dealt with is not forgotten either. The timer of what waits, or
 * stands behind what waits, is set far away, and its time begins when it is let
 * go (order.c). */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ENTRIES_MAX = 100 * 1000 * 1000, /* the limits are far below */
    AGAIN_MS = 1000,
    NOTHING_MS = 3600 * 1000, /* between two looks that find nothing */
    PLACE_BITS = 40,          /* acceptances in one life of the server */
};

static void on_free(struct loop_job *job);
static void on_again(struct timer *t);

/* Where the room's own timer has its place in the heap from the beginning,
 * setting it again needs no memory. */
static bool start_clockwork(struct tasks *ts)
{
    timers_init(&ts->began);
    ts->ready_job.run = order_on_end_of_turn;
    ts->news_job.run = events_on_end_of_turn;
    ts->free_job.run = on_free;
    ts->again.fire = on_again;
    return loop_timer_set(ts->opts.loop, &ts->again, NOTHING_MS) == OK;
}

struct tasks *tasks_new(const struct tasks_opts *opts)
{
    struct tasks *ts = FAULT("task.new") ? NULL : calloc(1, sizeof(*ts));

    if (!ts)
        return NULL;
    ts->opts = *opts;
    ts->node = FAULT("task.node") ? NULL : malloc(opts->node.n + 1);
    if (!ts->node || !start_clockwork(ts)) {
        free(ts->node);
        free(ts);
        return NULL;
    }
    if (opts->node.n)
        memcpy(ts->node, opts->node.p, opts->node.n);
    ts->opts.node.p = ts->node;
    ts->epoch = store_epoch(opts->store);
    /* Larger than any place that an earlier life of the server gave. */
    ts->next_place = ts->epoch << PLACE_BITS;
    for (int i = 0; i < N_ENTRY_STATES; i++)
        list_init(&ts->entries[i]);
    for (int i = 0; i < N_HEAD_STATES; i++)
        list_init(&ts->heads[i]);
    list_init(&ts->news);
    map_init(&ts->by_id, ENTRIES_MAX, opts->seed);
    map_init(&ts->lanes, ENTRIES_MAX, opts->seed);
    map_init(&ts->shares, ENTRIES_MAX, opts->seed);
    map_init(&ts->orgs, ENTRIES_MAX, opts->seed);
    map_init(&ts->loads, ENTRIES_MAX, opts->seed);
    return ts;
}

static void entry_free(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    size_t total = (size_t)ts->stats.ring_bytes;
    struct str id = str_of(e->t.id.text);

    assert(!e->lane);
    entry_deafen(e);
    inputs_free(e);
    ring_fini(&e->ring, &total);
    ts->stats.ring_bytes = (int64_t)total;
    loop_timer_cancel(ts->opts.loop, &e->deadline);
    if (map_get(&ts->by_id, id) == e)
        map_take(&ts->by_id, id);
    if (list_has(&e->node)) {
        list_remove(&e->node);
        ts->n_entries[e->state]--;
    }
    free(e->strings);
    free(e->agent_string);
    free(e->result_strings);
    free(e);
}

static void on_free(struct loop_job *job)
{
    struct tasks *ts = LIST_OF(job, struct tasks, free_job);
    struct list_node *n;

    while ((n = list_first(&ts->entries[GONE])))
        entry_free(entry_of_node(n));
}

/* Out of its lane and the sums, wherever it is. */
static void let_go(struct task_entry *e)
{
    struct lane *l = e->lane;

    if (e->state == CLAIMED && l) {
        e->lane = NULL;
        l->n_claims--;
        lane_release(e->ts, l);
    } else if (e->state == GOING_ON) {
        lane_remove(e);
        e->ts->stats.by_status[task_shown(&e->t)]--;
    }
    share_remove(e);
    e->ts->bytes -= e->bytes;
    e->bytes = 0;
    entry_forget_answers(e);
    timers_cancel(&e->ts->began, &e->began);
    loop_timer_cancel(e->ts->opts.loop, &e->deadline);
}

void tasks_free(struct tasks *ts)
{
    struct list_node *n;

    if (!ts)
        return;
    /* Whoever has something on the way would come back to nothing. */
    assert(ts->n_writing == 0);
    for (int i = 0; i < N_ENTRY_STATES; i++)
        while ((n = list_first(&ts->entries[i]))) {
            let_go(entry_of_node(n));
            entry_free(entry_of_node(n));
        }
    loop_not_at_end(&ts->ready_job);
    loop_not_at_end(&ts->news_job);
    loop_not_at_end(&ts->free_job);
    loop_timer_cancel(ts->opts.loop, &ts->again);
    map_fini(&ts->by_id);
    map_fini(&ts->lanes);
    map_fini(&ts->shares);
    map_fini(&ts->orgs);
    map_fini(&ts->loads);
    timers_fini(&ts->began);
    free(ts->node);
    free(ts);
}

void tasks_set_limits(struct tasks *ts, const struct tasks_limits *limits)
{
    ts->opts.limits = *limits;
}

static void set_state(struct task_entry *e, enum entry_state to)
{
    struct tasks *ts = e->ts;

    if (list_has(&e->node)) {
        list_remove(&e->node);
        ts->n_entries[e->state]--;
    }
    e->state = to;
    list_append(&ts->entries[to], &e->node);
    ts->n_entries[to]++;
}

static void on_deadline(struct timer *t)
{
    struct task_entry *e = LIST_OF(t, struct task_entry, deadline);
    struct tasks *ts = e->ts;
    bool waits = task_waits(e->t.status) ||
                 (e->is_behind && !PLANTED("task.time_runs_on"));
    enum err set = loop_timer_set(ts->opts.loop, &e->deadline,
                                  waits ? WAITS_MS : AGAIN_MS);

    assert(set == OK); /* it has just left its place in the heap */
    if (waits)
        return; /* its time has not begun */
    if (!list_is_empty(&e->answers) && !PLANTED("task.answers_do_not_count"))
        return; /* the agent was in time */
    if (e->state == CLAIMED)
        e->is_due = true;
    else if (ts->opts.on_deadline(ts->opts.ctx, &e->t))
        loop_timer_cancel(ts->opts.loop, &e->deadline);
}

struct task_entry *task_entry_new(struct tasks *ts, const struct task *t,
                                  int64_t remaining_ms)
{
    struct task_entry *e = FAULT("task.entry") ? NULL : calloc(1, sizeof(*e));

    if (!e)
        return NULL;
    e->ts = ts;
    e->t = *t;
    if (task_waits(t->status))
        remaining_ms = WAITS_MS;
    e->deadline.fire = on_deadline;
    e->pause.fire = head_on_pause_over;
    e->last_number = t->turn > 1 ? ts->high_number : 0;
    e->written_attempt = t->attempt;
    ring_init(&e->ring);
    list_init(&e->listeners);
    list_init(&e->idle);
    list_init(&e->answers);
    list_init(&e->inputs);
    list_init(&e->asks);
    e->strings = task_keep(&e->t);
    if (e->strings)
        e->lane = lane_get(ts, e->t.order_key);
    if (e->lane)
        e->lane->n_claims++;
    set_state(e, CLAIMED);
    e->bytes = task_bytes(&e->t);
    ts->bytes += e->bytes;
    if (!e->lane || share_add(e) != OK ||
        map_reserve(&ts->by_id, ts->n_entries[CLAIMED]) != OK ||
        timers_set(&ts->began, &e->began, task_began_ms(t)) != OK ||
        loop_timer_set(ts->opts.loop, &e->deadline, remaining_ms) != OK) {
        entry_drop(e);
        return NULL;
    }
    return e;
}

int64_t entry_budget_ms(const struct task_entry *e, int64_t began_ms)
{
    const struct task_entry *parent =
        e->t.parent_id.n ? task_entry_find(e->ts, e->t.parent_id) : NULL;
    int64_t left_ms;

    if (!parent || entry_is_over(parent) || parent->is_behind ||
        task_waits(parent->t.status))
        return e->t.budget_ms;
    left_ms = parent->t.deadline_ms - began_ms;
    if (left_ms < 1)
        left_ms = 1;
    return left_ms < e->t.budget_ms ? left_ms : e->t.budget_ms;
}

void entry_drop(struct task_entry *e)
{
    assert(e->state == CLAIMED);
    let_go(e);
    entry_free(e);
}

/* The turn before, if somebody still listens to it, is found no more: who asks
 * for the task by its id means the turn that goes on. */
void entry_begin(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    struct str id = str_of(e->t.id.text);
    enum err put;

    put = map_put(&ts->by_id, id, e);
    assert(put == OK); /* there is room since it was claimed */
    set_state(e, GOING_ON);
    ts->stats.by_status[e->t.status]++;
    if (e->t.seq > ts->newest_seq)
        ts->newest_seq = e->t.seq;
    e->lane->n_claims--;
    lane_add(e);
    event_status(e);
    if (e->is_due) {
        put = loop_timer_set(ts->opts.loop, &e->deadline, 0);
        assert(put == OK); /* it is set, and only moves */
    }
    (void)put;
}

void entry_end(struct task_entry *e, const struct task_result *r, char *strings)
{
    struct tasks *ts = e->ts;

    assert(e->state == GOING_ON && task_is_over(r->status));
    inputs_asked_end(e);
    inputs_told_end(e);
    let_go(e);
    e->t.status = r->status;
    e->t.result = *r;
    e->result_strings = strings;
    set_state(e, OVER);
    ts->stats.over_total[r->status]++;
    event_result(e);
    if (e->last_number > ts->high_number)
        ts->high_number = e->last_number;
    entry_look(e);
}

void entry_look(struct task_entry *e)
{
    bool is_heard = !list_is_empty(&e->listeners);

    if (!entry_is_over(e) || (e->state == OVER) == is_heard)
        return;
    set_state(e, is_heard ? OVER : GONE);
    if (!is_heard)
        loop_at_end(e->ts->opts.loop, &e->ts->free_job);
}

struct task_entry *task_entry_find(const struct tasks *ts, struct str id)
{
    return map_get(&ts->by_id, id);
}

const struct task *task_find(const struct tasks *ts, struct str id)
{
    const struct task_entry *e = task_entry_find(ts, id);

    return e ? &e->t : NULL;
}

static void entry_move(struct task_entry *e, enum task_status to)
{
    struct tasks *ts = e->ts;

    assert(task_may_move(e->t.status, to) && entry_is_first(e));
    if (to != TASK_WORKING)
        inputs_asked_end(e);
    ts->stats.by_status[e->t.status]--;
    e->t.status = to;
    load_work(e);
    ts->stats.by_status[to]++;
    if (to == TASK_DISPATCHED) {
        assert(e->t.attempt == e->written_attempt);
        e->t.attempt++;
        if (!e->t.started_ms)
            e->t.started_ms = loop_wall_ms(ts->opts.loop);
    }
    head_move(e, to == TASK_QUEUED ? HEAD_LATER : HEAD_NONE);
    if (to == TASK_QUEUED)
        offer_later_soon(ts);
    event_status(e);
    if (ts->opts.on_moved)
        ts->opts.on_moved(ts->opts.ctx, &e->t);
}

void task_carry(struct tasks *ts, struct str id, enum task_status as)
{
    struct task_entry *e = task_entry_find(ts, id);

    assert(as == TASK_QUEUED || as == TASK_DISPATCHED);
    if (!e || e->t.status != TASK_HELD || e->t.carried == as)
        return;
    ts->stats.by_status[task_shown(&e->t)]--;
    e->t.carried = as;
    ts->stats.by_status[as]++;
    if (as == TASK_DISPATCHED && !e->t.started_ms)
        e->t.started_ms = loop_wall_ms(ts->opts.loop);
    event_status(e);
}

void task_move(struct tasks *ts, struct str id, enum task_status to)
{
    struct task_entry *e = task_entry_find(ts, id);

    assert(to == TASK_DISPATCHED || to == TASK_WORKING || to == TASK_QUEUED);
    if (e && !entry_is_over(e))
        entry_move(e, to);
}

void task_retry(struct tasks *ts, struct str id, int64_t delay_ms)
{
    struct task_entry *e = task_entry_find(ts, id);

    if (!e || entry_is_over(e))
        return;
    if (e->t.status != TASK_QUEUED)
        entry_move(e, TASK_QUEUED);
    else if (e->head != HEAD_OFFERED)
        return;
    head_pause(e, delay_ms);
}

static void set_again(struct tasks *ts, int64_t delay_ms)
{
    enum err set = loop_timer_set(ts->opts.loop, &ts->again, delay_ms);

    assert(set == OK); /* it has its place, or has just left it */
    (void)set;
}

static void on_again(struct timer *t)
{
    struct tasks *ts = LIST_OF(t, struct tasks, again);

    ts->is_again_soon = false;
    set_again(ts, NOTHING_MS);
    heads_offer(ts, HEAD_LATER);
}

void offer_later_soon(struct tasks *ts)
{
    if (ts->is_again_soon)
        return;
    ts->is_again_soon = true;
    set_again(ts, AGAIN_MS);
}

void task_late(struct tasks *ts)
{
    ts->stats.late_total++;
}

struct tasks_stats tasks_stats(const struct tasks *ts)
{
    struct tasks_stats s = ts->stats;

    s.unfinished_bytes = (int64_t)ts->bytes;
    return s;
}
