/* Messages about a task: task.execute to its agent, and the agent's chunks and
 * result. The params were parsed into a tree before; their members are walked
 * once. */
#include "wire/wire.h"

#include <stdio.h>

#include "model/envelope.h"
#include "model/msg.h"

/* The short members that are read from an envelope. */
enum { ENVELOPE_ARENA = 256 * 1024 };

/* Writing. */

/* Write a JSON document in one line. A line end can only stand between its
 * tokens, where a space means the same. */
static void work_put_document(struct json_out *o, struct str key, struct str s)
{
    size_t from;

    json_key(o, key);
    from = o->out->n;
    json_put_raw(o, s.n ? s : STR("{}"));
    for (size_t i = from; i < o->out->n; i++)
        if (o->out->p[i] == '\n' || o->out->p[i] == '\r')
            o->out->p[i] = ' ';
}

static void work_put_metadata(struct json_out *o, const struct task *t)
{
    json_key(o, STR("metadata"));
    json_open(o, '{');
    json_member_text(o, "requester",
                     t->by_agent.n ? t->by_agent : t->requester);
    json_member_text(o, "root_user", t->root_user);
    json_member_int(o, "depth", t->depth);
    json_member_raw(o, "chain", t->chain.n ? t->chain : STR("[]"));
    json_member_some(o, "parent_task_id", t->parent_id);
    json_member_text(o, "priority", task_priority_name(t->priority));
    work_put_document(o, STR("user"), t->metadata);
    work_put_document(o, STR("source"), t->source);
    json_close(o, '}');
}

/* An envelope is passed on unchanged, and said in words for agents that do not
 * know envelopes. */
static void work_put_message(struct json_out *o, const struct task *t)
{
    struct envelope e;
    struct arena a;
    struct buf words;
    enum err err = ERR_SYNTAX;

    arena_init(&a, ENVELOPE_ARENA);
    if (t->is_envelope)
        err = envelope_of_task(t, &a, &e);
    if (!err) {
        buf_init(&words, ENVELOPE_CONTEXT_MAX);
        envelope_words(&e, &words);
        json_member_text(o, "message", buf_str(&words));
        o->out->over |= words.over;
        buf_fini(&words);
        work_put_document(o, STR("envelope"), t->text);
    } else {
        o->out->over |= err == ERR_NOMEM;
        json_member_text(o, "message", t->text);
    }
    arena_fini(&a);
}

void wire_execute(struct json_out *o, const struct task *t)
{
    json_open(o, '{');
    json_member_text(o, "task_id", str_of(t->id.text));
    json_member_int(o, "turn", t->turn);
    json_member_int(o, "attempt", t->attempt);
    work_put_message(o, t);
    json_member_str(o, "skill_id", t->skill);
    json_member_str(o, "session_id", task_session(t));
    json_member_int(o, "deadline_ms", t->deadline_ms);
    work_put_metadata(o, t);
    json_close(o, '}');
}

struct str wire_execute_id(const struct task *t,
                           char out[WIRE_EXECUTE_ID_BYTES])
{
    if (t->turn > 1)
        snprintf(out, WIRE_EXECUTE_ID_BYTES, "%s:%lld.%lld", t->id.text,
                 (long long)t->turn, (long long)t->attempt);
    else
        snprintf(out, WIRE_EXECUTE_ID_BYTES, "%s:%lld", t->id.text,
                 (long long)t->attempt);
    return str_of(out);
}

/* Reading. */

static enum err work_bad_member(struct why *why, struct str key,
                                const char *what)
{
    return why_err(why, ERR_BAD_REQUEST, "%.*s must be %s", STR_ARG(key), what);
}

static enum err work_take_text(const struct json *v, size_t max,
                               struct str *out, struct why *why)
{
    if (v->type == JSON_NULL)
        return OK;
    if (v->type != JSON_STR)
        return work_bad_member(why, v->key, "a string");
    if (v->s.n > max)
        return why_err(why, ERR_LIMIT, "%.*s is longer than %zu bytes",
                       STR_ARG(v->key), max);
    *out = v->s;
    return OK;
}

static enum err work_take_count(const struct json *v, int64_t *out,
                                struct why *why)
{
    if (v->type == JSON_NULL)
        return OK;
    if (v->type != JSON_INT || v->i < 1)
        return work_bad_member(why, v->key, "a whole number from 1");
    *out = v->i;
    return OK;
}

/* Read a member that chunk and result share. Returns true if it was one. */
static bool work_take_common(const struct json *v, struct wire_word *out,
                             struct why *why, enum err *e)
{
    if (str_eq(v->key, STR("task_id"))) {
        *e = work_take_text(v, ID_BYTES - 1, &out->task_id, why);
    } else if (str_eq(v->key, STR("text"))) {
        out->has_text = v->type != JSON_NULL;
        *e = work_take_text(v, MSG_TEXT_MAX, &out->text, why);
    } else if (str_eq(v->key, STR("turn"))) {
        *e = work_take_count(v, &out->turn, why);
    } else if (str_eq(v->key, STR("attempt"))) {
        *e = work_take_count(v, &out->attempt, why);
    } else {
        return false;
    }
    return true;
}

static enum err work_need_object(const struct json *params, struct why *why)
{
    if (params && params->type == JSON_OBJ)
        return OK;
    return why_err(why, ERR_BAD_REQUEST,
                   "params must be an object: {\"task_id\":…,\"text\":…}");
}

enum err wire_chunk_read(const struct json *params, struct wire_word *out,
                         struct why *why)
{
    enum err e = work_need_object(params, why);

    *out = (struct wire_word){.turn = 0};
    if (e)
        return e;
    JSON_EACH(kid, params)
    {
        if (work_take_common(kid, out, why, &e) && e)
            return e;
    }
    if (!out->has_text)
        return why_err(why, ERR_BAD_REQUEST,
                       "text is missing: the next piece of the answer");
    return OK;
}

static enum err work_take_status(const struct json *v, struct task_result *r,
                                 struct why *why)
{
    enum task_status s =
        v->type == JSON_STR ? task_status_of(v->s) : TASK_ACCEPTED;

    if (v->type == JSON_NULL)
        return OK;
    if (s != TASK_COMPLETED && s != TASK_FAILED && s != TASK_CANCELLED)
        return work_bad_member(why, v->key,
                               "\"completed\", \"failed\" or \"cancelled\"");
    r->status = s;
    return OK;
}

struct str wire_error_code(struct str said)
{
    return said.n && said.n <= WIRE_ERROR_CODE_MAX && !str_has_any_control(said)
               ? said
               : STR("agent_failed");
}

/* An unusable code is replaced: the failure itself must not get lost. */
static enum err work_take_code(const struct json *v, struct task_result *r,
                               struct why *why)
{
    struct str said = STR("");
    enum err e = work_take_text(v, MSG_TEXT_MAX, &said, why);

    r->error_code = said.n ? wire_error_code(said) : said;
    return e;
}

static enum err work_take_words(const struct json *v, struct task_result *r,
                                struct why *why)
{
    struct str words = STR("");
    enum err e = work_take_text(v, MSG_TEXT_MAX, &words, why);

    r->error = str_head(words, WIRE_ERROR_MAX);
    return e;
}

static enum err work_take_error(const struct json *v, struct task_result *r,
                                struct why *why)
{
    enum err e = OK;

    if (v->type != JSON_OBJ)
        return v->type == JSON_STR || v->type == JSON_NULL
                   ? work_take_words(v, r, why)
                   : work_bad_member(
                         why, v->key,
                         "a string, or an object with code and message");
    JSON_EACH(kid, v)
    {
        /* JSON-RPC's numeric codes mean nothing to the requester. */
        if (str_eq(kid->key, STR("code")) && kid->type != JSON_INT)
            e = work_take_code(kid, r, why);
        else if (str_eq(kid->key, STR("message")))
            e = work_take_words(kid, r, why);
        if (e)
            return e;
    }
    return OK;
}

static enum err work_take_metadata(struct arena *a, const struct json *v,
                                   struct task_result *r, struct why *why)
{
    struct buf out;
    char *copy;
    bool is_over;

    if (v->type == JSON_NULL)
        return OK;
    if (v->type != JSON_OBJ)
        return work_bad_member(why, v->key, "an object");
    if (!v->kids.n)
        return OK;
    buf_init(&out, MSG_METADATA_MAX);
    struct json_out o = json_out(&out);
    json_put(&o, v);
    is_over = out.over;
    copy = is_over ? NULL : arena_strdup(a, buf_str(&out));
    if (copy)
        r->metadata = (struct str){copy, out.n};
    buf_fini(&out);
    if (is_over)
        return why_err(why, ERR_LIMIT, "metadata is longer than %d bytes",
                       MSG_METADATA_MAX);
    return copy ? OK : why_err(why, ERR_NOMEM, "out of memory");
}

static enum err work_take_member(struct arena *a, const struct json *v,
                                 struct wire_word *out, struct why *why)
{
    enum err e = OK;

    if (work_take_common(v, out, why, &e))
        return e;
    if (str_eq(v->key, STR("status")))
        return work_take_status(v, &out->result, why);
    if (str_eq(v->key, STR("error")))
        return work_take_error(v, &out->result, why);
    if (str_eq(v->key, STR("error_code")))
        return work_take_code(v, &out->result, why);
    if (str_eq(v->key, STR("metadata")))
        return work_take_metadata(a, v, &out->result, why);
    return OK;
}

/* Derive the missing members from the others. */
static enum err work_complete(struct wire_word *out, struct why *why)
{
    struct task_result *r = &out->result;
    bool has_error = r->error.n || r->error_code.n;

    if (!r->status)
        r->status = has_error ? TASK_FAILED : TASK_COMPLETED;
    if (r->status == TASK_COMPLETED && has_error)
        return why_err(why, ERR_BAD_REQUEST,
                       "a completed task has no error: give status "
                       "\"failed\", or leave it out");
    if (r->status == TASK_FAILED && !r->error_code.n)
        r->error_code = STR("agent_failed");
    if (r->status == TASK_FAILED && !r->error.n)
        r->error = STR("the agent reported a failure without a reason");
    if (r->status == TASK_CANCELLED && !r->error_code.n)
        r->error_code = STR("cancelled");
    r->text = out->text;
    return OK;
}

enum err wire_result_read(struct arena *a, const struct json *params,
                          struct wire_word *out, struct why *why)
{
    enum err e = work_need_object(params, why);

    *out = (struct wire_word){.turn = 0};
    if (e)
        return e;
    JSON_EACH(kid, params)
    {
        e = work_take_member(a, kid, out, why);
        if (e)
            return e;
    }
    return work_complete(out, why);
}
