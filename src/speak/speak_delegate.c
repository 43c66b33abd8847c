/* Delegation requests and their answers.
 *
 * agent.send_task uses the words of the two-phase protocol, agent.delegate
 * those of the tool; both become the same order. */
#include <stddef.h>
#include <stdio.h>

#include "speak/internal.h"

struct delegation_body {
    struct speak_order o;
    struct str mode, on_timeout, on_disconnect, tasks, idempotency_key;
};

#define AT(member) offsetof(struct delegation_body, member)

static const struct field send_fields[] = {
    {"agent_id", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(o.agent),
     .missing = "the name of the agent to delegate to"},
    {"message", FIELD_TEXT, 1, MSG_TEXT_MAX, .at = AT(o.message),
     .missing = "the work to do, in words"},
    {"skill_id", FIELD_NAME, 1, MSG_SKILL_MAX, .at = AT(o.skill),
     .missing = "the skill of that agent to use"},
    {"session_id", FIELD_NAME, 1, MSG_CONVERSATION_MAX, .at = AT(o.session_id)},
    {"task_id", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(o.task_id)},
    {"parent_task_id", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(o.parent_id)},
    {"metadata", FIELD_OBJ, 0, MSG_METADATA_MAX, .at = AT(o.metadata)},
    {"timeoutMs", FIELD_INT, 1, SPEAK_TIMEOUT_MAX_MS, .at = AT(o.timeout_ms)},
    {"stream", FIELD_BOOL, 0, 0, .at = AT(o.is_stream)},
    {"onDisconnect", FIELD_NAME, 1, 16, .at = AT(on_disconnect),
     .of = "keep|cancel"},
    {"max_cost_micros", FIELD_INT, 0, SPEAK_COST_MAX, .at = AT(o.max_cost)},
};

static const struct field delegate_fields[] = {
    {"agentId", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(o.agent)},
    {"task", FIELD_TEXT, 1, MSG_TEXT_MAX, .at = AT(o.message)},
    {"mode", FIELD_NAME, 1, 16, .at = AT(mode), .of = "sync|async",
     .unset = "\"sync\""},
    {"timeoutMs", FIELD_INT, 1, SPEAK_TIMEOUT_MAX_MS, .at = AT(o.timeout_ms)},
    {"stream", FIELD_BOOL, 0, 0, .at = AT(o.is_stream)},
    {"skill", FIELD_NAME, 1, MSG_SKILL_MAX, .at = AT(o.skill)},
    {"sessionKey", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(o.session_key)},
    {"onTimeout", FIELD_NAME, 1, 16, .at = AT(on_timeout),
     .of = "cancel|continue", .unset = "\"cancel\""},
    {"onDisconnect", FIELD_NAME, 1, 16, .at = AT(on_disconnect),
     .of = "keep|cancel"},
    {"parent_task_id", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(o.parent_id)},
    {"session_id", FIELD_NAME, 1, MSG_CONVERSATION_MAX,
     .at = AT(o.task_session)},
    {"idempotency_key", FIELD_NAME, 1, MSG_KEY_MAX,
     .at = AT(o.idempotency_key)},
    {"max_cost_micros", FIELD_INT, 0, SPEAK_COST_MAX, .at = AT(o.max_cost)},
};

/* A list of them, which cannot be nested. */
static const struct field orders_fields[] = {
    {"tasks", FIELD_ARR, 0,
     (int64_t)DELEGATION_AT_ONCE_MAX *(6 * MSG_TEXT_MAX + 8192),
     .at = AT(tasks), .of = "[Delegate]", .missing = "the work to delegate"},
    {"idempotency_key", FIELD_NAME, 1, MSG_KEY_MAX, .at = AT(idempotency_key)},
};

#define N(table) (sizeof(table) / sizeof(*(table)))

const struct fields speak_send_fields = {"", send_fields, N(send_fields)},
                    speak_delegate_fields = {"", delegate_fields,
                                             N(delegate_fields)},
                    speak_orders_fields = {"", orders_fields, N(orders_fields)};

static enum err delegation_field_missing(const char *prefix, const char *name,
                                         const char *what, struct why *why)
{
    return why_err(why, ERR_BAD_REQUEST, "%s%s is missing: %s", prefix, name,
                   what);
}

static enum err delegation_read_choice(const char *prefix, const char *name,
                                       struct str value, const char *no,
                                       const char *yes, bool *out,
                                       struct why *why)
{
    if (!value.n || str_eq(value, str_of(no)) || str_eq(value, str_of(yes))) {
        *out = value.n && str_eq(value, str_of(yes));
        return OK;
    }
    return why_err(why, ERR_BAD_REQUEST, "%s%s must be \"%s\" or \"%s\"",
                   prefix, name, no, yes);
}

static enum err delegation_check_ids(const char *prefix,
                                     const struct speak_order *o,
                                     struct why *why)
{
    if (o->task_id.n && !id_is_valid(o->task_id, "task"))
        return why_err(why, ERR_BAD_REQUEST,
                       "%stask_id must be a task's id, as an answer gave it: "
                       "\"task_\" and 26 characters",
                       prefix);
    if (o->parent_id.n && !id_is_valid(o->parent_id, "task"))
        return why_err(why, ERR_BAD_REQUEST,
                       "%sparent_task_id must be a task's id, as task.execute "
                       "gave it: \"task_\" and 26 characters",
                       prefix);
    if (o->session_key.n && !id_is_valid(o->session_key, "del"))
        return why_err(why, ERR_BAD_REQUEST,
                       "%ssessionKey must be one that an answer gave: "
                       "\"del_\" and 26 characters",
                       prefix);
    return OK;
}

static enum err delegation_read_on_disconnect(const char *prefix,
                                              struct delegation_body *s,
                                              struct why *why)
{
    s->o.says_line = s->on_disconnect.n > 0;
    return delegation_read_choice(prefix, "onDisconnect", s->on_disconnect,
                                  "keep", "cancel", &s->o.ends_with_line, why);
}

enum err speak_send_task(struct arena *a, struct str body,
                         struct speak_orders *out, struct why *why)
{
    struct delegation_body s = {.o.mode = DELEGATION_TWO_PHASE,
                                .o.max_cost = -1};
    enum err e = fields_read(a, body, &speak_send_fields, &s, why);

    *out = (struct speak_orders){.n = 1};
    if (!e)
        e = delegation_check_ids("", &s.o, why);
    if (!e)
        e = delegation_read_on_disconnect("", &s, why);
    if (!e && s.o.metadata.n && /* the body may be freed */
        !arena_keep(a, s.o.metadata, &s.o.metadata))
        e = why_err(why, ERR_NOMEM, "out of memory");
    s.o.task_session = s.o.session_id;
    out->list[0] = s.o;
    return e;
}

static enum err delegation_read_order(const char *prefix,
                                      struct delegation_body *s,
                                      struct why *why)
{
    bool is_async;
    enum err e = OK;

    if (!s->o.agent.n && !s->o.session_key.n)
        e = delegation_field_missing(
            prefix, "agentId", "the name of the agent to delegate to", why);
    if (!e && !s->o.message.n)
        e = delegation_field_missing(prefix, "task", "the work to do, in words",
                                     why);
    if (!e)
        e = delegation_read_choice(prefix, "mode", s->mode, "sync", "async",
                                   &is_async, why);
    if (!e)
        e = delegation_read_choice(prefix, "onTimeout", s->on_timeout, "cancel",
                                   "continue", &s->o.goes_on, why);
    if (!e)
        e = delegation_read_on_disconnect(prefix, s, why);
    if (!e)
        e = delegation_check_ids(prefix, &s->o, why);
    if (e)
        return e;
    s->o.mode = is_async ? DELEGATION_ASYNC : DELEGATION_SYNC;
    if (is_async)
        return OK;
    s->o.wait_ms = s->o.timeout_ms ? s->o.timeout_ms : DELEGATION_SYNC_MS;
    /* timeoutMs is how long the requester waits. A wait longer than the work
     * usually gets extends the work; a shorter one does not cut it short. */
    if (s->o.timeout_ms && s->o.timeout_ms < DELEGATION_TIMEOUT_MS)
        s->o.timeout_ms = DELEGATION_TIMEOUT_MS;
    return OK;
}

static enum err delegation_read_list(struct arena *a, struct str rest,
                                     struct speak_orders *out, struct why *why)
{
    struct str one;
    enum err e = OK;

    out->is_many = true;
    for (; !e && json_next(&rest, &one); out->n++) {
        char prefix[32];
        struct fields table = {prefix, delegate_fields, N(delegate_fields)};
        struct delegation_body s = {.o.max_cost = -1};

        snprintf(prefix, sizeof(prefix), "tasks[%zu].", out->n);
        if (out->n == DELEGATION_AT_ONCE_MAX)
            return why_err(why, ERR_BAD_REQUEST,
                           "tasks has more than %d: give some of them later",
                           DELEGATION_AT_ONCE_MAX);
        if (one.p[0] != '{')
            return why_err(why, ERR_BAD_REQUEST, "tasks[%zu] must be an object",
                           out->n);
        e = fields_read(a, one, &table, &s, why);
        if (!e)
            e = delegation_read_order(prefix, &s, why);
        out->list[out->n] = s.o;
    }
    if (!e && !out->n)
        return why_err(why, ERR_BAD_REQUEST, "tasks is empty");
    return e;
}

enum err speak_delegate(struct arena *a, struct str body,
                        struct speak_orders *out, struct why *why)
{
    const struct str key = STR("tasks");
    struct delegation_body s = {.o.max_cost = -1};
    struct str found = {NULL, 0};
    enum err e;

    *out = (struct speak_orders){.n = 0};
    if (json_scan(body, &key, 1, &found, NULL) == OK && found.n &&
        !str_eq(found, STR("null"))) {
        e = fields_read(a, body, &speak_orders_fields, &s, why);
        out->idempotency_key = s.idempotency_key;
        return e ? e : delegation_read_list(a, s.tasks, out, why);
    }
    e = fields_read(a, body, &speak_delegate_fields, &s, why);
    if (!e)
        e = delegation_read_order("", &s, why);
    out->n = 1;
    out->list[0] = s.o;
    return e;
}

static struct str delegation_error_text(const struct task_result *r)
{
    return r->error.n        ? r->error
           : r->error_code.n ? r->error_code
                             : task_status_name(r->status);
}

void speak_delegation_result(struct json_out *o, struct str key,
                             struct str original_id, const struct task *t)
{
    bool is_done = t->status == TASK_COMPLETED;

    json_member_text(o, original_id.n ? "original_id" : "sessionKey",
                     original_id.n ? original_id : key);
    json_member_text(o, "task_id", str_of(t->id.text));
    json_member_text(o, "status", is_done ? STR("completed") : STR("failed"));
    if (!is_done) {
        json_member_text(o, "error", delegation_error_text(&t->result));
        return;
    }
    json_member_text(o, "text", t->result.text);
    json_member_raw(o, "metadata",
                    t->result.metadata.n ? t->result.metadata : STR("{}"));
}

static void delegation_put_head(struct json_out *o, struct str status,
                                struct str key, struct str task_id)
{
    json_member_text(o, "status", status);
    json_member_some(o, "sessionKey", key);
    json_member_text(o, "task_id", task_id);
}

void speak_delegated(struct json_out *o, struct str key, const struct task *t)
{
    struct str id = str_of(t->id.text);

    if (!task_is_over(t->status)) {
        delegation_put_head(o, STR("accepted"), key, id);
    } else if (t->status == TASK_COMPLETED) {
        delegation_put_head(o, STR("completed"), key, id);
        json_member_text(o, "response", t->result.text);
    } else {
        delegation_put_head(
            o, t->status == TASK_EXPIRED ? STR("timeout") : STR("error"), key,
            id);
        json_member_text(o, "error", delegation_error_text(&t->result));
    }
}

void speak_delegation_timeout(struct json_out *o, struct str key,
                              struct str task_id, int64_t wait_ms)
{
    struct why why;

    why_err(&why, OK, "it was not done within %lld ms", (long long)wait_ms);
    delegation_put_head(o, STR("timeout"), key, task_id);
    json_member_text(o, "error", str_of(why.text));
}

void speak_delegation_accepted(struct json_out *o, struct str key,
                               struct str task_id)
{
    delegation_put_head(o, STR("accepted"), key, task_id);
}

void speak_delegation_refused(struct json_out *o, enum err e, struct str words,
                              struct str details)
{
    json_member_text(o, "status", STR("error"));
    json_member_text(o, "error", words.n ? words : str_of(err_row(e)->wording));
    json_member_text(o, "code", str_of(err_row(e)->code));
    if (!details.n || str_eq(details, STR("{}")))
        return;
    json_member_raw(o, "details", details);
}
