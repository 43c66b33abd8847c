/* Reading keeps everything in the file; limits; memory. */
#include "test/lib/rules_stage.h"

#include "base/fault.h"

#define S INT64_C(1000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)

static const char whole[] =
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

TEST(every_section_is_read)
{
    struct gate_rules *r = rules_of(whole);
    const struct rule *rule;

    CHECK_INT(gate_rules_count(r), 10);
    rule = rule_named(r, "leads");
    CHECK(rule->raises_to == PRIORITY_URGENT && rule->match.type.n == 2);
    CHECK_STR(rule->match.type.list[1], "HOT");
    rule = rule_named(r, "again");
    CHECK(rule->like.n_same == 5 && rule->like.within_ms == 10 * M);
    rule = rule_named(r, "checks");
    CHECK(rule->like.n_same == 1 && rule->like.same[0].kind == SAME_FROM);
    rule = rule_named(r, "z-gate");
    CHECK_STR(rule->gate.agent, "Z"); /* as it is declared */
    CHECK(rule->gate.states == (1u << AGENT_DEAD | 1u << AGENT_ERROR));
    CHECK(rule->match.priorities == (1u << PRIORITY_LOW | 1u << PRIORITY_HIGH));
    CHECK(rule->hold_ms == 7 * D && rule->on_expiry == EXPIRY_ESCALATE);
    rule = rule_named(r, "sure");
    CHECK(rule->when && !rule->like.n_same);
    rule = rule_named(r, "double");
    CHECK(rule->like.n_same == 2 && rule->like.within_ms == 90 * D);
    CHECK(rule->like.same[0].kind == SAME_PATH);
    CHECK_STR(rule->like.same[0].path.list[1], "b");
    CHECK(rule->like.same[1].kind == SAME_PAYLOAD && rule->order == 1);
    rule = rule_named(r, "order");
    CHECK(rule->after.n_needs == 2 && rule->on_expiry == EXPIRY_ROUTE);
    CHECK(rule->after.needs[0].within_ms == 2 * H);
    CHECK_STR(rule->after.needs[0].to.list[0], "Z");
    CHECK(rule->after.needs[1].wants == APPROVED);
    rule = rule_named(r, "fresh");
    CHECK(rule->fresh.within_ms == 2 * H &&
          str_eq(rule->fresh.agent, STR("Z")));
    rule = rule_named(r, "room");
    CHECK(rule->room.queue == 20 && rule->room.batch_most == 10);
    rule = rule_named(r, "answers");
    CHECK(rule->sla.within_ms == 15 * M);
    gate_rules_free(r);
}

TEST(what_is_no_rule_is_read)
{
    struct gate_rules *r = rules_of(whole);
    const struct gate_about *a = gate_rules_about(r);
    struct gate_revival z = gate_revival_of(r, STR("z"));

    CHECK(z.attempts == 5 && z.pause_ms == 3 * S && z.is_auto);
    CHECK_STR(z.backup, "Z2");
    z = gate_revival_of(r, STR("unknown"));
    CHECK(z.attempts == 3 && z.pause_ms == 10 * S && !z.backup.n);
    CHECK_INT(a->agents.n, 4);
    CHECK_STR(a->agents.list[1], "Rick");
    CHECK_INT(a->n_channels, 3);
    CHECK(a->channels[0].takes_feed && !a->channels[0].takes_alerts);
    CHECK(a->channels[0].rotate_bytes == 4096 && a->channels[0].keep == 2);
    CHECK(a->channels[1].takes_alerts && a->channels[1].form == CHANNEL_SLACK);
    CHECK_STR(a->channels[1].webhook, "https://x.test/h");
    CHECK(a->channels[2].takes_alerts && a->channels[2].takes_feed);
    CHECK_STR(a->channels[2].file, "g");
    CHECK_STR(r->feed_channel, "#agent-feed");
    CHECK(a->limits.most == 7 && a->limits.most_per_agent == 3);
    CHECK(a->limits.expire_ms == 2 * D && a->limits.on_expiry == EXPIRY_ROUTE);
    CHECK(a->limits.future_ms == M && a->limits.age_ms == D);
    CHECK_INT(a->limits.stale_ms, 60 * M);
    CHECK(a->people.remind_ms == 5 * M && a->people.reminders == 2);
    CHECK(a->people.expire_ms == H && a->people.on_expiry == PEOPLE_REDIRECT);
    CHECK(a->targets.routed_per_hour == 1 && a->targets.hold_ms == 2 * M);
    CHECK(a->targets.escalations_per_day == 3 && a->targets.lost == 4);
    CHECK(a->longest_ms == GATE_DURATION_MAX_MS); /* RESULT, at any age */
    gate_rules_free(r);
}

TEST(an_empty_file_is_as_good_as_none)
{
    struct gate_rules *r = rules_of("{}");
    const struct gate_about *none = gate_rules_about(gate_rules_none());

    CHECK_INT(gate_rules_count(r), 0);
    CHECK_INT(gate_rules_about(r)->limits.most, none->limits.most);
    CHECK_INT(gate_rules_about(r)->people.remind_ms, none->people.remind_ms);
    gate_rules_free(r);
}

TEST(durations_have_units)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1", 1},          {"'1ms'", 1},        {"'90s'", 90 * S},
        {"'15m'", 15 * M}, {"'2h'", 2 * H},     {"'90d'", 90 * D},
        {"'1w'", 7 * D},   {"'366d'", 366 * D}, {"'007s'", 7 * S},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[200];
        struct gate_rules *r;

        snprintf(text, sizeof(text), "{'sla': [{'rule': 'x', 'within': %s}]}",
                 cases[i].text);
        r = rules_of(text);
        CHECK_INT(rule_named(r, "x")->sla.within_ms, cases[i].ms);
        gate_rules_free(r);
    }
}

TEST(reading_survives_every_fault)
{
    static struct gate_problems problems;
    struct str text = quoted(whole);
    long nth = 0;

    do {
        struct gate_rules *r;
        enum err e;

        fault_arm(++nth);
        e = gate_rules_read(text, &r, &problems);
        if (fault_fired())
            CHECK(e == ERR_NOMEM && !r);
        else
            CHECK(e == OK && r);
        gate_rules_free(r);
    } while (fault_fired());
    CHECK(nth > 2);
}
