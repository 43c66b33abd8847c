/* POST /api/messages: walks a message, and then waits for the result, for a
 * limited time, or streams events.
 *
 * A waiting request has the ids of task and message. The id of the message
 * tells the turn: a further turn may have started meanwhile, or long ago if the
 * message was repeated with its idempotency key. */
#include "api/internal.h"
#include "api/share.h"

#include <stdio.h>

#include "base/digest.h"

/* The answer. */

void write_answer(struct open *o, struct json_out *out, const struct task *t)
{
    speak_answer(out, t,
                 o->message.decision ? str_of(o->message.decision) : STR(""));
}

static void on_message_cost_below(struct open *o)
{
    share_cost_add(&o->message.cost, &o->query);
    open_drop_queries(o);
    o->message.then(o);
}

static void on_message_cost_conversation(struct open *o)
{
    o->message.cost = share_cost(&o->query, &o->turns);
    share_cost_below(&o->query, &o->turns);
    open_read(o, &o->query, on_message_cost_below);
}

static void on_message_cost_tree(struct open *o)
{
    open_read(o, &o->turns, on_message_cost_conversation);
}

bool answer_needs_cost(struct open *o, const struct task *t,
                       void (*then)(struct open *o))
{
    struct query tree, talk;

    if (o->message.has_cost ||
        !share_cost_is_for(walk_ledger(o->api->walk), t, &o->caller))
        return false;
    o->message.has_cost = true;
    o->message.then = then;
    share_cost_ask(t, &tree, &talk);
    open_drop_queries(o); /* t may be in one of them */
    o->query = tree;
    o->turns = talk;
    o->has_query = o->has_turns = true;
    open_read(o, &o->query, on_message_cost_tree);
    return true;
}

static void message_look_again(struct open *o);

static void answer_message(struct open *o, const struct task *t, int status)
{
    struct json_out out = json_out(&o->api->body);

    if (answer_needs_cost(o, t, message_look_again))
        return;
    json_open(&out, '{');
    write_answer(o, &out, t);
    share_cost_say(&out, &o->message.cost, t);
    share_budget_warnings(&out, walk_ledger(o->api->walk), t, &o->caller,
                          loop_wall_ms(o->api->loop));
    json_close(&out, '}');
    open_answer(o, status);
}

/* Waiting. */

/* Keys are kept for a day, even if retention removes their task. */
static void message_refuse_task(struct open *o, enum err e)
{
    if (e == ERR_NOT_FOUND && o->message.is_repeat)
        open_refuse(o, ERR_GONE, SHARE_KEY_IS_OLD, STR(""));
    else
        open_fail(o, e);
}

static void on_message_past_turn(struct open *o, enum err e,
                                 const struct task *t)
{
    if (e)
        message_refuse_task(o, e);
    else
        answer_message(o, t, 200);
}

static void on_message_task(struct open *o, enum err e, const struct task *t);

/* Whatever the event is, the task has the current state. It is the turn that is
 * listened to, whatever has started since. */
static void on_message_events(struct task_listener *l)
{
    struct open *o = LIST_OF(l, struct open, listener);
    struct tasks *tasks = walk_tasks(o->api->walk);
    struct task_event event;

    while (task_next(tasks, l, &event))
        ;
    if (!o->is_out) /* otherwise it is looked at when that is back */
        on_message_task(o, OK, task_heard(l));
}

static void on_message_wait_over(struct timer *t)
{
    struct open *o = LIST_OF(t, struct open, timer);

    o->message.wait_until_ms = 0;
    if (!o->is_out)
        on_message_task(o, OK, task_heard(&o->listener));
}

static bool message_may_wait(const struct open *o)
{
    return o->api->is_ready &&
           loop_mono_ms(o->api->loop) < o->message.wait_until_ms;
}

/* If the wait cannot start, the answer is 202: the task is kept. */
static void message_wait(struct open *o, const struct task *t)
{
    struct api *c = o->api;

    o->timer.fire = on_message_wait_over;
    o->listener = (struct task_listener){.on_news = on_message_events};
    loop_timer_set(c->loop, &o->timer,
                   o->message.wait_until_ms - loop_mono_ms(c->loop));
    if (task_listen(walk_tasks(c->walk), str_of(t->id.text), &o->listener, 0)) {
        answer_message(o, t, 202);
        return;
    }
    o->is_listening = true;
    open_becomes(o, OPEN_WAITING);
}

static void on_message_task(struct open *o, enum err e, const struct task *t)
{
    if (e) {
        message_refuse_task(o, e);
    } else if (!look_is_current(o, t)) {
        look_past(o, t, on_message_past_turn);
    } else if (task_is_over(t->status)) {
        answer_message(o, t, 200);
    } else if (!message_may_wait(o)) {
        answer_message(o, t, 202);
    } else if (o->kind == OPEN_ASKING) {
        message_wait(o, t);
    }
}

static void message_look_again(struct open *o)
{
    look_task(o, on_message_task);
}

static void on_message_task_for_events(struct open *o, enum err e,
                                       const struct task *t)
{
    if (e || !o->api->is_ready) /* no new streams while stopping */
        on_message_task(o, e, t);
    else
        events_begin(o, t);
}

/* The answer of the walk. */

void refuse_message(struct open *o, const struct msg *m)
{
    struct buf details;

    buf_init(&details, SPEAK_REFUSAL_MAX);
    speak_refusal_details(&details, m);
    open_refuse(o, m->err, str_of(m->why.text),
                details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

static void message_look_for_task(struct open *o)
{
    look_task(o, o->message.wants_events ? on_message_task_for_events
                                         : on_message_task);
}

/* A repeat is answered with its original decision, if that is still kept. */
static void on_message_decision(struct open *o)
{
    if (!o->query.err && o->query.rows)
        o->message.decision =
            share_decision_of(o->query.rows, &o->api->scratch);
    message_look_for_task(o);
}

static void on_message_accepted(struct msg *m, void *ctx)
{
    struct open *o = ctx;

    if (!open_back(o)) {
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
    o->message.is_repeat = m->task.is_repeat;
    o->message.decision_id = m->choice.id;
    if (!m->task.is_repeat)
        o->message.decision = share_decision_keep(walk_router(o->api->walk), m);
    msg_free(m);
    if (!o->message.is_repeat || !o->message.decision_id.text[0]) {
        message_look_for_task(o);
        return;
    }
    share_decision_ask(&o->query, &o->has_query, &o->message.decision_id);
    open_read(o, &o->query, on_message_decision);
}

void share_hash(struct msg *m, struct str meaning)
{
    _Static_assert((int)MSG_BODY_HASH_BYTES == (int)DIGEST_BYTES, "SHA-256");
    digest(meaning, m->call.body_hash);
}

enum err share_message(struct msg *m, struct str body, struct str key)
{
    struct buf meaning;
    enum err e;

    buf_init(&meaning, SPEAK_MEANING_MAX);
    e = speak_message(m, body, key, &meaning);
    if (!e)
        share_hash(m, buf_str(&meaning));
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
    e = share_message(m, c->rq->body, key);
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
    struct open *o;
    enum err e = m ? message_read_call(c, m) : ERR_NOMEM;

    if (e) {
        call_refuse(c, e, m ? str_of(m->why.text) : STR(""));
        msg_free(m);
        return;
    }
    o = open_new(c);
    if (!o) {
        msg_free(m);
        return;
    }
    o->message.wants_events = m->call.is_stream;
    o->message.wait_until_ms =
        loop_mono_ms(c->api->loop) + api_patience_ms(c->api, m->call.wait_ms);
    open_out(o);
    walk_message(c->api->walk, m, on_message_accepted, o);
}
