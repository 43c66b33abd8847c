/* Asking the gate about a message with what is known, and what follows: rows in
 * the message's tx, and memory once they are on the disk.
 *
 * What makes a repeat known is claimed when the message is asked about, so that
 * two that come together are not both let in. One that is dropped because of a
 * claim counts on the other being accepted: its tx expects that task, and where
 * it is not there the repeat is judged anew (broker_is_overtaken). */
#include "broker/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Life. */

enum { FORGET_AT_ONCE = 10 * 1000 };

static enum err init_parts(struct broker *b)
{
    enum err e = holds_init(b);

    if (!e)
        e = people_init(b);
    if (!e)
        e = late_init(b);
    return e ? e : revive_init(b);
}

struct broker *broker_new(const struct broker_opts *opts)
{
    struct broker *b = FAULT("broker.new") ? NULL : calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->opts = *opts;
    past_init(&b->past, opts->seed);
    if (init_parts(b) == OK)
        return b;
    broker_free(b);
    return NULL;
}

void broker_free(struct broker *b)
{
    if (!b)
        return;
    revive_fini(b);
    late_fini(b);
    people_fini(b);
    holds_fini(b);
    past_fini(&b->past);
    free(b);
}

void broker_stop(struct broker *b)
{
    b->is_stopping = true;
    holds_stop(b);
    people_stop(b);
    late_stop(b);
    revive_stop(b);
}

void broker_set_rules(struct broker *b, const struct gate_rules *rules)
{
    b->opts.rules = rules;
    people_rules(b);
    late_rules(b);
    revive_rules(b);
    wait_all(b);
}

const struct gate_rules *broker_rules(const struct broker *b)
{
    return b->opts.rules;
}

void broker_set_max_age(struct broker *b, int64_t ms)
{
    b->opts.max_age_ms = ms;
}

struct gate_limits broker_limits(const struct broker *b)
{
    struct gate_limits l = gate_rules_about(b->opts.rules)->limits;
    int64_t ms = b->opts.max_age_ms;

    if (ms && (!l.age_ms || ms < l.age_ms))
        l.age_ms = ms;
    return l;
}

/* What is known. */

/* What is let go and on its way to the disk counts as there; and for somebody
 * who comes new, so do those that have waited for longer. */
static bool see_agent(void *ctx, struct str name, struct gate_agent *out)
{
    const struct asking *a = ctx;
    struct broker *b = a->broker;
    const struct target *t = target_find(b, name);

    *out = (struct gate_agent){.name = name};
    b->opts.agent(b->opts.ctx, name, out);
    if (out->is_known && !out->is_for_all && a->requester.n && b->opts.sees &&
        !b->opts.sees(b->opts.ctx, a->requester, name))
        out->is_foreign = true;
    if (t)
        out->queue += (int64_t)(t->n_going + (a->is_new ? t->n_room : 0));
    if (a->has_room.n && str_eq_nocase(a->has_room, name))
        out->queue = 0;
    if (a->may_try.n && str_eq_nocase(a->may_try, name))
        out->may_try = true;
    return out->is_known;
}

static size_t see_events(void *ctx, struct str reference,
                         struct gate_event *out, size_t max)
{
    const struct asking *a = ctx;

    return past_events(&a->broker->past, a->scope, reference, out, max);
}

static bool see_key(void *ctx, const struct gate_key *key,
                    struct gate_seen *out)
{
    const struct asking *a = ctx;
    return past_seen(&a->broker->past, key, a->now_ms, out);
}

struct gate_view broker_view(const struct asking *a)
{
    return (struct gate_view){see_agent, see_events, see_key, (void *)a};
}

void broker_decide(const struct asking *a, const struct envelope *e,
                   struct pass *out, const struct gate_trace *trace)
{
    struct gate_view view = broker_view(a);

    gate_decide(a->broker->opts.rules, &view, e, a->now_ms, out, trace);
}

static bool keep(struct str *s, struct arena *arena)
{
    return arena_keep(arena, *s, s);
}

bool pass_keep(struct pass *p, struct arena *arena)
{
    bool is_kept = keep(&p->rule, arena) && keep(&p->repeats, arena) &&
                   keep(&p->gate_agent, arena) && keep(&p->agent, arena) &&
                   keep(&p->sla_rule, arena) && keep(&p->channel, arena);

    for (size_t i = 0; i < p->n_keys && is_kept; i++)
        is_kept =
            keep(&p->keys[i].name, arena) && keep(&p->keys[i].type, arena);
    return is_kept;
}

/* A person's message as an envelope. */
static void make_envelope(struct msg *m, struct str agent)
{
    if (m->call.envelope) {
        m->gate.envelope = *m->call.envelope;
        return;
    }
    m->gate.envelope = (struct envelope){
        .from = caller_name(&m->in.caller),
        .to = agent,
        .type = ENVELOPE_MESSAGE,
        .priority = m->call.priority,
        .at_ms = m->in.at_ms,
        .payload = m->call.metadata,
        .context = m->choice.text.n ? m->choice.text : m->call.text,
        .is_message = true,
    };
}

static struct str scope_named(const char *kind, struct str name,
                              char out[SCOPE_BYTES])
{
    int n = snprintf(out, SCOPE_BYTES, "%s:%.*s", kind, STR_ARG(name));

    return (struct str){out, n < SCOPE_BYTES ? (size_t)n : SCOPE_BYTES - 1};
}

/* Who is no longer there is still the user they were. */
struct str whose(const struct broker *b, struct str requester,
                 char out[SCOPE_BYTES])
{
    struct str org = {NULL, 0}, name = requester;
    struct caller c;

    if (b->opts.org)
        org = b->opts.org(b->opts.ctx, requester);
    if (org.n)
        return scope_named("org", org, out);
    if (b->opts.caller && b->opts.caller(b->opts.ctx, requester, &c)) {
        if (c.role == ROLE_ADMIN || (c.role == ROLE_AGENT && !c.owner[0]))
            return (struct str){NULL, 0};
        if (c.role == ROLE_AGENT)
            name = str_of(c.owner);
    }
    return scope_named("user", name, out);
}

/* Copied: users change. */
static bool keep_scope(const struct broker *b, struct msg *m)
{
    struct str *scope = &m->gate.envelope.scope;
    char text[SCOPE_BYTES];

    *scope = whose(b, caller_name(&m->in.caller), text);
    return keep(scope, &m->arena);
}

static struct asking asking_of(struct broker *b, const struct msg *m)
{
    return (struct asking){.broker = b,
                           .scope = m->gate.envelope.scope,
                           .requester = caller_name(&m->in.caller),
                           .is_new = true,
                           .now_ms = m->in.at_ms};
}

enum err broker_look(struct broker *b, struct msg *m,
                     const struct gate_trace *trace)
{
    struct asking a;

    make_envelope(m, m->choice.agent);
    if (!keep_scope(b, m))
        return ERR_NOMEM;
    a = asking_of(b, m);
    broker_decide(&a, &m->gate.envelope, &m->gate.pass, trace);
    return pass_keep(&m->gate.pass, &m->arena) ? OK : ERR_NOMEM;
}

/* Claiming. */

static int64_t after(int64_t at_ms, int64_t ms)
{
    int64_t sum;

    return __builtin_add_overflow(at_ms, ms, &sum) ? INT64_MAX : sum;
}

static enum err claim_marks(struct broker *b, struct msg *m,
                            struct broker_claim *c)
{
    size_t n = c->marks.n;
    enum err e = OK;

    c->claims = n ? arena_array(&m->arena, n, sizeof(*c->claims)) : NULL;
    if (n && !c->claims)
        return ERR_NOMEM;
    for (size_t i = 0; i < n && !e; i++) {
        e = past_claim(&b->past, &c->claims[i], &c->marks.list[i].key, m,
                       after(m->in.at_ms, c->marks.list[i].keep_ms));
        c->n_claims += !e;
    }
    return e;
}

/* What it repeats, if that is still on its way. */
static void find_first(const struct broker *b, struct msg *m,
                       struct broker_claim *c)
{
    for (size_t i = 0; i < c->marks.n; i++) {
        const struct msg *first =
            past_claimant(&b->past, &c->marks.list[i].key);

        if (first &&
            str_eq(str_of(first->task.message_id.text), m->gate.pass.repeats))
            c->first = first->task.id;
    }
}

static enum err busy(const struct broker *b, struct msg *m, enum err e)
{
    const struct gate_limits *l = &gate_rules_about(b->opts.rules)->limits;

    if (e != ERR_AGENT_BUSY)
        return e;
    return why_err(&m->why, e,
                   "%s; and as much is held as may be (%lld, and %lld for one "
                   "agent: holds in the rules); try again later",
                   m->gate.pass.reason, (long long)l->most,
                   (long long)l->most_per_agent);
}

static enum err claim(struct broker *b, struct msg *m)
{
    struct broker_claim *c = arena_alloc(&m->arena, sizeof(*c));
    enum err e;

    if (!c)
        return ERR_NOMEM;
    m->gate.claim = c;
    e = gate_marks(b->opts.rules, &m->gate.envelope, &m->arena, &c->marks);
    if (!e && m->gate.pass.answer == GATE_DROP) {
        find_first(b, m, c);
        return OK;
    }
    if (!e)
        e = claim_marks(b, m, c);
    if (!e && pass_is_hold(m->gate.pass.answer))
        e = busy(b, m, hold_claim(b, m->choice.agent, &c->held));
    return e;
}

enum err broker_ask(struct broker *b, struct msg *m, const struct agent *chosen)
{
    struct asking a;

    assert(!m->gate.claim);
    make_envelope(m, chosen->name);
    if (!keep_scope(b, m))
        return ERR_NOMEM;
    a = asking_of(b, m);
    if (m->gate.batch)
        batch_ask(m, &m->gate.pass);
    else
        broker_decide(&a, &m->gate.envelope, &m->gate.pass, NULL);
    if (!pass_keep(&m->gate.pass, &m->arena))
        return ERR_NOMEM;
    return claim(b, m);
}

/* Events. */

enum approval approval_of(struct str object)
{
    static const struct str keys[] = {STR("approved"), STR("payload")};
    struct str values[2];

    if (!object.n || json_scan(object, keys, 2, values, NULL) != OK)
        return APPROVAL_NONE;
    if (!values[0].n &&
        (!values[1].n || json_scan(values[1], keys, 1, values, NULL) != OK))
        return APPROVAL_NONE;
    return str_eq(values[0], STR("true"))    ? APPROVED
           : str_eq(values[0], STR("false")) ? DISAPPROVED
                                             : APPROVAL_NONE;
}

static int64_t event_until(const struct broker *b, int64_t at_ms)
{
    return after(at_ms, gate_rules_about(b->opts.rules)->longest_ms);
}

/* Whether the rules name `from`, and it is a stranger's agent. */
static bool is_strangers(const struct broker *b, struct str from)
{
    struct gate_agent a = {.name = from};

    b->opts.agent(b->opts.ctx, from, &a);
    return a.is_foreign;
}

bool event_of(const struct broker *b, const struct envelope *e,
              const struct id *task_id, const struct id *message_id,
              int64_t at_ms, struct past_event *out)
{
    if (!e->reference.n || e->reference.n > ENVELOPE_REFERENCE_MAX ||
        !gate_is_event(b->opts.rules, e) || is_strangers(b, e->from))
        return false;
    *out = (struct past_event){
        .scope = e->scope,
        .reference = e->reference,
        .e = {.from = e->from,
              .to = e->to,
              .type = e->type,
              .message_id = str_of(message_id->text),
              .task_id = str_of(task_id->text),
              .at_ms = at_ms,
              .approved = approval_of(e->payload)},
    };
    return true;
}

static struct tx_op *write_event(struct tx *tx, int64_t at_ms, int64_t until_ms,
                                 struct str reference, struct str message_id)
{
    struct tx_op *op = tx_insert(tx, &event_table);

    tx_set(op, EVENT_AT_MS, value_int(at_ms));
    tx_set(op, EVENT_UNTIL_MS, value_int(until_ms));
    tx_set(op, EVENT_REFERENCE, value_text_or_null(reference));
    tx_set(op, EVENT_MESSAGE_ID, value_text_or_null(message_id));
    return op;
}

void event_record(struct broker *b, const struct past_event *e, struct tx *tx)
{
    struct tx_op *op = write_event(tx, e->e.at_ms, event_until(b, e->e.at_ms),
                                   e->reference, e->e.message_id);

    if (past_stock(&b->past) != OK)
        tx->build_error = ERR_NOMEM;
    tx_set(op, EVENT_SCOPE, value_text_or_null(e->scope));
    tx_set(op, EVENT_FROM, value_text(e->e.from));
    tx_set(op, EVENT_TO, value_text_or_null(e->e.to));
    tx_set(op, EVENT_TYPE, value_text(e->e.type));
    tx_set(op, EVENT_APPROVED, value_int(e->e.approved));
    tx_set(op, EVENT_TASK_ID, value_text_or_null(e->e.task_id));
}

/* What cannot be remembered is on the disk, and known after the next start. */
void event_happened(struct broker *b, const struct past_event *e)
{
    if (past_add(&b->past, e, event_until(b, e->e.at_ms)) != OK) {
        b->past.forgotten_total++;
        log_error(b->opts.log, "broker.event_forgotten",
                  LOG_S("reference", e->reference), LOG_S("type", e->e.type));
    }
    wait_event(b, e->reference, e->e.type);
}

static void record_marks(struct msg *m)
{
    const struct broker_claim *c = m->gate.claim;

    for (size_t i = 0; i < c->n_claims; i++) {
        const struct gate_mark *mark = &c->marks.list[i];
        struct tx_op *op = write_event(
            &m->tx, m->in.at_ms, after(m->in.at_ms, mark->keep_ms),
            m->gate.envelope.reference, str_of(m->task.message_id.text));

        tx_set(op, EVENT_KEY,
               value_blob((struct str){(const char *)mark->key.bits,
                                       sizeof(mark->key.bits)}));
    }
}

/* Recording. */

/* What task_create wrote of the task, which nobody else knows yet. */
static struct value of_task(const struct msg *m, uint8_t column)
{
    struct value v = value_null();

    TX_EACH(op, &m->tx)
    {
        if (op->table == &task_table && v.type == VALUE_NULL)
            v = tx_value(op, column);
    }
    return v;
}

static struct str text_or(struct value v, struct str otherwise)
{
    return v.type == VALUE_TEXT ? v.s : otherwise;
}

/* That of a further turn is the conversation's, as its first was. */
static struct str order_key(struct msg *m)
{
    struct value v = of_task(m, TASK_ORDER_KEY);
    struct str who = caller_name(&m->in.caller), c = m->task.conversation_id;
    char *key;

    if (v.type == VALUE_TEXT)
        return v.s;
    key = arena_alloc(&m->arena, who.n + 1 + c.n);
    if (!key)
        return c;
    memcpy(key, who.p, who.n);
    key[who.n] = '/';
    if (c.n)
        memcpy(key + who.n + 1, c.p, c.n);
    return (struct str){key, who.n + 1 + c.n};
}

static void record_hold(struct broker *b, struct msg *m)
{
    struct broker_claim *c = m->gate.claim;
    const struct envelope *e = &m->gate.envelope;
    struct str who = caller_name(&m->in.caller);
    struct hold_why *why = hold_why_of(&m->gate.pass);
    struct hold like = {
        .task_id = m->task.id,
        .message_id = m->task.message_id,
        .turn = m->task.turn,
        .place = of_task(m, TASK_PLACE).i,
        .priority = m->gate.pass.priority,
        .agent = m->choice.agent,
        .order_key = order_key(m),
        .from = e->from,
        .type = e->type,
        .reference = e->reference,
        .scope = e->scope,
        .requester = text_or(of_task(m, TASK_REQUESTER), who),
        .root_user = text_or(of_task(m, TASK_ROOT_USER), who),
        .since_ms = m->in.at_ms,
    };

    c->hold = why ? hold_new(b, &like, why, c->held) : NULL;
    if (!c->hold) {
        free(why);
        m->tx.build_error = ERR_NOMEM;
        return;
    }
    c->held = NULL;
    hold_write(c->hold, &m->tx);
}

/* A plain message that may simply go writes nothing. */
static bool is_told(const struct broker *b, const struct msg *m)
{
    return m->gate.pass.answer != GATE_ROUTE || !m->gate.envelope.is_message ||
           gate_rules_count(b->opts.rules) > 0;
}

static void record_told(struct broker *b, struct msg *m)
{
    const struct pass *p = &m->gate.pass;

    if (!is_told(b, m))
        return;
    tell_decision(&m->tx,
                  &(struct told){
                      .type = tell_type(p->answer),
                      .task_id = str_of(m->task.id.text),
                      .message_id = str_of(m->task.message_id.text),
                      .conversation_id = m->task.conversation_id,
                      .requester = caller_name(&m->in.caller),
                      .root_user = caller_name(&m->in.caller),
                      .envelope = &m->gate.envelope,
                      .target = m->choice.agent,
                      .pass = p,
                      .escalation_id = str_of(m->gate.escalation_id.text),
                      .status = task_status_name(pass_status(p->answer)),
                      .at_ms = m->in.at_ms,
                  });
}

/* If the first does not get to the disk, nor does its repeat. */
static void record_drop(struct msg *m)
{
    struct broker_claim *c = m->gate.claim;
    struct tx_op *op;

    if (!c->first.text[0])
        return;
    op = tx_expect(&m->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(c->first.text)));
    tx_if(op, TASK_MESSAGE_ID, IS, value_text(m->gate.pass.repeats));
    c->expects = op;
}

void broker_record(struct broker *b, struct msg *m)
{
    enum gate_answer a = m->gate.pass.answer;
    struct broker_claim *c = m->gate.claim;

    if (a == GATE_DROP)
        record_drop(m);
    else
        record_marks(m);
    if (pass_is_hold(a))
        record_hold(b, m);
    c->has_event = a == GATE_ROUTE &&
                   event_of(b, &m->gate.envelope, &m->task.id,
                            &m->task.message_id, m->in.at_ms, &c->event);
    if (c->has_event)
        event_record(b, &c->event, &m->tx);
    if (m->gate.batch)
        batch_record(b, m);
    people_record(b, m);
    late_record(b, m);
    revive_record(b, m);
    record_told(b, m);
}

/* Settling. */

bool broker_is_overtaken(const struct msg *m)
{
    return m->gate.claim && m->gate.claim->expects &&
           m->tx.result == TX_GUARD_FAILED &&
           m->tx.failed_op == m->gate.claim->expects;
}

static void settle_marks(struct broker *b, struct broker_claim *c,
                         bool is_committed)
{
    for (size_t i = 0; i < c->n_claims; i++) {
        if (is_committed)
            past_confirm(&b->past, &c->claims[i]);
        else
            past_give_up(&b->past, &c->claims[i]);
    }
    c->n_claims = 0;
}

static void unclaim(struct broker *b, struct msg *m)
{
    struct broker_claim *c = m->gate.claim;

    m->gate.claim = NULL;
    if (!c)
        return;
    settle_marks(b, c, false);
    hold_free(c->hold);
    if (c->held) {
        c->held->n_held--;
        b->holds.n_claims--;
        target_release(b, c->held);
    }
}

void broker_settle(struct broker *b, struct msg *m)
{
    struct broker_claim *c = m->gate.claim;
    bool is_committed = m->tx.result == TX_COMMITTED;

    if (is_committed && c) {
        b->stats.by_answer[m->gate.pass.answer]++;
        settle_marks(b, c, true);
        if (c->hold)
            hold_begin(c->hold);
        c->hold = NULL;
        if (c->has_event)
            event_happened(b, &c->event);
        if (m->gate.batch)
            batch_settle(b, m);
    }
    people_settle(b, m, is_committed);
    late_settle(b, m, is_committed);
    revive_settle(b, m, is_committed);
    unclaim(b, m);
}

void broker_leave(struct broker *b, struct msg *m)
{
    unclaim(b, m);
}

/* The rest. */

void broker_moved(struct broker *b, const struct task *t)
{
    if (t->is_envelope)
        wait_carry(b, str_of(t->id.text));
}

void broker_put_off(struct broker *b, const struct task *t)
{
    wait_queue(b, t->agent);
    late_put_off(b, str_of(t->id.text));
}

void broker_turn_came(struct broker *b, struct str task_id)
{
    late_turn(b, task_id);
}

void broker_agent_changed(struct broker *b, struct str agent)
{
    if (!agent.n) {
        wait_states(b);
        return;
    }
    wait_agent(b, agent);
    wait_queue(b, agent);
    people_agent_changed(b, agent);
    late_agent_changed(b, agent);
    revive_agent_changed(b, agent);
}

void broker_prune(struct broker *b, struct tx *tx, int64_t before_ms,
                  int64_t rows, size_t limit)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    struct tx_op *op = tx_prune(tx, &event_table, limit);

    tx_if(op, EVENT_UNTIL_MS, IS_AT_MOST, value_int(now_ms));
    past_forget(&b->past, now_ms, FORGET_AT_ONCE);
    people_prune(b, tx, before_ms, rows, limit);
    late_prune(b, tx, before_ms, rows, limit);
    revive_prune(b, tx, before_ms, rows, limit);
}

struct broker_stats broker_stats(const struct broker *b)
{
    struct broker_stats s = b->stats;

    s.events = (int64_t)b->past.n_events;
    s.keys = (int64_t)b->past.keys.n;
    s.forgotten_total = b->past.forgotten_total;
    return s;
}

bool broker_check(const struct broker *b)
{
    return past_check(&b->past) && holds_check(b) && people_check(b) &&
           late_check(b) && revive_check(b);
}
