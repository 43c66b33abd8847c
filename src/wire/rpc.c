/* Parse JSON-RPC 2.0 messages.
 *
 * The members of a message are collected in one pass; which of them are present
 * decides whether it is a request or an answer. Rejected: a scanner that builds
 * no tree, because the receiver would have to parse params a second time, and
 * for the usual short message that costs more than the tree. */
#include "wire/wire.h"

#include <stdio.h>

struct rpc_members {
    const struct json *version, *id, *method, *params, *result, *error;
};

static struct rpc_members rpc_collect(const struct json *v)
{
    struct rpc_members s = {NULL, NULL, NULL, NULL, NULL, NULL};

    JSON_EACH(kid, v)
    {
        if (str_eq(kid->key, STR("jsonrpc")))
            s.version = kid;
        else if (str_eq(kid->key, STR("id")))
            s.id = kid;
        else if (str_eq(kid->key, STR("method")))
            s.method = kid;
        else if (str_eq(kid->key, STR("params")))
            s.params = kid;
        else if (str_eq(kid->key, STR("result")))
            s.result = kid;
        else if (str_eq(kid->key, STR("error")))
            s.error = kid;
    }
    return s;
}

static enum err rpc_bad(struct wire_message *m, const char *what)
{
    m->kind = WIRE_BAD;
    return why_err(&m->why, ERR_BAD_REQUEST, "%s", what);
}

/* The value as it was sent. The document was checked before. */
static struct str rpc_raw_number(struct str text, size_t at)
{
    size_t to = at;

    while (to < text.n &&
           ((text.p[to] >= '0' && text.p[to] <= '9') || text.p[to] == '-'))
        to++;
    return str_sub(text, at, to);
}

static struct str rpc_raw_string(struct str text, size_t at)
{
    size_t to = at + 1;

    while (text.p[to] != '"')
        to += text.p[to] == '\\' ? 2 : 1;
    return str_sub(text, at, to + 1);
}

static enum err rpc_read_id(struct wire_message *m, struct str text,
                            const struct json *id)
{
    struct wire_id out;

    if (id->type == JSON_STR)
        out = (struct wire_id){rpc_raw_string(text, id->at), id->s};
    else if (id->type == JSON_INT)
        out.raw = out.text = rpc_raw_number(text, id->at);
    else
        return rpc_bad(m, "id must be a string or a whole number; leave it out "
                          "for a notification");
    if (out.text.n > WIRE_ID_MAX)
        return rpc_bad(m, "id is longer than 128 bytes");
    m->id = out;
    return OK;
}

static enum err rpc_read_call(struct wire_message *m,
                              const struct rpc_members *s)
{
    if (s->result || s->error)
        return rpc_bad(
            m, "a message has method, or result, or error: one of them");
    if (s->method->type != JSON_STR || !s->method->s.n)
        return rpc_bad(m, "method must be a string that is not empty");
    if (s->method->s.n > WIRE_METHOD_MAX)
        return rpc_bad(m, "method is longer than 64 bytes");
    if (s->params && s->params->type != JSON_OBJ && s->params->type != JSON_ARR)
        return rpc_bad(m,
                       "params must be an object; leave them out if there are "
                       "none");
    m->kind = s->id ? WIRE_REQUEST : WIRE_NOTIFICATION;
    m->method = s->method->s;
    m->params = s->params;
    return OK;
}

static enum err rpc_read_error(struct wire_message *m, const struct json *error)
{
    const struct json *code = json_get(error, STR("code"));
    const struct json *words = json_get(error, STR("message"));

    if (!code || code->type != JSON_INT || !words || words->type != JSON_STR)
        return rpc_bad(m, "error must be an object with a whole number as code "
                          "and a string as message");
    m->kind = WIRE_ERROR;
    m->code = code->i;
    m->error = words->s;
    m->data = json_get(error, STR("data"));
    return OK;
}

static enum err rpc_read_answer(struct wire_message *m,
                                const struct rpc_members *s)
{
    if (s->result && s->error)
        return rpc_bad(m, "an answer has result or error, not both");
    if (!s->id)
        return rpc_bad(m, "an answer needs the id of its request");
    if (s->error)
        return rpc_read_error(m, s->error);
    m->kind = WIRE_RESULT;
    m->result = s->result;
    return OK;
}

static enum err rpc_read_members(struct wire_message *m, struct str text,
                                 const struct rpc_members *s)
{
    bool is_unnamed = s->id && s->id->type == JSON_NULL && s->error;

    if (s->id && !is_unnamed && rpc_read_id(m, text, s->id) != OK)
        return ERR_BAD_REQUEST;
    if (!s->version || s->version->type != JSON_STR ||
        !str_eq(s->version->s, STR("2.0")))
        return rpc_bad(m, "jsonrpc must be \"2.0\"");
    if (s->method)
        return rpc_read_call(m, s);
    if (s->result || s->error)
        return rpc_read_answer(m, s);
    return rpc_bad(m, "a message needs a method, or, as an answer, result or "
                      "error");
}

/* An invalid message says itself what is wrong. */
static void rpc_read_message(struct wire_message *m, struct str text,
                             const struct json *v)
{
    struct rpc_members s;

    if (v->type != JSON_OBJ) {
        (void)rpc_bad(m,
                      "a message must be an object: {\"jsonrpc\":\"2.0\",…}");
        return;
    }
    s = rpc_collect(v);
    (void)rpc_read_members(m, text, &s);
}

/* json_parse has a limit of its own, which is deeper. */
static bool rpc_is_too_deep(const struct json *v, unsigned left)
{
    if (v->type != JSON_OBJ && v->type != JSON_ARR)
        return false;
    if (!left)
        return true;
    JSON_EACH(kid, v)
    {
        if (rpc_is_too_deep(kid, left - 1))
            return true;
    }
    return false;
}

static enum err rpc_parse_error(const struct json_error *je, struct why *why)
{
    if (je->err == ERR_LIMIT)
        return why_err(why, ERR_LIMIT, "the message has too many values");
    if (je->err == ERR_NOMEM)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (strcmp(je->what, "this number does not fit") == 0) /* but it is JSON */
        return why_err(why, ERR_BAD_REQUEST,
                       "the number at line %u, column %u does not fit: whole "
                       "numbers, ids too, have 64 bits with their sign; send "
                       "a string",
                       je->line, je->col);
    return why_err(why, ERR_SYNTAX,
                   "this is not valid JSON: %s, at line %u, column %u",
                   je->what, je->line, je->col);
}

static enum err rpc_check_size(const struct json *root, struct why *why)
{
    bool is_array = root->type == JSON_ARR;

    if (is_array && !root->kids.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "a batch needs at least one message");
    if (is_array && root->kids.n > WIRE_BATCH_MAX)
        return why_err(why, ERR_LIMIT, "a batch has at most %d messages",
                       WIRE_BATCH_MAX);
    if (rpc_is_too_deep(root, WIRE_DEPTH_MAX))
        return why_err(why, ERR_LIMIT,
                       "the message is nested deeper than %d levels",
                       WIRE_DEPTH_MAX);
    return OK;
}

enum err wire_read(struct arena *a, struct str text, struct wire_batch *out,
                   struct why *why)
{
    struct json_error je = {.what = ""};
    const struct json *root = json_parse(a, text, 0, &je);
    enum err e;
    size_t i = 0;

    *out = (struct wire_batch){NULL, 0, false};
    if (!root)
        return rpc_parse_error(&je, why);
    e = rpc_check_size(root, why);
    if (e)
        return e;
    out->is_array = root->type == JSON_ARR;
    out->n = out->is_array ? root->kids.n : 1;
    out->list = arena_array(a, out->n, sizeof(*out->list));
    if (!out->list) {
        *out = (struct wire_batch){NULL, 0, false};
        return why_err(why, ERR_NOMEM, "out of memory");
    }
    if (!out->is_array) {
        rpc_read_message(&out->list[0], text, root);
        return OK;
    }
    JSON_EACH(kid, root)
    rpc_read_message(&out->list[i++], text, kid);
    return OK;
}
