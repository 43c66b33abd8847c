/* task.get, task.cancel and task.listen; and task.chunk and task.result of
 * agents, which deliver judges. */
#include "api/hub/internal.h"

enum { CANCEL_TRIES = 3 };

/* task.get. */

static void task_answer(struct ask *a, const struct task *t)
{
    struct json_out o = reply_open(&a->reply);

    json_open(&o, '{');
    speak_task(&o, t);
    json_close(&o, '}');
    reply_close(&a->reply, &o);
    hub_ask_end(a);
}

static void on_task_found(struct ask *a, enum err e, const struct task *t)
{
    if (e)
        hub_ask_refuse(a, e, STR(""), STR(""));
    else
        task_answer(a, t);
}

static struct ask *task_ask_new(struct hub_call *c)
{
    struct ask *a;
    struct id id;

    if (!param_task(c, &id))
        return NULL;
    a = hub_ask_new(c);
    if (a)
        a->task_id = id;
    return a;
}

void method_get(struct hub_call *c)
{
    struct ask *a = task_ask_new(c);

    if (a)
        hub_look_task(a, on_task_found);
}

/* task.cancel: the turn that is seen first, and no other. */

static void on_task_to_cancel(struct ask *a, enum err e, const struct task *t);

static void task_after_cancel(struct ask *a, enum err e)
{
    if (e == OK)
        hub_look_task(a, on_task_found);
    else if (e == ERR_NOT_FOUND || e == ERR_TASK_IS_OVER)
        hub_look_task(a, on_task_to_cancel);
    else
        hub_ask_refuse(a, e, STR(""), STR(""));
}

static void on_task_cancelled(void *ctx, struct str task_id, enum err e)
{
    struct ask *a = ctx;

    (void)task_id;
    if (hub_ask_back(a))
        task_after_cancel(a, e);
}

static void task_cancel_turn(struct ask *a)
{
    enum err e;

    if (a->cancel.left-- == 0) {
        hub_ask_refuse(a, ERR_BUSY, STR("the task is changing; try again"),
                       STR(""));
        return;
    }
    hub_ask_out(a);
    e = walk_cancel(a->hub->opts.walk, str_of(a->task_id.text),
                    caller_name(&a->peer->caller), on_task_cancelled, a);
    if (e && hub_ask_back(a))
        task_after_cancel(a, e);
}

static void on_task_to_cancel(struct ask *a, enum err e, const struct task *t)
{
    if (!e && !a->cancel.turn)
        a->cancel.turn = t->turn;
    if (e)
        hub_ask_refuse(a, e, STR(""), STR(""));
    else if (t->turn != a->cancel.turn)
        hub_ask_refuse(
            a, ERR_TASK_IS_OVER,
            STR("that turn of the task is already over, and another one "
                "has started"),
            STR(""));
    else if (t->status == TASK_CANCELLED)
        task_answer(a, t);
    else if (task_is_over(t->status))
        hub_ask_refuse(a, ERR_TASK_IS_OVER, STR(""), STR(""));
    else
        task_cancel_turn(a);
}

void method_cancel(struct hub_call *c)
{
    struct ask *a = task_ask_new(c);

    if (!a)
        return;
    a->cancel.left = CANCEL_TRIES;
    hub_look_task(a, on_task_to_cancel);
}

/* task.listen. */

static void on_task_to_listen(struct ask *a, enum err e, const struct task *t)
{
    struct json_out o;

    if (e) {
        hub_ask_refuse(a, e, STR(""), STR(""));
        return;
    }
    o = reply_open(&a->reply);
    json_open(&o, '{');
    json_member_text(&o, "task_id", str_of(t->id.text));
    json_member_int(&o, "turn", t->turn);
    json_member_text(&o, "status", task_status_name(task_shown(t)));
    json_close(&o, '}');
    reply_close(&a->reply, &o);
    if (a->listen == LISTEN_NOTHING)
        push_stop(a->peer, t);
    else
        push_begin(a, t);
    hub_ask_end(a);
}

static bool listen_read_after(struct hub_call *c, struct speak_place *out,
                              bool *has)
{
    struct str after;

    if (!param_str(c, "after", SPEAK_PLACE_BYTES, &after))
        return false;
    *has = after.n > 0;
    if (!after.n || speak_place_read(after, out) == OK)
        return true;
    reply_refuse(&c->reply, ERR_BAD_REQUEST,
                 STR("after must be the event_id of a notification about this "
                     "task, like \"3-14\""),
                 STR(""));
    return false;
}

void method_listen(struct hub_call *c)
{
    struct speak_place place = {0, 0};
    enum listen listen;
    struct id id;
    bool has_place;
    struct ask *a;

    if (!param_listen(c, &listen) ||
        !listen_read_after(c, &place, &has_place) || !param_task(c, &id))
        return;
    if (listen != LISTEN_NOTHING && !push_has(c->peer, &id) &&
        c->peer->n_hearings >= c->hub->opts.settings.max_listening) {
        reply_refuse(&c->reply, ERR_OVERLOADED,
                     STR("this connection listens to its limit of tasks; wait "
                         "for some of them (hub.maxListening)"),
                     STR(""));
        return;
    }
    a = hub_ask_new(c);
    if (!a)
        return;
    a->task_id = id;
    a->listen = listen;
    a->place = place;
    a->has_place = has_place;
    hub_look_task(a, on_task_to_listen);
}

/* task.chunk and task.result. */

static void deliver_refused(const struct hub_call *c, enum err e,
                            const struct why *why)
{
    reply_refuse(&c->reply, e, str_of(why->text), STR(""));
}

void method_chunk(struct hub_call *c)
{
    struct why why = {""};
    enum err e = deliver_heard(walk_deliver(c->hub->opts.walk), c->peer->line,
                               c->m, 0, &why);
    struct json_out o;

    if (e) {
        deliver_refused(c, e, &why);
    } else if (c->reply.is_awaited) {
        o = reply_open(&c->reply);
        json_open(&o, '{');
        json_close(&o, '}');
        reply_close(&c->reply, &o);
    }
}

/* The answer may come before deliver_heard has returned. */
void method_result(struct hub_call *c)
{
    struct ask *a = c->reply.is_awaited ? hub_ask_new(c) : NULL;
    struct why why = {""};
    enum err e;

    if (c->reply.is_awaited && !a)
        return;
    if (a)
        hub_ask_out(a);
    e = deliver_heard(walk_deliver(c->hub->opts.walk), c->peer->line, c->m,
                      a ? a->number : 0, &why);
    if (e && a && hub_ask_back(a))
        hub_ask_refuse(a, e, str_of(why.text), STR(""));
    else if (e && !a)
        deliver_refused(c, e, &why);
}

void hub_on_recorded(struct hub *h, uint64_t receipt, enum err e)
{
    struct ask *a = map_get(
        &h->receipts, (struct str){(const char *)&receipt, sizeof(receipt)});
    struct json_out o;

    if (!a || !hub_ask_back(a))
        return;
    if (e && e != ERR_TASK_IS_OVER) {
        hub_ask_refuse(a, e, STR(""), STR(""));
        return;
    }
    o = reply_open(&a->reply);
    json_open(&o, '{');
    json_member_bool(&o, "recorded", !e);
    if (e)
        json_member_text(&o, "reason", str_of(err_row(e)->code));
    json_close(&o, '}');
    reply_close(&a->reply, &o);
    hub_ask_end(a);
}
