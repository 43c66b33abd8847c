/* What pi's extensions ask of people, while it works on a task:
 *
 *     we                              pi
 *                                  <- extension_ui_request {id, method:
 *                                       select | confirm | input | editor,
 *                                       title, message, options, placeholder,
 *                                       prefill, timeout}
 *     extension_ui_response {id,   ->
 *       value | confirmed | cancelled}
 *
 * Other methods of that name (notify, setStatus, …) only show something and
 * wait for nobody: they are passed over, since what an agent has to say is its
 * answer. A method that is not known may be a dialog, and is cancelled, as
 * everything is that nobody can be asked. Nothing is kept here: pi's own id,
 * as it stands in the line, is the handle that comes back with the answer. */
#include "deliver/pi.h"

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

/* Zero: it is not known. */
static int method_of(struct str quoted)
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

/* Room for the longest answer where every byte has to be escaped. */
enum { RESPONSE_MAX = 6 * INPUT_VALUE_MAX + 1024 };

enum err pi_answer(struct hand *h, struct str handle,
                   const struct input_answer *a)
{
    struct buf out;
    enum err e;

    buf_init(&out, RESPONSE_MAX);
    pi_put_answer(&out, handle, a);
    e = out.over ? ERR_NOMEM : hand_send(h, buf_str(&out));
    buf_fini(&out);
    return e;
}

/* A text that is none, or for which there is no memory, is not there. */
static struct str text_of(struct arena *a, struct str raw)
{
    struct str out = STR("");

    return raw.n && json_unquote(a, raw, &out) ? out : STR("");
}

/* False: one of them is no text, or they are more than may be. */
static bool read_options(struct arena *a, struct str raw, struct input_ask *q)
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

static bool read_ask(struct arena *a, const struct str v[N_P],
                     enum input_kind kind, struct input_ask *q)
{
    double ms;

    *q = (struct input_ask){.kind = kind,
                            .title = text_of(a, v[P_TITLE]),
                            .message = text_of(a, v[P_MESSAGE]),
                            .placeholder = text_of(a, v[P_HINT]),
                            .prefill = text_of(a, v[P_FILL]),
                            .handle = v[P_ID]};
    if (json_number(v[P_MS], &ms) && ms >= 1 && ms < 1e12)
        q->timeout_ms = (int64_t)ms;
    return kind != INPUT_SELECT || read_options(a, v[P_OPTIONS], q);
}

static bool is_taken(struct hand *h, const struct input_ask *q)
{
    const struct deliver_opts *o = &hand_deliver(h)->opts;
    const struct carried *c = h->stints[0].carried;

    return c && o->on_ask && o->on_ask(o->ctx, &c->delivery.id, q);
}

/* It asks nobody: it calls a tool. */
static bool is_call(const struct hand *h, const struct str v[N_P])
{
    return h->pool->def.tools && str_eq(v[P_METHOD], STR("\"input\"")) &&
           str_eq(v[P_TITLE], STR("\"signalbox.tool\""));
}

static bool is_dealt_with(struct hand *h, struct pi_uses *uses,
                          struct arena *scratch, const struct str v[N_P])
{
    int method = method_of(v[P_METHOD]);
    struct input_ask q;

    if (is_call(h, v))
        return pi_used(h, uses, scratch, v[P_ID], v[P_HINT]);
    return method == METHOD_SHOWS ||
           (method && read_ask(scratch, v, (enum input_kind)method, &q) &&
            is_taken(h, &q));
}

void pi_asked(struct hand *h, struct pi_uses *uses, struct arena *scratch,
              struct str line)
{
    struct str v[N_P];

    if (json_scan(line, ask_keys, N_P, v, NULL) != OK || !v[P_ID].n ||
        v[P_ID].n > WIRE_ID_MAX || is_dealt_with(h, uses, scratch, v))
        return;
    if (pi_answer(h, v[P_ID], &(struct input_answer){.is_cancelled = true}) !=
        OK)
        log_debug(hand_deliver(h)->opts.log, "deliver.answer_unsaid",
                  LOG_S("process", h->pool->def.name));
}
