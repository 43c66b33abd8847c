/* Every row of the tables in docs/seeds.md: decided once with all rules, and
 * once without the rule of that row. The answers must differ. */
#include "test/lib/gate_stage.h"

static const char em[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"
    "'priorities': ["
    " {'rule': 'inbound-leads', 'match': {'type': 'INBOUND_LEAD'},"
    "  'priority': 'URGENT'},"
    " {'rule': 'critical-alerts', 'match': {'type': 'CRITICAL_ALERT'},"
    "  'priority': 'URGENT'},"
    " {'rule': 'agent-failures', 'match': {'type': 'AGENT_FAILURE'},"
    "  'priority': 'URGENT'}],"
    "'duplicates': [{'rule': 'again', 'within': '10m'}],"
    "'superseding': [{'rule': 'status-checks', 'match':"
    "  {'type': 'STATUS_CHECK'}, 'same': ['from', 'to'], 'within': '1m'}],"
    "'safety_gates': [{'rule': 'z-gate', 'agent': 'Z',"
    "  'states': ['DEAD', 'ERROR'], 'match': {'type': 'SUBMISSION'}}],"
    "'escalations': ["
    " {'rule': 'same-client', 'match': {'type': 'SUBMISSION'}, 'same':"
    "  ['payload.consultant_id', 'payload.end_client'], 'within': '90d'},"
    " {'rule': 'banned', 'when': {'==': [{'var':"
    "  'message.payload.profile_banned'}, true]}},"
    " {'rule': 'unsure', 'match': {'type': ['REQUEST', 'SUBMISSION']},"
    "  'when': {'<': [{'var': 'message.payload.confidence_score'}, 6.5]}}],"
    "'dependencies': [{'rule': 'rick-after-jay-and-z',"
    "  'match': {'to': 'Rick', 'type': 'SUBMISSION'}, 'after':"
    "  [{'type': 'SUBMITTED', 'from': 'Jay'},"
    "   {'type': 'RESULT', 'from': 'Z', 'approved': true,"
    "    'within': '24h'}]}],"
    "'freshness': [{'rule': 'z-data', 'match': {'to': 'Z',"
    "  'type': 'REQUEST'}, 'within': '24h'}],"
    "'capacity': [{'rule': 'rick-depth', 'match': {'to': 'Rick'},"
    "  'queue': 3, 'batch': {'most': 10}}],"
    "'sla': [{'rule': 'z-answers', 'match': {'to': 'Z', 'type': 'REQUEST'},"
    "  'within': '15m'}],"
    "'channels': {'#agent-feed': {'file': 'agent-feed.jsonl'},"
    "  '#alerts': {'file': 'alerts.jsonl'}}}";

/* The same file without one rule. */
static struct gate_rules *without(const char *name)
{
    static char text[sizeof(em)];
    char head[64];
    char *from, *to;
    int depth = 0;

    memcpy(text, em, sizeof(em));
    CHECK((size_t)snprintf(head, sizeof(head), "{'rule': '%s'", name) <
          sizeof(head));
    from = to = strstr(text, head);
    if (!from)
        T_FAIL("there is no rule %s", name);
    do
        depth += *to == '{' ? 1 : *to == '}' ? -1 : 0;
    while (*to++ && depth);
    if (*to == ',')
        to++;
    memmove(from, to, strlen(to) + 1);
    return rules_of(text);
}

/* One decision with all rules, and one without the rule. */
struct both {
    struct gate_result with, less;
    struct gate_rules *rules, *fewer;
};

static struct both both(struct world *w, const struct envelope *e,
                        const char *rule)
{
    struct both b = {.rules = rules_of(em), .fewer = without(rule)};

    b.with = decided(b.rules, w, e);
    b.less = decided(b.fewer, w, e);
    return b;
}

static void both_free(struct both *b)
{
    gate_rules_free(b->rules);
    gate_rules_free(b->fewer);
}

/* The answers with and without the rule; the first names the rule. */
static void check_rule(struct world *w, const struct envelope *e,
                       const char *rule, enum gate_answer with,
                       enum gate_answer less)
{
    struct both b = both(w, e, rule);

    CHECK_INT(b.with.answer, with);
    CHECK_STR(b.with.rule, rule);
    CHECK_INT(b.less.answer, less);
    CHECK(!str_eq(b.less.rule, str_of(rule)));
    both_free(&b);
}

/* Everything that must happen before a message goes to Rick. */
static void all_done(struct world *w)
{
    world_event(w, "SUBM-C042-001", "Jay", "SUBMITTED", APPROVAL_NONE,
                NOW - 2 * MINUTE);
    world_event(w, "SUBM-C042-001", "Z", "RESULT", APPROVED, NOW - MINUTE);
}

TEST(the_example_comes_out_letter_for_letter)
{
    struct gate_rules *r = rules_of(em);
    struct world w = em_world();
    struct envelope e = seed_message();
    struct gate_result p = decided(r, &w, &e);

    CHECK_INT(p.answer, GATE_ROUTE);
    CHECK_STR(str_of(p.reason), "Z has fresh data (2 hours old), no dependency "
                                "violations, priority is NORMAL");
    CHECK_STR(str_of(p.sla), "Expected Z response within 15 minutes");
    CHECK_INT(p.sla_ms, 15 * MINUTE);
    CHECK_STR(p.channel, "#agent-feed");
    CHECK(p.rule.n == 0 && p.held_until_ms == 0 && p.n_keys == 0);
    gate_rules_free(r);
}

/* The four core decisions. */

TEST(what_is_ready_goes_and_its_freshness_is_the_rules)
{
    struct world w = em_world();
    struct envelope e = seed_message();
    struct both b = both(&w, &e, "z-data");

    CHECK_INT(b.less.answer, GATE_ROUTE);
    CHECK_STR(str_of(b.less.reason),
              "Z is IDLE, no dependency violations, priority is NORMAL");
    both_free(&b);
    world_find(&w, "Z")->data_at_ms = NOW - 25 * HOUR;
    check_rule(&w, &e, "z-data", GATE_HOLD_INPUT, GATE_ROUTE);
    world_find(&w, "Z")->data_at_ms = 0;
    check_rule(&w, &e, "z-data", GATE_HOLD_INPUT, GATE_ROUTE);
}

TEST(what_lacks_input_waits_for_it)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");
    struct both b = both(&w, &e, "rick-after-jay-and-z");

    CHECK_INT(b.with.answer, GATE_HOLD_INPUT);
    CHECK_INT(b.with.cause, PASS_PREREQUISITE);
    CHECK(waits_for(&b.with, "event:SUBM-C042-001:SUBMITTED"));
    CHECK(waits_for(&b.with, "event:SUBM-C042-001:RESULT"));
    CHECK_INT(b.with.n_keys, 2);
    CHECK_STR(str_of(b.with.reason),
              "waits for SUBMITTED from Jay and RESULT from Z that approves, "
              "for SUBM-C042-001");
    CHECK_INT(b.with.held_until_ms, NOW + DAY);
    CHECK_INT(b.less.answer, GATE_ROUTE);
    both_free(&b);
}

TEST(a_ban_is_for_a_person_to_see)
{
    struct world w = em_world();
    struct envelope e = seed_message();

    e.payload = STR("{\"profile_banned\":true,\"confidence_score\":9}");
    check_rule(&w, &e, "banned", GATE_ESCALATE, GATE_ROUTE);
}

TEST(what_is_unsure_is_for_a_person_to_see)
{
    struct world w = em_world();
    struct envelope e = seed_message();

    e.payload = STR("{\"confidence_score\":6.4}");
    check_rule(&w, &e, "unsure", GATE_ESCALATE, GATE_ROUTE);
    e.payload = STR("{\"confidence_score\":6.5}");
    e.priority = PRIORITY_URGENT;
    struct both b = both(&w, &e, "unsure");
    CHECK_INT(b.with.answer, GATE_ROUTE);
    both_free(&b);
    e.payload = STR("{\"confidence_score\":6.4}");
    check_rule(&w, &e, "unsure", GATE_ESCALATE, GATE_ROUTE);
}

TEST(a_business_duplicate_is_for_a_person_to_see)
{
    struct gate_rules *r = rules_of(em);
    struct world w = em_world();
    struct envelope first = message_of("Leroy", "Jay", "SUBMISSION"), e = first;

    world_let_in(&w, r, &first, "MSG-001", NOW - 80 * DAY);
    e.reference = STR("SUBM-C042-002");
    check_rule(&w, &e, "same-client", GATE_ESCALATE, GATE_ROUTE);
    e.payload = STR("{\"consultant_id\":\"C-042\",\"end_client\":\"Other\"}");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE); /* unsure: no score */
    e.payload = STR("{\"consultant_id\":\"C-042\",\"end_client\":\"Other\","
                    "\"confidence_score\":9}");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(the_second_status_check_of_a_minute_is_dropped)
{
    struct gate_rules *r = rules_of(em);
    struct world w = em_world();
    struct envelope first = message_of("Jay", "Leroy", "STATUS_CHECK");
    struct envelope e = first;

    world_let_in(&w, r, &first, "MSG-001", NOW - 59 * SECOND);
    e.reference = STR("another"); /* so that it is not a repeat */
    check_rule(&w, &e, "status-checks", GATE_DROP, GATE_ROUTE);
    CHECK_INT(decided(r, &w, &e).cause, PASS_SUPERSEDED);
    CHECK_STR(decided(r, &w, &e).repeats, "MSG-001");
    w.n_seen = 0;
    world_let_in(&w, r, &first, "MSG-001", NOW - MINUTE);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

/* The five error cases. */

TEST(a_dead_target_is_for_a_person_to_see)
{
    struct gate_rules *r = rules_of(em);
    struct world w = em_world();
    struct envelope e = message_of("Jay", "Leroy", "NOTE");

    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    world_find(&w, "Leroy")->state = AGENT_DEAD;
    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE);
    CHECK_INT(decided(r, &w, &e).cause, PASS_TARGET_DEAD);
    e.to = STR("Unknown");
    CHECK_INT(decided(r, &w, &e).cause, PASS_TARGET_DEAD);
    /* A person's message is rejected, or waits, by the agent's own settings. */
    e.is_message = true;
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(a_dead_safety_gate_pauses_what_is_gated_and_nothing_else)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");
    struct both b;

    all_done(&w);
    world_find(&w, "Z")->state = AGENT_DEAD;
    check_rule(&w, &e, "z-gate", GATE_PAUSE, GATE_ROUTE);
    b = both(&w, &e, "z-gate");
    CHECK(waits_for(&b.with, "agent:Z"));
    CHECK_INT(b.with.n_keys, 1);
    CHECK_STR(b.with.gate_agent, "Z");
    CHECK_STR(str_of(b.with.reason), "Z is DEAD, and nothing of the kind "
                                     "SUBMISSION goes before it is back");
    both_free(&b);
    e.priority = PRIORITY_URGENT;
    e.is_approved = e.has_entered = true;
    check_rule(&w, &e, "z-gate", GATE_PAUSE, GATE_ROUTE);
    e = message_of("Leroy", "Rick", "NOTE");
    b = both(&w, &e, "z-gate");
    CHECK_INT(b.with.answer, GATE_ROUTE);
    both_free(&b);
}

TEST(a_gate_of_somebody_unknown_is_closed)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");

    all_done(&w);
    world_find(&w, "Z")->name = STR("gone");
    check_rule(&w, &e, "z-gate", GATE_PAUSE, GATE_ROUTE);
}

TEST(a_deep_queue_holds_and_tells_of_batches)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "NOTE");
    struct both b;

    world_find(&w, "Rick")->queue = 2;
    b = both(&w, &e, "rick-depth");
    CHECK_INT(b.with.answer, GATE_ROUTE);
    both_free(&b);
    world_find(&w, "Rick")->queue = 3;
    check_rule(&w, &e, "rick-depth", GATE_HOLD_CAPACITY, GATE_ROUTE);
    b = both(&w, &e, "rick-depth");
    CHECK(waits_for(&b.with, "queue:Rick"));
    CHECK_INT(b.with.batch_most, 10);
    CHECK_STR(str_of(b.with.reason),
              "3 tasks wait for Rick, which takes no more than 3 at a time "
              "(rick-depth): it goes when there are fewer");
    both_free(&b);
    world_find(&w, "Rick")->queue = 100; /* the card's limit */
    b = both(&w, &e, "rick-depth");
    CHECK_INT(b.less.answer, GATE_HOLD_CAPACITY);
    both_free(&b);
}

TEST(the_same_again_is_dropped)
{
    struct gate_rules *r = rules_of(em);
    struct world w = em_world();
    struct envelope first = seed_message(), e = first;

    world_let_in(&w, r, &first, "MSG-001", NOW - 9 * MINUTE);
    /* In any notation. */
    e.payload = STR("{\"confidence_score\":82e-1,\"end_client\":\"Microsoft\","
                    "\"vendor\":\"TrueBlue\",\"consultant_id\":\"C-\\u003042\","
                    "\"job_posting_id\":\"LI-9876\"}");
    e.from = STR("jay");
    check_rule(&w, &e, "again", GATE_DROP, GATE_ROUTE);
    CHECK_STR(str_of(decided(r, &w, &e).reason),
              "it repeats MSG-001, 9 minutes ago");
    e.scope = STR("org:other");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

/* The five key rules. */

static void check_urgent(const char *type, const char *rule)
{
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", type);
    struct both b;

    world_find(&w, "Rick")->queue = 1000;
    b = both(&w, &e, rule);
    CHECK_INT(b.with.answer, GATE_ROUTE);
    CHECK_INT(b.with.cause, PASS_URGENT);
    CHECK_INT(b.with.priority, PRIORITY_URGENT);
    CHECK_STR(b.with.rule, rule);
    CHECK_INT(b.less.answer, GATE_HOLD_CAPACITY);
    both_free(&b);
}

TEST(leads_alerts_and_failures_go_at_once)
{
    check_urgent("INBOUND_LEAD", "inbound-leads");
    check_urgent("CRITICAL_ALERT", "critical-alerts");
    check_urgent("AGENT_FAILURE", "agent-failures");
}

TEST(the_gate_of_z_closes_for_error_too_and_for_nothing_less)
{
    static const enum gate_answer answers[] = {
        [AGENT_ACTIVE] = GATE_ROUTE, [AGENT_IDLE] = GATE_ROUTE,
        [AGENT_BUSY] = GATE_ROUTE,   [AGENT_SLOW] = GATE_ROUTE,
        [AGENT_ERROR] = GATE_PAUSE,  [AGENT_DEAD] = GATE_PAUSE,
    };
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");

    all_done(&w);
    for (unsigned s = AGENT_ACTIVE; s <= AGENT_DEAD; s++) {
        struct both b;

        world_find(&w, "Z")->state = (enum agent_state)s;
        b = both(&w, &e, "z-gate");
        CHECK_INT(b.with.answer, answers[s]);
        CHECK_INT(b.less.answer, GATE_ROUTE);
        both_free(&b);
    }
}

TEST(rick_gets_it_once_jay_submitted_and_z_approved)
{
    struct gate_rules *r = rules_of(em);
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");
    struct world w = em_world();

    world_event(&w, "SUBM-C042-001", "Jay", "SUBMITTED", APPROVAL_NONE,
                NOW - 2 * MINUTE);
    check_rule(&w, &e, "rick-after-jay-and-z", GATE_HOLD_INPUT, GATE_ROUTE);
    CHECK_INT(decided(r, &w, &e).n_keys, 1);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", DISAPPROVED, NOW - MINUTE);
    check_rule(&w, &e, "rick-after-jay-and-z", GATE_HOLD_INPUT, GATE_ROUTE);
    world_event(&w, "SUBM-OTHER", "Z", "RESULT", APPROVED, NOW);
    world_event(&w, "SUBM-C042-001", "Leroy", "RESULT", APPROVED, NOW);
    check_rule(&w, &e, "rick-after-jay-and-z", GATE_HOLD_INPUT, GATE_ROUTE);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", APPROVED, NOW - 25 * HOUR);
    check_rule(&w, &e, "rick-after-jay-and-z", GATE_HOLD_INPUT, GATE_ROUTE);
    world_event(&w, "SUBM-C042-001", "z", "RESULT", APPROVED, NOW - SECOND);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(an_answer_is_due_when_the_rule_says)
{
    struct world w = em_world();
    struct envelope e = seed_message();
    struct both b = both(&w, &e, "z-answers");

    CHECK_INT(b.with.sla_ms, 15 * MINUTE);
    CHECK_INT(b.less.sla_ms, 0);
    CHECK_STR(str_of(b.less.sla), "");
    both_free(&b);
}

/* The target's state, before routing. */

TEST(whatever_its_state_there_is_an_answer)
{
    static const struct {
        enum agent_state state;
        bool may_try;
        enum gate_answer answer;
    } rows[] = {
        {AGENT_ACTIVE, false, GATE_ROUTE},
        {AGENT_IDLE, false, GATE_ROUTE},
        {AGENT_BUSY, false, GATE_ROUTE},
        {AGENT_SLOW, false, GATE_ROUTE},
        {AGENT_ERROR, true, GATE_ROUTE},
        {AGENT_ERROR, false, GATE_HOLD_CAPACITY},
        {AGENT_DEAD, false, GATE_ESCALATE},
    };
    struct envelope e = message_of("Jay", "Leroy", "NOTE");
    struct world w = em_world();

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct gate_result p;

        world_find(&w, "Leroy")->state = rows[i].state;
        world_find(&w, "Leroy")->may_try = rows[i].may_try;
        p = decided(gate_rules_none(), &w, &e);
        CHECK_INT(p.answer, rows[i].answer);
        CHECK(p.answer != GATE_HOLD_CAPACITY || waits_for(&p, "agent:Leroy"));
    }
}
