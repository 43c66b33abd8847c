/* POST /api/messages: walks a message, and then waits for the result, for a
 * limited time, or streams events. message.send of the hub does not wait: it is
 * answered here too, and its events are pushed.
 *
 * A waiting request has the ids of task and message. The id of the message
 * tells the turn: a further turn may have started meanwhile, or long ago if the
 * message was repeated with its idempotency key. */
#include "api/internal.h"

#include <stdio.h>

#include "base/digest.h"
#include "base/fault.h"

#define KEY_IS_OLD                                                        \
    STR("this idempotency key was used, and its task is no longer kept; " \
        "to send the message again take a new key")

enum { DECISION_BYTES_MAX = 16 * 1024, GATE_RESULT_BYTES_MAX = 8 * 1024 };

const struct request_state message_state = {.bytes =
                                                sizeof(struct message_state)};

/* The answer. */

void write_answer(struct request *o, struct json_out *out, const struct task *t)
{
    speak_answer(out, t, message_of(o)->decision);
}

/* The cost of a task's tree and of its conversation, the latter with all
 * delegations below: for the payer and admins, if anything ever cost anything.
 * Three reads of one row each. */

static int64_t spent_in(const struct query *q)
{
    return !q->err && q->rows ? row_int(q->rows, SPENT_AMOUNT) : 0;
}

static void on_message_cost_below(struct request *o)
{
    message_of(o)->cost.conversation += spent_in(&o->query);
    request_drop_queries(o);
    message_of(o)->then(o);
}

static void on_message_cost_conversation(struct request *o)
{
    message_of(o)->cost = (struct task_cost){
        .tree = spent_in(&o->query), .conversation = spent_in(&o->turns)};
    query_fini(&o->query);
    ledger_below_query(&o->query, &o->turns);
    request_read(o, &o->query, on_message_cost_below);
}

static void on_message_cost_tree(struct request *o)
{
    request_read(o, &o->turns, on_message_cost_conversation);
}

bool answer_needs_cost(struct request *o, const struct task *t,
                       void (*then)(struct request *o))
{
    const struct caller *c = &o->caller;
    struct query tree, talk;

    if (message_of(o)->has_cost ||
        !ledger_has_spending(walk_ledger(o->api->walk)) ||
        (!caller_is_admin(c) && !str_eq_nocase(caller_name(c), t->root_user) &&
         !PLANTED("calls.cost_for_all")))
        return false;
    message_of(o)->has_cost = true;
    message_of(o)->then = then;
    ledger_root_query(&tree, task_root(t));
    ledger_conversation_query(&talk, t->root_user, t->conversation_id);
    request_drop_queries(o); /* t may be in one of them */
    o->query = tree;
    o->turns = talk;
    o->has_query = o->has_turns = true;
    request_read(o, &o->query, on_message_cost_tree);
    return true;
}

void write_task_cost(struct json_out *o, const struct task_cost *cost,
                     const struct task *t)
{
    bool is_back = task_is_over(t->status) && t->status != TASK_COMPLETED;

    if (!cost->tree && !cost->conversation)
        return;
    json_key(o, STR("cost"));
    json_open(o, '{');
    json_member_int(o, "task_micros", is_back ? 0 : t->price_micros);
    json_member_int(o, "tree_micros", cost->tree);
    json_member_int(o, "conversation_micros", cost->conversation);
    json_close(o, '}');
}

/* Budgets of the payer are for the payer and admins; those of an agent, which
 * many users pay, only for admins. */
static bool may_hear_of_budget(const struct caller *c, const struct task *t,
                               const struct ledger_budget *b)
{
    if (caller_is_admin(c))
        return true;
    return b->kind != BUDGET_AGENT &&
           str_eq_nocase(caller_name(c), t->root_user);
}

static void write_budget_warnings(struct json_out *o, const struct ledger *l,
                                  const struct task *t, const struct caller *c,
                                  int64_t now_ms)
{
    struct ledger_budget of[BUDGETS_OF_MAX];
    size_t n =
        ledger_budgets_of(l, t->root_user, t->payer_org, t->priced_agent, of);
    bool has_any = false;

    for (size_t i = 0; i < n; i++) {
        const struct ledger_budget *b = &of[i];

        if (!budget_was_warned(b, now_ms) || !may_hear_of_budget(c, t, b))
            continue;
        if (!has_any) {
            json_key(o, STR("budget_warnings"));
            json_open(o, '[');
        }
        has_any = true;
        json_open(o, '{');
        json_member_text(o, "kind", budget_kind_name(b->kind));
        json_member_text(o, "name", str_of(b->name));
        json_member_text(o, "period", budget_period_name(b->period));
        json_member_int(o, "limit_micros", b->limit);
        json_member_int(o, "resets_ms", budget_period_end(b->period, now_ms));
        json_close(o, '}');
    }
    if (has_any)
        json_close(o, ']');
}

static void message_look_again(struct request *o);

static void answer_message(struct request *o, const struct task *t, int status)
{
    struct message_state *s = o->own;
    struct json_out out;

    if (answer_needs_cost(o, t, message_look_again))
        return;
    out = request_json(o);
    json_open(&out, '{');
    write_answer(o, &out, t);
    if (s->gate_result.n)
        json_member_raw(&out, "routing", s->gate_result);
    if (s->has_cost)
        write_task_cost(&out, &s->cost, t);
    if (t->price_micros)
        write_budget_warnings(&out, walk_ledger(o->api->walk), t, &o->caller,
                              loop_wall_ms(o->api->loop));
    json_close(&out, '}');
    o->front->answer(o, status);
    if (s->on_answered)
        s->on_answered(o, t);
    request_end(o);
}

/* Waiting. */

/* Keys are kept for a day, even if retention removes their task. */
static void message_refuse_task(struct request *o, enum err e)
{
    if (e == ERR_NOT_FOUND && message_of(o)->is_repeat)
        request_refuse(o, ERR_GONE, KEY_IS_OLD, STR(""));
    else
        request_fail(o, e);
}

static void on_message_past_turn(struct request *o, enum err e,
                                 const struct task *t)
{
    if (e)
        message_refuse_task(o, e);
    else
        answer_message(o, t, 200);
}

static void on_message_task(struct request *o, enum err e,
                            const struct task *t);

/* Whatever the event is, the task has the current state. It is the turn that is
 * listened to, whatever has started since. */
static void on_message_events(struct task_listener *l)
{
    struct request *o = LIST_OF(l, struct request, listener);
    struct tasks *tasks = walk_tasks(o->api->walk);
    struct task_event event;

    while (task_next(tasks, l, &event))
        ;
    if (!o->is_out) /* otherwise it is looked at when that is back */
        on_message_task(o, OK, task_heard(l));
}

static void on_message_wait_over(struct timer *t)
{
    struct request *o = LIST_OF(t, struct request, timer);

    message_of(o)->wait_until_ms = 0;
    if (!o->is_out)
        on_message_task(o, OK, task_heard(&o->listener));
}

static bool message_may_wait(const struct request *o)
{
    return o->api->is_ready &&
           loop_mono_ms(o->api->loop) < message_of(o)->wait_until_ms;
}

/* If the wait cannot start, the answer is 202: the task is kept. */
static void message_wait(struct request *o, const struct task *t)
{
    struct api *c = o->api;

    o->timer.fire = on_message_wait_over;
    o->listener = (struct task_listener){.on_news = on_message_events};
    loop_timer_set(c->loop, &o->timer,
                   message_of(o)->wait_until_ms - loop_mono_ms(c->loop));
    if (task_listen(walk_tasks(c->walk), str_of(t->id.text), &o->listener, 0)) {
        answer_message(o, t, 202);
        return;
    }
    o->is_listening = true;
    request_becomes(o, REQUEST_WAITING);
}

static void on_message_task(struct request *o, enum err e, const struct task *t)
{
    if (e) {
        message_refuse_task(o, e);
    } else if (!look_is_current(o, t)) {
        look_past(o, t, on_message_past_turn);
    } else if (task_is_over(t->status)) {
        answer_message(o, t, 200);
    } else if (!message_may_wait(o)) {
        answer_message(o, t, 202);
    } else if (o->kind == REQUEST_ASKING) {
        message_wait(o, t);
    }
}

static void message_look_again(struct request *o)
{
    look_task(o, on_message_task);
}

static void on_message_task_for_events(struct request *o, enum err e,
                                       const struct task *t)
{
    if (e || !o->api->is_ready) /* no new streams while stopping */
        on_message_task(o, e, t);
    else
        events_begin(o, t);
}

/* The answer of the walk. */

void refuse_message(struct request *o, const struct msg *m)
{
    struct buf details;

    buf_init(&details, SPEAK_REFUSAL_MAX);
    speak_refusal_details(&details, m);
    request_refuse(o, m->err, str_of(m->why.text),
                   details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

static void message_look_for_task(struct request *o)
{
    look_task(o, message_of(o)->wants_events ? on_message_task_for_events
                                             : on_message_task);
}

/* Keep JSON for the answer: an object, without its end. Empty: too large. */
static struct str message_keep(struct request *o, struct buf *text)
{
    struct str kept = {NULL, 0};

    buf_add_char(text, '}');
    if (text->over || !arena_keep(&o->arena, buf_str(text), &kept))
        kept.n = 0;
    buf_fini(text);
    return kept;
}

static void message_keep_decision(struct request *o, const struct decision *d)
{
    struct json_out out;
    struct buf text;

    buf_init(&text, DECISION_BYTES_MAX);
    out = json_out(&text);
    json_open(&out, '{');
    speak_decision(&out, d, SPEAK_BRIEF);
    message_of(o)->decision = message_keep(o, &text);
}

/* A repeat is answered with its original decision, if that is still kept. */
static void on_message_decision(struct request *o)
{
    struct arena *scratch = &o->api->scratch;
    struct decision d;

    arena_reset(scratch);
    if (!o->query.err && o->query.rows &&
        decision_from_row(scratch, o->query.rows, &d) == OK)
        message_keep_decision(o, &d);
    message_look_for_task(o);
}

/* The answer to an envelope has the result of the gate beside the task. */
static void message_keep_gate_result(struct request *o, const struct msg *m)
{
    struct json_out out;
    struct buf text;

    buf_init(&text, GATE_RESULT_BYTES_MAX);
    out = json_out(&text);
    json_open(&out, '{');
    write_gate_result(&out, m);
    message_of(o)->gate_result = message_keep(o, &text);
}

void on_message_accepted(struct msg *m, void *ctx)
{
    struct request *o = ctx;
    struct decision d;

    if (!request_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
        msg_free(m);
        return;
    }
    o->task_id = m->task.id;
    o->message_id = m->task.message_id;
    message_of(o)->is_repeat = m->task.is_repeat;
    message_of(o)->decision_id = m->choice.id;
    if (m->call.envelope)
        message_keep_gate_result(o, m);
    else if (!m->task.is_repeat) {
        route_decision(walk_router(o->api->walk), m, &d);
        message_keep_decision(o, &d);
    }
    msg_free(m);
    if (!message_of(o)->is_repeat || !message_of(o)->decision_id.text[0]) {
        message_look_for_task(o);
        return;
    }
    query_if(request_query(o, &decision_table, 1), DECISION_ID, IS,
             value_text(str_of(message_of(o)->decision_id.text)));
    request_read(o, &o->query, on_message_decision);
}

void message_hash(struct msg *m, struct str meaning)
{
    _Static_assert((int)MSG_BODY_HASH_BYTES == (int)DIGEST_BYTES, "SHA-256");
    digest(meaning, m->call.body_hash);
}

enum err message_read(struct msg *m, struct str body, struct str key)
{
    struct buf meaning;
    enum err e;

    buf_init(&meaning, SPEAK_MEANING_MAX);
    e = speak_message(m, body, key, &meaning);
    if (!e)
        message_hash(m, buf_str(&meaning));
    buf_fini(&meaning);
    return e;
}

/* The sender may have its own trace. */
static enum err message_keep_trace(struct call *c, struct msg *m)
{
    struct str trace =
        speak_traceparent(http_header(c->rq, STR("traceparent")));

    return arena_keep(&m->arena, trace, &m->call.trace) ? OK : ERR_NOMEM;
}

static enum err message_read_call(struct call *c, struct msg *m)
{
    struct str key = http_header(c->rq, STR("Idempotency-Key"));
    enum err e;

    /* An empty key is most likely a bug of the client, which would lose its
     * protection. */
    if (key.p && !key.n)
        return why_err(&m->why, ERR_BAD_REQUEST, "%s", EMPTY_KEY_WORDS);
    e = message_read(m, c->rq->body, key);
    if (!e)
        e = message_keep_trace(c, m);
    m->call.is_stream = call_wants_events(c);
    return e;
}

int64_t api_patience_ms(const struct api *c, int64_t wait_ms)
{
    int64_t most = c->settings.reply_timeout_ms / 10 * 9;

    return wait_ms < most ? wait_ms : most;
}

void call_messages_post(struct call *c)
{
    struct msg *m = msg_new(&c->caller, c->now_ms);
    struct request *o;
    enum err e = m ? message_read_call(c, m) : ERR_NOMEM;

    if (e) {
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
        msg_free(m);
        return;
    }
    o = request_of_call(c, &message_state);
    if (!o) {
        msg_free(m);
        return;
    }
    message_of(o)->wants_events = m->call.is_stream;
    message_of(o)->wait_until_ms =
        loop_mono_ms(c->api->loop) + api_patience_ms(c->api, m->call.wait_ms);
    request_out(o);
    walk_message(c->api->walk, m, on_message_accepted, o);
}
