/* From a task's row back to what the gate judged. */
#include "model/envelope.h"

#include "base/rfc3339.h"

/* Members that are texts, as they stand in the row: quoted. */
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

/* One that is not there, or is no text, is empty. */
static bool take_text(struct arena *a, struct str quoted, struct str *out)
{
    const struct json *v = quoted.n ? json_parse(a, quoted, 0, NULL) : NULL;

    *out = json_str_or(v, STR(""));
    return v || !quoted.n;
}

static void of_message(const struct task *t, struct envelope *out)
{
    out->from = t->requester;
    out->to = t->agent;
    out->type = ENVELOPE_MESSAGE;
    out->payload = t->metadata;
    out->context = t->text;
    out->at_ms = t->created_ms;
    out->is_message = true;
}

/* The payload stays as it stands: whoever wants its fields reads it. */
static enum err of_json(const struct task *t, struct arena *a,
                        struct envelope *out)
{
    struct str raw[N_MEMBERS], priority, moment;
    int64_t at_ms;
    enum err e = json_scan(t->text, members, N_MEMBERS, raw, NULL);

    if (e)
        return e;
    if (!take_text(a, raw[MESSAGE_ID], &out->message_id) ||
        !take_text(a, raw[FROM], &out->from) ||
        !take_text(a, raw[TYPE], &out->type) ||
        !take_text(a, raw[REFERENCE], &out->reference) ||
        !take_text(a, raw[CONTEXT], &out->context) ||
        !take_text(a, raw[PRIORITY], &priority) ||
        !take_text(a, raw[TIMESTAMP], &moment))
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
        return of_json(t, a, out);
    of_message(t, out);
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
