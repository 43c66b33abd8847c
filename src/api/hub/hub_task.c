/* task.get, task.cancel and task.listen; and task.chunk and task.result of
 * agents, which deliver judges. */
#include "api/hub/internal.h"

/* task.get. */

static void task_answer(struct request *o, const struct task *t)
{
    struct json_out out = request_json(o);

    json_open(&out, '{');
    speak_task(&out, t);
    json_close(&out, '}');
    request_answer(o, 200);
}

static void on_hub_task_found(struct request *o, enum err e,
                              const struct task *t)
{
    if (e)
        request_fail(o, e);
    else
        task_answer(o, t);
}

void method_get(struct hub_call *c)
{
    struct request *o;
    struct id id;

    if (!param_task(c, &id) || !(o = hub_request(c, NULL)))
        return;
    o->task_id = id;
    look_task(o, on_hub_task_found);
}

void method_cancel(struct hub_call *c)
{
    struct request *o;
    struct id id;

    if (!param_task(c, &id) || !(o = hub_request(c, &cancel_state)))
        return;
    o->task_id = id;
    task_cancel(o, task_answer);
}

/* task.listen. */

static void on_task_to_listen(struct request *o, enum err e,
                              const struct task *t)
{
    struct json_out out;

    if (e) {
        request_fail(o, e);
        return;
    }
    out = request_json(o);
    json_open(&out, '{');
    json_member_text(&out, "task_id", str_of(t->id.text));
    json_member_int(&out, "turn", t->turn);
    json_member_text(&out, "status", task_status_name(task_shown(t)));
    json_close(&out, '}');
    o->front->answer(o, 200);
    if (hub_seat(o)->listen == LISTEN_NOTHING)
        push_stop(peer_of(o), t);
    else
        push_begin(o, t);
    request_end(o);
}

static bool listen_read_after(struct hub_call *c, struct speak_place *out,
                              bool *has)
{
    struct str after;

    if (!param_str(c, "after", &after))
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
    struct request *o;
    struct hub_seat *seat;

    if (!param_listen(c, &listen) ||
        !listen_read_after(c, &place, &has_place) || !param_task(c, &id))
        return;
    if (listen != LISTEN_NOTHING && !push_has(c->peer, &id) &&
        c->peer->n_hearings >= c->hub->settings.max_listening) {
        reply_refuse(&c->reply, ERR_OVERLOADED,
                     STR("this connection listens to its limit of tasks; wait "
                         "for some of them (hub.maxListening)"),
                     STR(""));
        return;
    }
    o = hub_request(c, NULL);
    if (!o)
        return;
    o->task_id = id;
    seat = o->seat;
    seat->listen = listen;
    seat->place = place;
    seat->has_place = has_place;
    look_task(o, on_task_to_listen);
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
    enum err e = deliver_heard(walk_deliver(c->hub->api->walk), c->peer->line,
                               c->m, 0, &why);
    struct json_out out;

    if (e) {
        deliver_refused(c, e, &why);
    } else if (c->reply.is_awaited) {
        out = reply_open(&c->reply);
        json_open(&out, '{');
        json_close(&out, '}');
        reply_close(&c->reply);
    }
}

/* The answer may come before deliver_heard has returned. */
void method_result(struct hub_call *c)
{
    struct request *o = c->reply.is_awaited ? hub_request(c, NULL) : NULL;
    struct why why = {""};
    enum err e;

    if (c->reply.is_awaited && !o)
        return;
    if (o)
        request_out(o);
    e = deliver_heard(walk_deliver(c->hub->api->walk), c->peer->line, c->m,
                      o ? o->id : 0, &why);
    if (e && o && request_back(o))
        request_refuse(o, e, str_of(why.text), STR(""));
    else if (e && !o)
        deliver_refused(c, e, &why);
}

void hub_on_recorded(struct hub *h, uint64_t receipt, enum err e)
{
    struct str key = {(const char *)&receipt, sizeof(receipt)};
    struct request *o = map_get(&h->receipts, key);
    struct json_out out;

    if (!o || !request_back(o))
        return;
    if (e && e != ERR_TASK_IS_OVER) {
        request_fail(o, e);
        return;
    }
    out = request_json(o);
    json_open(&out, '{');
    json_member_bool(&out, "recorded", !e);
    if (e)
        json_member_text(&out, "reason", str_of(err_row(e)->code));
    json_close(&out, '}');
    request_answer(o, 200);
}
