/* What is written to a model's endpoint and read from it.
 *
 * Reading takes what there is and passes over the rest: every server adds
 * members of its own. A piece of a stream has "delta" where a whole answer has
 * "message"; "content" is text, or a list of parts of which some are text;
 * what a model refuses to do it says in "refusal". Only the first choice
 * counts, since no more are asked for. Calls of tools are for calls.c. */
#include "deliver/chat.h"

#include "base/json.h"
#include "wire/wire.h"

const char *const chat_used_names[CHAT_USED] = {
    "prompt_tokens", "completion_tokens", "total_tokens"};

static void put_message(struct json_out *o, struct str role, struct str text)
{
    json_open(o, '{');
    json_member_text(o, "role", role);
    json_member_text(o, "content", text);
    json_close(o, '}');
}

static void put_messages(struct json_out *o, const struct chat_request *rq)
{
    json_key(o, STR("messages"));
    json_open(o, '[');
    if (rq->system.n)
        put_message(o, STR("system"), rq->system);
    for (size_t i = 0; i < rq->n_history; i++)
        put_message(o,
                    rq->history[i].is_agents ? STR("assistant") : STR("user"),
                    rq->history[i].text);
    put_message(o, STR("user"), rq->message);
    if (rq->rounds.n)
        json_put_raw(o, rq->rounds);
    json_close(o, ']');
}

/* What was called must be among what is offered: so also where nothing more is
 * to be called. */
static void put_tools(struct json_out *o, const struct chat_request *rq)
{
    if (!rq->has_tools)
        return;
    json_key(o, STR("tools"));
    wire_tools(o, WIRE_OPENAI);
    if (!rq->is_last)
        return;
    json_member_text(o, "tool_choice", STR("none"));
}

void chat_write(struct buf *out, const struct chat_request *rq)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "model", rq->model);
    put_messages(&o, rq);
    put_tools(&o, rq);
    json_member_bool(&o, "stream", true);
    if (rq->wants_usage)
        json_member_raw(&o, "stream_options", STR("{\"include_usage\":true}"));
    if (rq->max_tokens) {
        json_key(&o, rq->has_long_max_tokens ? STR("max_completion_tokens")
                                             : STR("max_tokens"));
        json_put_int(&o, rq->max_tokens);
    }
    if (rq->temperature >= 0)
        json_member_real(&o, "temperature", rq->temperature);
    json_close(&o, '}');
}

/* Reading. */

static struct str text_of(const struct json *v, struct str key, size_t most)
{
    struct str s = json_str_or(json_get(v, key), STR(""));

    return str_head(s, most);
}

/* The texts of a list of parts, one behind the other. */
static enum err join_parts(struct arena *a, const struct json *list,
                           struct str *out)
{
    size_t n = 0;
    char *p;

    JSON_EACH(part, list)
    n += json_str_or(json_get(part, STR("text")), STR("")).n;
    if (!n)
        return OK;
    p = arena_alloc(a, n);
    if (!p)
        return ERR_NOMEM;
    *out = (struct str){p, n};
    JSON_EACH(part, list)
    {
        struct str s = json_str_or(json_get(part, STR("text")), STR(""));

        if (s.n)
            memcpy(p, s.p, s.n);
        p += s.n;
    }
    return OK;
}

static enum err read_said(struct arena *a, const struct json *said,
                          struct str *out)
{
    const struct json *content = json_get(said, STR("content"));

    if (content && content->type == JSON_ARR)
        return join_parts(a, content, out);
    *out = json_str_or(content, STR(""));
    if (!out->n)
        *out = json_str_or(json_get(said, STR("refusal")), STR(""));
    return OK;
}

static enum err read_choice(struct arena *a, const struct json *root,
                            struct chat_word *out)
{
    const struct json *choice = json_at(json_get(root, STR("choices")), 0);
    const struct json *said = json_get(choice, STR("delta")), *calls;

    if (!choice || choice->type != JSON_OBJ ||
        json_int_or(json_get(choice, STR("index")), 0) != 0)
        return OK;
    out->is_whole = !said;
    if (!said)
        said = json_get(choice, STR("message"));
    calls = json_get(said, STR("tool_calls"));
    if (calls && calls->type == JSON_ARR && calls->kids.n)
        out->calls = calls;
    out->has_choice = true;
    out->finish = text_of(choice, STR("finish_reason"), CHAT_FINISH_MAX);
    return read_said(a, said, &out->text);
}

static enum err read_usage(struct arena *a, const struct json *root,
                           struct chat_word *out)
{
    const struct json *v = json_get(root, STR("usage"));
    struct json_out o;
    struct buf text;
    char *copy;
    bool is_over;

    if (!v || v->type != JSON_OBJ)
        return OK;
    for (size_t i = 0; i < CHAT_USED; i++)
        out->used[i] = json_int_or(json_get(v, str_of(chat_used_names[i])), -1);
    buf_init(&text, CHAT_USAGE_MAX);
    o = json_out(&text);
    json_put(&o, v);
    is_over = text.over;
    copy = is_over ? NULL : arena_strdup(a, buf_str(&text));
    if (copy)
        out->usage = (struct str){copy, text.n};
    buf_fini(&text);
    return copy || is_over ? OK : ERR_NOMEM;
}

/* An object or text under "error"; or the whole is one. */
static void read_error(const struct json *root, struct chat_word *out)
{
    const struct json *e = json_get(root, STR("error"));
    struct str object = json_str_or(json_get(root, STR("object")), STR(""));
    const struct json *code;

    out->is_error = (e && e->type != JSON_NULL) || str_eq(object, STR("error"));
    if (!out->is_error)
        return;
    code = json_get(e ? e : root, STR("code"));
    if (str_eq(json_str_or(code, STR("")), STR("rate_limit_exceeded")))
        out->error_code = 429;
    else
        out->error_code =
            json_int_or(code, json_int_or(json_get(e, STR("status")), 0));
}

enum err chat_read(struct arena *a, struct str text, struct chat_word *out,
                   struct why *why)
{
    struct json_error err = {0};
    const struct json *root;
    enum err e;

    *out = (struct chat_word){.is_done = str_eq(str_trim(text), STR("[DONE]")),
                              .used = {-1, -1, -1}};
    if (out->is_done)
        return OK;
    root = json_parse(a, text, 0, &err);
    if (!root)
        return why_err(why, ERR_BAD_REQUEST,
                       "it is not valid JSON: %s in line %u, column %u",
                       err.what, err.line, err.col);
    if (root->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "it is no JSON object");
    read_error(root, out);
    out->model = text_of(root, STR("model"), CHAT_NAME_MAX);
    e = read_choice(a, root, out);
    if (!e)
        e = read_usage(a, root, out);
    return e ? why_err(why, e, "%s", err_row(e)->wording) : OK;
}
