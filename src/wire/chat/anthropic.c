/* Anthropic's messages.
 *
 * A stream is a list of named events; "type" repeats the name:
 *
 *     message_start         the model, and the tokens that were read
 *     content_block_start   text or a tool call begins
 *     content_block_delta   the next piece of it, by the block's index
 *     message_delta         why the answer ended, and the tokens written
 *     message_stop          the end
 *     error                 at any time, instead of the rest
 *
 * All other events are ignored: ping, content_block_stop, thinking, and future
 * ones. A whole answer is the message with all its blocks.
 *
 * The system prompt is outside the messages, max_tokens is required, a call's
 * input is an object, and the results of all calls of a round are one user
 * message. The API rejects blank messages, so they are left out. A schema is
 * sent as a tool that must be called, which every model of theirs can do. */
#include "wire/chat/internal.h"

#include "base/words.h"
#include "wire/wire.h"

enum { TYPE_MAX = 32 };

/* Writing. */

/* Only white space, in the sense of Unicode: the API rejects such a message. */
static bool anthropic_is_blank(struct str text)
{
    struct words w;

    words_begin(&w, text);
    return !words_next(&w);
}

/* The first message must be the user's. The answers to a message that is left
 * out, or that the history no longer has, are therefore left out too. */
static void anthropic_put_messages(struct json_out *o,
                                   const struct chat_request *rq)
{
    bool is_left_out = true;

    json_key(o, STR("messages"));
    json_open(o, '[');
    for (size_t i = 0; i < rq->n_history; i++) {
        const struct task_said *said = &rq->history[i];
        bool says_nothing = anthropic_is_blank(said->text);

        if (!said->is_agents)
            is_left_out = says_nothing;
        if (!is_left_out && !says_nothing)
            chat_put_message(o,
                             said->is_agents ? STR("assistant") : STR("user"),
                             said->text);
    }
    chat_put_message(o, STR("user"),
                     anthropic_is_blank(rq->message) ? STR("(no text)")
                                                     : rq->message);
    if (rq->rounds.n)
        json_put_raw(o, rq->rounds);
    json_close(o, ']');
}

static void anthropic_put_object_tool(struct json_out *o, struct str schema)
{
    json_key(o, STR("tools"));
    json_open(o, '[');
    json_open(o, '{');
    json_member_text(o, "name", STR(CHAT_OBJECT_TOOL));
    json_member_text(o, "description", STR("Give your answer."));
    json_member_raw(o, "input_schema", schema);
    json_close(o, '}');
    json_close(o, ']');
    json_member_raw(
        o, "tool_choice",
        STR("{\"type\":\"tool\",\"name\":\"" CHAT_OBJECT_TOOL "\"}"));
}

/* Tools that were called must be listed, even if no more calls are allowed. */
static void anthropic_put_tools(struct json_out *o,
                                const struct chat_request *rq)
{
    if (!rq->has_tools)
        return;
    json_key(o, STR("tools"));
    wire_tools(o, WIRE_ANTHROPIC);
    if (rq->is_last)
        json_member_raw(o, "tool_choice", STR("{\"type\":\"none\"}"));
}

static void anthropic_write(struct json_out *o, const struct chat_request *rq)
{
    json_open(o, '{');
    json_member_text(o, "model", rq->model);
    json_member_int(o, "max_tokens",
                    rq->max_tokens ? rq->max_tokens : CHAT_MAX_TOKENS);
    if (rq->system.n)
        json_member_text(o, "system", rq->system);
    anthropic_put_messages(o, rq);
    anthropic_put_tools(o, rq);
    if (rq->schema.n)
        anthropic_put_object_tool(o, rq->schema);
    if (rq->streams)
        json_member_bool(o, "stream", true);
    if (rq->temperature >= 0)
        json_member_real(o, "temperature", rq->temperature);
    json_close(o, '}');
}

/* Open {"role":…,"content":[ for anthropic_close_message. */
static void anthropic_open_message(struct json_out *o, struct str role)
{
    json_open(o, '{');
    json_member_text(o, "role", role);
    json_key(o, STR("content"));
    json_open(o, '[');
}

static void anthropic_open_block(struct json_out *o, struct str type)
{
    json_open(o, '{');
    json_member_text(o, "type", type);
}

static void anthropic_close_message(struct json_out *o)
{
    json_close(o, ']');
    json_close(o, '}');
}

static void anthropic_put_call(struct json_out *o, const struct chat_call *k)
{
    struct str input = chat_arguments(k);

    anthropic_open_block(o, STR("tool_use"));
    json_member_text(o, "id", str_of(k->id));
    json_member_text(o, "name", chat_call_name(k));
    json_member_raw(o, "input", input.n ? input : STR("{}"));
    json_close(o, '}');
}

static void anthropic_write_round(struct json_out *o,
                                  const struct chat_calls *c, struct str text,
                                  const struct str *answers)
{
    anthropic_open_message(o, STR("assistant"));
    if (str_trim_space(text).n) {
        anthropic_open_block(o, STR("text"));
        json_member_text(o, "text", text);
        json_close(o, '}');
    }
    for (size_t i = 0; i < c->n; i++)
        anthropic_put_call(o, &c->list[i]);
    anthropic_close_message(o);
    anthropic_open_message(o, STR("user"));
    for (size_t i = 0; i < c->n; i++) {
        anthropic_open_block(o, STR("tool_result"));
        json_member_text(o, "tool_use_id", str_of(c->list[i].id));
        json_member_text(o, "content", answers[i]);
        json_close(o, '}');
    }
    anthropic_close_message(o);
}

/* Reading. */

static bool anthropic_is_type(const struct json *v, const char *type)
{
    return str_eq(chat_text(v, STR("type"), TYPE_MAX), str_of(type));
}

/* Why it ended, in OpenAI's words. */
static struct str anthropic_finish(const struct json *v)
{
    static const struct {
        const char *theirs, *usual;
    } rows[] = {
        {"end_turn", "stop"},          {"stop_sequence", "stop"},
        {"max_tokens", "length"},      {"tool_use", "tool_calls"},
        {"refusal", "content_filter"},
    };
    struct str s = chat_text(v, STR("stop_reason"), CHAT_FINISH_MAX);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (str_eq(s, str_of(rows[i].theirs)))
            return str_of(rows[i].usual);
    return s;
}

/* Tokens that are read from a cache are counted separately there. */
static void anthropic_read_usage(const struct json *v, struct chat_word *out)
{
    static const char *const apart[] = {"cache_creation_input_tokens",
                                        "cache_read_input_tokens"};
    const struct json *usage = json_get(v, STR("usage"));
    int64_t n = chat_count(json_get(usage, STR("input_tokens")));

    for (size_t i = 0; n >= 0 && i < 2; i++) {
        int64_t more = chat_count(json_get(usage, str_of(apart[i])));

        n += more > 0 ? more : 0;
    }
    out->used[CHAT_PROMPT] = n < CHAT_USED_MAX ? n : CHAT_USED_MAX;
    out->used[CHAT_COMPLETION] =
        chat_count(json_get(usage, STR("output_tokens")));
}

static void anthropic_read_head(const struct json *message,
                                struct chat_word *out)
{
    out->has_choice = true;
    out->model = chat_text(message, STR("model"), CHAT_NAME_MAX);
    out->finish = anthropic_finish(message);
    anthropic_read_usage(message, out);
}

static struct chat_piece anthropic_piece(const struct json *block,
                                         int64_t index)
{
    const struct json *input = json_get(block, STR("input"));

    return (struct chat_piece){
        .index = index,
        .id = json_str_or(json_get(block, STR("id")), STR("")),
        .name = json_str_or(json_get(block, STR("name")), STR("")),
        .object = input && input->type == JSON_OBJ ? input : NULL,
    };
}

static enum err anthropic_read_message(struct arena *a, const struct json *root,
                                       struct chat_word *out)
{
    const struct json *content = json_get(root, STR("content"));
    struct chat_piece *pieces;

    if (!content || content->type != JSON_ARR)
        return OK;
    anthropic_read_head(root, out);
    out->is_whole = true;
    pieces = arena_array(a, content->kids.n + 1, sizeof(*pieces));
    if (!pieces)
        return ERR_NOMEM;
    out->pieces = pieces;
    JSON_EACH(block, content)
    if (anthropic_is_type(block, "tool_use"))
        pieces[out->n_pieces++] = anthropic_piece(block, -1);
    return chat_join_parts(a, content, &out->text);
}

static enum err anthropic_keep_piece(struct arena *a, struct chat_piece piece,
                                     struct chat_word *out)
{
    struct chat_piece *copy = arena_array(a, 1, sizeof(*copy));

    if (!copy)
        return ERR_NOMEM;
    *copy = piece;
    out->pieces = copy;
    out->n_pieces = 1;
    return OK;
}

static int64_t anthropic_index(const struct json *root)
{
    return json_int_or(json_get(root, STR("index")), -1);
}

/* A call begins with an empty input; its content follows in pieces. */
static enum err anthropic_read_block(struct arena *a, const struct json *root,
                                     struct chat_word *out)
{
    const struct json *block = json_get(root, STR("content_block"));
    struct chat_piece piece = anthropic_piece(block, anthropic_index(root));

    out->has_choice = true;
    if (piece.object && !piece.object->kids.n)
        piece.object = NULL;
    if (anthropic_is_type(block, "tool_use"))
        return anthropic_keep_piece(a, piece, out);
    if (anthropic_is_type(block, "text"))
        out->text = json_str_or(json_get(block, STR("text")), STR(""));
    return OK;
}

/* The index says which call the piece continues. Blocks of other types are
 * not calls, and pieces of theirs match no call. */
static enum err anthropic_read_delta(struct arena *a, const struct json *root,
                                     struct chat_word *out)
{
    const struct json *delta = json_get(root, STR("delta"));
    struct chat_piece more = {.index = anthropic_index(root), .is_more = true};

    out->has_choice = true;
    if (anthropic_is_type(delta, "text_delta"))
        out->text = json_str_or(json_get(delta, STR("text")), STR(""));
    if (!anthropic_is_type(delta, "input_json_delta"))
        return OK;
    more.arguments = json_str_or(json_get(delta, STR("partial_json")), STR(""));
    return anthropic_keep_piece(a, more, out);
}

static void anthropic_read_error(const struct json *root, struct chat_word *out)
{
    static const struct {
        const char *type;
        int64_t status;
    } rows[] = {
        {"invalid_request_error", 400}, {"authentication_error", 401},
        {"billing_error", 402},         {"permission_error", 403},
        {"not_found_error", 404},       {"request_too_large", 413},
        {"rate_limit_error", 429},      {"api_error", 500},
        {"timeout_error", 504},         {"overloaded_error", 529},
    };
    const struct json *error = json_get(root, STR("error"));

    out->is_error = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (anthropic_is_type(error, rows[i].type))
            out->error_code = rows[i].status;
}

static enum err anthropic_read(struct arena *a, const struct json *root,
                               struct chat_word *out)
{
    const struct json *error = json_get(root, STR("error"));

    if (anthropic_is_type(root, "message"))
        return anthropic_read_message(a, root, out);
    if (anthropic_is_type(root, "content_block_start"))
        return anthropic_read_block(a, root, out);
    if (anthropic_is_type(root, "content_block_delta"))
        return anthropic_read_delta(a, root, out);
    if (anthropic_is_type(root, "message_start")) {
        anthropic_read_head(json_get(root, STR("message")), out);
    } else if (anthropic_is_type(root, "message_delta")) {
        out->has_choice = true;
        out->finish = anthropic_finish(json_get(root, STR("delta")));
        anthropic_read_usage(root, out);
    } else if (anthropic_is_type(root, "message_stop")) {
        out->is_done = true;
    } else if (anthropic_is_type(root, "error") ||
               (error && error->type != JSON_NULL)) { /* a proxy has no type */
        anthropic_read_error(root, out);
    }
    return OK;
}

const struct chat_dialect chat_anthropic = {
    .path = {"/messages", 9},
    .key_header = {"x-api-key", 9},
    .version_header = {"anthropic-version", 17},
    .version = {"2023-06-01", 10},
    .answer_member = "content",
    .write = anthropic_write,
    .read = anthropic_read,
    .write_round = anthropic_write_round,
};
