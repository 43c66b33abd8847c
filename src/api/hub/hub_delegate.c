/* Delegations by agents: agent.send_task, acknowledged at once with the result
 * later; agent.delegate, whose answer may take its time; delegation.get and
 * delegation.ack. delegation_request.h performs a request, hub_tell.c reports
 * results. */
#include <stdio.h>

#include "api/hub/internal.h"

/* Requests. */

static void on_delegate_done(void *ctx)
{
    struct request *o = ctx;
    struct delegation_request *r = delegation_request_of(o);
    struct str words = {NULL, 0}, details = {NULL, 0};
    enum err e = delegation_request_refused(r, &words, &details);
    struct json_out out;

    if (e && delegation_request_is_two_phase(r)) {
        request_refuse(o, e, words, details);
        return;
    }
    tell_begin(o);
    out = request_json(o);
    delegation_request_write(r, &out);
    request_answer(o, 200);
}

static void delegate_begin(struct hub_call *c, struct str original_id)
{
    struct buf *body = &c->hub->body;
    struct json_out out = json_out(body);
    struct why why = {""};
    struct request *o = hub_request(c, &delegate_state);
    enum err e = ERR_NOMEM;

    if (!o)
        return;
    hub_clear(body);
    json_put(&out, c->params);
    if (!body->over)
        e = delegation_request_new(
            &(struct delegation_request_opts){
                .walk = c->hub->api->walk,
                .by = str_of(c->peer->agent),
                .caller = c->peer->child ? NULL : &c->peer->caller,
                .original_id = original_id,
                .done = on_delegate_done,
                .ctx = o,
            },
            buf_str(body), &message_of(o)->delegation_request, &why);
    if (e)
        request_refuse(o, e, str_of(why.text), STR(""));
    else
        delegation_request_go(message_of(o)->delegation_request);
}

/* The id identifies the result later, so here it is required and must be valid
 * for delegation.ack. */
static bool send_task_check_id(struct hub_call *c)
{
    struct str id = c->m->id.text;
    struct reply to = c->reply;

    if (c->reply.is_awaited && id.n && !str_has_any_control(id))
        return true;
    to.is_awaited = true;
    reply_bad(&to, WIRE_INVALID_REQUEST,
              STR("agent.send_task needs an id, a string without control "
                  "characters or a number: it identifies the result"),
              STR(""));
    return false;
}

void method_send_task(struct hub_call *c)
{
    if (send_task_check_id(c))
        delegate_begin(c, c->m->id.text);
}

void method_delegate(struct hub_call *c)
{
    delegate_begin(c, STR(""));
}

/* delegation.get. */

/* A delegation of another agent is not found. */
void method_delegation_get(struct hub_call *c)
{
    struct delegation_look *l;
    struct request *o;
    struct str key;

    if (!param_str(c, "sessionKey", &key))
        return;
    if (!key.n) {
        reply_refuse(&c->reply, ERR_BAD_REQUEST, STR("sessionKey is missing"),
                     STR(""));
        return;
    }
    o = hub_request(c, &delegation_look_state);
    if (!o)
        return;
    l = o->own;
    l->key = id_from(key);
    snprintf(l->by, sizeof(l->by), "%s", c->peer->agent);
    delegation_answer(o);
}

/* delegation.ack. */

static void on_delegation_acked(void *ctx, enum err e)
{
    struct request *o = ctx;
    struct json_out out;

    if (!request_back(o))
        return;
    if (e && e != ERR_NOT_FOUND) {
        request_fail(o, e);
        return;
    }
    out = request_json(o);
    json_open(&out, '{');
    json_member_bool(&out, "acked", !e);
    if (e)
        json_member_text(&out, "reason", str_of(err_row(e)->code));
    json_close(&out, '}');
    request_answer(o, 200);
}

/* Any of its names, the most specific first: a task may have had several turns,
 * each a delegation of its own. */
static bool ack_read_key(struct hub_call *c, char number[32], struct str *out)
{
    const struct json *id = json_get(c->params, STR("original_id"));

    if (!param_str(c, "sessionKey", out))
        return false;
    if (!out->n && id && id->type == JSON_INT) {
        snprintf(number, 32, "%lld", (long long)id->i);
        *out = str_of(number);
    } else if (!out->n && !param_str(c, "original_id", out)) {
        return false;
    }
    if (!out->n && !param_str(c, "task_id", out))
        return false;
    if (out->n)
        return true;
    reply_refuse(&c->reply, ERR_BAD_REQUEST,
                 STR("original_id, sessionKey or task_id is missing: give "
                     "one of those in delegation.result"),
                 STR(""));
    return false;
}

void method_delegation_ack(struct hub_call *c)
{
    struct delegations *delegations = walk_delegations(c->hub->api->walk);
    char number[32];
    struct str which;
    struct request *o;
    enum err e;

    if (!ack_read_key(c, number, &which))
        return;
    if (!c->reply.is_awaited) {
        e = delegation_had(delegations, str_of(c->peer->agent), which, NULL,
                           NULL);
        if (e)
            log_info(c->hub->api->log, "hub.not_acked",
                     LOG_C("agent", c->peer->agent),
                     LOG_C("because", err_row(e)->code));
        return;
    }
    o = hub_request(c, NULL);
    if (!o)
        return;
    request_out(o);
    e = delegation_had(delegations, str_of(c->peer->agent), which,
                       on_delegation_acked, o);
    if (e)
        on_delegation_acked(o, e);
}
