/* Agents that are out: detection, rows, memory. revive.c acts on them.
 *
 * The first message that a safety gate holds because of an agent announces the
 * outage in its own tx (agent.out), so that each outage is announced once, by a
 * message that was committed. */
#include "gate/escalations.h"

#include <stdlib.h>

#include "base/mem.h"

enum { COME_BACK_MS = 5000 };

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

#define BOTH(field) MEMBER(struct outage, field), .part = 1

static const struct column outage_columns[] = {OUTAGE_COLUMNS(COLUMN_ROW)};

const struct table outage_table = {
    .name = "outage",
    .columns = outage_columns,
    .n_columns = N_OUTAGE_COLUMNS,
    .n_key = 1,
};

static struct outage *outage_of(const struct gatekeeper *b, struct str agent)
{
    char name[AGENT_NAME_MAX + 1];

    return map_get(&b->revive->outages,
                   str_lowered(agent, name, AGENT_NAME_MAX));
}

struct gate_agent outage_agent(const struct outage *o)
{
    struct gate_agent a = {.name = str_of(o->shown)};

    o->gatekeeper->opts.agent(o->gatekeeper->opts.ctx, a.name, &a);
    return a;
}

/* Write the step to the feed, and the progress to the row. */

static void on_outage_written(struct tx *tx, void *ctx)
{
    (void)ctx; /* if it was refused, the next step writes the row again */
    tx_fini(tx);
    free(tx);
}

/* The time of the next restart, as Unix time. */
static int64_t next_restart_ms(const struct outage *o)
{
    struct loop *l = o->gatekeeper->opts.loop;

    return loop_wall_ms(l) + o->next_mono_ms - loop_mono_ms(l);
}

static void outage_write_row(const struct outage *o, bool is_over,
                             struct tx *tx)
{
    struct tx_op *op =
        is_over ? tx_prune(tx, &outage_table, 1) : tx_put(tx, &outage_table);

    if (is_over) {
        tx_if(op, OUTAGE_AGENT, IS, value_text(str_of(o->name)));
        return;
    }
    tx_set(op, OUTAGE_AGENT, value_text(str_of(o->name)));
    tx_set(op, OUTAGE_SHOWN, value_text(str_of(o->shown)));
    record_to_tx(op, o, 1);
    tx_set(op, OUTAGE_NEXT_MS, value_int(next_restart_ms(o)));
}

void outage_write(struct outage *o, bool is_over, const char *type,
                  const char *because, const char *key, struct str more)
{
    struct gatekeeper *b = o->gatekeeper;
    struct tx *tx = mem_new(sizeof(*tx));
    struct subject subject = {.agent = str_of(o->shown)};
    struct note_data n;

    tx_init(tx);
    outage_write_row(o, is_over, tx);
    if (type) {
        note_open(&n);
        note_str(&n, "agent", str_of(o->shown));
        note_int(&n, "attempt", o->attempts);
        note_int(&n, "out_ms", loop_wall_ms(b->opts.loop) - o->since_ms);
        note_str(&n, "error", str_of(because));
        note_str(&n, key, more);
        note_close(&n, b, str_of(type), &subject, tx);
    }
    store_submit(b->opts.store, tx, on_outage_written, NULL);
}

void outage_arm(struct outage *o, int64_t delay_ms)
{
    struct gatekeeper *b = o->gatekeeper;

    if (!b->revive->is_stopped)
        loop_timer_set(b->opts.loop, &o->timer, delay_ms);
}

void outage_free(struct outage *o)
{
    loop_timer_cancel(o->gatekeeper->opts.loop, &o->timer);
    map_take(&o->gatekeeper->revive->outages, str_of(o->name));
    free(o);
}

static void on_outage_timer(struct timer *t)
{
    outage_look(LIST_OF(t, struct outage, timer));
}

static struct outage *outage_new(struct gatekeeper *b, struct str agent)
{
    struct outage *o = mem_new(sizeof(*o));

    o->gatekeeper = b;
    o->timer.fire = on_outage_timer;
    str_lowered(agent, o->name, AGENT_NAME_MAX);
    memcpy(o->shown, agent.p,
           agent.n < AGENT_NAME_MAX ? agent.n : AGENT_NAME_MAX);
    if (map_put(&b->revive->outages, str_of(o->name), o) == OK)
        return o;
    free(o);
    return NULL;
}

/* Begin an outage; it is acted on at the end of this turn. NULL: too many
 * outages, or the server stops. */
static struct outage *outage_begin(struct gatekeeper *b, struct str agent)
{
    struct outage *o = outage_of(b, agent);

    if (b->revive->is_stopped || !agent.n)
        return NULL;
    if (!o)
        o = outage_new(b, agent);
    if (!o) {
        log_error(b->opts.log, "broker.not_revived", LOG_S("agent", agent));
        return NULL;
    }
    if (!o->since_ms || o->has_given_up)
        outage_arm(o, 0);
    if (!o->since_ms)
        o->since_ms = loop_wall_ms(b->opts.loop);
    return o;
}

void revive_escalation(struct escalation *x)
{
    outage_begin(x->gatekeeper, x->subject.agent);
}

/* The same for the agent of a safety gate that holds a message. */
static struct outage *outage_begin_gate(struct gatekeeper *b,
                                        const struct gate_result *p)
{
    struct gate_agent a = {.name = p->gate_agent, .state = AGENT_DEAD};
    struct outage *o;

    if (p->answer != GATE_PAUSE)
        return NULL;
    o = outage_begin(b, p->gate_agent);
    if (!o)
        return NULL;
    b->opts.agent(b->opts.ctx, p->gate_agent, &a);
    o->is_gate = true;
    o->paused_by = a.state;
    return o;
}

/* Announce the outage with the first message that it holds. */
static void announce_outage(struct gatekeeper *b, const struct subject *subject,
                            const struct gate_result *p, struct tx *tx)
{
    struct outage *o = outage_begin_gate(b, p);
    struct note_data n;

    if (!o || o->is_told)
        return;
    o->is_told = true;
    o->told_by = subject->task_id;
    note_open(&n);
    note_str(&n, "agent", str_of(o->shown));
    note_str(&n, "state", agent_state_name(o->paused_by));
    note_str(&n, "rule", p->rule);
    note_str(&n, "reason", str_of(p->reason));
    note_str(&n, "from", subject->from);
    note_str(&n, "to", subject->agent);
    note_str(&n, "type", subject->type);
    note_str(&n, "reference", subject->reference);
    note_str(&n, "priority", task_priority_name(p->priority));
    note_close(&n, b, STR("agent.out"), subject, tx);
}

static void settle_announcement(struct gatekeeper *b,
                                const struct gate_result *p,
                                const struct id *task_id, bool is_committed)
{
    struct outage *o =
        p->answer == GATE_PAUSE ? outage_of(b, p->gate_agent) : NULL;

    if (o && !is_committed && !strcmp(o->told_by.text, task_id->text))
        o->is_told = false; /* the next message announces it */
}

void revive_look(struct gatekeeper *b, const struct gate_result *p)
{
    outage_begin_gate(b, p);
}

void revive_record(struct gatekeeper *b, struct msg *m)
{
    struct subject subject = subject_of_msg(m);

    announce_outage(b, &subject, &m->gate.gate_result, &m->tx);
}

void revive_settle(struct gatekeeper *b, struct msg *m, bool is_committed)
{
    settle_announcement(b, &m->gate.gate_result, &m->task.id, is_committed);
}

void revive_record_pass(struct gatekeeper *b, const struct task *t,
                        const struct envelope *e, const struct gate_result *p,
                        struct tx *tx)
{
    struct subject subject = subject_of_task(t, e, p);

    announce_outage(b, &subject, p, tx);
}

void revive_settle_pass(struct gatekeeper *b, const struct task *t,
                        const struct gate_result *p, bool is_committed)
{
    settle_announcement(b, p, &t->id, is_committed);
}

void revive_agent_changed(struct gatekeeper *b, struct str agent)
{
    struct outage *o = outage_of(b, agent);

    if (o)
        outage_arm(o, 0);
}

void revive_rules(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->revive->outages, &at)))
        outage_arm(slot->value, 0);
}

/* After a start agents reconnect by themselves, so wait a little. If the clock
 * was set back meanwhile, wait no longer than the longest pause. */
static void wait_for_return(struct outage *o, int64_t at_ms)
{
    struct loop *l = o->gatekeeper->opts.loop;
    int64_t left_ms = at_ms - loop_wall_ms(l);

    if (left_ms < COME_BACK_MS)
        left_ms = COME_BACK_MS;
    if (left_ms > RESTART_PAUSE_MAX_MS)
        left_ms = RESTART_PAUSE_MAX_MS;
    o->next_mono_ms = loop_mono_ms(l) + left_ms;
    outage_arm(o, GATEKEEPER_STATES_MS);
}

static enum err load_outages(struct gatekeeper *b)
{
    struct query q;
    enum err e;

    query_init(&q, &outage_table, OUTAGES_MAX);
    e = store_look(b->opts.store, &q);
    if (!e)
        QUERY_EACH(r, &q)
        {
            struct outage *o =
                e ? NULL : outage_new(b, row_str(r, OUTAGE_SHOWN));

            if (!o) {
                e = ERR_NOMEM;
                break;
            }
            record_from_row(o, &outage_table, r);
            o->is_told = o->is_gate;
            wait_for_return(o, row_int(r, OUTAGE_NEXT_MS));
        }
    query_fini(&q);
    return e;
}

enum err revive_load(struct gatekeeper *b, struct why *why)
{
    struct list *open = &b->escalations->open;
    enum err e = load_outages(b);

    if (!e && b->opts.pause)
        e = pauses_load(b);
    if (e)
        return why_err(why, e, "outages and pauses cannot be read: %s",
                       err_row(e)->wording);
    for (struct list_node *n = list_first(open); n; n = list_next(open, n)) {
        struct escalation *x = LIST_OF(n, struct escalation, node);

        if (x->kind == ESCALATION_DEAD && !outage_of(b, x->subject.agent)) {
            struct outage *o = outage_begin(b, x->subject.agent);

            if (o)
                wait_for_return(o, 0);
        }
    }
    return OK;
}

void revive_init(struct gatekeeper *b)
{
    b->revive = mem_new(sizeof(*b->revive));
    map_init(&b->revive->outages, OUTAGES_MAX, b->opts.seed);
}

void revive_stop(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    b->revive->is_stopped = true;
    while ((slot = map_next(&b->revive->outages, &at)))
        loop_timer_cancel(b->opts.loop, &((struct outage *)slot->value)->timer);
}

void revive_fini(struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at;

    while ((at = 0, slot = map_next(&b->revive->outages, &at)))
        outage_free(slot->value);
    map_fini(&b->revive->outages);
    free(b->revive);
}

bool revive_check(const struct gatekeeper *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->revive->outages, &at))) {
        const struct outage *o = slot->value;

        if (o->gatekeeper != b || outage_of(b, str_of(o->name)) != o ||
            (!b->revive->is_stopped && !timer_is_set(&o->timer) &&
             !o->is_restarting))
            return false;
    }
    return map_check(&b->revive->outages);
}
