/* Input requests of pi's extensions:
 *
 *     we                              pi
 *                                  <- extension_ui_request {id, method:
 *                                       select | confirm | input | editor,
 *                                       title, message, options, placeholder,
 *                                       prefill, timeout}
 *     extension_ui_response {id,   ->
 *       value | confirmed | cancelled}
 *
 * Other methods (notify, setStatus, …) only show something and expect no
 * answer: they are ignored, since an agent speaks through its answer. An
 * unknown method may be a dialog, so it is cancelled, like every request that
 * cannot be shown. No state is kept here: pi's raw id is the handle that
 * returns with the answer. */
#include "deliver/transports/pi.h"

enum { P_ID, P_METHOD, P_TITLE, P_MESSAGE, P_OPTIONS, P_HINT, P_FILL, P_MS };
enum { N_P = P_MS + 1 };

static const struct str ask_keys[N_P] = {
    [P_ID] = STR("id"),           [P_METHOD] = STR("method"),
    [P_TITLE] = STR("title"),     [P_MESSAGE] = STR("message"),
    [P_OPTIONS] = STR("options"), [P_HINT] = STR("placeholder"),
    [P_FILL] = STR("prefill"),    [P_MS] = STR("timeout"),
};

enum { METHOD_SHOWS = -1 };

static const struct {
    struct str quoted;
    int kind; /* enum input_kind */
} methods[] = {
    {STR("\"select\""), INPUT_SELECT},
    {STR("\"confirm\""), INPUT_CONFIRM},
    {STR("\"input\""), INPUT_TEXT},
    {STR("\"editor\""), INPUT_EDITOR},
    {STR("\"notify\""), METHOD_SHOWS},
    {STR("\"setStatus\""), METHOD_SHOWS},
    {STR("\"setWidget\""), METHOD_SHOWS},
    {STR("\"setTitle\""), METHOD_SHOWS},
    {STR("\"set_editor_text\""), METHOD_SHOWS},
};

/* Zero: unknown. */
static int pi_dialog_method(struct str quoted)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (str_eq(methods[i].quoted, quoted))
            return methods[i].kind;
    return 0;
}

void pi_put_answer(struct buf *out, struct str handle,
                   const struct input_answer *a)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_key(&o, STR("type"));
    json_put_str(&o, STR("extension_ui_response"));
    json_key(&o, STR("id"));
    json_put_raw(&o, handle);
    if (a->has_value) {
        json_key(&o, STR("value"));
        json_put_str(&o, a->value);
    } else if (a->has_confirmed) {
        json_member_bool(&o, "confirmed", a->confirmed);
    } else {
        json_member_bool(&o, "cancelled", true);
    }
    json_close(&o, '}');
}

/* The longest answer with every byte escaped. */
enum { RESPONSE_MAX = 6 * INPUT_VALUE_MAX + 1024 };

enum err pi_answer(struct pool_worker *h, struct str handle,
                   const struct input_answer *a)
{
    struct buf out;
    enum err e;

    buf_init(&out, RESPONSE_MAX);
    pi_put_answer(&out, handle, a);
    e = out.over ? ERR_NOMEM : pool_worker_send(h, buf_str(&out));
    buf_fini(&out);
    return e;
}

/* Empty if it is not a string, or the arena is full. */
static struct str pi_dialog_text(struct arena *a, struct str raw)
{
    struct str out = STR("");

    return raw.n && json_unquote(a, raw, &out) ? out : STR("");
}

/* False: one is not a string, or there are too many. */
static bool pi_dialog_read_options(struct arena *a, struct str raw,
                                   struct input_ask *q)
{
    struct str *list = arena_array(a, INPUT_OPTIONS_MAX, sizeof(*list));
    struct str value;

    if (!list)
        return false;
    while (raw.n && json_next(&raw, &value)) {
        if (q->n_options == INPUT_OPTIONS_MAX ||
            !json_unquote(a, value, &list[q->n_options]))
            return false;
        q->n_options++;
    }
    q->options = list;
    return true;
}

static bool pi_dialog_read(struct arena *a, const struct str v[N_P],
                           enum input_kind kind, struct input_ask *q)
{
    double ms;

    *q = (struct input_ask){.kind = kind,
                            .title = pi_dialog_text(a, v[P_TITLE]),
                            .message = pi_dialog_text(a, v[P_MESSAGE]),
                            .placeholder = pi_dialog_text(a, v[P_HINT]),
                            .prefill = pi_dialog_text(a, v[P_FILL]),
                            .handle = v[P_ID]};
    if (json_number(v[P_MS], &ms) && ms >= 1 && ms < 1e12)
        q->timeout_ms = (int64_t)ms;
    return kind != INPUT_SELECT || pi_dialog_read_options(a, v[P_OPTIONS], q);
}

static bool pi_dialog_take(struct pool_worker *h, struct pi_uses *uses,
                           struct arena *scratch, const struct str v[N_P])
{
    const struct deliver_opts *o = &pool_worker_deliver(h)->opts;
    const struct carried *c = h->stints[0].carried;
    int method = pi_dialog_method(v[P_METHOD]);
    struct input_ask q;

    /* A tool call in the form of an input request. */
    if (h->pool->def.tools && method == INPUT_TEXT &&
        str_eq(v[P_TITLE], STR("\"signalbox.tool\"")))
        return pi_used(h, uses, scratch, v[P_ID], v[P_HINT]);
    return method == METHOD_SHOWS ||
           (method && pi_dialog_read(scratch, v, (enum input_kind)method, &q) &&
            c && o->on_ask && o->on_ask(o->ctx, &c->delivery.id, &q));
}

void pi_asked(struct pool_worker *h, struct pi_uses *uses,
              struct arena *scratch, struct str line)
{
    struct str v[N_P];

    if (json_scan(line, ask_keys, N_P, v, NULL) != OK || !v[P_ID].n ||
        v[P_ID].n > WIRE_ID_MAX || pi_dialog_take(h, uses, scratch, v))
        return;
    if (pi_answer(h, v[P_ID], &(struct input_answer){.is_cancelled = true}) !=
        OK)
        log_debug(pool_worker_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
}
