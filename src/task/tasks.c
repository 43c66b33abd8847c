/* Entries: their creation, states and end, and the only place that moves a
 * status.
 *
 * Everything an entry needs exists before its tx is submitted: its memory, its
 * lane and a free slot in the map. The work after the commit only links things
 * together and cannot fail; a task on disk but not in memory would not run
 * before the next start.
 *
 * Deadlines run on the monotonic clock, so a jump of the wall clock ends no
 * task early. A timer that fires is set again before on_deadline is called and
 * cancelled if that succeeds, so a deadline that could not be handled is not
 * forgotten. The timer of a task that waits, or stands behind one that does, is
 * set far ahead; its time begins when it is released (task_order.c). */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ENTRIES_MAX = 100 * 1000 * 1000, /* the limits are far below */
    AGAIN_MS = 1000,
    PLACE_BITS = 40, /* acceptances in one life of the server */
};

static void tasks_on_free(struct loop_job *job);
static void tasks_on_again(struct timer *t);

struct tasks *tasks_new(const struct tasks_opts *opts)
{
    struct tasks *ts = mem_new(sizeof(*ts));

    ts->opts = *opts;
    ts->node = mem_copy(opts->node.p, opts->node.n);
    ts->opts.node.p = ts->node;
    timers_init(&ts->began);
    ts->ready_job.run = order_on_end_of_turn;
    ts->news_job.run = events_on_end_of_turn;
    ts->free_job.run = tasks_on_free;
    ts->again.fire = tasks_on_again;
    ts->epoch = store_epoch(opts->store);
    ts->was_stopped = store_was_stopped(opts->store);
    /* Larger than any place from an earlier life of the server. */
    ts->next_place = ts->epoch << PLACE_BITS;
    for (int i = 0; i < N_ENTRY_STATES; i++)
        list_init(&ts->entries[i]);
    for (int i = 0; i < N_HEAD_STATES; i++)
        list_init(&ts->heads[i]);
    list_init(&ts->news);
    map_init(&ts->by_id, ENTRIES_MAX, opts->seed);
    map_init(&ts->lanes, ENTRIES_MAX, opts->seed);
    shares_init(&ts->users, sizeof(struct task_share), ENTRIES_MAX, opts->seed);
    shares_init(&ts->orgs, sizeof(struct task_share), ENTRIES_MAX, opts->seed);
    shares_init(&ts->loads, sizeof(struct task_share), ENTRIES_MAX, opts->seed);
    return ts;
}

static void task_entry_free(struct task_entry *e)
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

static void tasks_on_free(struct loop_job *job)
{
    struct tasks *ts = LIST_OF(job, struct tasks, free_job);
    struct list_node *n;

    while ((n = list_first(&ts->entries[GONE])))
        task_entry_free(entry_of_node(n));
}

/* Remove e from its lane and the sums, in any state. */
static void entry_leave(struct task_entry *e)
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
    /* A pending write would return to freed memory. */
    assert(ts->n_writing == 0);
    for (int i = 0; i < N_ENTRY_STATES; i++)
        while ((n = list_first(&ts->entries[i]))) {
            entry_leave(entry_of_node(n));
            task_entry_free(entry_of_node(n));
        }
    loop_not_at_end(&ts->ready_job);
    loop_not_at_end(&ts->news_job);
    loop_not_at_end(&ts->free_job);
    loop_timer_cancel(ts->opts.loop, &ts->again);
    map_fini(&ts->by_id);
    map_fini(&ts->lanes);
    shares_fini(&ts->users);
    shares_fini(&ts->orgs);
    shares_fini(&ts->loads);
    timers_fini(&ts->began);
    free(ts->node);
    free(ts);
}

void tasks_set_limits(struct tasks *ts, const struct tasks_limits *limits)
{
    ts->opts.limits = *limits;
}

static void entry_set_state(struct task_entry *e, enum entry_state to)
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

static void entry_on_deadline(struct timer *t)
{
    struct task_entry *e = LIST_OF(t, struct task_entry, deadline);
    struct tasks *ts = e->ts;
    bool waits = task_waits(e->t.status) ||
                 (e->is_behind && !PLANTED("task.time_runs_on"));

    loop_timer_set(ts->opts.loop, &e->deadline, waits ? WAITS_MS : AGAIN_MS);
    if (waits)
        return; /* its time has not begun */
    if (!list_is_empty(&e->answers) && !PLANTED("task.answers_do_not_count"))
        return; /* the agent answered in time */
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
    e->deadline.fire = entry_on_deadline;
    e->pause.fire = head_on_pause_over;
    e->last_number = t->turn > 1 ? ts->high_number : 0;
    e->written_attempt = t->attempt;
    ring_init(&e->ring);
    list_init(&e->listeners);
    list_init(&e->idle);
    list_init(&e->answers);
    list_init(&e->inputs);
    list_init(&e->asks);
    e->strings = record_keep(&e->t, &task_table, TASK_ONCE | TASK_PER_TURN);
    if (e->strings)
        e->lane = lane_of_key(ts, e->t.order_key);
    if (e->lane)
        e->lane->n_claims++;
    entry_set_state(e, CLAIMED);
    e->bytes = task_bytes(&e->t);
    ts->bytes += e->bytes;
    if (!e->lane || share_add(e) != OK ||
        map_reserve(&ts->by_id, ts->n_entries[CLAIMED]) != OK) {
        entry_drop(e);
        return NULL;
    }
    timers_set(&ts->began, &e->began, task_began_ms(t));
    loop_timer_set(ts->opts.loop, &e->deadline, remaining_ms);
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
    entry_leave(e);
    task_entry_free(e);
}

/* The previous turn, if it still has listeners, can no longer be found: the id
 * now means the current turn. */
void entry_begin(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    struct str id = str_of(e->t.id.text);
    enum err put;

    put = map_put(&ts->by_id, id, e);
    assert(put == OK); /* reserved when it was claimed */
    (void)put;
    entry_set_state(e, GOING_ON);
    ts->stats.by_status[e->t.status]++;
    if (e->t.seq > ts->newest_seq)
        ts->newest_seq = e->t.seq;
    e->lane->n_claims--;
    lane_add(e);
    event_status(e);
    if (e->is_due)
        loop_timer_set(ts->opts.loop, &e->deadline, 0);
}

void entry_end(struct task_entry *e, const struct task_result *r, char *strings)
{
    struct tasks *ts = e->ts;

    assert(e->state == GOING_ON && task_is_over(r->status));
    inputs_asked_end(e);
    inputs_told_end(e);
    entry_leave(e);
    e->t.status = r->status;
    e->t.result = *r;
    e->result_strings = strings;
    entry_set_state(e, OVER);
    ts->stats.over_total[r->status]++;
    event_result(e);
    if (e->last_number > ts->high_number)
        ts->high_number = e->last_number;
    entry_look_for_listeners(e);
}

void entry_look_for_listeners(struct task_entry *e)
{
    bool is_heard = !list_is_empty(&e->listeners);

    if (!entry_is_over(e) || (e->state == OVER) == is_heard)
        return;
    entry_set_state(e, is_heard ? OVER : GONE);
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

bool task_move(struct tasks *ts, struct str id, enum task_status to)
{
    struct task_entry *e = task_entry_find(ts, id);

    assert(to == TASK_DISPATCHED || to == TASK_WORKING || to == TASK_QUEUED);
    if (!e || entry_is_over(e))
        return true;
    if (to == TASK_DISPATCHED && e->must_count) {
        entry_write_attempt(e);
        return false;
    }
    entry_move(e, to);
    return true;
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

static void tasks_on_again(struct timer *t)
{
    struct tasks *ts = LIST_OF(t, struct tasks, again);

    ts->is_again_soon = false;
    heads_offer_all(ts, HEAD_LATER);
}

void offer_later_soon(struct tasks *ts)
{
    if (ts->is_again_soon)
        return;
    ts->is_again_soon = true;
    loop_timer_set(ts->opts.loop, &ts->again, AGAIN_MS);
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
