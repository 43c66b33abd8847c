/* Write JSON-RPC 2.0 messages. Each one is a single line: the parts that are
 * copied as they came (ids, metadata) contain no line ends that matter. */
#include "wire/wire.h"

static void rpc_open_answer(struct buf *out, const struct wire_id *id)
{
    buf_add_str(out, STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    buf_add_str(out, id && id->raw.n ? id->raw : STR("null"));
}

struct json_out wire_result_open(struct buf *out, const struct wire_id *id)
{
    rpc_open_answer(out, id);
    buf_add_str(out, STR(",\"result\":"));
    return json_out(out);
}

void wire_close(struct json_out *o)
{
    buf_add_char(o->out, '}');
}

struct json_out wire_call_open(struct buf *out, struct str id,
                               struct str method)
{
    struct json_out o = json_out(out);

    buf_add_str(out, STR("{\"jsonrpc\":\"2.0\","));
    if (id.n) {
        buf_add_str(out, STR("\"id\":"));
        json_put_str(&o, id);
        buf_add_char(out, ',');
    }
    buf_add_str(out, STR("\"method\":"));
    o = json_out(out);
    json_put_str(&o, method);
    buf_add_str(out, STR(",\"params\":"));
    return json_out(out);
}

static void rpc_open_error(struct buf *out, const struct wire_id *id, int code,
                           struct str words)
{
    struct json_out o = json_out(out);

    rpc_open_answer(out, id);
    buf_add_str(out, STR(",\"error\":{\"code\":"));
    buf_add_i64(out, code);
    buf_add_str(out, STR(",\"message\":"));
    json_put_str(&o, words);
}

/* The members of an object, without its braces. */
static struct str rpc_inside_braces(struct str object)
{
    struct str s = object;

    while (s.n && s.p[0] != '{')
        s = str_sub(s, 1, s.n);
    while (s.n && s.p[s.n - 1] != '}')
        s.n--;
    return s.n > 2 ? str_sub(s, 1, s.n - 1) : STR("");
}

static void rpc_put_error(struct buf *out, const struct wire_id *id, int code,
                          enum err e, struct str words, struct str details)
{
    const struct err_row *row = err_row(e);
    struct str more = rpc_inside_braces(details);

    rpc_open_error(out, id, code, words.n ? words : str_of(row->wording));
    buf_add_str(out, STR(",\"data\":{\"code\":\""));
    buf_add_str(out, str_of(row->code));
    buf_add_char(out, '"');
    if (more.n) {
        buf_add_char(out, ',');
        buf_add_str(out, more);
    }
    buf_add_str(out, STR("}}}"));
}

void wire_error(struct buf *out, const struct wire_id *id, enum err e,
                struct str words, struct str details)
{
    rpc_put_error(out, id, err_row(e)->rpc_code, e, words, details);
}

void wire_invalid_params(struct buf *out, const struct wire_id *id,
                         struct str words, struct str details)
{
    rpc_put_error(out, id, WIRE_INVALID_PARAMS, ERR_BAD_REQUEST, words,
                  details);
}

void wire_error_of(struct buf *out, const struct wire_id *id,
                   enum wire_code code, struct str words, struct str data)
{
    rpc_open_error(out, id, code, words);
    if (data.n) {
        buf_add_str(out, STR(",\"data\":"));
        buf_add_str(out, data);
    }
    buf_add_str(out, STR("}}"));
}
