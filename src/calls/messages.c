/* POST /api/messages: read, on its walk, and then the caller waits for what
 * comes of it: for the result, for a while, or as events.
 *
 * Whoever waits holds the ids of task and message. The message's id tells
 * which turn is meant: a further turn may have begun before we look, or long
 * ago, if the message was repeated with its idempotency key. */
#include "calls/internal.h"
#include "calls/share.h"

#include <stdio.h>

#include "base/digest.h"

/* The answer. */

void write_answer(struct open *o, struct json_out *out, const struct task *t)
{
    speak_answer(out, t,
                 o->message.decision ? str_of(o->message.decision) : STR(""));
}

static void on_talk(struct open *o)
{
    o->message.cost = share_cost(&o->query, &o->turns);
    open_drop_queries(o);
    o->message.then(o);
}

static void on_tree(struct open *o)
{
    open_read(o, &o->turns, on_talk);
}

bool answer_needs_cost(struct open *o, const struct task *t,
                       void (*then)(struct open *o))
{
    struct query tree, talk;

    if (o->message.has_cost ||
        !share_cost_is_for(walk_ledger(o->calls->walk), t, &o->caller))
        return false;
    o->message.has_cost = true;
    o->message.then = then;
    share_cost_ask(t, &tree, &talk);
    open_drop_queries(o); /* t may be in one of them */
    o->query = tree;
    o->turns = talk;
    o->has_query = o->has_turns = true;
    open_read(o, &o->query, on_tree);
    return true;
}

static void look_again(struct open *o);

static void answer(struct open *o, const struct task *t, int status)
{
    struct json_out out = json_out(&o->calls->body);

    if (answer_needs_cost(o, t, look_again))
        return;
    json_open(&out, '{');
    write_answer(o, &out, t);
    share_cost_say(&out, &o->message.cost, t);
    share_budget_warnings(&out, walk_ledger(o->calls->walk), t, &o->caller,
                          loop_wall_ms(o->calls->loop));
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, status);
}

/* Waiting. */

/* Keys are kept for a day, whatever retention does to their tasks. */
static void refuse_look(struct open *o, enum err e)
{
    if (e == ERR_NOT_FOUND && o->message.is_repeat)
        open_refuse(o, ERR_GONE, SHARE_KEY_IS_OLD, STR(""));
    else
        open_refuse(o, e, STR(""), STR(""));
}

static void on_past(struct open *o, enum err e, const struct task *t)
{
    if (e)
        refuse_look(o, e);
    else
        answer(o, t, 200);
}

static void on_look(struct open *o, enum err e, const struct task *t);

/* Whatever the news is, the task says how things stand. It is the one of the
 * turn we listen to, whatever has begun since. */
static void on_news(struct task_listener *l)
{
    struct open *o = LIST_OF(l, struct open, listener);
    struct tasks *tasks = walk_tasks(o->calls->walk);
    struct task_event event;

    while (task_next(tasks, l, &event))
        ;
    if (!o->is_out) /* else it is looked at once that is back */
        on_look(o, OK, task_heard(l));
}

static void on_wait_over(struct timer *t)
{
    struct open *o = LIST_OF(t, struct open, timer);

    o->message.wait_until_ms = 0;
    if (!o->is_out)
        on_look(o, OK, task_heard(&o->listener));
}

static bool is_patient(const struct open *o)
{
    return o->calls->is_ready &&
           loop_mono_ms(o->calls->loop) < o->message.wait_until_ms;
}

/* No memory to wait with is no reason to refuse: the task is kept. */
static void begin_to_wait(struct open *o, const struct task *t)
{
    struct calls *c = o->calls;

    o->timer.fire = on_wait_over;
    o->listener = (struct task_listener){.on_news = on_news};
    if (loop_timer_set(c->loop, &o->timer,
                       o->message.wait_until_ms - loop_mono_ms(c->loop)) !=
            OK ||
        task_listen(walk_tasks(c->walk), str_of(t->id.text), &o->listener, 0) !=
            OK) {
        answer(o, t, 202);
        return;
    }
    o->is_listening = true;
    open_becomes(o, OPEN_WAITING);
}

static void on_look(struct open *o, enum err e, const struct task *t)
{
    if (e) {
        refuse_look(o, e);
    } else if (!look_is_current(o, t)) {
        look_past(o, t, on_past);
    } else if (task_is_over(t->status)) {
        answer(o, t, 200);
    } else if (!is_patient(o)) {
        answer(o, t, 202);
    } else if (o->kind == OPEN_ASKING) {
        begin_to_wait(o, t);
    }
}

static void look_again(struct open *o)
{
    look_task(o, on_look);
}

static void on_look_for_events(struct open *o, enum err e, const struct task *t)
{
    if (e || !o->calls->is_ready) /* no new streams at the end */
        on_look(o, e, t);
    else
        events_begin(o, t);
}

/* Accepted, or not. */

void refuse_message(struct open *o, const struct msg *m)
{
    struct buf details;

    buf_init(&details, SHARE_DETAILS_MAX);
    share_message_details(&details, m);
    open_refuse(o, m->err, str_of(m->why.text),
                details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

static void go_on(struct open *o)
{
    look_task(o, o->message.wants_events ? on_look_for_events : on_look);
}

/* A repeat is told how it was decided then; if that is not kept any more, it
 * is not. */
static void on_decision(struct open *o)
{
    if (!o->query.err && o->query.rows)
        o->message.decision =
            share_decision_of(o->query.rows, &o->calls->scratch);
    go_on(o);
}

static void ask_for_decision(struct open *o)
{
    share_decision_ask(&o->query, &o->has_query, &o->message.decision_id);
    open_read(o, &o->query, on_decision);
}

static void on_accepted(struct msg *m, void *ctx)
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
        o->message.decision =
            share_decision_keep(walk_router(o->calls->walk), m);
    msg_free(m);
    if (o->message.is_repeat && o->message.decision_id.text[0])
        ask_for_decision(o);
    else
        go_on(o);
}

enum err share_hash(struct msg *m, struct str meaning)
{
    _Static_assert((int)MSG_BODY_HASH_BYTES == (int)DIGEST_BYTES, "SHA-256");
    if (digest(meaning, m->call.body_hash) != OK)
        return why_err(&m->why, ERR_NOMEM, "out of memory");
    return OK;
}

enum err share_message(struct msg *m, struct str body, struct str key)
{
    struct buf meaning;
    enum err e;

    buf_init(&meaning, SPEAK_MEANING_MAX);
    e = speak_message(m, body, key, &meaning);
    if (!e)
        e = share_hash(m, buf_str(&meaning));
    buf_fini(&meaning);
    return e;
}

/* Who sends it may be in the middle of a trace of their own. */
static enum err keep_trace(struct call *c, struct msg *m)
{
    struct str trace =
        speak_traceparent(http_header(c->rq, STR("traceparent")));

    return arena_keep(&m->arena, trace, &m->call.trace) ? OK : ERR_NOMEM;
}

static enum err read_message(struct call *c, struct msg *m)
{
    struct str key = http_header(c->rq, STR("Idempotency-Key"));
    enum err e;

    /* Whoever has a key that came out empty means to be protected. */
    if (key.p && !key.n)
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "the Idempotency-Key header is empty: give a key, or "
                       "leave it out");
    e = share_message(m, c->rq->body, key);
    if (!e)
        e = keep_trace(c, m);
    m->call.is_stream = call_wants_events(c);
    return e;
}

int64_t calls_patience_ms(const struct calls *c, int64_t wait_ms)
{
    int64_t most = c->settings.reply_timeout_ms / 10 * 9;

    return wait_ms < most ? wait_ms : most;
}

void call_messages_post(struct call *c)
{
    struct msg *m = msg_new(&c->caller, c->now_ms);
    struct open *o;
    enum err e = m ? read_message(c, m) : ERR_NOMEM;

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
    o->message.wait_until_ms = loop_mono_ms(c->calls->loop) +
                               calls_patience_ms(c->calls, m->call.wait_ms);
    open_out(o);
    walk_message(c->calls->walk, m, on_accepted, o);
}
