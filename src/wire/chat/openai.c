/* OpenAI's chat completions.
 *
 * A piece of a stream has "delta" where a whole answer has "message". "content"
 * is text or a list of parts, some of them text; a refusal is in "refusal".
 * Only the first choice is read, since no more are requested. OpenAI sends a
 * tool call's index with every piece, and id and name with the first;
 * chat_calls.c understands the servers that do otherwise. */
#include "wire/chat/internal.h"

#include "wire/wire.h"

/* Writing. */

static void openai_put_messages(struct json_out *o,
                                const struct chat_request *rq)
{
    json_key(o, STR("messages"));
    json_open(o, '[');
    if (rq->system.n)
        chat_put_message(o, STR("system"), rq->system);
    for (size_t i = 0; i < rq->n_history; i++)
        chat_put_message(
            o, rq->history[i].is_agents ? STR("assistant") : STR("user"),
            rq->history[i].text);
    chat_put_message(o, STR("user"), rq->message);
    if (rq->rounds.n)
        json_put_raw(o, rq->rounds);
    json_close(o, ']');
}

/* Tools that were called must be listed, even if no more calls are allowed. */
static void openai_put_tools(struct json_out *o, const struct chat_request *rq)
{
    if (!rq->has_tools)
        return;
    json_key(o, STR("tools"));
    wire_tools(o, WIRE_OPENAI);
    if (rq->is_last)
        json_member_text(o, "tool_choice", STR("none"));
}

static void openai_put_format(struct json_out *o, struct str schema)
{
    json_key(o, STR("response_format"));
    json_open(o, '{');
    json_member_text(o, "type", STR("json_schema"));
    json_key(o, STR("json_schema"));
    json_open(o, '{');
    json_member_text(o, "name", STR(CHAT_OBJECT_TOOL));
    json_member_bool(o, "strict", true);
    json_member_raw(o, "schema", schema);
    json_close(o, '}');
    json_close(o, '}');
}

static void openai_write(struct json_out *o, const struct chat_request *rq)
{
    json_open(o, '{');
    json_member_text(o, "model", rq->model);
    openai_put_messages(o, rq);
    openai_put_tools(o, rq);
    if (rq->streams)
        json_member_bool(o, "stream", true);
    if (rq->wants_usage)
        json_member_raw(o, "stream_options", STR("{\"include_usage\":true}"));
    if (rq->max_tokens) {
        json_key(o, rq->has_long_max_tokens ? STR("max_completion_tokens")
                                            : STR("max_tokens"));
        json_put_int(o, rq->max_tokens);
    }
    if (rq->temperature >= 0)
        json_member_real(o, "temperature", rq->temperature);
    if (rq->schema.n)
        openai_put_format(o, rq->schema);
    json_close(o, '}');
}

static void openai_put_call(struct json_out *o, const struct chat_call *k)
{
    struct str arguments = chat_arguments(k);

    json_open(o, '{');
    json_member_text(o, "id", str_of(k->id));
    json_member_text(o, "type", STR("function"));
    json_key(o, STR("function"));
    json_open(o, '{');
    json_member_text(o, "name", chat_call_name(k));
    json_member_text(o, "arguments", arguments.n ? arguments : STR("{}"));
    json_close(o, '}');
    json_close(o, '}');
}

static void openai_write_round(struct json_out *o, const struct chat_calls *c,
                               struct str text, const struct str *answers)
{
    json_open(o, '{');
    json_member_text(o, "role", STR("assistant"));
    json_member_str(o, "content", text);
    json_key(o, STR("tool_calls"));
    json_open(o, '[');
    for (size_t i = 0; i < c->n; i++)
        openai_put_call(o, &c->list[i]);
    json_close(o, ']');
    json_close(o, '}');
    for (size_t i = 0; i < c->n; i++) {
        json_open(o, '{');
        json_member_text(o, "role", STR("tool"));
        json_member_text(o, "tool_call_id", str_of(c->list[i].id));
        json_member_text(o, "content", answers[i]);
        json_close(o, '}');
    }
}

/* Reading. */

static enum err openai_read_text(struct arena *a, const struct json *said,
                                 struct str *out)
{
    const struct json *content = json_get(said, STR("content"));

    if (content && content->type == JSON_ARR)
        return chat_join_parts(a, content, out);
    *out = json_str_or(content, STR(""));
    if (!out->n)
        *out = json_str_or(json_get(said, STR("refusal")), STR(""));
    return OK;
}

static enum err openai_read_calls(struct arena *a, const struct json *list,
                                  struct chat_word *out)
{
    struct chat_piece *pieces;

    if (!list || list->type != JSON_ARR || !list->kids.n)
        return OK;
    pieces = arena_array(a, list->kids.n, sizeof(*pieces));
    if (!pieces)
        return ERR_NOMEM;
    out->pieces = pieces;
    JSON_EACH(call, list)
    {
        const struct json *f = json_get(call, STR("function"));
        const struct json *arguments = json_get(f, STR("arguments"));

        if (call->type != JSON_OBJ)
            continue;
        pieces[out->n_pieces++] = (struct chat_piece){
            .index = json_int_or(json_get(call, STR("index")), -1),
            .id = json_str_or(json_get(call, STR("id")), STR("")),
            .name = json_str_or(json_get(f, STR("name")), STR("")),
            .arguments = json_str_or(arguments, STR("")),
            .object =
                arguments && arguments->type == JSON_OBJ ? arguments : NULL,
        };
    }
    return OK;
}

static enum err openai_read_choice(struct arena *a, const struct json *root,
                                   struct chat_word *out)
{
    const struct json *choice = json_at(json_get(root, STR("choices")), 0);
    const struct json *said = json_get(choice, STR("delta"));
    enum err e;

    if (!choice || choice->type != JSON_OBJ ||
        json_int_or(json_get(choice, STR("index")), 0) != 0)
        return OK;
    out->is_whole = !said;
    if (!said)
        said = json_get(choice, STR("message"));
    out->has_choice = true;
    out->finish = chat_text(choice, STR("finish_reason"), CHAT_FINISH_MAX);
    e = openai_read_calls(a, json_get(said, STR("tool_calls")), out);
    return e ? e : openai_read_text(a, said, &out->text);
}

static enum err openai_read_usage(struct arena *a, const struct json *root,
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
        out->used[i] = chat_count(json_get(v, str_of(chat_used_names[i])));
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

/* An object or text under "error"; or the whole answer is an error object. */
static void openai_read_error(const struct json *root, struct chat_word *out)
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

static enum err openai_read(struct arena *a, const struct json *root,
                            struct chat_word *out)
{
    enum err e;

    openai_read_error(root, out);
    out->model = chat_text(root, STR("model"), CHAT_NAME_MAX);
    e = openai_read_choice(a, root, out);
    return e ? e : openai_read_usage(a, root, out);
}

const struct chat_dialect chat_openai = {
    .path = {"/chat/completions", 17},
    .key_header = {"Authorization", 13},
    .key_prefix = {"Bearer ", 7},
    .answer_member = "choices",
    .write = openai_write,
    .read = openai_read,
    .write_round = openai_write_round,
};
