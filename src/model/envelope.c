/* From a task's row back to the envelope that the gate judged. */
#include "model/envelope.h"

#include "base/rfc3339.h"

/* The scanned members; strings are still quoted. */
enum {
    MESSAGE_ID,
    FROM,
    TYPE,
    REFERENCE,
    CONTEXT,
    PRIORITY,
    TIMESTAMP,
    PAYLOAD,
    N_MEMBERS
};

static const struct str members[N_MEMBERS] = {
    [MESSAGE_ID] = STR("message_id"),
    [FROM] = STR("from"),
    [TYPE] = STR("type"),
    [REFERENCE] = STR("reference"),
    [CONTEXT] = STR("context"),
    [PRIORITY] = STR("priority"),
    [TIMESTAMP] = STR("timestamp"),
    [PAYLOAD] = STR("payload"),
};

/* A member that is missing or not a string becomes empty. */
static bool envelope_take_text(struct arena *a, struct str quoted,
                               struct str *out)
{
    const struct json *v = quoted.n ? json_parse(a, quoted, 0, NULL) : NULL;

    *out = json_str_or(v, STR(""));
    return v || !quoted.n;
}

/* The payload stays raw; a reader of its fields parses it. */
static enum err envelope_of_json(const struct task *t, struct arena *a,
                                 struct envelope *out)
{
    struct str raw[N_MEMBERS], priority, moment;
    int64_t at_ms;
    enum err e = json_scan(t->text, members, N_MEMBERS, raw, NULL);

    if (e)
        return e;
    if (!envelope_take_text(a, raw[MESSAGE_ID], &out->message_id) ||
        !envelope_take_text(a, raw[FROM], &out->from) ||
        !envelope_take_text(a, raw[TYPE], &out->type) ||
        !envelope_take_text(a, raw[REFERENCE], &out->reference) ||
        !envelope_take_text(a, raw[CONTEXT], &out->context) ||
        !envelope_take_text(a, raw[PRIORITY], &priority) ||
        !envelope_take_text(a, raw[TIMESTAMP], &moment))
        return ERR_NOMEM;
    out->to = t->agent;
    out->payload = raw[PAYLOAD];
    if (!task_priority_of(priority, &out->priority))
        out->priority = PRIORITY_NORMAL;
    out->at_ms = rfc3339_read(moment, &at_ms) ? at_ms : t->created_ms;
    return OK;
}

enum err envelope_of_task(const struct task *t, struct arena *a,
                          struct envelope *out)
{
    *out = (struct envelope){.priority = t->priority, .has_entered = true};
    if (t->is_envelope)
        return envelope_of_json(t, a, out);
    out->from = t->requester;
    out->to = t->agent;
    out->type = ENVELOPE_MESSAGE;
    out->payload = t->metadata;
    out->context = t->text;
    out->at_ms = t->created_ms;
    out->is_message = true;
    return OK;
}

void envelope_words(const struct envelope *e, struct buf *out)
{
    if (e->context.n) {
        buf_add_str(out, e->context);
        return;
    }
    buf_add_str(out, e->type);
    buf_add_str(out, STR(" from "));
    buf_add_str(out, e->from);
    if (e->reference.n) {
        buf_add_str(out, STR(" about "));
        buf_add_str(out, e->reference);
    }
}
