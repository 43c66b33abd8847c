/* Delegations by agents: agent.send_task, acknowledged at once with the result
 * later; agent.delegate, whose answer may take its time; delegation.get and
 * delegation.ack. delegation_request.h performs a request, hub_tell.c reports
 * results. */
#include <stdio.h>

#include "api/hub/internal.h"
#include "api/share.h"

/* Requests. */

static void on_delegate_done(void *ctx)
{
    struct ask *a = ctx;
    struct str words = {NULL, 0}, details = {NULL, 0};
    enum err e =
        delegation_request_refused(a->delegation_request, &words, &details);
    struct json_out o;

    if (e && delegation_request_is_two_phase(a->delegation_request)) {
        hub_ask_refuse(a, e, words, details);
        return;
    }
    tell_begin(a);
    o = reply_open(&a->reply);
    delegation_request_write(a->delegation_request, &o);
    reply_close(&a->reply, &o);
    hub_ask_end(a);
}

static struct delegation_request *delegation_request_for(struct hub_call *c,
                                                         struct str original_id,
                                                         struct ask *a)
{
    struct hub *h = c->hub;

    return delegation_request_new(&(struct delegation_request_opts){
        .loop = h->opts.loop,
        .log = h->opts.log,
        .walk = h->opts.walk,
        .store = h->opts.store,
        .registry = h->opts.registry,
        .list = &h->delegation_requests,
        .by = str_of(c->peer->agent),
        .caller = c->peer->child ? NULL : &c->peer->caller,
        .original_id = original_id,
        .done = on_delegate_done,
        .ctx = a,
    });
}

static void delegate_begin(struct hub_call *c, struct str original_id)
{
    struct buf *body = &c->hub->body;
    struct json_out o = json_out(body);
    struct why why = {""};
    struct ask *a = hub_ask_new(c);
    enum err e = ERR_NOMEM;

    if (!a)
        return;
    hub_clear(body);
    json_put(&o, c->params);
    a->delegation_request = delegation_request_for(c, original_id, a);
    if (!body->over)
        e = delegation_request_read(a->delegation_request, buf_str(body),
                                    original_id.n > 0, &why);
    if (e)
        hub_ask_refuse(a, e, str_of(why.text), STR(""));
    else
        delegation_request_go(a->delegation_request);
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

static void on_delegation_turn_found(struct ask *a, enum err e,
                                     const struct task *t)
{
    struct json_out o;

    if (!e && t->turn != a->delegation.turn && !a->has_turns) {
        hub_look_number(a, t, a->delegation.turn, on_delegation_turn_found);
        return;
    }
    if (e) {
        hub_ask_refuse(a, e, STR(""), STR(""));
        return;
    }
    o = reply_open(&a->reply);
    json_open(&o, '{');
    speak_delegated(&o, str_of(a->delegation.key.text), t);
    json_member_text(&o, "agentId", t->agent);
    json_close(&o, '}');
    reply_close(&a->reply, &o);
    hub_ask_end(a);
}

/* A delegation of another agent is not found. */
static void delegation_look(struct ask *a, const struct delegation *d)
{
    if (!str_eq_nocase(d->agent, str_of(a->peer->agent)) ||
        !delegation_is_own(walk_delegations(a->hub->opts.walk), d)) {
        hub_ask_refuse(a, ERR_NOT_FOUND, STR(""), STR(""));
        return;
    }
    a->task_id = d->task_id;
    a->delegation.turn = d->turn;
    a->delegation.is_own = true;
    hub_look_task(a, on_delegation_turn_found);
}

static void on_delegation_row(struct ask *a)
{
    const struct row *row = a->query.rows;
    struct delegation d;

    if (a->query.err || !row) {
        hub_ask_refuse(a, a->query.err ? a->query.err : ERR_NOT_FOUND, STR(""),
                       STR(""));
        return;
    }
    d = (struct delegation){.agent = row_str(row, DELEGATION_AGENT),
                            .creator = row_str(row, DELEGATION_CREATOR),
                            .created_ms = row_int(row, DELEGATION_CREATED_MS),
                            .task_id =
                                id_from(row_str(row, DELEGATION_TASK_ID)),
                            .turn = row_int(row, DELEGATION_TURN)};
    delegation_look(a, &d);
}

void method_delegation_get(struct hub_call *c)
{
    const struct delegation *d;
    struct str key;
    struct ask *a;

    if (!param_str(c, "sessionKey", ID_BYTES - 1, &key))
        return;
    if (!key.n) {
        reply_refuse(&c->reply, ERR_BAD_REQUEST, STR("sessionKey is missing"),
                     STR(""));
        return;
    }
    a = hub_ask_new(c);
    if (!a)
        return;
    a->delegation.key = id_from(key);
    d = delegation_find(walk_delegations(c->hub->opts.walk), key);
    if (d) {
        delegation_look(a, d);
        return;
    }
    share_delegation_ask(&a->query, &a->has_query, key);
    hub_ask_read(a, &a->query, on_delegation_row);
}

/* delegation.ack. */

static void ack_answer(const struct reply *r, enum err e)
{
    struct json_out o;

    if (e && e != ERR_NOT_FOUND) {
        reply_refuse(r, e, STR(""), STR(""));
        return;
    }
    o = reply_open(r);
    json_open(&o, '{');
    json_member_bool(&o, "acked", !e);
    if (e)
        json_member_text(&o, "reason", str_of(err_row(e)->code));
    json_close(&o, '}');
    reply_close(r, &o);
}

static void on_acknowledged_ask(void *ctx, enum err e)
{
    struct ask *a = ctx;

    if (!hub_ask_back(a))
        return;
    ack_answer(&a->reply, e);
    hub_ask_end(a);
}

/* Any of its names, the most specific first: a task may have had several turns,
 * each a delegation of its own. */
static bool ack_read_key(struct hub_call *c, char number[32], struct str *out)
{
    const struct json *id = json_get(c->params, STR("original_id"));

    if (!param_str(c, "sessionKey", ID_BYTES - 1, out))
        return false;
    if (!out->n && id && id->type == JSON_INT) {
        snprintf(number, 32, "%lld", (long long)id->i);
        *out = str_of(number);
    } else if (!out->n &&
               !param_str(c, "original_id", DELEGATION_ID_MAX, out)) {
        return false;
    }
    if (!out->n && !param_str(c, "task_id", ID_BYTES - 1, out))
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
    struct delegations *delegations = walk_delegations(c->hub->opts.walk);
    char number[32];
    struct str which;
    struct ask *a;
    enum err e;

    if (!ack_read_key(c, number, &which))
        return;
    if (!c->reply.is_awaited) {
        e = delegation_had(delegations, str_of(c->peer->agent), which, NULL,
                           NULL);
        if (e)
            log_info(c->hub->opts.log, "hub.not_acked",
                     LOG_C("agent", c->peer->agent),
                     LOG_C("because", err_row(e)->code));
        return;
    }
    a = hub_ask_new(c);
    if (!a)
        return;
    hub_ask_out(a);
    e = delegation_had(delegations, str_of(c->peer->agent), which,
                       on_acknowledged_ask, a);
    if (e)
        on_acknowledged_ask(a, e);
}
