/* POST /api/delegate: delegations, for agents without a hub connection and for
 * people, whose request is then an ordinary message. GET /api/delegations/KEY:
 * the state of one.
 *
 * The server decides on whose behalf it is: with parent_task_id the caller acts
 * for the agent that works on that task, and must be allowed to act for it. */
#include "api/internal.h"
#include "api/share.h"

/* Requests. */

static void on_delegated_task(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_fail(o, e);
    else
        events_begin(o, t);
}

/* Stream the events of the only item, as for a message. */
static void delegate_stream(struct open *o)
{
    struct delegation_request_piece piece;

    if (!delegation_request_piece(o->delegation_request, 0, &piece)) {
        open_fail(o, ERR_INTERNAL);
        return;
    }
    delegation_request_leave(o->delegation_request);
    o->delegation_request = NULL;
    loop_timer_cancel(o->api->loop, &o->timer);
    o->task_id = piece.task_id;
    o->message_id = piece.message_id;
    look_task(o, on_delegated_task);
}

static void on_delegate_request_done(void *ctx)
{
    struct open *o = ctx;
    struct str words = {NULL, 0}, details = {NULL, 0};
    enum err e =
        delegation_request_refused(o->delegation_request, &words, &details);
    struct json_out out = json_out(&o->api->body);

    if (e) {
        open_refuse(o, e, words, details);
    } else if (o->message.wants_events && o->api->is_ready) {
        delegate_stream(o);
    } else {
        delegation_request_write(o->delegation_request, &out);
        open_answer(o, delegation_request_is_over(o->delegation_request) ? 200
                                                                         : 202);
    }
}

/* No request waits longer than net, or while the server stops. */
static void on_delegate_wait_over(struct timer *t)
{
    delegation_request_hurry(
        LIST_OF(t, struct open, timer)->delegation_request);
}

static bool delegate_request_new(struct open *o, struct call *c)
{
    struct api *api = c->api;
    struct str key = http_header(c->rq, STR("Idempotency-Key"));
    struct why why = {""};
    enum err e;

    if (key.p && !key.n) {
        open_refuse(o, ERR_BAD_REQUEST, STR(EMPTY_KEY_WORDS), STR(""));
        return false;
    }
    o->delegation_request =
        delegation_request_new(&(struct delegation_request_opts){
            .loop = api->loop,
            .log = api->log,
            .walk = api->walk,
            .store = api->store,
            .registry = api->registry,
            .list = &api->delegation_requests,
            .caller = &c->caller,
            .waits_for_nothing = o->message.wants_events,
            .idempotency_key = key,
            .done = on_delegate_request_done,
            .ctx = o,
        });
    e = delegation_request_read(o->delegation_request, c->rq->body, false,
                                &why);
    if (!e && o->message.wants_events &&
        delegation_request_is_piece(o->delegation_request, 1))
        e = why_err(&why, ERR_BAD_REQUEST,
                    "events are of one task: request each of several on its "
                    "own");
    if (!e)
        return true;
    open_refuse(o, e, str_of(why.text), STR(""));
    return false;
}

void call_delegate_post(struct call *c)
{
    struct api *api = c->api;
    struct open *o = open_new(c);

    if (!o)
        return;
    o->message.wants_events = call_wants_events(c);
    if (!delegate_request_new(o, c))
        return;
    o->timer.fire = on_delegate_wait_over;
    open_becomes(o, OPEN_WAITING);
    loop_timer_set(api->loop, &o->timer,
                   api_patience_ms(api, SPEAK_TIMEOUT_MAX_MS));
    delegation_request_go(o->delegation_request);
}

/* The state. */

/* A caller who may act for the agent acknowledges by this, unless the agent has
 * a hub connection and acknowledges there. The row stays as long as its task:
 * after a lost answer the caller can ask again. */
static bool caller_acts_for_agent(const struct open *o, struct str agent)
{
    struct registry_by by = {.caller = &o->caller,
                             .now_ms = loop_wall_ms(o->api->loop)};
    const struct agent *a = NULL;
    struct agent_url url;
    struct why why;

    return registry_self(o->api->registry, agent, &by, &a, &why) == OK && a &&
           agent_url_read(a->url, &url, NULL) == OK &&
           url.transport != TRANSPORT_HUB;
}

static void delegation_acknowledge(const struct open *o)
{
    struct delegations *delegations = walk_delegations(o->api->walk);
    struct str key = str_of(o->delegation.key.text);
    const struct delegation *d = delegation_find(delegations, key);
    enum err e = OK;

    if (d && d->state == DELEGATION_READY && caller_acts_for_agent(o, d->agent))
        e = delegation_had(delegations, d->agent, key, NULL, NULL);
    if (e)
        log_info(o->api->log, "calls.not_acked", LOG_C("key", key.p),
                 LOG_C("because", err_row(e)->code));
}

static void on_delegation_state(struct open *o, enum err e,
                                const struct task *t)
{
    struct json_out out = json_out(&o->api->body);

    if (!e && o->delegation.turn && t->turn != o->delegation.turn &&
        !o->has_turns) {
        look_number(o, t, o->delegation.turn, on_delegation_state);
        return;
    }
    if (e) {
        open_fail(o, e);
        return;
    }
    json_open(&out, '{');
    speak_delegated(&out, str_of(o->delegation.key.text), t);
    json_member_text(&out, "agentId", t->agent);
    json_close(&out, '}');
    if (task_is_over(t->status))
        delegation_acknowledge(o);
    open_answer(o, 200);
}

static void on_delegation_found(struct open *o)
{
    const struct row *row = o->query.rows;

    if (o->query.err || !row) {
        open_fail(o, o->query.err ? o->query.err : ERR_NOT_FOUND);
        return;
    }
    o->task_id = id_from(row_str(row, DELEGATION_TASK_ID));
    o->delegation.turn = row_int(row, DELEGATION_TURN);
    look_task(o, on_delegation_state);
}

/* Visible like its task: to the requester, the user it is for, and admins. A
 * delegation by a person has the id of its task as key. */
void call_delegations_get(struct call *c)
{
    const struct delegation *d =
        delegation_find(walk_delegations(c->api->walk), c->param);
    bool is_task = id_is_valid(c->param, "task");
    struct open *o;

    if (!is_task && !id_is_valid(c->param, "del")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    o->delegation.key = id_from(c->param);
    if (!d && !is_task) {
        share_delegation_ask(&o->query, &o->has_query, c->param);
        open_read(o, &o->query, on_delegation_found);
        return;
    }
    o->task_id = d ? d->task_id : id_from(c->param);
    o->delegation.turn = d ? d->turn : 0;
    look_task(o, on_delegation_state);
}
