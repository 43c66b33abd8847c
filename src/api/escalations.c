/* Escalations, open and decided, and the replies of people. They are for their
 * requester and admins; a reply also needs the scope `escalations`. */
#include "api/internal.h"

#include <stdio.h>

/* The state of a request about an escalation. */
struct call_reply {
    struct id id; /* of the escalation */
    enum escalation_status status;
    char agent[AGENT_NAME_MAX + 1];
    char comment[SPEAK_DECIDED_MAX + 1];
};

static const struct request_state escalation_state = {
    .bytes = sizeof(struct call_reply)};

static bool escalation_is_for(const struct row *r, const struct caller *c)
{
    struct str who = caller_name(c);

    return caller_is_admin(c) ||
           str_eq(row_str(r, ESCALATION_REQUESTER), who) ||
           str_eq(row_str(r, ESCALATION_ROOT_USER), who);
}

/* The members of an escalation. */
static void escalation_write(struct json_out *out, const struct row *r)
{
    enum escalation_status status =
        (enum escalation_status)row_int(r, ESCALATION_STATUS);

    json_member_str(out, "id", row_str(r, ESCALATION_ID));
    json_member_str(out, "status", escalation_status_name(status));
    json_member_str(out, "kind",
                    escalation_kind_name(
                        (enum escalation_kind)row_int(r, ESCALATION_KIND)));
    json_member_str(out, "task_id", row_str(r, ESCALATION_TASK_ID));
    json_member_int(out, "turn", row_int(r, ESCALATION_TURN));
    json_member_str(out, "agent", row_str(r, ESCALATION_AGENT));
    json_member_str(out, "requester", row_str(r, ESCALATION_REQUESTER));
    json_member_str(out, "from", row_str(r, ESCALATION_FROM));
    json_member_str(out, "type", row_str(r, ESCALATION_TYPE));
    json_member_str(out, "reference", row_str(r, ESCALATION_REFERENCE));
    json_member_str(out, "priority",
                    task_priority_name(
                        (enum task_priority)row_int(r, ESCALATION_PRIORITY)));
    json_member_str(out, "rule", row_str(r, ESCALATION_RULE_NAME));
    json_member_str(out, "reason", row_str(r, ESCALATION_REASON));
    json_member_str(out, "offer", row_str(r, ESCALATION_OFFER));
    json_member_ms(out, "at_ms", row_int(r, ESCALATION_AT_MS));
    json_member_int(out, "reminded", row_int(r, ESCALATION_REMINDED));
    json_member_ms(out, "remind_ms", row_int(r, ESCALATION_REMIND_MS));
    json_member_ms(out, "expires_ms", row_int(r, ESCALATION_EXPIRES_MS));
    json_member_ms(out, "decided_ms", row_int(r, ESCALATION_DECIDED_MS));
    json_member_str(out, "by", row_str(r, ESCALATION_BY));
    json_member_str(out, "comment", row_str(r, ESCALATION_COMMENT));
    json_member_str(out, "redirected_to", row_str(r, ESCALATION_TO));
}

/* A single escalation. */

/* With the message as it was sent, byte for byte for an envelope; if retention
 * removed the task, only what the row has. */
static void on_escalation_task(struct request *o, enum err e,
                               const struct task *t)
{
    struct json_out out = request_json(o);

    if (e && e != ERR_NOT_FOUND) {
        request_fail(o, e);
        return;
    }
    json_open(&out, '{');
    escalation_write(&out, o->turns.rows);
    json_key(&out, STR("envelope"));
    if (t && t->is_envelope)
        json_put_raw(&out, t->text);
    else
        json_put_null(&out);
    json_key(&out, STR("task"));
    if (t) {
        json_open(&out, '{');
        speak_task(&out, t);
        json_close(&out, '}');
    } else {
        json_put_null(&out);
    }
    json_close(&out, '}');
    request_answer(o, 200);
}

/* The escalation is read into `turns`, since look_task uses the other query. */
static enum err escalation_found(struct request *o)
{
    if (o->turns.err)
        return o->turns.err;
    return o->turns.rows && escalation_is_for(o->turns.rows, &o->caller)
               ? OK
               : ERR_NOT_FOUND;
}

static void on_escalation_row(struct request *o)
{
    enum err e = escalation_found(o);

    if (e) {
        request_fail(o, e);
        return;
    }
    o->task_id = id_from(row_str(o->turns.rows, ESCALATION_TASK_ID));
    look_task(o, on_escalation_task);
}

static void escalation_read(struct request *o, void (*then)(struct request *o))
{
    const struct call_reply *s = o->own;

    request_query_turns(o, &escalation_table, 1)->is_quick = true;
    query_if(&o->turns, ESCALATION_ID, IS, value_text(str_of(s->id.text)));
    request_read(o, &o->turns, then);
}

/* An invalid id is answered like an unknown one. */
static struct request *escalation_request_new(struct call *c)
{
    struct call_reply *s;
    struct request *o = NULL;

    if (!id_is_valid(c->param, "esc"))
        call_refuse(c, ERR_NOT_FOUND, STR(""));
    else
        o = request_of_call(c, &escalation_state);
    if (o) {
        s = o->own;
        s->id = id_from(c->param);
    }
    return o;
}

void call_escalations_get(struct call *c)
{
    struct request *o = escalation_request_new(c);

    if (o)
        escalation_read(o, on_escalation_row);
}

/* The list. */

static void on_escalations_page(struct request *o)
{
    struct json_out out = request_json(o);
    const struct row *last = NULL;

    if (!request_query_ok(o))
        return;
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        json_open(&out, '{');
        escalation_write(&out, r);
        json_close(&out, '}');
        last = r;
    }
    request_answer_list(
        o, &out, o->query.has_more && last ? row_int(last, ESCALATION_SEQ) : 0);
}

static void escalations_filter_query(struct call *c, struct query *q)
{
    enum escalation_status status = escalation_status_of(call_arg(c, "status"));
    enum escalation_kind kind = escalation_kind_of(call_arg(c, "kind"));
    int64_t cursor = call_int(c, "cursor", 0);
    static const uint8_t whose[] = {ESCALATION_REQUESTER, ESCALATION_ROOT_USER};
    struct str agent = call_arg(c, "agent");
    struct agents all = registry_agents(c->api->registry);
    const struct agent *a = agent.p ? agent_find(&all, agent) : NULL;

    if (!caller_is_admin(&c->caller))
        query_if_any(q, whose, 2, IS, value_text(caller_name(&c->caller)));
    if (status == ESCALATION_OPEN) /* has an index */
        query_if(q, ESCALATION_DECIDED_MS, IS, value_null());
    else if (status)
        query_if(q, ESCALATION_STATUS, IS, value_int(status));
    if (kind)
        query_if(q, ESCALATION_KIND, IS, value_int(kind));
    if (agent.p)
        query_if(q, ESCALATION_AGENT, IS, value_text(a ? a->name : agent));
    if (call_arg(c, "task_id").p)
        query_if(q, ESCALATION_TASK_ID, IS, value_text(call_arg(c, "task_id")));
    if (cursor)
        query_if(q, ESCALATION_SEQ, IS_LESS, value_int(cursor));
}

void call_escalations_list(struct call *c)
{
    struct request *o = request_of_call(c, NULL);

    if (!o)
        return;
    request_query(o, &escalation_table, call_limit(c));
    escalations_filter_query(c, &o->query);
    query_order(&o->query, ESCALATION_SEQ, true);
    request_read_list(o, &o->query, on_escalations_page);
}

/* Replies. */

static void on_escalation_replied(void *ctx, enum err e, const struct why *why)
{
    struct request *o = ctx;

    if (!request_back(o))
        return;
    if (e)
        request_refuse(o, e, str_of(why->text), STR(""));
    else
        escalation_read(o, on_escalation_row);
}

static void on_escalation_to_reply(struct request *o)
{
    const struct call_reply *s = o->own;
    enum err e = escalation_found(o);

    if (e) {
        request_fail(o, e);
        return;
    }
    request_out(o);
    gatekeeper_reply(walk_gatekeeper(o->api->walk),
                     &(struct escalation_reply){.id = str_of(s->id.text),
                                                .status = s->status,
                                                .agent = str_of(s->agent),
                                                .comment = str_of(s->comment),
                                                .by = caller_name(&o->caller)},
                     on_escalation_replied, o);
}

static void escalation_send_reply(struct call *c, enum escalation_status status)
{
    struct arena *scratch = &c->api->scratch;
    struct speak_decided said;
    struct why why = {""};
    struct call_reply *s;
    struct request *o;
    enum err e = speak_decided(scratch, c->rq->body,
                               status == ESCALATION_REDIRECTED, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = escalation_request_new(c);
    if (!o)
        return;
    s = o->own;
    s->status = status;
    snprintf(s->agent, sizeof(s->agent), "%.*s", STR_ARG(said.agent));
    snprintf(s->comment, sizeof(s->comment), "%.*s", STR_ARG(said.comment));
    escalation_read(o, on_escalation_to_reply);
}

void call_escalations_approve(struct call *c)
{
    escalation_send_reply(c, ESCALATION_APPROVED);
}

void call_escalations_reject(struct call *c)
{
    escalation_send_reply(c, ESCALATION_REJECTED);
}

void call_escalations_redirect(struct call *c)
{
    escalation_send_reply(c, ESCALATION_REDIRECTED);
}
