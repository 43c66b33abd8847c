/* examples/em/routing_rules.json decides as its story says: every rule that can
 * answer does so at least once. */
#include "test/lib/rules_stage.h"

#include <fcntl.h>

#include "base/rfc3339.h"
#include "gate/dry_run.h"

#define AGENTS(z, more)                                                     \
    "{'agents': {'Jay': 'IDLE', 'Leroy': 'IDLE', 'Rick': {'state': 'IDLE'," \
    " 'queue': 0}, 'EM': 'IDLE', 'Z': " z "}" more "}"
#define FRESH "{'state': 'IDLE', 'data_at': '2025-02-15T07:00:00Z'}"
#define STALE "{'state': 'IDLE', 'data_at': '2025-02-13T07:00:00Z'}"
#define DEAD  "{'state': 'DEAD', 'data_at': '2025-02-15T07:00:00Z'}"
#define FULL                                                       \
    "{'state': 'IDLE', 'data_at': '2025-02-15T07:00:00Z', 'queue'" \
    ": 20}"
#define PAST(list) ", 'history': [" list "]"
#define AT(time)   ", 'timestamp': '2025-02-15T" time "Z'"

#define REQUEST                                                         \
    "'from': 'Jay', 'to': 'Z', 'type': 'REQUEST', 'reference': 'S-1',"  \
    " 'payload': {'consultant_id': 'C-042', 'end_client': 'Microsoft'," \
    " 'confidence_score': 8.2}"
#define SUBMIT(reference)                                                  \
    "'from': 'Jay', 'to': 'EM', 'type': 'SUBMISSION', 'reference': "       \
    "'" reference "', 'payload': {'consultant_id': 'C-042', 'end_client':" \
    " 'Microsoft'}"
#define ASK_RICK                                                \
    "'from': 'EM', 'to': 'Rick', 'type': 'SUBMISSION_REQUEST'," \
    " 'reference': 'S-1', 'payload': {}"
#define APPROVED_BY_Z                                                  \
    "{'from': 'Z', 'to': 'Jay', 'type': 'RESULT', 'reference': 'S-1'," \
    " 'approved': true" AT("08:30:00") "}"
#define CHECKED \
    "'from': 'Leroy', 'to': 'Rick', 'type': 'STATUS_CHECK', 'reference': '"

#define ASK_Z(payload)                                                 \
    "'from': 'Jay', 'to': 'Z', 'type': 'REQUEST', 'reference': 'S-1'," \
    " 'payload': {" payload "}"
#define KIND(kind) \
    "'from': 'Jay', 'to': 'EM', 'type': '" kind "', 'reference': 'S-1'"

static const struct {
    const char *state, *envelope, *decision, *rule;
} cases[] = {
    {AGENTS(FRESH, ""), REQUEST, "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(FRESH, PAST("{" REQUEST AT("08:59:00") "}")), REQUEST,
     "DROP_SILENTLY", "same-message-again"},
    {AGENTS(FRESH, PAST("{" CHECKED "a'" AT("08:59:30") "}")), CHECKED "b'",
     "DROP_SILENTLY", "one-status-check-a-minute"},
    {AGENTS(FRESH, PAST("{" CHECKED "a'" AT("08:58:30") "}")), CHECKED "b'",
     "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(DEAD, ""), SUBMIT("S-1"), "PAUSE_ALL_SUBMISSIONS",
     "no-submissions-without-Z"},
    {AGENTS(DEAD, ""), ASK_RICK, "PAUSE_ALL_SUBMISSIONS",
     "no-submissions-without-Z"},
    {AGENTS(DEAD, ""), REQUEST, "ESCALATE_TO_HUMAN", "null"},
    {AGENTS(FRESH, PAST("{" SUBMIT("S-0") ", 'timestamp':"
                                          " '2025-02-10T00:00:00Z'}")),
     SUBMIT("S-1"), "ESCALATE_TO_HUMAN", "consultant-submitted-before"},
    {AGENTS(FRESH, ""), SUBMIT("S-1"), "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(FRESH, ""), ASK_Z("'profile_status': 'BANNED'"),
     "ESCALATE_TO_HUMAN", "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'profile_status': 'banned'"),
     "ESCALATE_TO_HUMAN", "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'profile_status': ['BANNED']"),
     "ESCALATE_TO_HUMAN", "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'ban': true"), "ESCALATE_TO_HUMAN",
     "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'ban': 'true'"), "ESCALATE_TO_HUMAN",
     "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'ban': 1"), "ESCALATE_TO_HUMAN",
     "profile-banned"},
    {AGENTS(FRESH, ""), ASK_Z("'profile_status': 'ACTIVE', 'ban': false"),
     "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': 6.4"), "ESCALATE_TO_HUMAN",
     "not-sure-enough"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': 'low'"), "ESCALATE_TO_HUMAN",
     "not-sure-enough"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': {}"), "ESCALATE_TO_HUMAN",
     "not-sure-enough"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': ''"), "ESCALATE_TO_HUMAN",
     "not-sure-enough"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': true"), "ESCALATE_TO_HUMAN",
     "not-sure-enough"},
    {AGENTS(FRESH, ""), ASK_Z("'confidence_score': 6.5"), "ROUTE_IMMEDIATELY",
     "null"},
    {AGENTS(FRESH, ""), REQUEST ", 'priority': 'URGENT'", "ESCALATE_TO_HUMAN",
     "urgent-is-not-for-submissions"},
    {AGENTS(FRESH, ""), SUBMIT("S-1") ", 'priority': 'URGENT'",
     "ESCALATE_TO_HUMAN", "urgent-is-not-for-submissions"},
    {AGENTS(FRESH, ""), ASK_RICK ", 'priority': 'URGENT'", "ESCALATE_TO_HUMAN",
     "urgent-is-not-for-submissions"},
    {AGENTS(FRESH, ""), KIND("Submission"), "ESCALATE_TO_HUMAN",
     "kinds-nobody-knows"},
    {AGENTS(FRESH, ""), KIND("request"), "ESCALATE_TO_HUMAN",
     "kinds-nobody-knows"},
    {AGENTS(FRESH, ""), KIND("Lead"), "ESCALATE_TO_HUMAN",
     "kinds-nobody-knows"},
    {AGENTS(FRESH, ""),
     "'from': 'Jay', 'to': 'Z', 'type': 'REQUEST', 'reference': 'S-1'",
     "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(FRESH, PAST("{" SUBMIT("S-1") AT("08:00:00") "}")), ASK_RICK,
     "HOLD_PENDING_INPUT", "jay-submitted-and-z-approved"},
    {AGENTS(FRESH, PAST(APPROVED_BY_Z)), ASK_RICK, "HOLD_PENDING_INPUT",
     "jay-submitted-and-z-approved"},
    {AGENTS(FRESH, PAST("{" SUBMIT("S-1") AT("08:00:00") "}, " APPROVED_BY_Z)),
     ASK_RICK, "ROUTE_IMMEDIATELY", "null"},
    {AGENTS(STALE, ""), REQUEST, "HOLD_PENDING_INPUT",
     "z-judges-by-fresh-data"},
    {AGENTS(STALE, ""), SUBMIT("S-1"), "HOLD_PENDING_INPUT",
     "jay-submits-by-fresh-data"},
    {AGENTS(FULL, ""), REQUEST, "HOLD_PENDING_CAPACITY", "z-takes-batches"},
    {"{'agents': {'Jay': 'IDLE', 'Rick': {'state': 'BUSY', 'queue': 50}}}",
     CHECKED "a'", "HOLD_PENDING_CAPACITY", "nobody-is-buried"},
    {"{'agents': {'Leroy': {'state': 'BUSY', 'queue': 50}, 'EM': 'IDLE'}}",
     "'from': 'EM', 'to': 'Leroy', 'type': 'LEAD'", "ROUTE_IMMEDIATELY",
     "inbound-leads-are-urgent"},
    {"{'agents': {'Leroy': {'state': 'BUSY', 'queue': 50}, 'EM': 'IDLE'}}",
     "'from': 'EM', 'to': 'Leroy', 'type': 'CRITICAL_ALERT'",
     "ROUTE_IMMEDIATELY", "critical-alerts-are-urgent"},
    {"{'agents': {'Leroy': {'state': 'BUSY', 'queue': 50}, 'EM': 'IDLE'}}",
     "'from': 'EM', 'to': 'Leroy', 'type': 'AGENT_FAILURE'",
     "ROUTE_IMMEDIATELY", "agent-failures-are-urgent"},
};

static struct gate_rules *example(void)
{
    static char text[1 << 16];
    static struct gate_problems problems;
    int fd = open(SOURCE_ROOT "/examples/em/routing_rules.json", O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text));
    struct gate_rules *r;

    CHECK(n > 0);
    close(fd);
    if (gate_rules_read((struct str){text, (size_t)n}, &r, &problems) != OK)
        T_FAIL("%s", problems.text);
    return r;
}

static const struct json *decide(const struct gate_rules *r,
                                 struct arena *arena, struct buf *out,
                                 const char *state, const char *envelope)
{
    static char texts[2][4096];
    struct dry_run_papers in = {.rules = r};
    struct str copy;
    struct why why;

    copy = quoted(state);
    memcpy(texts[0], copy.p, copy.n);
    in.state = (struct str){texts[0], copy.n};
    copy = quoted(envelope);
    in.envelope = (struct str){texts[1], copy.n + 2};
    texts[1][0] = '{', texts[1][copy.n + 1] = '}';
    memcpy(texts[1] + 1, copy.p, copy.n);
    CHECK(rfc3339_read(STR("2025-02-15T09:00:00Z"), &in.now_ms));
    buf_clear(out);
    if (dry_run_decide(&in, out, &why) != OK)
        T_FAIL("%s: %s", envelope, why.text);
    return json_parse(arena, buf_str(out), 0, NULL);
}

TEST(the_example_decides_as_its_story_says)
{
    struct gate_rules *r = example();
    struct arena arena;
    struct buf out;

    arena_init(&arena, 1 << 22);
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct json *v =
            decide(r, &arena, &out, cases[i].state, cases[i].envelope);
        struct str decision =
            json_str_or(json_get(v, STR("routing_decision")), STR(""));
        struct str rule = json_str_or(json_get(v, STR("rule")), STR("null"));

        if (!str_eq(decision, str_of(cases[i].decision)) ||
            !str_eq(rule, str_of(cases[i].rule)))
            T_FAIL("%s of %s\n is %.*s", cases[i].envelope, cases[i].state,
                   STR_ARG(buf_str(&out)));
    }
    buf_fini(&out);
    arena_fini(&arena);
    gate_rules_free(r);
}

TEST(what_z_is_asked_is_due_in_the_words_of_the_story)
{
    struct gate_rules *r = example();
    const struct json *v;
    struct arena arena;
    struct buf out;

    arena_init(&arena, 1 << 20);
    buf_init(&out, 1 << 20);
    v = decide(r, &arena, &out, AGENTS(FRESH, ""), REQUEST);
    CHECK_STR(json_str_or(json_get(v, STR("sla")), STR("")),
              "Expected Z response within 15 minutes");
    CHECK_STR(json_str_or(json_get(v, STR("reason")), STR("")),
              "Z has fresh data (2 hours old), no dependency violations, "
              "priority is NORMAL");
    buf_fini(&out);
    arena_fini(&arena);
    gate_rules_free(r);
}
