/* Reading an envelope. Unknown fields are rejected, because every rule would
 * miss a misspelled one. The accepted fields are those of
 * speak/speak_envelope.c, which keeps the text as well; a test compares the
 * two. */
#include "gate/rules/envelope_read.h"

#include <stdio.h>

#include "base/rfc3339.h"

enum { PLACE_BYTES = 64 };

struct reading {
    char place[PLACE_BYTES];
    bool is_past; /* an entry of a history */
    struct envelope_entry *out;
    bool has_time;
    struct why *why;
};

typedef enum err envelope_field_read(struct reading *r, const struct json *v);

struct str quote_key(struct str key, char to[QUOTED_KEY_BYTES])
{
    struct str head = str_head(key, QUOTED_KEY_BYTES - 1);

    memcpy(to, head.p ? head.p : "", head.n);
    return (struct str){to, str_tame(to, head.n)};
}

/* The messages and limits are those of speak_envelope.c. */

/* Names become keys and log lines, so they have no control characters. */
static enum err read_envelope_name(struct reading *r, const struct json *v,
                                   size_t max, struct str *out)
{
    if (v->type != JSON_STR || !v->s.n || v->s.n > max ||
        str_has_any_control(v->s))
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: %.*s must be a string of 1 to %zu bytes without "
                       "control characters",
                       r->place, STR_ARG(v->key), max);
    *out = v->s;
    return OK;
}

static enum err read_envelope_context(struct reading *r, const struct json *v)
{
    if (v->type != JSON_STR || v->s.n > ENVELOPE_CONTEXT_MAX)
        return why_err(r->why,
                       v->type == JSON_STR ? ERR_LIMIT : ERR_BAD_REQUEST,
                       "%s: context must be a string of 0 to %d bytes",
                       r->place, ENVELOPE_CONTEXT_MAX);
    r->out->e.context = v->s;
    return OK;
}

static enum err read_envelope_priority(struct reading *r, const struct json *v)
{
    if (v->type == JSON_STR && task_priority_of(v->s, &r->out->e.priority))
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: priority must be \"URGENT\", \"HIGH\", \"NORMAL\" "
                   "or \"LOW\"",
                   r->place);
}

static enum err read_timestamp(struct reading *r, const struct json *v)
{
    r->has_time = true;
    if (v->type == JSON_STR && rfc3339_read(v->s, &r->out->e.at_ms))
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: timestamp must be an RFC 3339 time like "
                   "\"2025-02-15T09:00:00Z\"",
                   r->place);
}

static enum err read_payload(struct reading *r, const struct json *v)
{
    const struct json *flag = json_get(v, STR("approved"));

    if (v->type != JSON_OBJ)
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: payload must be an object of up to %d bytes",
                       r->place, ENVELOPE_PAYLOAD_MAX);
    r->out->e.fields = v;
    if (r->is_past && !r->out->approved && flag && flag->type == JSON_BOOL)
        r->out->approved = flag->b ? APPROVED : DISAPPROVED;
    return OK;
}

/* Money belongs to the ledger and changes no decision. */
static enum err read_max_cost(struct reading *r, const struct json *v)
{
    if (v->type == JSON_INT && v->i >= 0 && v->i <= ENVELOPE_COST_MAX)
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: max_cost_micros must be a whole number from 0 to %lld",
                   r->place, (long long)ENVELOPE_COST_MAX);
}

static enum err read_approved(struct reading *r, const struct json *v)
{
    if (v->type != JSON_BOOL)
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: \"approved\" must be true, false or null",
                       r->place);
    r->out->approved = v->b ? APPROVED : DISAPPROVED;
    return OK;
}

static enum err read_past_decision(struct reading *r, const struct json *v)
{
    r->out->answer = gate_answer_of(json_str_or(v, STR("")));
    if (r->out->answer)
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: \"%.*s\" must be one of the six decisions, like "
                   "\"ROUTE_IMMEDIATELY\"",
                   r->place, STR_ARG(v->key));
}

#define NAME_FIELD(member, max) \
    NULL, false, offsetof(struct envelope, member), max

static const struct {
    struct str name;
    envelope_field_read *read; /* NULL: a name */
    bool is_past;              /* in a history only */
    size_t offset, max;        /* of a name */
} fields[] = {
    {STR("from"), NAME_FIELD(from, ENVELOPE_NAME_MAX)},
    {STR("to"), NAME_FIELD(to, ENVELOPE_NAME_MAX)},
    {STR("type"), NAME_FIELD(type, ENVELOPE_NAME_MAX)},
    {STR("priority"), .read = read_envelope_priority},
    {STR("timestamp"), .read = read_timestamp},
    {STR("reference"), NAME_FIELD(reference, ENVELOPE_REFERENCE_MAX)},
    {STR("payload"), .read = read_payload},
    {STR("context"), .read = read_envelope_context},
    {STR("message_id"), NAME_FIELD(message_id, ENVELOPE_ID_MAX)},
    {STR("max_cost_micros"), .read = read_max_cost},
    {STR("approved"), .read = read_approved, .is_past = true},
    {STR("decision"), .read = read_past_decision, .is_past = true},
    {STR("routing_decision"), .read = read_past_decision, .is_past = true},
};

static enum err read_envelope_field(struct reading *r, const struct json *v)
{
    struct str_guess guess = str_guess(v->key);
    char name[QUOTED_KEY_BYTES];
    struct str key;

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (fields[i].is_past && !r->is_past)
            continue;
        if (str_eq(fields[i].name, v->key)) {
            if (v->type == JSON_NULL)
                return OK;
            if (fields[i].read)
                return fields[i].read(r, v);
            return read_envelope_name(
                r, v, fields[i].max,
                (void *)((char *)&r->out->e + fields[i].offset));
        }
        str_guess_offer(&guess, fields[i].name,
                        str_distance(v->key, fields[i].name));
    }
    key = quote_key(v->key, name);
    if (guess.name.n)
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: unknown field \"%.*s\"; did you mean \"%.*s\"?",
                       r->place, STR_ARG(key), STR_ARG(guess.name));
    return why_err(r->why, ERR_BAD_REQUEST, "%s: unknown field \"%.*s\"",
                   r->place, STR_ARG(key));
}

static enum err check_required_fields(struct reading *r, int64_t now_ms)
{
    struct envelope *e = &r->out->e;
    const char *lacks = !e->from.n                ? "from"
                        : !e->to.n && !r->is_past ? "to"
                        : !e->type.n              ? "type"
                                                  : NULL;

    if (!r->has_time && r->is_past)
        lacks = "timestamp";
    if (lacks)
        return why_err(r->why, ERR_BAD_REQUEST, "%s needs \"%s\"", r->place,
                       lacks);
    if (!r->has_time)
        e->at_ms = now_ms;
    return OK;
}

enum err envelope_entry_read(const struct json *v, struct envelope_place place,
                             int64_t now_ms, struct envelope_entry *out,
                             struct why *why)
{
    struct reading r = {.is_past = place.list, .out = out, .why = why};
    enum err e = OK;

    *out = (struct envelope_entry){.e = {.priority = PRIORITY_NORMAL}};
    if (place.list)
        snprintf(r.place, sizeof(r.place), "%s[%zu]", place.list, place.i);
    else
        snprintf(r.place, sizeof(r.place), "the envelope");
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "%s must be an object", r.place);
    JSON_EACH(kid, v)
    {
        if ((e = read_envelope_field(&r, kid)))
            return e;
    }
    return check_required_fields(&r, now_ms);
}

/* The size in the text, including white space. */
static enum err check_payload_size(struct str text, struct why *why)
{
    static const struct str key = STR("payload");
    struct str raw = {NULL, 0};

    if (json_scan(text, &key, 1, &raw, NULL) == OK &&
        raw.n > ENVELOPE_PAYLOAD_MAX)
        return why_err(why, ERR_LIMIT,
                       "the envelope: payload must be an object of up to %d "
                       "bytes",
                       ENVELOPE_PAYLOAD_MAX);
    return OK;
}

enum err gate_envelope_read(struct arena *a, struct str text, int64_t now_ms,
                            struct envelope *out, struct why *why)
{
    struct json_error where = {0};
    const struct json *v = json_parse(a, text, 0, &where);
    struct envelope_entry entry;
    enum err e;

    *out = (struct envelope){.at_ms = 0};
    if (!v)
        return why_err(why, ERR_SYNTAX,
                       "the envelope is not JSON: line %u, column %u: %s",
                       where.line, where.col, where.what);
    e = envelope_entry_read(v, (struct envelope_place){NULL, 0}, now_ms, &entry,
                            why);
    if (!e)
        e = check_payload_size(text, why);
    if (!e)
        *out = entry.e;
    return e;
}
