/* Escalations: those that wait for somebody, those that were, and what people
 * say to them. They are for who asked, and for admins; deciding takes the scope
 * `escalations` besides. */
#include "calls/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

struct call_say {
    enum escalation_status status;
    char agent[AGENT_NAME_MAX + 1];
    char comment[SPEAK_DECIDED_MAX + 1];
};

void say_free(struct call_say *s)
{
    free(s);
}

static bool is_for(const struct row *r, const struct caller *c)
{
    struct str who = caller_name(c);

    return caller_is_admin(c) ||
           str_eq(row_str(r, ESCALATION_REQUESTER), who) ||
           str_eq(row_str(r, ESCALATION_ROOT_USER), who);
}

/* The members of one. */
static void write_one(struct json_out *out, const struct row *r)
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

/* One. */

/* With the message as it was sent, byte for byte where it is an envelope; a
 * task that retention has taken leaves what the row knows. */
static void on_task(struct open *o, enum err e, const struct task *t)
{
    struct json_out out = json_out(&o->calls->body);

    if (e && e != ERR_NOT_FOUND) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    write_one(&out, o->turns.rows);
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
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* The escalation is read into `turns`: look_task has the other query. */
static enum err found(struct open *o)
{
    if (o->turns.err)
        return o->turns.err;
    return o->turns.rows && is_for(o->turns.rows, &o->caller) ? OK
                                                              : ERR_NOT_FOUND;
}

static void on_one(struct open *o)
{
    enum err e = found(o);

    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    o->task_id = id_from(row_str(o->turns.rows, ESCALATION_TASK_ID));
    look_task(o, on_task);
}

static void read_one(struct open *o, void (*then)(struct open *o))
{
    if (o->has_turns)
        query_fini(&o->turns);
    query_init(&o->turns, &escalation_table, 1);
    o->has_turns = true;
    query_if(&o->turns, ESCALATION_ID, IS,
             value_text(str_of(o->escalation_id.text)));
    o->turns.is_quick = true;
    open_read(o, &o->turns, then);
}

/* One that cannot be is refused as one that is not there. */
static struct open *begin(struct call *c)
{
    struct open *o = NULL;

    if (!id_is_valid(c->param, "esc"))
        call_refuse(c, ERR_NOT_FOUND, STR(""));
    else
        o = open_new(c);
    if (o)
        o->escalation_id = id_from(c->param);
    return o;
}

void call_escalations_get(struct call *c)
{
    struct open *o = begin(c);

    if (o)
        read_one(o, on_one);
}

/* Many. */

static void on_page(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct row *last = NULL;
    char cursor[32] = "";

    if (o->query.err) {
        open_refuse(o, o->query.err, STR(""), STR(""));
        return;
    }
    speak_list_open(&out);
    QUERY_EACH(r, &o->query)
    {
        json_open(&out, '{');
        write_one(&out, r);
        json_close(&out, '}');
        last = r;
    }
    if (o->query.has_more && last)
        snprintf(cursor, sizeof(cursor), "%lld",
                 (long long)row_int(last, ESCALATION_SEQ));
    speak_list_close(&out, str_of(cursor));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

struct wanted {
    enum escalation_status status;
    enum escalation_kind kind;
    int64_t cursor;
};

static bool refuse(struct call *c, const char *words)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(words));
    return false;
}

static bool read_wanted(struct call *c, struct wanted *out)
{
    struct str status = call_arg(c, "status"), kind = call_arg(c, "kind");
    struct str cursor = call_arg(c, "cursor");

    *out = (struct wanted){.status = escalation_status_of(status),
                           .kind = escalation_kind_of(kind)};
    if (status.p && !out->status)
        return refuse(c, "status must be one of open, approved, rejected, "
                         "redirected, expired, resolved");
    if (kind.p && !out->kind)
        return refuse(c, "kind must be one of rule, dead, late, expired");
    if (cursor.p && (str_to_i64(cursor, &out->cursor) != OK || out->cursor < 1))
        return refuse(c, "cursor must be a next_cursor of this list");
    return true;
}

static void add_filters(struct call *c, struct query *q, const struct wanted *w)
{
    static const uint8_t whose[] = {ESCALATION_REQUESTER, ESCALATION_ROOT_USER};
    struct str agent = call_arg(c, "agent");
    struct agents all = registry_agents(c->calls->registry);
    const struct agent *a = agent.p ? agent_find(&all, agent) : NULL;

    if (!caller_is_admin(&c->caller))
        query_if_any(q, whose, 2, IS, value_text(caller_name(&c->caller)));
    if (w->status == ESCALATION_OPEN) /* there is an index for these */
        query_if(q, ESCALATION_DECIDED_MS, IS, value_null());
    else if (w->status)
        query_if(q, ESCALATION_STATUS, IS, value_int(w->status));
    if (w->kind)
        query_if(q, ESCALATION_KIND, IS, value_int(w->kind));
    if (agent.p)
        query_if(q, ESCALATION_AGENT, IS, value_text(a ? a->name : agent));
    if (call_arg(c, "task_id").p)
        query_if(q, ESCALATION_TASK_ID, IS, value_text(call_arg(c, "task_id")));
    if (w->cursor)
        query_if(q, ESCALATION_SEQ, IS_LESS, value_int(w->cursor));
}

void call_escalations_list(struct call *c)
{
    struct wanted w;
    struct open *o;
    size_t limit;

    if (!call_limit(c, &limit) || !read_wanted(c, &w) || !(o = open_new(c)))
        return;
    query_init(&o->query, &escalation_table, limit);
    o->has_query = true;
    add_filters(c, &o->query, &w);
    query_order(&o->query, ESCALATION_SEQ, true);
    open_list(o, &o->query, on_page);
}

/* Deciding. */

static void on_said(void *ctx, enum err e, const struct why *why)
{
    struct open *o = ctx;

    if (!open_back(o))
        return;
    if (e)
        open_refuse(o, e, str_of(why->text), STR(""));
    else
        read_one(o, on_one);
}

static void on_seen(struct open *o)
{
    const struct call_say *s = o->say;
    enum err e = found(o);

    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    open_out(o);
    broker_say(walk_broker(o->calls->walk),
               &(struct escalation_word){.id = str_of(o->escalation_id.text),
                                         .status = s->status,
                                         .agent = str_of(s->agent),
                                         .comment = str_of(s->comment),
                                         .by = caller_name(&o->caller)},
               on_said, o);
}

static void say(struct call *c, enum escalation_status status)
{
    struct arena *scratch = &c->calls->scratch;
    struct speak_decided said;
    struct why why = {""};
    struct call_say *s;
    struct open *o;
    enum err e = speak_decided(scratch, c->rq->body,
                               status == ESCALATION_REDIRECTED, &said, &why);

    if (e) {
        call_refuse(c, e, str_of(why.text));
        return;
    }
    o = begin(c);
    if (!o)
        return;
    s = FAULT("calls.say") ? NULL : calloc(1, sizeof(*s));
    if (!s) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    s->status = status;
    snprintf(s->agent, sizeof(s->agent), "%.*s", STR_ARG(said.agent));
    snprintf(s->comment, sizeof(s->comment), "%.*s", STR_ARG(said.comment));
    o->say = s;
    read_one(o, on_seen);
}

void call_escalations_approve(struct call *c)
{
    say(c, ESCALATION_APPROVED);
}

void call_escalations_reject(struct call *c)
{
    say(c, ESCALATION_REJECTED);
}

void call_escalations_redirect(struct call *c)
{
    say(c, ESCALATION_REDIRECTED);
}
