/* Without memory the library reports an error, and the program goes on. */
#include "signalbox_gate.h"

#include <string.h>

#include "base/fault.h"
#include "test/t.h"

#define NOW_MS INT64_C(1739610015000) /* 2025-02-15T09:00:15Z */

/* With single quotes for double ones. */
static const char text[] =
    "{ // a comment\n"
    "'$schema': 'x',\n"
    "'agents': {'Jay': {}, 'Z': {'restart': {'attempts': 5, 'pause': '3s'},"
    " 'backup': 'z2', 'takeover': 'auto'}, 'Z2': {}, 'Rick': {}},\n"
    "'priorities': [{'rule': 'leads', 'match': {'type': ['LEAD', 'HOT']},"
    " 'priority': 'URGENT'}],\n"
    "'duplicates': [{'rule': 'again', 'within': '10m'}],\n"
    "'superseding': [{'rule': 'checks', 'match': {'type': 'STATUS_CHECK'},"
    " 'same': ['from'], 'within': '1m'}],\n"
    "'safety_gates': [{'rule': 'z-gate', 'agent': 'z', 'match':"
    " {'type': 'SUBMISSION', 'to': 'rick', 'priority': ['LOW', 'HIGH']},"
    " 'hold_for': '1w', 'on_expiry': 'escalate'}],\n"
    "'escalations': [{'rule': 'sure', 'when': {'<': [{'var':"
    " 'message.payload.score'}, 6.5]}}, {'rule': 'double', 'same':"
    " ['payload.a.b', 'payload'], 'within': '90d'}],\n"
    "'dependencies': [{'rule': 'order', 'match': {'to': 'Rick'}, 'after':"
    " [{'type': 'SUBMITTED', 'from': 'Jay', 'to': 'Z', 'within': '2h'},"
    " {'type': 'RESULT', 'from': 'Z', 'approved': true}]}],\n"
    "'freshness': [{'rule': 'fresh', 'agent': 'Z', 'within': 7200000}],\n"
    "'capacity': [{'rule': 'room', 'queue': 20, 'batch': {'most': 10}}],\n"
    "'sla': [{'rule': 'answers', 'match': {'to': 'Z'}, 'within': '15m'}],\n"
    "'channels': {'#agent-feed': {'file': {'path': 'f', 'rotate_bytes': 4096,"
    " 'keep': 2}}, '#alerts': {'webhook': {'url': 'https://x.test/h', 'form':"
    " 'slack'}}, '#all': {'takes': ['decisions', 'alerts'], 'file': 'g'}},\n"
    "'holds': {'most': 7, 'most_per_agent': 3, 'expire_after': '2d',"
    " 'on_expiry': 'route'},\n"
    "'timestamps': {'future': '1m', 'age': '1d', 'stale': '1h'},\n"
    "'people': {'remind': '5m', 'reminders': 2, 'expire_after': '1h',"
    " 'on_expiry': 'redirect'},\n"
    "'targets': {'routed_per_hour': 1, 'hold_time': '2m',"
    " 'escalations_per_day': 3, 'lost': 4},\n"
    "}\n";
static const char state[] =
    "{\"agents\": {\"Z\": {\"state\": \"ACTIVE\", \"data_at\":"
    " \"2025-02-15T07:00:00Z\"}}}";
static const char envelope[] =
    "{\"from\": \"Jay\", \"to\": \"Z\", \"type\": \"REQUEST\","
    " \"timestamp\": \"2025-02-15T09:00:00Z\","
    " \"payload\": {\"confidence_score\": 8.2}}";

static char rules[sizeof(text)];

static void quote_rules(void)
{
    for (size_t i = 0; i < sizeof(text); i++)
        rules[i] = (char)(text[i] == '\'' ? '"' : text[i]);
}

static char *decide(const struct signalbox_gate *g, const char *about,
                    char **error)
{
    return signalbox_gate_decide(g, state, strlen(state), about, strlen(about),
                                 NOW_MS, SIGNALBOX_GATE_TRACE, error);
}

TEST(rules_survive_every_failed_allocation)
{
    long nth = 0;

    quote_rules();
    do {
        struct signalbox_gate *g;
        char *error = NULL;

        fault_arm_at("mem", ++nth);
        g = signalbox_gate_new(rules, strlen(rules), &error);
        CHECK(g || fault_fired());
        CHECK(!g || !error);
        signalbox_gate_free(g);
        signalbox_gate_text_free(error);
    } while (fault_fired());
    CHECK(nth > 4);
}

TEST(a_decision_survives_every_failed_allocation)
{
    struct signalbox_gate *g;
    char *expected, *error = NULL;
    long nth = 0;

    quote_rules();
    g = signalbox_gate_new(rules, strlen(rules), NULL);
    CHECK(g);
    expected = decide(g, envelope, &error);
    CHECK(expected && !error);
    do {
        char *said;

        fault_arm_at("mem", ++nth);
        said = decide(g, envelope, &error);
        if (said)
            CHECK(strcmp(said, expected) == 0 && !error);
        else
            CHECK(fault_fired());
        signalbox_gate_text_free(said);
        signalbox_gate_text_free(error);
    } while (fault_fired());
    CHECK(nth > 4);
    signalbox_gate_text_free(expected);
    signalbox_gate_free(g);
}

TEST(without_memory_it_is_for_a_person_to_see)
{
    static const char unsure[] =
        "{\"escalations\": [{\"rule\": \"w\", \"when\": {\"==\": [{\"cat\":"
        " [{\"var\": \"message.payload.l.1\"}, \"x\"]}, \"y\"]}}]}";
    static char large[20000];
    size_t n = (size_t)snprintf(large, sizeof(large),
                                "{\"from\": \"Jay\", \"to\": \"Z\", \"type\":"
                                " \"REQUEST\", \"payload\": {\"l\": [0");
    struct signalbox_gate *g;
    int n_escalated = 0;
    long nth = 0;

    while (n + 5 < sizeof(large))
        n += (size_t)snprintf(large + n, sizeof(large) - n, ",1");
    snprintf(large + n, sizeof(large) - n, "]}}");
    g = signalbox_gate_new(unsure, strlen(unsure), NULL);
    CHECK(g);
    do {
        char *said;

        fault_arm_at("mem", ++nth);
        said = decide(g, large, NULL);
        CHECK(said || fault_fired());
        if (said && !strstr(said, "ROUTE_IMMEDIATELY")) {
            CHECK(fault_fired() && strstr(said, "ESCALATE_TO_HUMAN"));
            n_escalated++;
        }
        signalbox_gate_text_free(said);
    } while (fault_fired());
    CHECK(n_escalated > 0);
    signalbox_gate_free(g);
}
