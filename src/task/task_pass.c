/* Moves that are not an end: the gate or a person has decided again, or another
 * agent is to get the task. Such a change is guarded by the version like any
 * other, so a concurrent change fails and no task is both held and delivered.
 *
 * The name and the share of the new agent are allocated before the change is
 * submitted, so that the commit cannot fail in memory. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

static bool entry_is_handed_over(const struct task_entry *e,
                                 const struct task_release *p)
{
    return p->agent.n && !str_eq_nocase(p->agent, e->t.agent);
}

/* A task is taken from its agent only to give it to another one. */
static enum err entry_may_pass(const struct task_entry *e,
                               const struct task_release *p)
{
    enum task_status from = e->t.status;

    if (entry_is_over(e))
        return ERR_TASK_IS_OVER;
    if (!task_waits(from) && !entry_is_handed_over(e, p) &&
        (from != TASK_QUEUED || p->status == TASK_QUEUED))
        return ERR_NOT_ALLOWED;
    return from == p->status || task_may_move(from, p->status)
               ? OK
               : ERR_NOT_ALLOWED;
}

static void change_build_pass(struct task_change *c, const struct task_entry *e)
{
    struct tasks *ts = e->ts;
    const struct task_release *p = &c->release;
    struct tx_op *op;

    tx_init(&c->tx);
    c->version = e->t.version;
    c->attempt = e->t.attempt;
    c->at_ms = loop_wall_ms(ts->opts.loop);
    op = tx_update(&c->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(e->t.id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(e->t.version));
    tx_set(op, TASK_STATUS, value_int(p->status));
    tx_set(op, TASK_VERSION, value_int(e->t.version + 1));
    tx_set(op, TASK_ATTEMPT, value_int(e->t.attempt));
    tx_set(op, TASK_EPOCH, value_int(ts->epoch));
    tx_set(op, TASK_UPDATED_MS, value_int(c->at_ms));
    tx_set(op, TASK_PRIORITY, value_int(p->priority));
    if (p->agent.n)
        tx_set(op, TASK_AGENT, value_text(p->agent));
    if (p->status != TASK_QUEUED)
        return;
    c->budget_ms = entry_budget_ms(e, c->at_ms);
    tx_set(op, TASK_BUDGET_MS, value_int(c->budget_ms));
    tx_set(op, TASK_DEADLINE_MS, value_int(c->at_ms + c->budget_ms));
}

static struct task_change *change_make_pass(struct task_entry *e,
                                            const struct task_release *p)
{
    struct task_change *c = mem_new(sizeof(*c));

    c->task_id = e->t.id;
    c->turn = e->t.turn;
    c->tasks = e->ts;
    c->is_pass = true;
    c->result.status = p->status;
    c->release = *p;
    c->release.agent = STR("");
    tx_init(&c->tx);
    if (entry_is_handed_over(e, p)) {
        c->load = load_expect(e->ts, p->agent);
        if (!c->load) {
            task_change_free(c);
            return NULL;
        }
        c->strings = mem_copy(p->agent.p, p->agent.n);
        c->release.agent = (struct str){c->strings, p->agent.n};
    }
    change_build_pass(c, e);
    return c;
}

struct task_change *task_pass_new(struct tasks *ts, struct str id,
                                  const struct task_release *release,
                                  enum err *e)
{
    struct task_entry *entry = task_entry_find(ts, id);
    struct task_change *c = NULL;

    assert(release->status == TASK_QUEUED || task_waits(release->status));
    assert(release->agent.n <= AGENT_NAME_MAX);
    *e = entry ? entry_may_pass(entry, release) : ERR_NOT_FOUND;
    if (!*e) {
        c = change_make_pass(entry, release);
        *e = c ? OK : ERR_NOMEM;
    }
    return c;
}

/* The task may have been dispatched since the change was made. The row decides:
 * the submitter cancels the delivery. */
void entry_pass(struct task_entry *e, struct task_change *c)
{
    struct tasks *ts = e->ts;
    enum task_status to = c->release.status;
    int64_t left_ms = WAITS_MS;

    inputs_asked_end(e);
    load_move(e, to, c->load);
    c->load = NULL;
    if (c->release.agent.n) {
        /* Unwritten answers of the old agent were prepared for the previous
         * version and will be rejected. */
        free(e->agent_string);
        e->agent_string = c->strings;
        c->strings = NULL;
        e->t.agent = c->release.agent;
        e->n_handed_over++;
        e->has_waited = false;
    }
    ts->stats.by_status[task_shown(&e->t)]--;
    ts->stats.by_status[to]++;
    e->t.status = to;
    e->t.carried = 0;
    lane_moved(e);
    e->t.priority = c->release.priority;
    e->t.updated_ms = c->at_ms;
    e->written_attempt = c->attempt;
    if (to == TASK_QUEUED) {
        e->t.budget_ms = c->budget_ms;
        e->t.deadline_ms = c->at_ms + c->budget_ms;
        e->is_time_unwritten = false;
        if (!e->is_behind)
            left_ms = e->t.budget_ms;
    }
    loop_timer_set(ts->opts.loop, &e->deadline, left_ms);
    timers_set(&ts->began, &e->began, task_began_ms(&e->t));
    head_move(e,
              to == TASK_QUEUED && entry_is_first(e) ? HEAD_READY : HEAD_NONE);
    event_status(e);
    if (ts->opts.on_moved)
        ts->opts.on_moved(ts->opts.ctx, &e->t);
}
