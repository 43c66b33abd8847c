/* JSON-RPC 2.0 out. Each message is one line: whatever stands in it as it came
 * (an id, metadata) has no line end in it, or none that matters. */
#include "wire/wire.h"

static void put_id(struct buf *out, const struct wire_id *id)
{
    if (id && id->raw.n)
        buf_add_str(out, id->raw);
    else
        buf_add_str(out, STR("null"));
}

static void open_answer(struct buf *out, const struct wire_id *id)
{
    buf_add_str(out, STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    put_id(out, id);
}

struct json_out wire_result_open(struct buf *out, const struct wire_id *id)
{
    open_answer(out, id);
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

static void open_error(struct buf *out, const struct wire_id *id, int code,
                       struct str words)
{
    struct json_out o = json_out(out);

    open_answer(out, id);
    buf_add_str(out, STR(",\"error\":{\"code\":"));
    buf_add_i64(out, code);
    buf_add_str(out, STR(",\"message\":"));
    json_put_str(&o, words);
}

/* What stands between the brackets of an object. */
static struct str inside(struct str object)
{
    struct str s = object;

    while (s.n && s.p[0] != '{')
        s = str_sub(s, 1, s.n);
    while (s.n && s.p[s.n - 1] != '}')
        s.n--;
    return s.n > 2 ? str_sub(s, 1, s.n - 1) : STR("");
}

static void put_row(struct buf *out, const struct wire_id *id, int code,
                    enum err e, struct str words, struct str details)
{
    const struct err_row *row = err_row(e);
    struct str more = inside(details);

    open_error(out, id, code, words.n ? words : str_of(row->wording));
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
    put_row(out, id, err_row(e)->rpc_code, e, words, details);
}

void wire_invalid_params(struct buf *out, const struct wire_id *id,
                         struct str words, struct str details)
{
    put_row(out, id, WIRE_INVALID_PARAMS, ERR_BAD_REQUEST, words, details);
}

void wire_error_of(struct buf *out, const struct wire_id *id,
                   enum wire_code code, struct str words, struct str data)
{
    open_error(out, id, code, words);
    if (data.n) {
        buf_add_str(out, STR(",\"data\":"));
        buf_add_str(out, data);
    }
    buf_add_str(out, STR("}}"));
}
