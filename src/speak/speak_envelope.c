/* An envelope, over HTTP or on the hub.
 *
 * The agent receives the envelope byte for byte as it was sent: the text of the
 * task is the document itself. Only the sender and the time are inserted, where
 * the document lacks them and the server knows them. */
#include "speak/internal.h"

#include <stddef.h>

#include "base/rfc3339.h"

struct envelope_body {
    struct str message_id, from, to, type, priority, timestamp, reference,
        payload, context;
    int64_t max_cost;
};

#define AT(member) offsetof(struct envelope_body, member)

static const struct field envelope_fields[] = {
    {"message_id", FIELD_NAME, 1, ENVELOPE_ID_MAX, .at = AT(message_id)},
    {"from", FIELD_NAME, 1, ENVELOPE_NAME_MAX, .at = AT(from)},
    {"to", FIELD_NAME, 1, ENVELOPE_NAME_MAX, .at = AT(to),
     .missing = "the agent that it is for"},
    {"type", FIELD_NAME, 1, ENVELOPE_NAME_MAX, .at = AT(type),
     .missing = "what kind of message it is, \"REQUEST\""},
    {"priority", FIELD_NAME, 1, 16, .at = AT(priority),
     .of = "URGENT|HIGH|NORMAL|LOW"},
    {"timestamp", FIELD_NAME, 1, 64, .at = AT(timestamp)},
    {"reference", FIELD_NAME, 1, ENVELOPE_REFERENCE_MAX, .at = AT(reference)},
    {"payload", FIELD_OBJ, 0, ENVELOPE_PAYLOAD_MAX, .at = AT(payload)},
    {"context", FIELD_TEXT, 0, ENVELOPE_CONTEXT_MAX, .at = AT(context)},
    {"max_cost_micros", FIELD_INT, 0, ENVELOPE_COST_MAX, .at = AT(max_cost)},
};

const struct fields speak_envelope_fields = {
    "", envelope_fields, sizeof(envelope_fields) / sizeof(*envelope_fields)};

static enum err envelope_read_priority(struct msg *m, struct str name,
                                       enum task_priority *out)
{
    *out = PRIORITY_NORMAL;
    if (!name.n || task_priority_of(name, out))
        return OK;
    return why_err(&m->why, ERR_BAD_REQUEST,
                   "priority must be \"URGENT\", \"HIGH\", \"NORMAL\" or "
                   "\"LOW\", not \"%.*s\"",
                   STR_ARG(name));
}

static enum err envelope_read_timestamp(struct msg *m, struct str text,
                                        int64_t *out)
{
    *out = m->in.at_ms;
    if (!text.n || rfc3339_read(text, out))
        return OK;
    return why_err(&m->why, ERR_BAD_REQUEST,
                   "timestamp must be a moment as RFC 3339 has it, "
                   "\"2025-02-15T09:00:00Z\", or left out");
}

enum err speak_envelope(struct msg *m, struct str body, struct envelope *out)
{
    struct envelope_body in = {.max_cost = -1};
    enum err e =
        fields_read(&m->arena, body, &speak_envelope_fields, &in, &m->why);

    if (!e &&
        (str_eq(in.type, ENVELOPE_MESSAGE) || str_eq(in.type, ENVELOPE_BATCH)))
        e = why_err(&m->why, ERR_BAD_REQUEST,
                    "type \"%.*s\" is the server's own: give it another name",
                    STR_ARG(in.type));
    *out = (struct envelope){.message_id = in.message_id,
                             .from = in.from,
                             .to = in.to,
                             .type = in.type,
                             .reference = in.reference,
                             .context = in.context,
                             .payload = in.payload};
    if (!e)
        e = envelope_read_priority(m, in.priority, &out->priority);
    if (!e)
        e = envelope_read_timestamp(m, in.timestamp, &out->at_ms);
    m->call.has_timestamp = !e && in.timestamp.n;
    m->call.has_max_cost = !e && in.max_cost >= 0;
    m->call.max_cost_micros = m->call.has_max_cost ? in.max_cost : 0;
    return e;
}

/* Set a member of *text that is absent or null; the result is in the arena. */
static enum err envelope_insert_member(struct msg *m, struct str *text,
                                       struct str key, struct str value)
{
    struct buf quoted, whole;
    struct json_out o = json_out(&quoted);
    enum err e = ERR_NOMEM;

    buf_init(&quoted, 1024);
    buf_init(&whole, MSG_TEXT_MAX);
    json_put_str(&o, value);
    if (!quoted.over)
        e = json_splice(&whole, *text, key, buf_str(&quoted), NULL);
    if (!e && !arena_keep(&m->arena, buf_str(&whole), text))
        e = ERR_NOMEM;
    buf_fini(&quoted);
    buf_fini(&whole);
    return e;
}

static enum err envelope_keep_text(struct msg *m, struct str body,
                                   const struct envelope *e, bool has_from)
{
    char moment[RFC3339_BYTES];
    enum err err = arena_keep(&m->arena, body, &m->call.text) ? OK : ERR_NOMEM;

    if (!err && !has_from)
        err = envelope_insert_member(m, &m->call.text, STR("from"), e->from);
    if (!err && !m->call.has_timestamp)
        err = envelope_insert_member(m, &m->call.text, STR("timestamp"),
                                     rfc3339_write(e->at_ms, moment));
    if (!err && m->call.text.n > MSG_TEXT_MAX)
        err = ERR_LIMIT;
    if (err == ERR_LIMIT)
        return why_err(&m->why, err, "the envelope is larger than %d bytes",
                       MSG_TEXT_MAX);
    return err ? why_err(&m->why, err, "out of memory") : OK;
}

/* "FROM>TO:REFERENCE", or nothing where that is too long for an id. */
static struct str envelope_conversation(struct msg *m, const struct envelope *e)
{
    size_t n = e->from.n + 1 + e->to.n + 1 + e->reference.n;
    char *id;
    struct buf out;

    if (!e->reference.n || n > MSG_CONVERSATION_MAX)
        return STR("");
    buf_init(&out, n + 1);
    buf_add_str(&out, e->from);
    buf_add_char(&out, '>');
    buf_add_str(&out, e->to);
    buf_add_char(&out, ':');
    buf_add_str(&out, e->reference);
    id = arena_strdup(&m->arena, buf_str(&out));
    buf_fini(&out);
    return (struct str){id, id ? n : 0};
}

/* The sender's message id makes a repeat count once. The prefix keeps it apart
 * from the keys of plain messages. */
static enum err envelope_make_key(struct msg *m, const struct envelope *e)
{
    struct buf out;
    bool ok;

    if (!e->message_id.n)
        return OK;
    buf_init(&out, MSG_KEY_MAX + 1);
    buf_add_str(&out, STR("envelope:"));
    buf_add_str(&out, e->message_id);
    ok = !out.over &&
         arena_keep(&m->arena, buf_str(&out), &m->call.idempotency_key);
    buf_fini(&out);
    return ok ? OK : why_err(&m->why, ERR_NOMEM, "out of memory");
}

/* Point e->payload into the stored text. Inserted members follow everything
 * else, or replace a null before the payload. */
static void envelope_find_payload(const struct msg *m, struct str body,
                                  struct envelope *e)
{
    struct str text = m->call.text, key = STR("payload"), found;

    if (!e->payload.n)
        return;
    if (text.n == body.n)
        e->payload.p = text.p + (e->payload.p - body.p);
    else if (json_scan(text, &key, 1, &found, NULL) == OK)
        e->payload = found;
}

enum err speak_envelope_sent(struct msg *m, struct str body,
                             const struct envelope *e, bool has_from,
                             struct buf *meaning)
{
    struct envelope *kept = arena_alloc(&m->arena, sizeof(*kept));
    char *from = arena_strdup(&m->arena, e->from);
    enum err err =
        kept && from ? OK : why_err(&m->why, ERR_NOMEM, "out of memory");

    if (!err)
        err = envelope_keep_text(m, body, e, has_from);
    if (!err)
        err = envelope_make_key(m, e);
    if (err)
        return err;
    *kept = *e;
    kept->from.p = from;
    envelope_find_payload(m, body, kept);
    m->call.envelope = kept;
    m->call.executor = e->to;
    m->call.priority = e->priority;
    m->call.metadata = m->call.source = STR("{}");
    m->call.conversation_id = envelope_conversation(m, e);
    compact_json(meaning, body);
    return meaning->over ? why_err(&m->why, ERR_NOMEM, "out of memory") : OK;
}
