/* A span in OTLP's JSON. That is protobuf's mapping with one exception: ids
 * are in hex and not in base64. 64-bit numbers are strings, enums are numbers,
 * names are in camelCase.
 *
 * A child knows its parent's id, but not the parent's turn. If the parent is
 * in memory, it is the last turn that began before the child; if not, the
 * first, which always exists. Further turns of a person's task are children of
 * its first turn, so that a trace has one root. */
#include "watch/trace.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>

#include "base/json.h"

/* SpanKind and StatusCode of the protocol. */
enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };
enum { CODE_OK = 1, CODE_ERROR = 2 };

/* The beginning of a hash is a good id. All zeroes would mean "none". */
static void hash_hex(struct str text, char *out, size_t n_hex)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    bool is_zero = true;

    SHA256((const unsigned char *)text.p, text.n, digest);
    for (size_t i = 0; i < n_hex / 2; i++) {
        is_zero = is_zero && !digest[i];
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    }
    if (is_zero)
        out[n_hex - 1] = '1';
}

void trace_id_of(struct str root_id, char out[TRACE_ID_HEX + 1])
{
    hash_hex(root_id, out, TRACE_ID_HEX);
}

void span_id_of(struct str task_id, int64_t turn, char out[SPAN_ID_HEX + 1])
{
    char text[ID_BYTES + 32];

    snprintf(text, sizeof(text), "%.*s:%" PRId64,
             STR_ARG(str_head(task_id, ID_BYTES)), turn);
    hash_hex(str_of(text), out, SPAN_ID_HEX);
}

/* The time at which the turn was accepted, or became the first of its lane. */
static int64_t span_began_ms(const struct task *t)
{
    return t->turn > 1 ? t->deadline_ms - t->budget_ms : t->created_ms;
}

static int64_t parent_turn(const struct task *parent, int64_t at_ms)
{
    int64_t turn;

    if (!parent)
        return 1;
    turn = parent->turn > 0 ? parent->turn : 1;
    return turn > 1 && span_began_ms(parent) > at_ms ? turn - 1 : turn;
}

static void span_put_nanos(struct json_out *o, const char *key, int64_t ms)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64 "000000", ms > 0 ? ms : 0);
    json_member_text(o, key, str_of(ms > 0 ? text : "0"));
}

static void span_put_attribute(struct json_out *o, struct str key, struct str s)
{
    if (!s.n)
        return;
    json_open(o, '{');
    json_member_text(o, "key", key);
    json_key(o, STR("value"));
    json_open(o, '{');
    json_member_text(o, "stringValue", s);
    json_close(o, '}');
    json_close(o, '}');
}

static void span_put_count(struct json_out *o, struct str key, int64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, v);
    json_open(o, '{');
    json_member_text(o, "key", key);
    json_key(o, STR("value"));
    json_open(o, '{');
    json_member_text(o, "intValue", str_of(text));
    json_close(o, '}');
    json_close(o, '}');
}

static void span_put_attributes(struct json_out *o, const struct task *t,
                                const struct task_result *r)
{
    json_key(o, STR("attributes"));
    json_open(o, '[');
    span_put_attribute(o, STR("signalbox.task_id"), str_of(t->id.text));
    span_put_attribute(o, STR("signalbox.root_task_id"), task_root(t));
    span_put_attribute(o, STR("signalbox.agent"), t->agent);
    span_put_attribute(o, STR("signalbox.by_agent"), t->by_agent);
    span_put_attribute(o, STR("signalbox.skill"), t->skill);
    span_put_attribute(o, STR("signalbox.status"), task_status_name(r->status));
    span_put_attribute(o, STR("error.type"), r->error_code);
    span_put_count(o, STR("signalbox.turn"), t->turn);
    span_put_count(o, STR("signalbox.depth"), t->depth);
    span_put_count(o, STR("signalbox.attempts"), t->attempt);
    span_put_count(o, STR("signalbox.price_micros"), t->price_micros);
    json_close(o, ']');
}

static bool task_has_trace(const struct task *t)
{
    return t->trace.n == TRACE_ID_HEX + 1 + SPAN_ID_HEX;
}

static void span_put_ids(struct json_out *o, const struct task *t,
                         const struct task *parent)
{
    char trace[TRACE_ID_HEX + 1], span[SPAN_ID_HEX + 1];
    struct str id = str_of(t->id.text);

    if (task_has_trace(t))
        json_member_text(o, "traceId", str_sub(t->trace, 0, TRACE_ID_HEX));
    else {
        trace_id_of(task_root(t), trace);
        json_member_text(o, "traceId", str_of(trace));
    }
    span_id_of(id, t->turn, span);
    json_member_text(o, "spanId", str_of(span));
    if (t->parent_id.n)
        span_id_of(t->parent_id, parent_turn(parent, span_began_ms(t)), span);
    else if (t->turn > 1)
        span_id_of(id, 1, span);
    else if (task_has_trace(t))
        snprintf(span, sizeof(span), "%.*s", SPAN_ID_HEX,
                 t->trace.p + TRACE_ID_HEX + 1);
    else
        return;
    json_member_text(o, "parentSpanId", str_of(span));
}

static void span_put_name(struct json_out *o, const struct task *t)
{
    char name[256];

    snprintf(name, sizeof(name), "%.*s%s%.*s", STR_ARG(str_head(t->agent, 100)),
             t->skill.n ? " " : "", STR_ARG(str_head(t->skill, 100)));
    json_member_text(o, "name", str_of(name));
}

/* Cancellation is not an error. */
static void span_put_status(struct json_out *o, const struct task_result *r)
{
    json_key(o, STR("status"));
    json_open(o, '{');
    if (r->status == TASK_COMPLETED) {
        json_member_int(o, "code", CODE_OK);
    } else if (r->status == TASK_FAILED || r->status == TASK_EXPIRED) {
        json_member_int(o, "code", CODE_ERROR);
        json_member_text(o, "message", r->error_code);
    }
    json_close(o, '}');
}

/* The task waited before this event, and an agent worked on it afterwards. */
static void span_put_events(struct json_out *o, const struct task *t)
{
    json_key(o, STR("events"));
    json_open(o, '[');
    if (t->started_ms) {
        json_open(o, '{');
        span_put_nanos(o, "timeUnixNano", t->started_ms);
        json_member_text(o, "name", STR("dispatched"));
        json_close(o, '}');
    }
    json_close(o, ']');
}

void trace_span(struct buf *out, const struct task *t,
                const struct task_result *r, int64_t at_ms,
                const struct task *parent)
{
    struct json_out o = json_out(out);
    int64_t from = span_began_ms(t);

    json_open(&o, '{');
    span_put_ids(&o, t, parent);
    span_put_name(&o, t);
    json_member_int(&o, "kind", t->by_agent.n ? KIND_INTERNAL : KIND_SERVER);
    span_put_nanos(&o, "startTimeUnixNano", from);
    span_put_nanos(&o, "endTimeUnixNano", at_ms > from ? at_ms : from);
    span_put_attributes(&o, t, r);
    span_put_events(&o, t);
    span_put_status(&o, r);
    json_close(&o, '}');
}

void trace_head(struct buf *out, struct str service, struct str node)
{
    struct json_out o = json_out(out);

    buf_add_str(out, STR("{\"resourceSpans\":[{\"resource\":{\"attributes\":"));
    json_open(&o, '[');
    span_put_attribute(&o, STR("service.name"), service);
    span_put_attribute(&o, STR("service.version"), STR(SIGNALBOX_VERSION));
    span_put_attribute(&o, STR("service.instance.id"), node);
    json_close(&o, ']');
    buf_add_str(out, STR("},\"scopeSpans\":[{\"scope\":{\"name\":\"signalbox\"}"
                         ",\"spans\":["));
}

void trace_tail(struct buf *out)
{
    buf_add_str(out, STR("]}]}]}"));
}
