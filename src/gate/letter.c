/* Reading an envelope. Strict: what is not a field of it is refused by its
 * name, for a field with a slip in it would be missed by every rule. What may
 * be said is what speak/envelope.c takes, which keeps the text as well; a test
 * holds the one against the other. */
#include "gate/letter.h"

#include <stdio.h>

#include "base/rfc3339.h"

enum { SHOWN_BYTES = 64, PLACE_BYTES = 64 };

struct reading {
    char place[PLACE_BYTES];
    bool is_past; /* an entry of a history */
    struct letter *out;
    bool has_time;
    struct why *why;
};

typedef enum err read_fn(struct reading *r, const struct json *v);

static struct str shown(struct str s, char to[SHOWN_BYTES])
{
    struct str head = str_head(s, SHOWN_BYTES - 1);

    memcpy(to, head.p ? head.p : "", head.n);
    return (struct str){to, str_tame(to, head.n)};
}

/* The words, like the limits, are those of whoever takes an envelope in. */
static enum err read_text(struct reading *r, const struct json *v, size_t max,
                          struct str *out)
{
    if (v->type != JSON_STR || v->s.n > max)
        return why_err(r->why,
                       v->type == JSON_STR ? ERR_LIMIT : ERR_BAD_REQUEST,
                       "%s: %.*s must be a string of 0 to %zu bytes", r->place,
                       STR_ARG(v->key), max);
    *out = v->s;
    return OK;
}

/* Names go into keys and lines: no control characters. */
static enum err read_name(struct reading *r, const struct json *v, size_t max,
                          struct str *out)
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

static enum err read_id(struct reading *r, const struct json *v)
{
    return read_name(r, v, ENVELOPE_ID_MAX, &r->out->e.message_id);
}

static enum err read_from(struct reading *r, const struct json *v)
{
    return read_name(r, v, ENVELOPE_NAME_MAX, &r->out->e.from);
}

static enum err read_to(struct reading *r, const struct json *v)
{
    return read_name(r, v, ENVELOPE_NAME_MAX, &r->out->e.to);
}

static enum err read_type(struct reading *r, const struct json *v)
{
    return read_name(r, v, ENVELOPE_NAME_MAX, &r->out->e.type);
}

static enum err read_reference(struct reading *r, const struct json *v)
{
    return read_name(r, v, ENVELOPE_REFERENCE_MAX, &r->out->e.reference);
}

static enum err read_context(struct reading *r, const struct json *v)
{
    return read_text(r, v, ENVELOPE_CONTEXT_MAX, &r->out->e.context);
}

static enum err read_priority(struct reading *r, const struct json *v)
{
    if (v->type == JSON_STR && task_priority_of(v->s, &r->out->e.priority))
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: priority must be \"URGENT\", \"HIGH\", \"NORMAL\" "
                   "or \"LOW\"",
                   r->place);
}

static enum err read_time(struct reading *r, const struct json *v)
{
    r->has_time = true;
    if (v->type == JSON_STR && rfc3339_read(v->s, &r->out->e.at_ms))
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: timestamp must be a moment as RFC 3339 has it, "
                   "\"2025-02-15T09:00:00Z\"",
                   r->place);
}

static enum err read_payload(struct reading *r, const struct json *v)
{
    const struct json *said = json_get(v, STR("approved"));

    if (v->type != JSON_OBJ)
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: payload must be an object of up to %d bytes",
                       r->place, ENVELOPE_PAYLOAD_MAX);
    r->out->e.fields = v;
    if (r->is_past && !r->out->approved && said && said->type == JSON_BOOL)
        r->out->approved = said->b ? APPROVED : DISAPPROVED;
    return OK;
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

static enum err read_decision(struct reading *r, const struct json *v)
{
    r->out->answer = gate_answer_of(json_str_or(v, STR("")));
    if (r->out->answer)
        return OK;
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: \"%.*s\" must be one of the six decisions, like "
                   "\"ROUTE_IMMEDIATELY\"",
                   r->place, STR_ARG(v->key));
}

static const struct {
    struct str name;
    read_fn *read;
    bool is_past; /* only a history says so */
} fields[] = {
    {STR("from"), read_from, false},
    {STR("to"), read_to, false},
    {STR("type"), read_type, false},
    {STR("priority"), read_priority, false},
    {STR("timestamp"), read_time, false},
    {STR("reference"), read_reference, false},
    {STR("payload"), read_payload, false},
    {STR("context"), read_context, false},
    {STR("message_id"), read_id, false},
    {STR("approved"), read_approved, true},
    {STR("decision"), read_decision, true},
    {STR("routing_decision"), read_decision, true},
};

static enum err read_field(struct reading *r, const struct json *v)
{
    struct str_guess guess = str_guess(v->key);
    char name[SHOWN_BYTES];
    struct str said;

    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        if (fields[i].is_past && !r->is_past)
            continue;
        if (str_eq(fields[i].name, v->key))
            return v->type == JSON_NULL ? OK : fields[i].read(r, v);
        str_guess_offer(&guess, fields[i].name,
                        str_distance(v->key, fields[i].name));
    }
    said = shown(v->key, name);
    if (guess.name.n)
        return why_err(r->why, ERR_BAD_REQUEST,
                       "%s: \"%.*s\" is no field of an envelope; did you mean "
                       "\"%.*s\"?",
                       r->place, STR_ARG(said), STR_ARG(guess.name));
    return why_err(r->why, ERR_BAD_REQUEST,
                   "%s: \"%.*s\" is no field of an envelope", r->place,
                   STR_ARG(said));
}

static enum err check_whole(struct reading *r, int64_t now_ms)
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

enum err letter_read(const struct json *v, struct letter_place place,
                     int64_t now_ms, struct letter *out, struct why *why)
{
    struct reading r = {.is_past = place.list, .out = out, .why = why};
    enum err e = OK;

    *out = (struct letter){.e = {.priority = PRIORITY_NORMAL}};
    if (place.list)
        snprintf(r.place, sizeof(r.place), "%s[%zu]", place.list, place.i);
    else
        snprintf(r.place, sizeof(r.place), "the envelope");
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "%s must be an object", r.place);
    JSON_EACH(kid, v)
    {
        if ((e = read_field(&r, kid)))
            return e;
    }
    return check_whole(&r, now_ms);
}

/* As it stands, spaces and all. */
static enum err check_payload(struct str text, struct why *why)
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
    struct letter letter;
    enum err e;

    *out = (struct envelope){.at_ms = 0};
    if (!v)
        return why_err(why, ERR_SYNTAX,
                       "the envelope is no JSON: line %u, column %u: %s",
                       where.line, where.col, where.what);
    e = letter_read(v, (struct letter_place){NULL, 0}, now_ms, &letter, why);
    if (!e)
        e = check_payload(text, why);
    if (!e)
        *out = letter.e;
    return e;
}
