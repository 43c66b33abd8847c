/* POST /api/delegate: delegations, for agents without a hub connection and for
 * people, whose request is then an ordinary message. GET /api/delegations/KEY:
 * the state of one.
 *
 * The server decides on whose behalf it is: with parent_task_id the caller acts
 * for the agent that works on that task, and must be allowed to act for it. */
#include "api/internal.h"

/* Requests. */

static void delegate_quiet(struct request *o)
{
    struct message_state *s = o->own;

    if (s->delegation_request)
        delegation_request_leave(s->delegation_request);
    s->delegation_request = NULL;
}

const struct request_state delegate_state = {
    .bytes = sizeof(struct message_state), .quiet = delegate_quiet};

static void on_delegated_task(struct request *o, enum err e,
                              const struct task *t)
{
    if (e)
        request_fail(o, e);
    else
        events_begin(o, t);
}

/* Stream the events of the only item, as for a message. */
static void delegate_stream(struct request *o)
{
    struct delegation_request_piece piece;

    if (!delegation_request_piece(message_of(o)->delegation_request, 0,
                                  &piece)) {
        request_fail(o, ERR_INTERNAL);
        return;
    }
    request_quiet(o);
    o->task_id = piece.task_id;
    o->message_id = piece.message_id;
    look_task(o, on_delegated_task);
}

static void on_delegate_request_done(void *ctx)
{
    struct request *o = ctx;
    struct delegation_request *r = message_of(o)->delegation_request;
    struct str words = {NULL, 0}, details = {NULL, 0};
    enum err e = delegation_request_refused(r, &words, &details);
    struct json_out out = request_json(o);

    if (e) {
        request_refuse(o, e, words, details);
    } else if (message_of(o)->wants_events && o->api->is_ready) {
        delegate_stream(o);
    } else {
        delegation_request_write(r, &out);
        request_answer(o, delegation_request_is_over(r) ? 200 : 202);
    }
}

/* No request waits longer than net, or while the server stops. */
static void on_delegate_wait_over(struct timer *t)
{
    delegation_request_hurry(
        message_of(LIST_OF(t, struct request, timer))->delegation_request);
}

void call_delegate_post(struct call *c)
{
    struct api *api = c->api;
    struct request *o = request_of_call(c, &delegate_state);
    struct str key = http_header(c->rq, STR("Idempotency-Key"));
    struct message_state *s;
    struct why why = {""};
    enum err e;

    if (!o)
        return;
    s = o->own;
    s->wants_events = call_wants_events(c);
    if (key.p && !key.n) {
        request_refuse(o, ERR_BAD_REQUEST, STR(EMPTY_KEY_WORDS), STR(""));
        return;
    }
    e = delegation_request_new(
        &(struct delegation_request_opts){
            .walk = api->walk,
            .caller = &c->caller,
            .waits_for_nothing = s->wants_events,
            .idempotency_key = key,
            .done = on_delegate_request_done,
            .ctx = o,
        },
        c->rq->body, &s->delegation_request, &why);
    if (!e && s->wants_events &&
        delegation_request_n(s->delegation_request) > 1)
        e = why_err(&why, ERR_BAD_REQUEST,
                    "events are of one task: request each of several on its "
                    "own");
    if (e) {
        request_refuse(o, e, str_of(why.text), STR(""));
        return;
    }
    o->timer.fire = on_delegate_wait_over;
    request_becomes(o, REQUEST_WAITING);
    loop_timer_set(api->loop, &o->timer,
                   api_patience_ms(api, SPEAK_TIMEOUT_MAX_MS));
    delegation_request_go(s->delegation_request);
}

/* The state. */

const struct request_state delegation_look_state = {
    .bytes = sizeof(struct delegation_look)};

/* A caller who may act for the agent acknowledges by this, unless the agent has
 * a hub connection and acknowledges there. The row stays as long as its task:
 * after a lost answer the caller can ask again. */
static bool caller_acts_for_agent(const struct request *o, struct str agent)
{
    struct registry_by by = {.caller = &o->caller,
                             .now_ms = loop_wall_ms(o->api->loop)};
    const struct agent *a = NULL;
    struct agent_url url;
    struct why why;

    return !delegation_of(o)->by[0] &&
           registry_self(o->api->registry, agent, &by, &a, &why) == OK && a &&
           agent_url_read(a->url, &url, NULL) == OK &&
           url.transport != TRANSPORT_HUB;
}

static void delegation_acknowledge(const struct request *o)
{
    struct delegations *delegations = walk_delegations(o->api->walk);
    struct str key = str_of(delegation_of(o)->key.text);
    const struct delegation *d = delegation_find(delegations, key);
    enum err e = OK;

    if (d && d->state == DELEGATION_READY && caller_acts_for_agent(o, d->agent))
        e = delegation_had(delegations, d->agent, key, NULL, NULL);
    if (e)
        log_info(o->api->log, "calls.not_acked", LOG_C("key", key.p),
                 LOG_C("because", err_row(e)->code));
}

static void on_delegation_task_seen(struct request *o, enum err e,
                                    const struct task *t)
{
    int64_t turn = delegation_of(o)->turn;

    if (!e && turn && t->turn != turn)
        look_number(o, t, turn, delegation_of(o)->found);
    else
        delegation_of(o)->found(o, e, t);
}

void delegation_look_task(struct request *o, task_found *found)
{
    delegation_of(o)->found = found;
    look_task(o, on_delegation_task_seen);
}

static void on_delegation_state(struct request *o, enum err e,
                                const struct task *t)
{
    struct json_out out;

    if (e) {
        request_fail(o, e);
        return;
    }
    out = request_json(o);
    json_open(&out, '{');
    speak_delegated(&out, str_of(delegation_of(o)->key.text), t);
    json_member_text(&out, "agentId", t->agent);
    json_close(&out, '}');
    if (task_is_over(t->status))
        delegation_acknowledge(o);
    request_answer(o, 200);
}

static void delegation_look_at(struct request *o, const struct delegation *d)
{
    struct delegation_look *l = o->own;

    if (l->by[0] && (!str_eq_nocase(d->agent, str_of(l->by)) ||
                     !delegation_is_own(walk_delegations(o->api->walk), d))) {
        request_fail(o, ERR_NOT_FOUND);
        return;
    }
    o->sees_task = l->by[0];
    o->task_id = d->task_id;
    l->turn = d->turn;
    delegation_look_task(o, on_delegation_state);
}

static void on_delegation_row(struct request *o)
{
    const struct row *row = o->query.rows;
    struct delegation d;

    if (o->query.err || !row) {
        request_fail(o, o->query.err ? o->query.err : ERR_NOT_FOUND);
        return;
    }
    d = (struct delegation){.agent = row_str(row, DELEGATION_AGENT),
                            .creator = row_str(row, DELEGATION_CREATOR),
                            .created_ms = row_int(row, DELEGATION_CREATED_MS),
                            .task_id =
                                id_from(row_str(row, DELEGATION_TASK_ID)),
                            .turn = row_int(row, DELEGATION_TURN)};
    delegation_look_at(o, &d);
}

void delegation_answer(struct request *o)
{
    struct str key = str_of(delegation_of(o)->key.text);
    const struct delegation *d =
        delegation_find(walk_delegations(o->api->walk), key);

    if (d) {
        delegation_look_at(o, d);
        return;
    }
    query_if(request_query(o, &delegation_table, 1), DELEGATION_KEY, IS,
             value_text(key));
    request_read(o, &o->query, on_delegation_row);
}

/* Visible like its task: to the requester, the user it is for, and admins. A
 * delegation by a person has the id of its task as key. */
void call_delegations_get(struct call *c)
{
    bool is_task = id_is_valid(c->param, "task");
    struct request *o;

    if (!is_task && !id_is_valid(c->param, "del")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = request_of_call(c, &delegation_look_state);
    if (!o)
        return;
    delegation_of(o)->key = id_from(c->param);
    if (!is_task) {
        delegation_answer(o);
        return;
    }
    o->task_id = id_from(c->param);
    delegation_look_task(o, on_delegation_state);
}
