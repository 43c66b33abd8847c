/* Anthropic's messages.
 *
 * A stream is a list of named events, and the name is said again as "type":
 *
 *     message_start         the model, and what was read
 *     content_block_start   words or a call of a tool begin;
 *     content_block_delta   more of them, by the block's index
 *     message_delta         why it ended, and what was written in all
 *     message_stop          nothing more comes
 *     error                 at any time, instead of the rest
 *
 * All else is passed over: ping, content_block_stop, thinking, and what there
 * will be. A whole answer is the message with all its blocks.
 *
 * The instructions stand beside the messages, how long the answer may be must
 * be said, a call's input is an object, and what came of all calls of a round
 * is one message of the user's. Messages without a word are refused there, so
 * they are left out. A schema is asked for as a tool that must be called: every
 * model of theirs can do that. */
#include "chat/internal.h"

#include "base/words.h"
#include "wire/wire.h"

enum { TYPE_MAX = 32 };

/* Writing. */

/* Of white space, of every kind: they refuse such a message. */
static bool is_blank(struct str text)
{
    struct words w;

    words_begin(&w, text);
    return !words_next(&w);
}

/* The first must be the user's: so the answers to one that is left out are too,
 * and those whose message is not in the history any more. */
static void put_messages(struct json_out *o, const struct chat_request *rq)
{
    bool is_left_out = true;

    json_key(o, STR("messages"));
    json_open(o, '[');
    for (size_t i = 0; i < rq->n_history; i++) {
        const struct task_said *said = &rq->history[i];
        bool says_nothing = is_blank(said->text);

        if (!said->is_agents)
            is_left_out = says_nothing;
        if (!is_left_out && !says_nothing)
            chat_put_message(o,
                             said->is_agents ? STR("assistant") : STR("user"),
                             said->text);
    }
    chat_put_message(o, STR("user"),
                     is_blank(rq->message) ? STR("(no text)") : rq->message);
    if (rq->rounds.n)
        json_put_raw(o, rq->rounds);
    json_close(o, ']');
}

static void put_object_tool(struct json_out *o, struct str schema)
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

/* What was called must be among what is offered: so also where nothing more is
 * to be called. */
static void put_tools(struct json_out *o, const struct chat_request *rq)
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
    put_messages(o, rq);
    put_tools(o, rq);
    if (rq->schema.n)
        put_object_tool(o, rq->schema);
    if (rq->streams)
        json_member_bool(o, "stream", true);
    if (rq->temperature >= 0)
        json_member_real(o, "temperature", rq->temperature);
    json_close(o, '}');
}

/* "role":…,"content":[ ; to be closed. */
static void open_message(struct json_out *o, struct str role)
{
    json_open(o, '{');
    json_member_text(o, "role", role);
    json_key(o, STR("content"));
    json_open(o, '[');
}

static void open_block(struct json_out *o, struct str type)
{
    json_open(o, '{');
    json_member_text(o, "type", type);
}

static void close_message(struct json_out *o)
{
    json_close(o, ']');
    json_close(o, '}');
}

static void put_text(struct json_out *o, struct str text)
{
    if (!str_trim_space(text).n)
        return;
    open_block(o, STR("text"));
    json_member_text(o, "text", text);
    json_close(o, '}');
}

static void put_call(struct json_out *o, const struct chat_call *k)
{
    struct str input = chat_arguments(k);

    open_block(o, STR("tool_use"));
    json_member_text(o, "id", str_of(k->id));
    json_member_text(o, "name", chat_call_name(k));
    json_member_raw(o, "input", input.n ? input : STR("{}"));
    json_close(o, '}');
}

static void put_result(struct json_out *o, const struct chat_call *k,
                       struct str text)
{
    open_block(o, STR("tool_result"));
    json_member_text(o, "tool_use_id", str_of(k->id));
    json_member_text(o, "content", text);
    json_close(o, '}');
}

static void anthropic_write_round(struct json_out *o,
                                  const struct chat_calls *c, struct str text,
                                  const struct str *answers)
{
    open_message(o, STR("assistant"));
    put_text(o, text);
    for (size_t i = 0; i < c->n; i++)
        put_call(o, &c->list[i]);
    close_message(o);
    open_message(o, STR("user"));
    for (size_t i = 0; i < c->n; i++)
        put_result(o, &c->list[i], answers[i]);
    close_message(o);
}

/* Reading. */

static bool is_type(const struct json *v, const char *type)
{
    return str_eq(chat_text(v, STR("type"), TYPE_MAX), str_of(type));
}

/* Their words for why it ended, as everybody else's. */
static struct str finish_of(const struct json *v)
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

/* Of what was read, what came from a cache is counted apart. */
static void read_usage(const struct json *v, struct chat_word *out)
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

static void read_head(const struct json *message, struct chat_word *out)
{
    out->has_choice = true;
    out->model = chat_text(message, STR("model"), CHAT_NAME_MAX);
    out->finish = finish_of(message);
    read_usage(message, out);
}

static struct chat_piece piece_of(const struct json *block, int64_t index)
{
    const struct json *input = json_get(block, STR("input"));

    return (struct chat_piece){
        .index = index,
        .id = json_str_or(json_get(block, STR("id")), STR("")),
        .name = json_str_or(json_get(block, STR("name")), STR("")),
        .object = input && input->type == JSON_OBJ ? input : NULL,
    };
}

static enum err read_message(struct arena *a, const struct json *root,
                             struct chat_word *out)
{
    const struct json *content = json_get(root, STR("content"));
    struct chat_piece *pieces;

    if (!content || content->type != JSON_ARR)
        return OK;
    read_head(root, out);
    out->is_whole = true;
    pieces = arena_array(a, content->kids.n + 1, sizeof(*pieces));
    if (!pieces)
        return ERR_NOMEM;
    out->pieces = pieces;
    JSON_EACH(block, content)
    if (is_type(block, "tool_use"))
        pieces[out->n_pieces++] = piece_of(block, -1);
    return chat_join_parts(a, content, &out->text);
}

static enum err read_start(struct arena *a, const struct json *root,
                           struct chat_word *out)
{
    (void)a;
    read_head(json_get(root, STR("message")), out);
    return OK;
}

static enum err one_piece(struct arena *a, struct chat_piece piece,
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

static int64_t index_of(const struct json *root)
{
    return json_int_or(json_get(root, STR("index")), -1);
}

/* A call that begins has an empty input: what is in it comes in pieces. */
static enum err read_block(struct arena *a, const struct json *root,
                           struct chat_word *out)
{
    const struct json *block = json_get(root, STR("content_block"));
    struct chat_piece piece = piece_of(block, index_of(root));

    out->has_choice = true;
    if (piece.object && !piece.object->kids.n)
        piece.object = NULL;
    if (is_type(block, "tool_use"))
        return one_piece(a, piece, out);
    if (is_type(block, "text"))
        out->text = json_str_or(json_get(block, STR("text")), STR(""));
    return OK;
}

/* Whose call it is more of the index says; of a block that is no call of ours
 * it is nobody's. */
static enum err read_delta(struct arena *a, const struct json *root,
                           struct chat_word *out)
{
    const struct json *delta = json_get(root, STR("delta"));
    struct chat_piece more = {.index = index_of(root), .is_more = true};

    out->has_choice = true;
    if (is_type(delta, "text_delta"))
        out->text = json_str_or(json_get(delta, STR("text")), STR(""));
    if (!is_type(delta, "input_json_delta"))
        return OK;
    more.arguments = json_str_or(json_get(delta, STR("partial_json")), STR(""));
    return one_piece(a, more, out);
}

static enum err read_last(struct arena *a, const struct json *root,
                          struct chat_word *out)
{
    (void)a;
    out->has_choice = true;
    out->finish = finish_of(json_get(root, STR("delta")));
    read_usage(root, out);
    return OK;
}

static enum err read_stop(struct arena *a, const struct json *root,
                          struct chat_word *out)
{
    (void)a;
    (void)root;
    out->is_done = true;
    return OK;
}

static enum err read_error(struct arena *a, const struct json *root,
                           struct chat_word *out)
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

    (void)a;
    out->is_error = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_type(error, rows[i].type))
            out->error_code = rows[i].status;
    return OK;
}

static enum err anthropic_read(struct arena *a, const struct json *root,
                               struct chat_word *out)
{
    static const struct {
        const char *type;
        enum err (*read)(struct arena *a, const struct json *root,
                         struct chat_word *out);
    } rows[] = {
        {"message", read_message},
        {"message_start", read_start},
        {"content_block_start", read_block},
        {"content_block_delta", read_delta},
        {"message_delta", read_last},
        {"message_stop", read_stop},
        {"error", read_error},
    };
    const struct json *error = json_get(root, STR("error"));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_type(root, rows[i].type))
            return rows[i].read(a, root, out);
    /* What stands between us and them may know no types. */
    return error && error->type != JSON_NULL ? read_error(a, root, out) : OK;
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
