/* Asking the gate about a message, and what follows: rows in the message's tx,
 * and memory after the commit.
 *
 * The keys of a message are claimed when it is asked about, so that of two
 * concurrent repeats only one is let in. A repeat that is dropped because of a
 * claim relies on the first message being accepted: its tx expects that task,
 * and if the task is missing the repeat is decided again
 * (gatekeeper_is_overtaken). */
#include "gate/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { FORGET_AT_ONCE = 10 * 1000, CHAIN_BYTES = 64 * 1024 };

struct gatekeeper *gatekeeper_new(const struct gatekeeper_opts *opts)
{
    struct gatekeeper *b = mem_new(sizeof(*b));

    b->opts = *opts;
    past_init(&b->past, opts->seed);
    holds_init(b);
    escalations_init(b);
    sla_init(b);
    revive_init(b);
    return b;
}

void gatekeeper_free(struct gatekeeper *b)
{
    if (!b)
        return;
    revive_fini(b);
    sla_fini(b);
    escalations_fini(b);
    holds_fini(b);
    past_fini(&b->past);
    free(b);
}

void gatekeeper_stop(struct gatekeeper *b)
{
    b->is_stopping = true;
    holds_stop(b);
    escalations_stop(b);
    sla_stop(b);
    revive_stop(b);
}

void gatekeeper_set_rules(struct gatekeeper *b, const struct gate_rules *rules)
{
    b->opts.rules = rules;
    revive_rules(b);
    wait_all(b);
}

const struct gate_rules *gatekeeper_rules(const struct gatekeeper *b)
{
    return b->opts.rules;
}

void gatekeeper_set_max_age(struct gatekeeper *b, int64_t ms)
{
    b->opts.max_age_ms = ms;
}

struct gate_limits gatekeeper_limits(const struct gatekeeper *b)
{
    struct gate_limits l = gate_rules_about(b->opts.rules)->limits;
    int64_t ms = b->opts.max_age_ms;

    if (ms && (!l.age_ms || ms < l.age_ms))
        l.age_ms = ms;
    return l;
}

bool requester_sees(const struct gatekeeper *b, struct str requester,
                    struct str agent)
{
    const struct agent *a =
        b->opts.registry ? registry_agent(b->opts.registry, agent) : NULL;
    struct eyes eyes = {.user = requester,
                        .now_ms = loop_wall_ms(b->opts.loop)};
    struct access_user user;

    if (!a)
        return !b->opts.registry;
    if (access_user_find(b->opts.access, requester, &user)) {
        eyes.org = str_of(user.org);
        eyes.sees_all = user.role == ROLE_ADMIN;
        if (user.role == ROLE_AGENT && user.owner[0])
            eyes.user = str_of(user.owner);
    }
    return agent_is_visible(a, &eyes);
}

bool is_above_task(const struct gatekeeper *b, struct str task_id,
                   struct str agent)
{
    const struct task *t =
        b->opts.tasks ? task_find(b->opts.tasks, task_id) : NULL;
    struct json *chain;
    struct arena a;
    bool is_above;

    if (!t || !t->chain.n)
        return false;
    arena_init(&a, CHAIN_BYTES);
    chain = json_parse(&a, t->chain, 0, NULL);
    is_above = !chain;
    if (chain) {
        JSON_EACH(kid, chain)
        is_above = is_above || str_eq_nocase(kid->s, agent);
    }
    arena_fini(&a);
    return is_above;
}

/* Messages that were let go but not committed yet count as queued; for a new
 * message so do those that already wait for room. */
static bool view_agent(void *ctx, struct str name, struct gate_agent *out)
{
    const struct viewer *a = ctx;
    struct gatekeeper *b = a->gatekeeper;
    const struct target *t = target_find(b, name);

    *out = (struct gate_agent){.name = name};
    b->opts.agent(b->opts.ctx, name, out);
    if (out->is_known && !out->is_for_all && a->requester.n &&
        !requester_sees(b, a->requester, name))
        out->is_foreign = true;
    if (t)
        out->queue += (int64_t)(t->n_going + (a->is_new ? t->n_room : 0));
    if (a->has_room.n && str_eq_nocase(a->has_room, name))
        out->queue = 0;
    if (a->may_try.n && str_eq_nocase(a->may_try, name))
        out->may_try = true;
    return out->is_known;
}

static size_t view_events(void *ctx, struct str reference,
                          struct gate_event *out, size_t max)
{
    const struct viewer *a = ctx;

    return past_events(&a->gatekeeper->past, a->scope, reference, out, max);
}

static bool view_seen_key(void *ctx, const struct gate_key *key,
                          struct gate_seen *out)
{
    const struct viewer *a = ctx;
    return past_seen(&a->gatekeeper->past, key, a->now_ms, out);
}

struct gate_view gatekeeper_view(const struct viewer *a)
{
    return (struct gate_view){view_agent, view_events, view_seen_key,
                              (void *)a};
}

void gatekeeper_decide(const struct viewer *a, const struct envelope *e,
                       struct gate_result *out, const struct gate_trace *trace)
{
    struct gate_view view = gatekeeper_view(a);

    gate_decide(a->gatekeeper->opts.rules, &view, e, a->now_ms, out, trace);
}

static bool keep_result_str(struct str *s, struct arena *arena)
{
    return arena_keep(arena, *s, s);
}

bool gate_result_keep(struct gate_result *p, struct arena *arena)
{
    bool is_kept = keep_result_str(&p->rule, arena) &&
                   keep_result_str(&p->repeats, arena) &&
                   keep_result_str(&p->gate_agent, arena) &&
                   keep_result_str(&p->agent, arena) &&
                   keep_result_str(&p->sla_rule, arena) &&
                   keep_result_str(&p->channel, arena);

    for (size_t i = 0; i < p->n_keys && is_kept; i++)
        is_kept = keep_result_str(&p->keys[i].name, arena) &&
                  keep_result_str(&p->keys[i].type, arena);
    return is_kept;
}

/* A person's message as an envelope. */
static void set_envelope(struct msg *m, struct str agent)
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

static struct str write_event_scope(const char *kind, struct str name,
                                    char out[SCOPE_BYTES])
{
    int n = snprintf(out, SCOPE_BYTES, "%s:%.*s", kind, STR_ARG(name));

    return (struct str){out, n < SCOPE_BYTES ? (size_t)n : SCOPE_BYTES - 1};
}

/* A removed user keeps the scope they had. */
struct str event_scope(const struct gatekeeper *b, struct str requester,
                       char out[SCOPE_BYTES])
{
    struct str org = access_org_of(b->opts.access, requester), name = requester;
    struct access_user c;

    if (org.n)
        return write_event_scope("org", org, out);
    if (access_user_find(b->opts.access, requester, &c)) {
        if (c.role == ROLE_ADMIN || (c.role == ROLE_AGENT && !c.owner[0]))
            return (struct str){NULL, 0};
        if (c.role == ROLE_AGENT)
            name = str_of(c.owner);
    }
    return write_event_scope("user", name, out);
}

/* Copied, because users change. */
static bool keep_scope(const struct gatekeeper *b, struct msg *m)
{
    struct str *scope = &m->gate.envelope.scope;
    char text[SCOPE_BYTES];

    *scope = event_scope(b, caller_name(&m->in.caller), text);
    return keep_result_str(scope, &m->arena);
}

static struct viewer viewer_of(struct gatekeeper *b, const struct msg *m)
{
    return (struct viewer){.gatekeeper = b,
                           .scope = m->gate.envelope.scope,
                           .requester = caller_name(&m->in.caller),
                           .is_new = true,
                           .now_ms = m->in.at_ms};
}

enum err gatekeeper_look(struct gatekeeper *b, struct msg *m,
                         const struct gate_trace *trace)
{
    struct viewer a;

    set_envelope(m, m->choice.agent);
    if (!keep_scope(b, m))
        return ERR_NOMEM;
    a = viewer_of(b, m);
    gatekeeper_decide(&a, &m->gate.envelope, &m->gate.gate_result, trace);
    return gate_result_keep(&m->gate.gate_result, &m->arena) ? OK : ERR_NOMEM;
}

static int64_t add_ms(int64_t at_ms, int64_t ms)
{
    int64_t sum;

    return __builtin_add_overflow(at_ms, ms, &sum) ? INT64_MAX : sum;
}

static enum err claim_marks(struct gatekeeper *b, struct msg *m,
                            struct gatekeeper_claim *c)
{
    size_t n = c->marks.n;
    enum err e = OK;

    c->claims = n ? arena_array(&m->arena, n, sizeof(*c->claims)) : NULL;
    if (n && !c->claims)
        return ERR_NOMEM;
    for (size_t i = 0; i < n && !e; i++) {
        e = past_claim(&b->past, &c->claims[i], &c->marks.list[i].key, m,
                       add_ms(m->in.at_ms, c->marks.list[i].keep_ms));
        c->n_claims += !e;
    }
    return e;
}

/* Find the message that m repeats, if it is not committed yet. */
static void find_uncommitted_first(const struct gatekeeper *b, struct msg *m,
                                   struct gatekeeper_claim *c)
{
    for (size_t i = 0; i < c->marks.n; i++) {
        const struct msg *first =
            past_claimant(&b->past, &c->marks.list[i].key);

        if (first && str_eq(str_of(first->task.message_id.text),
                            m->gate.gate_result.repeats))
            c->first = first->task.id;
    }
}

static enum err hold_limit_error(const struct gatekeeper *b, struct msg *m,
                                 enum err e)
{
    const struct gate_limits *l = &gate_rules_about(b->opts.rules)->limits;

    if (e != ERR_AGENT_BUSY)
        return e;
    return why_err(&m->why, e,
                   "%s; and the limit of held messages is reached (%lld, and "
                   "%lld for one agent: holds in the rules); try again later",
                   m->gate.gate_result.reason, (long long)l->most,
                   (long long)l->most_per_agent);
}

static enum err claim_message(struct gatekeeper *b, struct msg *m)
{
    struct gatekeeper_claim *c = arena_alloc(&m->arena, sizeof(*c));
    enum err e;

    if (!c)
        return ERR_NOMEM;
    m->gate.claim = c;
    e = gate_marks(b->opts.rules, &m->gate.envelope, &m->arena, &c->marks);
    if (!e && m->gate.gate_result.answer == GATE_DROP) {
        find_uncommitted_first(b, m, c);
        return OK;
    }
    if (!e)
        e = claim_marks(b, m, c);
    if (!e && gate_result_is_hold(m->gate.gate_result.answer))
        e = hold_limit_error(b, m, hold_claim(b, m->choice.agent, &c->held));
    return e;
}

enum err gatekeeper_ask(struct gatekeeper *b, struct msg *m,
                        const struct agent *chosen)
{
    struct viewer a;

    assert(!m->gate.claim);
    set_envelope(m, chosen->name);
    if (!keep_scope(b, m))
        return ERR_NOMEM;
    a = viewer_of(b, m);
    if (m->gate.batch)
        batch_ask(m, &m->gate.gate_result);
    else
        gatekeeper_decide(&a, &m->gate.envelope, &m->gate.gate_result, NULL);
    if (!gate_result_keep(&m->gate.gate_result, &m->arena))
        return ERR_NOMEM;
    return claim_message(b, m);
}

static enum approval approval_of(struct str object)
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

static int64_t event_until(const struct gatekeeper *b, int64_t at_ms)
{
    return add_ms(at_ms, gate_rules_about(b->opts.rules)->longest_ms);
}

/* Whether the rules name `from`, but a stranger's agent holds the name. */
static bool is_foreign_sender(const struct gatekeeper *b, struct str from)
{
    struct gate_agent a = {.name = from};

    b->opts.agent(b->opts.ctx, from, &a);
    return a.is_foreign;
}

bool event_from_envelope(const struct gatekeeper *b, const struct envelope *e,
                         const struct id *task_id, const struct id *message_id,
                         int64_t at_ms, struct past_event *out)
{
    if (!e->reference.n || e->reference.n > ENVELOPE_REFERENCE_MAX ||
        !gate_is_event(b->opts.rules, e) || is_foreign_sender(b, e->from))
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

void event_record(struct gatekeeper *b, const struct past_event *e,
                  struct tx *tx)
{
    struct tx_op *op = tx_insert(tx, &event_table);

    if (past_reserve(&b->past) != OK)
        tx->build_error = ERR_NOMEM;
    record_to_tx(op, e, 1);
    tx_set(op, EVENT_UNTIL_MS, value_int(event_until(b, e->e.at_ms)));
}

/* An event that does not fit in memory is on disk, and known after the next
 * start. */
void event_happened(struct gatekeeper *b, const struct past_event *e)
{
    if (past_add_event(&b->past, e, event_until(b, e->e.at_ms)) != OK) {
        b->past.forgotten_total++;
        log_error(b->opts.log, "broker.event_forgotten",
                  LOG_S("reference", e->reference), LOG_S("type", e->e.type));
    }
    wait_event(b, e->reference, e->e.type);
}

static void record_marks(struct msg *m)
{
    const struct gatekeeper_claim *c = m->gate.claim;

    for (size_t i = 0; i < c->n_claims; i++) {
        const struct gate_mark *mark = &c->marks.list[i];
        struct tx_op *op = tx_insert(&m->tx, &event_table);

        tx_set(op, EVENT_AT_MS, value_int(m->in.at_ms));
        tx_set(op, EVENT_UNTIL_MS,
               value_int(add_ms(m->in.at_ms, mark->keep_ms)));
        tx_set(op, EVENT_REFERENCE,
               value_text_or_null(m->gate.envelope.reference));
        tx_set(op, EVENT_MESSAGE_ID,
               value_text_or_null(str_of(m->task.message_id.text)));
        tx_set(op, EVENT_KEY,
               value_blob((struct str){(const char *)mark->key.bits,
                                       sizeof(mark->key.bits)}));
    }
}

/* A column that task_create wrote into the tx, which only the tx knows yet. */
static struct value created_task_value(const struct msg *m, uint8_t column)
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

/* For a further turn, the order key of the conversation, like the first
 * turn's. */
static struct str hold_order_key(struct msg *m)
{
    struct value v = created_task_value(m, TASK_ORDER_KEY);
    struct str requester = caller_name(&m->in.caller),
               c = m->task.conversation_id;
    char *key;

    if (v.type == VALUE_TEXT)
        return v.s;
    key = arena_alloc(&m->arena, requester.n + 1 + c.n);
    if (!key)
        return c;
    memcpy(key, requester.p, requester.n);
    key[requester.n] = '/';
    if (c.n)
        memcpy(key + requester.n + 1, c.p, c.n);
    return (struct str){key, requester.n + 1 + c.n};
}

static void record_hold(struct gatekeeper *b, struct msg *m)
{
    struct gatekeeper_claim *c = m->gate.claim;
    const struct envelope *e = &m->gate.envelope;
    struct str requester = caller_name(&m->in.caller);
    struct hold_why *why = hold_why_of(&m->gate.gate_result);
    struct hold like = {
        .task_id = m->task.id,
        .message_id = m->task.message_id,
        .turn = m->task.turn,
        .place = created_task_value(m, TASK_PLACE).i,
        .priority = m->gate.gate_result.priority,
        .agent = m->choice.agent,
        .order_key = hold_order_key(m),
        .from = e->from,
        .type = e->type,
        .reference = e->reference,
        .scope = e->scope,
        .requester = text_or(created_task_value(m, TASK_REQUESTER), requester),
        .root_user = text_or(created_task_value(m, TASK_ROOT_USER), requester),
        .since_ms = m->in.at_ms,
    };

    c->hold = hold_new(b, &like, why, c->held);
    c->held = NULL;
    hold_write(c->hold, &m->tx);
}

/* A plain message that is simply let go writes no entry. */
static bool has_feed_entry(const struct gatekeeper *b, const struct msg *m)
{
    return m->gate.gate_result.answer != GATE_ROUTE ||
           !m->gate.envelope.is_message || gate_rules_count(b->opts.rules) > 0;
}

static void record_decision(struct gatekeeper *b, struct msg *m)
{
    const struct gate_result *p = &m->gate.gate_result;

    if (!has_feed_entry(b, m))
        return;
    feed_decision(&m->tx,
                  &(struct decision_entry){
                      .type = decision_entry_type(p->answer),
                      .task_id = str_of(m->task.id.text),
                      .message_id = str_of(m->task.message_id.text),
                      .conversation_id = m->task.conversation_id,
                      .requester = caller_name(&m->in.caller),
                      .root_user = caller_name(&m->in.caller),
                      .envelope = &m->gate.envelope,
                      .target = m->choice.agent,
                      .gate_result = p,
                      .escalation_id = str_of(m->gate.escalation_id.text),
                      .status = task_status_name(gate_result_status(p->answer)),
                      .at_ms = m->in.at_ms,
                  });
}

/* If the first message is not committed, neither is its repeat. */
static void record_drop(struct msg *m)
{
    struct gatekeeper_claim *c = m->gate.claim;
    struct tx_op *op;

    if (!c->first.text[0])
        return;
    op = tx_expect(&m->tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(c->first.text)));
    tx_if(op, TASK_MESSAGE_ID, IS, value_text(m->gate.gate_result.repeats));
    c->expects = op;
}

void gatekeeper_record(void *gatekeeper, struct msg *m)
{
    struct gatekeeper *b = gatekeeper;
    enum gate_answer a = m->gate.gate_result.answer;
    struct gatekeeper_claim *c = m->gate.claim;

    if (a == GATE_DROP)
        record_drop(m);
    else
        record_marks(m);
    if (gate_result_is_hold(a))
        record_hold(b, m);
    c->has_event =
        a == GATE_ROUTE &&
        event_from_envelope(b, &m->gate.envelope, &m->task.id,
                            &m->task.message_id, m->in.at_ms, &c->event);
    if (c->has_event)
        event_record(b, &c->event, &m->tx);
    if (m->gate.batch)
        batch_record(b, m);
    escalations_record(b, m);
    sla_record(b, m);
    revive_record(b, m);
    record_decision(b, m);
}

bool gatekeeper_is_overtaken(const struct msg *m)
{
    return m->gate.claim && m->gate.claim->expects &&
           m->tx.result == TX_GUARD_FAILED &&
           m->tx.failed_op == m->gate.claim->expects;
}

static void settle_marks(struct gatekeeper *b, struct gatekeeper_claim *c,
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

static void release_claim(struct gatekeeper *b, struct msg *m)
{
    struct gatekeeper_claim *c = m->gate.claim;

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

void gatekeeper_settle(void *gatekeeper, struct msg *m)
{
    struct gatekeeper *b = gatekeeper;
    struct gatekeeper_claim *c = m->gate.claim;
    bool is_committed = m->tx.result == TX_COMMITTED;

    if (is_committed && c) {
        b->stats.by_answer[m->gate.gate_result.answer]++;
        settle_marks(b, c, true);
        if (c->hold)
            hold_begin(c->hold);
        c->hold = NULL;
        if (c->has_event)
            event_happened(b, &c->event);
        if (m->gate.batch)
            batch_settle(b, m);
    }
    escalations_settle(b, m, is_committed);
    sla_settle(b, m, is_committed);
    revive_settle(b, m, is_committed);
    release_claim(b, m);
}

void gatekeeper_leave(void *gatekeeper, struct msg *m)
{
    release_claim(gatekeeper, m);
}

void gatekeeper_moved(struct gatekeeper *b, const struct task *t)
{
    if (t->is_envelope)
        wait_carry(b, str_of(t->id.text));
}

void gatekeeper_put_off(struct gatekeeper *b, const struct task *t)
{
    wait_queue(b, t->agent);
    sla_put_off(b, str_of(t->id.text));
}

void gatekeeper_turn_came(struct gatekeeper *b, struct str task_id)
{
    sla_turn_came(b, task_id);
}

void gatekeeper_agent_changed(struct gatekeeper *b, struct str agent)
{
    if (!agent.n) {
        wait_states(b);
        return;
    }
    wait_agent(b, agent);
    wait_queue(b, agent);
    revive_agent_changed(b, agent);
}

void gatekeeper_prune(struct gatekeeper *b, struct tx *tx, int64_t before_ms,
                      size_t limit)
{
    int64_t now_ms = loop_wall_ms(b->opts.loop);
    struct tx_op *op = tx_prune(tx, &event_table, limit);

    tx_if(op, EVENT_UNTIL_MS, IS_AT_MOST, value_int(now_ms));
    past_forget(&b->past, now_ms, FORGET_AT_ONCE);
    escalations_prune(tx, before_ms, limit);
}

struct gatekeeper_stats gatekeeper_stats(const struct gatekeeper *b)
{
    struct gatekeeper_stats s = b->stats;

    s.events = (int64_t)b->past.n_events;
    s.keys = (int64_t)b->past.keys.n;
    s.forgotten_total = b->past.forgotten_total;
    return s;
}

bool gatekeeper_check(const struct gatekeeper *b)
{
    return past_check(&b->past) && holds_check(b) && escalations_check(b) &&
           sla_check(b) && revive_check(b);
}
