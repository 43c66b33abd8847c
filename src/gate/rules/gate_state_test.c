/* The view and envelopes read from documents, and decisions without a
 * server. */
#include "test/lib/rules_stage.h"

#include "base/fault.h"
#include "base/rfc3339.h"
#include "gate/dry_run.h"
#include "gate/rules/envelope_read.h"

static const char em[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}},\n"
    "'duplicates': [{'rule': 'again', 'within': '10m'}],\n"
    "'safety_gates': [{'rule': 'z-gate', 'agent': 'Z',"
    " 'match': {'type': 'SUBMISSION'}}],\n"
    "'escalations': [{'rule': 'unsure', 'match': {'to': 'Z'}, 'when':"
    " {'<': [{'var': 'message.payload.confidence_score'}, 6.5]}}],\n"
    "'dependencies': [{'rule': 'order', 'match': {'type': 'SUBMISSION',"
    " 'to': 'Rick'}, 'after': [{'type': 'SUBMITTED', 'from': 'Jay'},"
    " {'type': 'RESULT', 'from': 'Z', 'approved': true}]}],\n"
    "'freshness': [{'rule': 'fresh', 'match': {'to': 'Z'}, 'agent': 'Z',"
    " 'within': '4h'}],\n"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Rick'}, 'queue': 5}],\n"
    "'sla': [{'rule': 'answers', 'match': {'to': 'Z'}, 'within': '15m'}]}";

static const char well[] = "{'agents': {'Jay': 'IDLE', 'Z': {'state':"
                           " 'ACTIVE', 'data_at': '2025-02-15T07:00:00Z'},"
                           " 'Rick': {'state': 'busy', 'queue': 4}}}";

static const char request[] =
    "{'from': 'Jay', 'to': 'Z', 'type': 'REQUEST', 'priority': 'NORMAL',"
    " 'timestamp': '2025-02-15T09:00:00Z', 'reference': 'SUBM-C042-001',"
    " 'payload': {'consultant_id': 'C-042', 'job_posting_id': 'LI-9876',"
    " 'vendor': 'TrueBlue', 'end_client': 'Microsoft',"
    " 'confidence_score': 8.2}, 'context': 'Jay completed research,"
    " confidence >6.5, no staleness risk'}";

static const char submission[] =
    "{'from': 'Jay', 'to': 'Rick', 'type': 'SUBMISSION', 'reference': 'R-1'}";

/* Texts with ' instead of ", each valid until the next of its kind. */
static struct str as_json(char *to, size_t size, const char *text)
{
    size_t n = strlen(text);

    CHECK(n < size);
    for (size_t i = 0; i <= n; i++)
        to[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    return (struct str){to, n};
}

struct offline {
    struct gate_rules *rules;
    struct buf out;
    struct arena arena;
    struct why why;
};

static void offline_init(struct offline *o)
{
    *o = (struct offline){.rules = rules_of(em)};
    buf_init(&o->out, 1 << 22);
    arena_init(&o->arena, 1 << 22);
}

static void offline_fini(struct offline *o)
{
    gate_rules_free(o->rules);
    buf_fini(&o->out);
    arena_fini(&o->arena);
}

/* The time is a quarter of a minute past nine. NULL: rejected, o->why says
 * why. */
static const struct json *ask_at(struct offline *o, const char *state,
                                 const char *envelope, const char *now)
{
    static char texts[2][8192];
    struct dry_run_papers in = {.rules = o->rules, .with_trace = true};
    const struct json *v;

    in.state = as_json(texts[0], sizeof(texts[0]), state);
    in.envelope = as_json(texts[1], sizeof(texts[1]), envelope);
    CHECK(rfc3339_read(str_of(now), &in.now_ms));
    buf_clear(&o->out);
    arena_reset(&o->arena);
    if (dry_run_decide(&in, &o->out, &o->why))
        return NULL;
    v = json_parse(&o->arena, buf_str(&o->out), 0, NULL);
    CHECK(v);
    return v;
}

static const struct json *ask(struct offline *o, const char *state,
                              const char *envelope)
{
    return ask_at(o, state, envelope, "2025-02-15T09:00:15Z");
}

static struct str said(const struct json *v, const char *key)
{
    CHECK(json_get(v, str_of(key)));
    return json_str_or(json_get(v, str_of(key)), STR("null"));
}

static void check_decision(const char *state, const char *envelope,
                           const char *decision, const char *rule)
{
    struct offline o;
    const struct json *v;

    offline_init(&o);
    v = ask(&o, state, envelope);
    if (!v)
        T_FAIL("%s", o.why.text);
    CHECK_STR(said(v, "routing_decision"), decision);
    CHECK_STR(said(v, "rule"), rule);
    offline_fini(&o);
}

TEST(the_seeds_example_field_for_field)
{
    struct offline o;
    const struct json *v;

    offline_init(&o);
    v = ask(&o, well, request);
    CHECK(v);
    CHECK(str_starts(said(v, "message_id"), STR("MSG-")));
    CHECK_STR(said(v, "original_from"), "Jay");
    CHECK_STR(said(v, "original_to"), "Z");
    CHECK_STR(said(v, "routing_decision"), "ROUTE_IMMEDIATELY");
    CHECK_STR(said(v, "target"), "Z");
    CHECK_STR(said(v, "reason"),
              "Z has fresh data (2 hours old), no dependency violations, "
              "priority is NORMAL");
    CHECK_STR(said(v, "timestamp"), "2025-02-15T09:00:15Z");
    CHECK_STR(said(v, "sla"), "Expected Z response within 15 minutes");
    CHECK_STR(said(v, "held_until"), "null");
    CHECK(json_get(v, STR("trace"))->kids.n > 2);
    offline_fini(&o);
}

TEST(agents_are_as_the_state_says)
{
    check_decision("{'agents': {'Z': 'DEAD'}}", request, "ESCALATE_TO_HUMAN",
                   "null");
    check_decision("{}", request, "ESCALATE_TO_HUMAN", "null");
    check_decision("{'agents': {'z': {'state': 'IDLE'}}}", request,
                   "HOLD_PENDING_INPUT", "fresh");
    check_decision("{'agents': {'Z': {'data_at': '2025-02-15T04:00:00Z'}}}",
                   request, "HOLD_PENDING_INPUT", "fresh");
    check_decision("{'agents': {'Z': 'ERROR', 'Rick': 'IDLE'}}", submission,
                   "PAUSE_ALL_SUBMISSIONS", "z-gate");
    check_decision("{'agents': {'Z': 'IDLE', 'Rick': {'queue': 5}}}",
                   "{'from': 'Jay', 'to': 'Rick', 'type': 'NOTE'}",
                   "HOLD_PENDING_CAPACITY", "room");
    check_decision(well,
                   "{'from': 'Jay', 'to': 'Z', 'type': 'X', 'payload':"
                   " {'confidence_score': 2}}",
                   "ESCALATE_TO_HUMAN", "unsure");
}

#define JAY_SUBMITTED                                              \
    "{'from': 'Jay', 'to': 'Z', 'type': 'SUBMITTED', 'reference':" \
    " 'R-1', 'timestamp': '2025-02-15T08:00:00Z'}"
#define Z_SAID(extra)                                                  \
    "{'from': 'Z', 'type': 'RESULT', 'reference': 'R-1', 'timestamp':" \
    " '2025-02-15T08:30:00Z'" extra "}"
#define AFTER(history) \
    "{'agents': {'Z': 'IDLE', 'Rick': 'IDLE'}, 'history': [" history "]}"

TEST(what_happened_is_what_the_history_says)
{
    check_decision(AFTER(""), submission, "HOLD_PENDING_INPUT", "order");
    check_decision(AFTER(JAY_SUBMITTED), submission, "HOLD_PENDING_INPUT",
                   "order");
    check_decision(AFTER(JAY_SUBMITTED "," Z_SAID(", 'approved': true")),
                   submission, "ROUTE_IMMEDIATELY", "null");
    check_decision(AFTER(Z_SAID(", 'approved': true") "," JAY_SUBMITTED),
                   submission, "ROUTE_IMMEDIATELY", "null");
    check_decision(AFTER(JAY_SUBMITTED "," Z_SAID(", 'payload': {'approved':"
                                                  " true}")),
                   submission, "ROUTE_IMMEDIATELY", "null");
    check_decision(AFTER(JAY_SUBMITTED "," Z_SAID(", 'approved': false")),
                   submission, "HOLD_PENDING_INPUT", "order");
    check_decision(AFTER(JAY_SUBMITTED "," Z_SAID("")), submission,
                   "HOLD_PENDING_INPUT", "order");
    /* A held message is not an event. */
    check_decision(
        AFTER(JAY_SUBMITTED "," Z_SAID(", 'approved': true, 'routing_decision':"
                                       " 'HOLD_PENDING_INPUT'")),
        submission, "HOLD_PENDING_INPUT", "order");
}

TEST(repeats_are_known_from_the_history)
{
    char state[4096], was[2048];

    snprintf(state, sizeof(state),
             "{'agents': {'Z': {'data_at':"
             " '2025-02-15T08:00:00Z'}}, 'history':"
             " [%s]}",
             request);
    check_decision(state, request, "DROP_SILENTLY", "again");
    /* A dropped message does not count. */
    snprintf(was, sizeof(was), "%.*s, 'decision': 'DROP_SILENTLY'}",
             (int)(strlen(request) - 1), request);
    snprintf(state, sizeof(state),
             "{'agents': {'Z': {'data_at':"
             " '2025-02-15T08:00:00Z'}}, 'history':"
             " [%s]}",
             was);
    check_decision(state, request, "ROUTE_IMMEDIATELY", "null");
}

TEST(the_newest_events_are_given_oldest_first)
{
    struct gate_rules *r = rules_of("{}");
    struct gate_event out[GATE_EVENTS_MAX];
    struct gate_state *s;
    struct gate_view v;
    struct buf b;
    struct why why;

    buf_init(&b, 1 << 20);
    buf_add_str(&b, STR("{\"history\":["));
    for (int i = 0; i < 100; i++) /* 37 has no factor in common with 100 */
        buf_addf(&b,
                 "%s{\"from\":\"a\",\"type\":\"T%02d\",\"reference\":\"R\","
                 "\"timestamp\":\"2025-02-15T09:%02d:%02dZ\"}",
                 i ? "," : "", i * 37 % 100, i * 37 % 100 / 60,
                 i * 37 % 100 % 60);
    buf_add_str(&b, STR("]}"));
    CHECK(gate_state_read(r, buf_str(&b), &s, &why) == OK);
    v = gate_state_view(s);
    CHECK_INT(v.events(v.ctx, STR("R"), out, GATE_EVENTS_MAX), GATE_EVENTS_MAX);
    for (int i = 0; i < GATE_EVENTS_MAX; i++) {
        char type[8];

        snprintf(type, sizeof(type), "T%02d", 100 - GATE_EVENTS_MAX + i);
        CHECK_STR(out[i].type, type);
    }
    CHECK_INT(v.events(v.ctx, STR("other"), out, GATE_EVENTS_MAX), 0);
    gate_state_free(s);
    gate_rules_free(r);
    buf_fini(&b);
}

static void check_refused(const char *state, const char *envelope,
                          const char *words)
{
    struct offline o;

    offline_init(&o);
    CHECK(!ask(&o, state, envelope));
    if (!strstr(o.why.text, words))
        T_FAIL("\"%s\" has no \"%s\"", o.why.text, words);
    CHECK_INT(o.out.n, 0);
    offline_fini(&o);
}

TEST(an_envelope_with_a_slip_is_refused)
{
    check_refused(well, "{", "not JSON: line 1, column 2");
    check_refused(well, "[]", "the envelope must be an object");
    check_refused(well, "{'to': 'Z', 'type': 'X'}", "needs \"from\"");
    check_refused(well, "{'from': 'Z', 'type': 'X'}", "needs \"to\"");
    check_refused(well, "{'from': 'Z', 'to': 'Z'}", "needs \"type\"");
    check_refused(well, "{'form': 'Z'}",
                  "unknown field \"form\"; did you mean \"from\"?");
    check_refused(well, "{'approved': true}", "unknown field \"approved\"");
    check_refused(well, "{'priority': 'SOON'}", "\"URGENT\"");
    check_refused(well, "{'timestamp': 'today'}", "2025-02-15T09:00:00Z");
    check_refused(well, "{'payload': []}", "payload must be an object");
    check_refused(well, "{'from': 5}", "from must be a string");
    check_refused(well, "{'from': 'a\\nb'}", "control characters");
}

TEST(a_state_with_a_slip_is_refused)
{
    check_refused("{", request, "the state is not JSON");
    check_refused("[]", request, "the state must be an object");
    check_refused("{'agent': {}}", request, "it has \"agents\" and");
    check_refused("{'agents': []}", request, "\"agents\" must be an object");
    check_refused("{'agents': {'Z': 5}}", request, "must be an object, or");
    check_refused("{'agents': {'Z': 'WELL'}}", request,
                  "agents.Z.state must be ACTIVE");
    check_refused("{'agents': {'Z': {'queue': -1}}}", request,
                  "agents.Z.queue must be the number");
    check_refused("{'agents': {'Z': {'data_at': 'x'}}}", request, "a time");
    check_refused("{'agents': {'Z': {'ques': 1}}}", request,
                  "which is not one of state");
    check_refused("{'history': {}}", request, "must be a list");
    check_refused("{'history': [{'from': 'Z', 'type': 'X'}]}", request,
                  "history[0] needs \"timestamp\"");
    check_refused("{'history': [{'from': 'Z', 'type': 'X', 'approved': 1}]}",
                  request, "must be true, false or null");
    check_refused("{'history': [{'decision': 'MAYBE'}]}", request,
                  "one of the six");
}

TEST(a_history_has_its_limit)
{
    struct gate_rules *r = rules_of("{}");
    static const char one[] = "{\"from\":\"a\",\"type\":\"T\",\"timestamp\":"
                              "\"2025-02-15T09:00:00Z\"},";
    struct gate_state *s;
    struct buf b;
    struct why why;

    buf_init(&b, 1 << 27);
    buf_add_str(&b, STR("{\"history\":["));
    for (int i = 0; i < GATE_HISTORY_MAX; i++)
        buf_add_str(&b, str_of(one));
    buf_add_str(&b, STR("]}"));
    CHECK(gate_state_read(r, buf_str(&b), &s, &why) == OK);
    gate_state_free(s);
    b.n -= 2;
    buf_add_str(&b, str_of(one));
    buf_add_str(&b, STR("]}"));
    CHECK(gate_state_read(r, buf_str(&b), &s, &why) == ERR_LIMIT && !s);
    CHECK(gate_state_read(r, (struct str){b.p, GATE_STATE_BYTES + 1}, &s,
                          &why) == ERR_LIMIT);
    buf_fini(&b);
    gate_rules_free(r);
}

TEST(the_decision_is_a_function_of_its_documents)
{
    struct offline o;
    char first[4096];
    size_t n = 0;

    offline_init(&o);
    for (int i = 0; i < 3; i++) {
        CHECK(ask(&o, well, request));
        CHECK(o.out.n < sizeof(first));
        if (i == 0)
            memcpy(first, o.out.p, n = o.out.n);
        CHECK(n == o.out.n && memcmp(first, o.out.p, n) == 0);
    }
    offline_fini(&o);
}

TEST(memory_that_fails_leaves_nothing_behind)
{
    struct offline o;

    offline_init(&o);
    for (long nth = 1;; nth++) {
        struct dry_run_papers in = {.rules = o.rules,
                                    .state =
                                        STR("{\"history\":[{\"from\":\"a\","
                                            "\"type\":\"T\",\"timestamp\":"
                                            "\"2025-02-15T09:00:00Z\"}]}"),
                                    .envelope = STR("{\"from\":\"a\",\"to\":"
                                                    "\"b\",\"type\":\"T\"}"),
                                    .now_ms = 1739610000000,
                                    .with_trace = true};
        enum err e;

        buf_clear(&o.out);
        fault_arm(nth);
        e = dry_run_decide(&in, &o.out, &o.why);
        CHECK(fault_fired() || e == OK);
        if (!fault_fired())
            break;
    }
    fault_arm(0);
    offline_fini(&o);
}
