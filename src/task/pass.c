/* A task moves to something that is no end: the gate has judged it again, or a
 * person has, or another agent is to have it. A change like any other, guarded
 * by the version: whoever wanted the same task otherwise at the same moment
 * hears of it, and nobody is both held and carried.
 *
 * What the commit will need is there before it is submitted: the name of the
 * other agent, and a place in what that agent has. */
#include "task/internal.h"

#include <assert.h>
#include <stdlib.h>

static bool is_handed_over(const struct task_entry *e,
                           const struct task_pass *p)
{
    return p->agent.n && !str_eq_nocase(p->agent, e->t.agent);
}

/* What an agent has is only ever taken from it for another. */
static enum err may_pass(const struct task_entry *e, const struct task_pass *p)
{
    enum task_status from = e->t.status;

    if (entry_is_over(e))
        return ERR_TASK_IS_OVER;
    if (!task_waits(from) && !is_handed_over(e, p) &&
        (from != TASK_QUEUED || p->status == TASK_QUEUED))
        return ERR_NOT_ALLOWED;
    return from == p->status || task_may_move(from, p->status)
               ? OK
               : ERR_NOT_ALLOWED;
}

/* A word of its own for everything that is written. */
static void build(struct task_change *c, const struct task_entry *e)
{
    struct tasks *ts = e->ts;
    const struct task_pass *p = &c->pass;
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

static struct task_change *make(struct task_entry *e, const struct task_pass *p)
{
    struct task_change *c = FAULT("task.pass") ? NULL : calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->task_id = e->t.id;
    c->turn = e->t.turn;
    c->tasks = e->ts;
    c->is_pass = true;
    c->result.status = p->status;
    c->pass = *p;
    c->pass.agent = STR("");
    tx_init(&c->tx);
    if (is_handed_over(e, p)) {
        c->strings = FAULT("task.pass_agent") ? NULL : malloc(p->agent.n);
        c->load = c->strings ? load_expect(e->ts, p->agent) : NULL;
        if (!c->load) {
            task_change_free(c);
            return NULL;
        }
        memcpy(c->strings, p->agent.p, p->agent.n);
        c->pass.agent = (struct str){c->strings, p->agent.n};
    }
    build(c, e);
    return c;
}

struct task_change *task_pass_new(struct tasks *ts, struct str id,
                                  const struct task_pass *pass, enum err *e)
{
    struct task_entry *entry = task_entry_find(ts, id);
    struct task_change *c = NULL;

    assert(pass->status == TASK_QUEUED || task_waits(pass->status));
    assert(pass->agent.n <= AGENT_NAME_MAX);
    *e = entry ? may_pass(entry, pass) : ERR_NOT_FOUND;
    if (!*e) {
        c = make(entry, pass);
        *e = c ? OK : ERR_NOMEM;
    }
    return c;
}

/* The agent's answers that are on their way were made for the version before,
 * and are the other's no more. */
static void hand_over(struct task_entry *e, struct task_change *c)
{
    free(e->agent_string);
    e->agent_string = c->strings;
    c->strings = NULL;
    e->t.agent = c->pass.agent;
    e->n_handed_over++;
    e->has_waited = false;
}

/* A timer that is set moves without memory. One that has just fired is not: its
 * end is on the way, and was made for the version before. It then has no
 * deadline unless there is memory for one, until a start gives it one again. */
static void set_time(struct task_entry *e, const struct task_change *c)
{
    struct tasks *ts = e->ts;
    int64_t left_ms = WAITS_MS;
    enum err set;

    if (e->t.status == TASK_QUEUED) {
        e->t.budget_ms = c->budget_ms;
        e->t.deadline_ms = c->at_ms + c->budget_ms;
        e->is_time_unwritten = false;
        if (!e->is_behind)
            left_ms = e->t.budget_ms;
    }
    set = loop_timer_set(ts->opts.loop, &e->deadline, left_ms);
    if (set)
        log_error(ts->opts.log, "task.no_deadline",
                  LOG_C("task_id", e->t.id.text));
    set = timers_set(&ts->began, &e->began, task_began_ms(&e->t));
    assert(set == OK);
}

/* Memory follows. It may have been handed out since the change was made: the
 * row is the truth, and whoever carries it is called back. */
void entry_pass(struct task_entry *e, struct task_change *c)
{
    struct tasks *ts = e->ts;
    enum task_status to = c->pass.status;

    inputs_asked_end(e);
    load_move(e, to, c->load);
    c->load = NULL;
    if (c->pass.agent.n)
        hand_over(e, c);
    ts->stats.by_status[task_shown(&e->t)]--;
    ts->stats.by_status[to]++;
    e->t.status = to;
    e->t.carried = 0;
    lane_moved(e);
    e->t.priority = c->pass.priority;
    e->t.updated_ms = c->at_ms;
    e->written_attempt = c->attempt;
    set_time(e, c);
    head_move(e,
              to == TASK_QUEUED && entry_is_first(e) ? HEAD_READY : HEAD_NONE);
    event_status(e);
    if (ts->opts.on_moved)
        ts->opts.on_moved(ts->opts.ctx, &e->t);
}
