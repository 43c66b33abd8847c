/* A message becomes a task, or a further turn of one.
 *
 * Up to four rows are written: the task, its conversation, the idempotency key
 * if one was given, and a feed entry. Guards resolve conflicts: a live key
 * cannot be put, and a task is requeued only from the version that was seen.
 *
 * The first failing guard names the error, so the key comes first: a repeat of
 * a further turn must be recognized as a repeat and not as a late turn.
 *
 * A further turn that is dropped is not a turn: the task keeps its state and
 * its answer. The message is kept in turn_table with a negative number, so that
 * its sender can look up the outcome. */
#include "task/internal.h"

#include <assert.h>

/* User names have no slash, so the first one ends the owner and the rest is the
 * conversation. */
static bool make_order_key(struct msg *m, struct task *t)
{
    struct str owner = t->requester, conversation = t->conversation_id;
    size_t n = owner.n + 1 + conversation.n;
    char *key = arena_alloc(&m->arena, n);

    assert(str_find(owner, '/', 0) == owner.n);
    if (!key)
        return false;
    memcpy(key, owner.p, owner.n);
    key[owner.n] = '/';
    if (conversation.n)
        memcpy(key + owner.n + 1, conversation.p, conversation.n);
    t->order_key = (struct str){key, n};
    return true;
}

/* "/FROM/TO/n/REFERENCE" in lower case. No owner is empty, so it cannot equal a
 * conversation's key. Urgent envelopes have a lane of their own. So has each
 * envelope without a reference: it is unrelated to others and must not block
 * them while it is escalated. */
static bool make_envelope_key(struct msg *m, struct task *t)
{
    const struct envelope *e = m->call.envelope;
    char from[ENVELOPE_NAME_MAX], to[ENVELOPE_NAME_MAX];
    struct buf key;
    bool ok;

    buf_init(&key, 2 * ENVELOPE_NAME_MAX + ENVELOPE_REFERENCE_MAX + 8);
    buf_add_char(&key, '/');
    buf_add_str(&key, str_lowered(e->from, from, sizeof(from)));
    buf_add_char(&key, '/');
    buf_add_str(&key, str_lowered(t->agent, to, sizeof(to)));
    buf_add_str(&key, t->priority == PRIORITY_URGENT ? STR("/u/") : STR("/n/"));
    buf_add_str(&key, e->reference.n ? e->reference : str_of(t->id.text));
    if (PLANTED("task.no_order"))
        buf_add_i64(&key, t->place);
    ok = !key.over && arena_keep(&m->arena, buf_str(&key), &t->order_key);
    buf_fini(&key);
    return ok;
}

/* Copied, since `before` may not outlive the call. */
static bool task_choose_conversation(struct tasks *ts, struct msg *m,
                                     const struct task *before)
{
    struct str id = before ? before->conversation_id : m->call.conversation_id;
    struct id made;

    if (!id.n) {
        made = id_make(ts->opts.ids, "conv", m->in.at_ms);
        id = str_of(made.text);
    }
    return arena_keep(&m->arena, id, &m->task.conversation_id);
}

/* The fields that every turn sets, the first and any other. */
static void task_fill_turn(struct tasks *ts, const struct msg *m,
                           struct task *t)
{
    t->place = ts->next_place++;
    t->message_id = m->task.message_id;
    t->decision_id = m->choice.id;
    t->priority = m->gate.gate_result.answer ? m->gate.gate_result.priority
                                             : m->call.priority;
    t->status = gate_result_status(m->gate.gate_result.answer);
    t->attempt = t->interrupted = 0;
    t->is_envelope = m->call.envelope != NULL;
    t->text = m->choice.text.n ? m->choice.text : m->call.text;
    t->metadata = m->call.metadata;
    t->source = m->call.source;
    t->skill = m->ledger.skill;
    t->budget_ms =
        m->call.timeout_ms ? m->call.timeout_ms : ts->opts.limits.timeout_ms;
    t->price_micros = m->ledger.price_micros;
    t->payee = m->ledger.payee;
    t->payer_org = m->ledger.org;
    t->priced_agent =
        m->ledger.price_micros ? m->choice.agent : (struct str){NULL, 0};
    t->tree = m->ledger.tree.text[0] ? m->ledger.tree : m->task.message_id;
    t->ceiling_micros = m->ledger.ceiling_micros;
    t->updated_ms = m->in.at_ms;
    t->deadline_ms = m->in.at_ms + t->budget_ms;
    t->finished_ms = t->started_ms = 0;
    t->owner_node = ts->opts.node;
    t->epoch = ts->epoch;
    t->lease_until_ms = 0;
    t->result = (struct task_result){0};
    if (t->status == TASK_DROPPED) {
        t->finished_ms = m->in.at_ms;
        t->result =
            (struct task_result){.status = TASK_DROPPED,
                                 .error_code = STR("dropped"),
                                 .error = str_of(m->gate.gate_result.reason)};
    }
}

/* The delegating agent and its chain: a further turn may belong to other work
 * than the turn before it. */
static void task_fill_delegation(const struct msg *m, struct task *t)
{
    t->by_agent = m->delegation.agent;
    t->parent_id = m->delegation.parent_id;
    t->root_id = m->delegation.root_id;
    t->chain = m->delegation.chain;
    t->depth = m->delegation.depth;
    t->talk = m->delegation.talk;
}

/* A delegated task joins the trace of its parent. */
static bool task_fill_trace(struct tasks *ts, struct msg *m, struct task *t)
{
    const struct task *parent =
        t->parent_id.n ? task_find(ts, t->parent_id) : NULL;

    t->trace = m->call.trace;
    if (!parent || !parent->trace.n)
        return true;
    return arena_keep(&m->arena, parent->trace, &t->trace);
}

static bool task_fill(struct tasks *ts, struct msg *m,
                      const struct task *before, struct task *t)
{
    if (!task_choose_conversation(ts, m, before))
        return false;
    m->task.is_repeat = false;
    m->task.message_id = id_make(ts->opts.ids, "msg", m->in.at_ms);
    m->task.id =
        before ? before->id : id_make(ts->opts.ids, "task", m->in.at_ms);
    if (before) {
        *t = *before;
        t->turn++;
        t->version++;
        task_fill_turn(ts, m, t);
        if (m->delegation.agent.n) {
            task_fill_delegation(m, t);
            if (!task_fill_trace(ts, m, t))
                return false;
        }
        if (t->status == TASK_DROPPED)
            t->turn = -t->place;
        m->task.turn = t->turn;
        return true;
    }
    m->task.turn = 1;
    *t = (struct task){
        .id = m->task.id,
        .conversation_id = m->task.conversation_id,
        .requester = caller_name(&m->in.caller),
        .root_user = m->delegation.root_user.n ? m->delegation.root_user
                                               : caller_name(&m->in.caller),
        .agent = m->choice.agent,
        .version = 1,
        .turn = 1,
        .created_ms = m->in.at_ms,
    };
    task_fill_delegation(m, t);
    task_fill_turn(ts, m, t);
    if (!task_fill_trace(ts, m, t))
        return false;
    return m->call.envelope ? make_envelope_key(m, t) : make_order_key(m, t);
}

static void message_claim_key(struct msg *m)
{
    struct str hash = {(const char *)m->call.body_hash, MSG_BODY_HASH_BYTES};
    struct tx_op *op;

    if (!m->call.idempotency_key.n)
        return;
    op = tx_put(&m->tx, &key_table);
    tx_if(op, KEY_EXPIRES_MS, IS_AT_MOST, value_int(m->in.at_ms));
    tx_set(op, KEY_PRINCIPAL, value_text(caller_name(&m->in.caller)));
    tx_set(op, KEY_KEY, value_text(m->call.idempotency_key));
    tx_set(op, KEY_BODY_HASH, value_blob(hash));
    tx_set(op, KEY_TASK_ID, value_text(str_of(m->task.id.text)));
    tx_set(op, KEY_MESSAGE_ID, value_text(str_of(m->task.message_id.text)));
    tx_set(op, KEY_CONVERSATION_ID, value_text(m->task.conversation_id));
    tx_set(op, KEY_EXPIRES_MS, value_int(m->in.at_ms + TASK_KEY_MS));
    tx_set(op, KEY_DECISION_ID, value_text_or_null(str_of(m->choice.id.text)));
}

/* Guarded by the state that the choice was made from, so a decision made
 * meanwhile is not overwritten. */
static void conversation_set_agent(struct tx_op *op, const struct msg *m)
{
    struct str earlier = str_of(m->known.decision.text);
    bool stays = str_eq_nocase(m->known.stuck_to, m->choice.agent);

    if (m->known.has_conversation) {
        tx_if(op, CONVERSATION_AGENT, IS, value_text_or_null(m->known.had));
        tx_if(op, CONVERSATION_DECISION_ID, IS, value_text_or_null(earlier));
    }
    tx_set(op, CONVERSATION_AGENT, value_text(m->choice.agent));
    tx_set(op, CONVERSATION_MEANT_MS, value_int(m->in.at_ms));
    tx_set(op, CONVERSATION_PRICE_MICROS, value_int(m->ledger.price_micros));
    if (!stays || !earlier.n)
        tx_set(op, CONVERSATION_DECISION_ID,
               value_text_or_null(str_of(m->choice.id.text)));
    else
        tx_set_new(op, CONVERSATION_DECISION_ID, value_text(earlier));
}

/* A further turn of an old task does not change the agent of a conversation
 * that has moved on. A dropped message sets none. */
static void conversation_use(struct msg *m, const struct task *t,
                             bool is_further)
{
    struct tx_op *op = tx_put(&m->tx, &conversation_table);

    tx_set(op, CONVERSATION_OWNER, value_text(t->requester));
    tx_set(op, CONVERSATION_ID, value_text(t->conversation_id));
    if (is_further) {
        tx_set_new(op, CONVERSATION_AGENT, value_text(t->agent));
        tx_set_new(op, CONVERSATION_MEANT_MS, value_int(t->updated_ms));
    } else if (t->status != TASK_DROPPED) {
        conversation_set_agent(op, m);
    }
    tx_set_new(op, CONVERSATION_CREATED_MS, value_int(t->updated_ms));
    tx_set(op, CONVERSATION_USED_MS, value_int(t->updated_ms));
}

static const struct tx_op *task_write(struct tx *tx, const struct task *t,
                                      const struct task *before)
{
    struct tx_op *op;

    if (!before) {
        op = tx_insert(tx, &task_table);
        record_to_tx(op, t, TASK_ONCE | TASK_PER_TURN);
        tx_set(op, TASK_SESSION, value_text(task_session(t)));
        if (t->status == TASK_DROPPED) {
            tx_set(op, TASK_FINISHED_MS, value_int(t->finished_ms));
            task_result_to_row(op, &t->result);
        }
        return op;
    }
    op = t->status == TASK_DROPPED ? tx_expect(tx, &task_table)
                                   : tx_update(tx, &task_table);
    tx_if(op, TASK_ID, IS, value_text(str_of(before->id.text)));
    tx_if(op, TASK_VERSION, IS, value_int(before->version));
    if (t->status == TASK_DROPPED) {
        turn_to_row(tx_insert(tx, &turn_table), t);
        return NULL;
    }
    record_to_tx(op, t, TASK_PER_TURN);
    record_clear(op, TASK_AT_END);
    turn_to_row(tx_insert(tx, &turn_table), before);
    return NULL;
}

static enum err task_ask_for_room(const struct tasks *ts, struct msg *m,
                                  const struct task *before)
{
    struct str user = before                      ? share_user(before)
                      : m->delegation.root_user.n ? m->delegation.root_user
                                                  : caller_name(&m->in.caller);

    return share_ask(
        ts,
        &(struct task_claim){
            .user = user,
            .org = share_org(ts, user),
            .by = m->delegation.parent_id.n        ? CLAIMANT_AGENT
                  : caller_is_admin(&m->in.caller) ? CLAIMANT_ADMIN
                                                   : CLAIMANT_USER,
            .bytes = m->call.text.n + m->call.metadata.n + m->call.source.n},
        &m->why);
}

/* A dropped task is claimed too, until it is written: then it ends at once, and
 * its listeners are told. */
static enum err task_claim_entry(struct tasks *ts, const struct task *t,
                                 struct task_entry **out)
{
    struct task_entry *e;

    *out = NULL;
    if (t->turn < 0)
        return OK;
    e = task_entry_new(ts, t, t->budget_ms);
    if (e && t->status == TASK_DROPPED) {
        e->result_strings = result_keep(&e->t.result);
        if (!e->result_strings) {
            entry_drop(e);
            e = NULL;
        }
    }
    *out = e;
    return e ? OK : ERR_NOMEM;
}

enum err task_create(struct tasks *ts, struct msg *m, const struct task *before)
{
    const struct tx_op *insert;
    struct task_entry *e;
    struct task t;
    enum err room;

    assert(m->call.text.n <= MSG_TEXT_MAX && !m->task.claim);
    assert(m->call.metadata.n <= MSG_METADATA_MAX);
    assert(m->call.source.n <= MSG_METADATA_MAX);
    if (before && !task_is_over(before->status))
        return ERR_TASK_NOT_OVER;
    if (before && !task_may_move(before->status, TASK_QUEUED))
        return ERR_NOT_ALLOWED;
    room = task_ask_for_room(ts, m, before);
    if (room)
        return room;
    if (!task_fill(ts, m, before, &t) || task_claim_entry(ts, &t, &e) != OK)
        return ERR_NOMEM;
    m->task.claim = e;
    message_claim_key(m);
    insert = task_write(&m->tx, &t, before);
    if (e)
        e->insert = insert;
    conversation_use(m, &t, before != NULL);
    task_tell_feed(&m->tx, &t, m->in.at_ms, m, NULL);
    if (t.status == TASK_DROPPED)
        task_tell_feed(&m->tx, &t, m->in.at_ms, NULL, &t.result);
    return OK;
}

/* The table of the failed guard determines the error. */
static enum err task_guard_error(struct tasks *ts, const struct msg *m)
{
    const struct table *t = m->tx.failed_op->table;
    const struct task_entry *e = task_entry_find(ts, str_of(m->task.id.text));

    if (t == &key_table)
        return ERR_EXISTS;
    return e && e->state == GOING_ON ? ERR_TASK_NOT_OVER : ERR_BUSY;
}

static void task_settle_accepted(struct tasks *ts, struct task_entry *e)
{
    struct task_result r;
    char *strings;

    ts->stats.accepted_total++;
    if (!e) {
        ts->stats.over_total[TASK_DROPPED]++;
        return;
    }
    strings = e->result_strings;
    if (e->insert)
        e->t.seq = e->insert->seq;
    e->insert = NULL;
    entry_begin(e);
    if (e->t.status == TASK_DROPPED) {
        r = e->t.result;
        e->result_strings = NULL;
        entry_end(e, &r, strings);
    }
}

void task_settle(void *tasks, struct msg *m)
{
    struct tasks *ts = tasks;
    struct task_entry *e = m->task.claim;

    assert(e ? e->state == CLAIMED : m->task.turn < 0);
    m->task.claim = NULL;
    switch (m->tx.result) {
    case TX_COMMITTED:
        m->err = OK;
        task_settle_accepted(ts, e);
        return;
    case TX_GUARD_FAILED: m->err = task_guard_error(ts, m); break;
    case TX_REFUSED: m->err = m->tx.err; break;
    case TX_FATAL: m->err = ERR_OUTCOME_UNKNOWN; break;
    }
    if (e)
        entry_drop(e);
}

void task_key_query(const struct msg *m, struct query *q)
{
    query_init(q, &key_table, 1);
    query_if(q, KEY_PRINCIPAL, IS, value_text(caller_name(&m->in.caller)));
    query_if(q, KEY_KEY, IS, value_text(m->call.idempotency_key));
}

enum err task_key_answer(struct tasks *ts, struct msg *m, const struct query *q)
{
    struct str hash = {(const char *)m->call.body_hash, MSG_BODY_HASH_BYTES};
    const struct row *r = q->rows;
    char *conversation;

    if (q->err)
        return q->err;
    if (!r || row_int(r, KEY_EXPIRES_MS) <= m->in.at_ms)
        return ERR_BUSY;
    if (!str_eq(row_str(r, KEY_BODY_HASH), hash))
        return ERR_IDEMPOTENCY_MISMATCH;
    conversation = arena_strdup(&m->arena, row_str(r, KEY_CONVERSATION_ID));
    if (!conversation)
        return ERR_NOMEM;
    m->task.id = id_from(row_str(r, KEY_TASK_ID));
    m->task.message_id = id_from(row_str(r, KEY_MESSAGE_ID));
    m->task.conversation_id =
        (struct str){conversation, row_str(r, KEY_CONVERSATION_ID).n};
    m->choice.id = id_from(row_str(r, KEY_DECISION_ID));
    m->task.is_repeat = true;
    ts->stats.repeated_total++;
    return OK;
}
