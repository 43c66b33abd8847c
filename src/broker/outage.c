/* An agent that is out: how it comes to be known, its row, its place in memory.
 * What is done about it is revive.c's.
 *
 * The first message that a safety gate's agent holds up says so in its own tx
 * (agent.out), so that it is told once for each outage and by what was written.
 */
#include "broker/people.h"

#include <stdlib.h>

enum { COME_BACK_MS = 5000 };

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column outage_columns[N_OUTAGE_COLUMNS] = {
    [OUTAGE_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [OUTAGE_SHOWN] = {.name = "shown", .type = COLUMN_TEXT},
    [OUTAGE_SINCE_MS] = {.name = "since_ms", .type = COLUMN_INT},
    [OUTAGE_ATTEMPTS] = {.name = "attempts", .type = COLUMN_INT},
    [OUTAGE_NEXT_MS] = {.name = "next_ms", .type = COLUMN_INT},
    [OUTAGE_HAS_GIVEN_UP] = {.name = "has_given_up", .type = COLUMN_INT},
    [OUTAGE_IS_GATE] = {.name = "is_gate", .type = COLUMN_INT},
};

const struct table outage_table = {
    .name = "outage",
    .columns = outage_columns,
    .n_columns = N_OUTAGE_COLUMNS,
    .n_key = 1,
};

struct outage *outage_of(const struct broker *b, struct str agent)
{
    char name[AGENT_NAME_MAX + 1];

    return map_get(&b->revive->outages,
                   str_lowered(agent, name, AGENT_NAME_MAX));
}

struct gate_agent outage_agent(const struct outage *o)
{
    struct gate_agent a = {.name = str_of(o->shown)};

    o->broker->opts.agent(o->broker->opts.ctx, a.name, &a);
    return a;
}

/* Writing: the feed tells what is tried, and the row how far it is. */

static void on_written(struct tx *tx, void *ctx)
{
    (void)ctx; /* after a refusal the next step writes the row again */
    tx_fini(tx);
    free(tx);
}

/* When it may be restarted, as Unix time. */
static int64_t next_ms(const struct outage *o)
{
    struct loop *l = o->broker->opts.loop;

    return loop_wall_ms(l) + o->next_mono_ms - loop_mono_ms(l);
}

static void write_row(const struct outage *o, bool is_over, struct tx *tx)
{
    struct tx_op *op =
        is_over ? tx_prune(tx, &outage_table, 1) : tx_put(tx, &outage_table);

    if (is_over) {
        tx_if(op, OUTAGE_AGENT, IS, value_text(str_of(o->name)));
        return;
    }
    tx_set(op, OUTAGE_AGENT, value_text(str_of(o->name)));
    tx_set(op, OUTAGE_SHOWN, value_text(str_of(o->shown)));
    tx_set(op, OUTAGE_SINCE_MS, value_int(o->since_ms));
    tx_set(op, OUTAGE_ATTEMPTS, value_int(o->attempts));
    tx_set(op, OUTAGE_NEXT_MS, value_int(next_ms(o)));
    tx_set(op, OUTAGE_HAS_GIVEN_UP, value_int(o->has_given_up));
    tx_set(op, OUTAGE_IS_GATE, value_int(o->is_gate));
}

void outage_write(struct outage *o, bool is_over, const char *type,
                  const char *because, const char *key, struct str more)
{
    struct broker *b = o->broker;
    struct tx *tx = FAULT("broker.outage_tx") ? NULL : calloc(1, sizeof(*tx));
    struct about about = {.agent = str_of(o->shown)};
    struct note_data n;

    if (!tx) {
        log_error(b->opts.log, "broker.outage_untold",
                  LOG_C("agent", o->shown));
        return;
    }
    tx_init(tx);
    write_row(o, is_over, tx);
    if (type) {
        note_open(&n);
        note_str(&n, "agent", str_of(o->shown));
        note_int(&n, "attempt", o->attempts);
        note_int(&n, "out_ms", loop_wall_ms(b->opts.loop) - o->since_ms);
        note_str(&n, "error", str_of(because));
        note_str(&n, key, more);
        note_close(&n, b, str_of(type), &about, tx);
    }
    store_submit(b->opts.store, tx, on_written, NULL);
}

/* In memory. */

void outage_arm(struct outage *o, int64_t delay_ms)
{
    struct broker *b = o->broker;

    if (!b->revive->is_stopped &&
        loop_timer_set(b->opts.loop, &o->timer, delay_ms) != OK)
        log_error(b->opts.log, "broker.no_timer", LOG_C("agent", o->shown));
}

void outage_free(struct outage *o)
{
    loop_timer_cancel(o->broker->opts.loop, &o->timer);
    map_take(&o->broker->revive->outages, str_of(o->name));
    free(o);
}

static void on_timer(struct timer *t)
{
    outage_look(LIST_OF(t, struct outage, timer));
}

static struct outage *outage_new(struct broker *b, struct str agent)
{
    struct outage *o = FAULT("broker.outage") ? NULL : calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->broker = b;
    o->timer.fire = on_timer;
    str_lowered(agent, o->name, AGENT_NAME_MAX);
    memcpy(o->shown, agent.p,
           agent.n < AGENT_NAME_MAX ? agent.n : AGENT_NAME_MAX);
    if (map_put(&b->revive->outages, str_of(o->name), o) == OK)
        return o;
    free(o);
    return NULL;
}

/* It is out: at the end of this turn something is done about it. NULL: memory
 * is gone, or everything ends. */
static struct outage *begin(struct broker *b, struct str agent)
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

void revive_asked(struct asked *x)
{
    begin(x->broker, x->about.agent);
}

/* The agent of a gate that holds something up. */
static struct outage *begin_gate(struct broker *b, const struct pass *p)
{
    struct gate_agent a = {.name = p->gate_agent, .state = AGENT_DEAD};
    struct outage *o;

    if (p->answer != GATE_PAUSE)
        return NULL;
    o = begin(b, p->gate_agent);
    if (!o)
        return NULL;
    b->opts.agent(b->opts.ctx, p->gate_agent, &a);
    o->is_gate = true;
    o->paused_by = a.state;
    return o;
}

/* The first that is held up by it tells of it. */
static void tell_out(struct broker *b, const struct about *about,
                     const struct pass *p, struct tx *tx)
{
    struct outage *o = begin_gate(b, p);
    struct note_data n;

    if (!o || o->is_told)
        return;
    o->is_told = true;
    o->told_by = about->task_id;
    note_open(&n);
    note_str(&n, "agent", str_of(o->shown));
    note_str(&n, "state", agent_state_name(o->paused_by));
    note_str(&n, "rule", p->rule);
    note_str(&n, "reason", str_of(p->reason));
    note_str(&n, "from", about->from);
    note_str(&n, "to", about->agent);
    note_str(&n, "type", about->type);
    note_str(&n, "reference", about->reference);
    note_str(&n, "priority", task_priority_name(p->priority));
    note_close(&n, b, STR("agent.out"), about, tx);
}

static void settle(struct broker *b, const struct pass *p,
                   const struct id *task_id, bool is_committed)
{
    struct outage *o =
        p->answer == GATE_PAUSE ? outage_of(b, p->gate_agent) : NULL;

    if (o && !is_committed && !strcmp(o->told_by.text, task_id->text))
        o->is_told = false; /* the next one tells it */
}

void revive_look(struct broker *b, const struct pass *p)
{
    begin_gate(b, p);
}

/* The hooks. */

void revive_record(struct broker *b, struct msg *m)
{
    const struct envelope *e = &m->gate.envelope;

    tell_out(b,
             &(struct about){.task_id = m->task.id,
                             .agent = m->choice.agent,
                             .requester = caller_name(&m->in.caller),
                             .root_user = caller_name(&m->in.caller),
                             .from = e->from,
                             .type = e->type,
                             .reference = e->reference},
             &m->gate.pass, &m->tx);
}

void revive_settle(struct broker *b, struct msg *m, bool is_committed)
{
    settle(b, &m->gate.pass, &m->task.id, is_committed);
}

void revive_record_pass(struct broker *b, const struct task *t,
                        const struct envelope *e, const struct pass *p,
                        struct tx *tx)
{
    tell_out(b,
             &(struct about){.task_id = t->id,
                             .agent = t->agent,
                             .requester = t->requester,
                             .root_user = t->root_user,
                             .from = e ? e->from : t->requester,
                             .type = e ? e->type : ENVELOPE_MESSAGE,
                             .reference = e ? e->reference : STR("")},
             p, tx);
}

void revive_settle_pass(struct broker *b, const struct task *t,
                        const struct pass *p, bool is_committed)
{
    settle(b, p, &t->id, is_committed);
}

void revive_record_end(struct broker *b, const struct task *t,
                       const struct task_result *r, struct tx *tx)
{
    (void)b, (void)t, (void)r, (void)tx;
}

void revive_settle_end(struct broker *b, const struct task *t,
                       const struct task_result *r)
{
    (void)b, (void)t, (void)r;
}

void revive_agent_changed(struct broker *b, struct str agent)
{
    struct outage *o = outage_of(b, agent);

    if (o)
        outage_arm(o, 0);
}

void revive_rules(struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->revive->outages, &at)))
        outage_arm(slot->value, 0);
}

void revive_prune(struct broker *b, struct tx *tx, int64_t before_ms,
                  int64_t rows, size_t limit)
{
    (void)b, (void)tx, (void)before_ms, (void)rows, (void)limit;
}

/* Life. */

/* After a start: agents that were there come back by themselves. And a clock
 * that was set back meanwhile makes nobody wait for longer than a pause. */
static void wait_a_moment(struct outage *o, int64_t at_ms)
{
    struct loop *l = o->broker->opts.loop;
    int64_t left_ms = at_ms - loop_wall_ms(l);

    if (left_ms < COME_BACK_MS)
        left_ms = COME_BACK_MS;
    if (left_ms > RESTART_PAUSE_MAX_MS)
        left_ms = RESTART_PAUSE_MAX_MS;
    o->next_mono_ms = loop_mono_ms(l) + left_ms;
    outage_arm(o, BROKER_STATES_MS);
}

static enum err load_outages(struct broker *b)
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
            o->since_ms = row_int(r, OUTAGE_SINCE_MS);
            o->attempts = row_int(r, OUTAGE_ATTEMPTS);
            o->has_given_up = row_int(r, OUTAGE_HAS_GIVEN_UP);
            o->is_gate = row_int(r, OUTAGE_IS_GATE);
            o->is_told = o->is_gate;
            wait_a_moment(o, row_int(r, OUTAGE_NEXT_MS));
        }
    query_fini(&q);
    return e;
}

enum err revive_load(struct broker *b, struct why *why)
{
    struct list *open = &b->people->open;
    enum err e = load_outages(b);

    if (!e && b->opts.pause)
        e = pauses_load(b);
    if (e)
        return why_err(why, e, "outages and pauses cannot be read: %s",
                       err_row(e)->wording);
    for (struct list_node *n = list_first(open); n; n = list_next(open, n)) {
        struct asked *x = LIST_OF(n, struct asked, node);

        if (x->kind == ESCALATION_DEAD && !outage_of(b, x->about.agent)) {
            struct outage *o = begin(b, x->about.agent);

            if (o)
                wait_a_moment(o, 0);
        }
    }
    return OK;
}

enum err revive_init(struct broker *b)
{
    b->revive = FAULT("broker.revive") ? NULL : calloc(1, sizeof(*b->revive));
    if (!b->revive)
        return ERR_NOMEM;
    map_init(&b->revive->outages, OUTAGES_MAX, b->opts.seed);
    return OK;
}

void revive_stop(struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    b->revive->is_stopped = true;
    while ((slot = map_next(&b->revive->outages, &at)))
        loop_timer_cancel(b->opts.loop, &((struct outage *)slot->value)->timer);
}

void revive_fini(struct broker *b)
{
    const struct map_slot *slot;
    size_t at;

    if (!b->revive)
        return;
    while ((at = 0, slot = map_next(&b->revive->outages, &at)))
        outage_free(slot->value);
    map_fini(&b->revive->outages);
    free(b->revive);
    b->revive = NULL;
}

bool revive_check(const struct broker *b)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&b->revive->outages, &at))) {
        const struct outage *o = slot->value;

        if (o->broker != b || outage_of(b, str_of(o->name)) != o ||
            (!b->revive->is_stopped && !timer_is_set(&o->timer) &&
             !o->is_restarting))
            return false;
    }
    return map_check(&b->revive->outages);
}
