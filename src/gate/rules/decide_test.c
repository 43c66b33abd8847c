/* Details that the tables in docs/seeds.md leave open: which rule applies, what
 * a hold waits for, and how the reason reads. */
#include "test/lib/gate_stage.h"

#include "base/fault.h"

#define AGENTS "'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"

TEST(an_id_makes_a_repeat_without_any_rules)
{
    const struct gate_rules *r = gate_rules_none();
    struct world w = em_world();
    struct envelope e = seed_message();
    struct gate_marks marks;
    struct arena a;

    arena_init(&a, 4096);
    CHECK_INT(gate_marks(r, &e, &a, &marks), OK);
    CHECK_INT(marks.n, 0);
    e.message_id = STR("m-1");
    CHECK_INT(gate_marks(r, &e, &a, &marks), OK);
    CHECK_INT(marks.n, 1);
    arena_fini(&a);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    world_let_in(&w, r, &e, "MSG-001", NOW - 6 * DAY);
    e.payload = STR("{}");
    e.to = STR("Leroy");
    CHECK_INT(decided(r, &w, &e).answer, GATE_DROP);
    CHECK_STR(decided(r, &w, &e).repeats, "MSG-001");
    /* Nor for a message that was held, nor for another sender. */
    e.has_entered = true;
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    e.has_entered = false;
    e.from = STR("Rick");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
}

TEST(what_says_something_else_in_words_alone_is_no_repeat)
{
    struct gate_rules *r =
        rules_of("{'duplicates': [{'rule': 'd', 'within': '10m'}]}");
    struct world w = em_world();
    struct envelope e = seed_message();

    e.payload = STR("{}");
    e.context = STR("please pay A");
    world_let_in(&w, r, &e, "m", NOW);
    CHECK_INT(decided(r, &w, &e).answer, GATE_DROP);
    e.context = STR("please do not pay A");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(every_rule_that_would_know_it_again_is_marked)
{
    static char text[64 * 1024];
    struct envelope e = seed_message();
    struct gate_marks marks;
    struct gate_rules *r;
    struct arena a;
    size_t n = 0;

    n += (size_t)snprintf(text, sizeof(text), "{'duplicates': [");
    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "%s{'rule': 'd%d', 'within': '10m'}",
                              i ? "," : "", i);
    snprintf(text + n, sizeof(text) - n, "]}");
    r = rules_of(text);
    arena_init(&a, 1 << 20);
    CHECK_INT(gate_marks(r, &e, &a, &marks), OK);
    CHECK_INT(marks.n, 300);
    arena_fini(&a);
    arena_init(&a, 4096); /* an arena without room is reported */
    CHECK_INT(gate_marks(r, &e, &a, &marks), ERR_NOMEM);
    arena_fini(&a);
    gate_rules_free(r);
}

TEST(a_window_ends_and_a_clock_that_was_set_back_does_not_make_it_endless)
{
    struct gate_rules *r =
        rules_of("{'duplicates': [{'rule': 'd', 'within': '10m'}]}");
    static const struct {
        int64_t at_ms;
        enum gate_answer answer;
    } rows[] = {
        {NOW, GATE_DROP},
        {NOW - 10 * MINUTE + 1, GATE_DROP},
        {NOW - 10 * MINUTE, GATE_ROUTE},
        {NOW + 10 * MINUTE - 1, GATE_DROP},
        {NOW + 10 * MINUTE, GATE_ROUTE},
        {INT64_MAX, GATE_ROUTE},
        {INT64_MIN, GATE_ROUTE},
    };
    struct envelope e = seed_message();

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world w = em_world();

        world_let_in(&w, r, &e, "m", rows[i].at_ms);
        CHECK_INT(decided(r, &w, &e).answer, rows[i].answer);
    }
    gate_rules_free(r);
}

TEST(a_persons_words_are_no_repeat_unless_a_rule_names_them)
{
    struct gate_rules *any =
        rules_of("{'duplicates': [{'rule': 'd', 'within': '10m'}]}");
    struct gate_rules *named =
        rules_of("{'duplicates': [{'rule': 'd', 'within': '10m', 'match':"
                 " {'type': 'MESSAGE'}}]}");
    struct envelope e = message_of("ann", "Z", "MESSAGE");
    struct world w = em_world();

    e.is_message = true;
    e.payload = e.reference = STR("");
    e.context = STR("hello");
    world_let_in(&w, any, &e, "m", NOW);
    CHECK_INT(w.n_seen, 0);
    world_let_in(&w, named, &e, "m", NOW);
    CHECK_INT(decided(any, &w, &e).answer, GATE_ROUTE);
    CHECK_INT(decided(named, &w, &e).answer, GATE_DROP);
    e.context = STR("how are you?");
    CHECK_INT(decided(named, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(any);
    gate_rules_free(named);
}

TEST(a_message_is_not_about_the_same_as_itself)
{
    struct gate_rules *r =
        rules_of("{'escalations': [{'rule': 'd', 'within': '1d', 'same':"
                 " ['payload.end_client']}]}");
    struct world w = em_world();
    struct envelope e = seed_message();

    world_let_in(&w, r, &e, "m-1", NOW - HOUR);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE);
    e.has_entered = true; /* it was held, and is in the past itself */
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    e.has_entered = false;
    w.seen[0].seen.message_id = e.message_id = STR("m-1");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    /* Nor two messages that do not name what they are about. */
    e.message_id = STR("");
    e.payload = STR("{\"end_client\":null}");
    w.n_seen = 0;
    world_let_in(&w, r, &e, "m-2", NOW - HOUR);
    CHECK_INT(w.n_seen, 0);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(what_cannot_be_worked_out_is_for_a_person_to_see)
{
    /* More steps than a condition may take. */
    static const char text[] =
        "{" AGENTS "'%s': [{'rule': 'long', %s 'when': {'all': [{'var':"
        " 'message.payload.l'}, {'all': [{'var': ''}, {'none':"
        " [[1,2,3,4,5,6,7,8], {'some': [[1,2,3,4,5,6,7,8], false]}]}]}]}}]}";
    static const char *const sections[][2] = {
        {"priorities", "'priority': 'HIGH', 'match': {'type': 'REQUEST'},"},
        {"duplicates", "'within': '1m',"},
        {"escalations", ""},
        {"dependencies",
         "'match': {'type': 'REQUEST'}, 'after': [{'type': 'X'}],"},
        {"capacity", "'queue': 5,"},
        {"freshness", "'within': '1h',"},
        {"sla", "'within': '1h',"},
        {"safety_gates", "'agent': 'Rick', 'match': {'type': 'REQUEST'},"},
    };
    static char payload[20000] = "{\"l\":[";
    struct envelope e = seed_message();
    size_t n = strlen(payload);

    for (size_t i = 0; i < 200; i++) {
        n += (size_t)snprintf(payload + n, sizeof(payload) - n, "%s[",
                              i ? "," : "");
        for (size_t k = 0; k < 30; k++)
            n += (size_t)snprintf(payload + n, sizeof(payload) - n, "%s1",
                                  k ? "," : "");
        n += (size_t)snprintf(payload + n, sizeof(payload) - n, "]");
    }
    snprintf(payload + n, sizeof(payload) - n, "]}");
    e.payload = str_of(payload);
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
        static char file[2000];
        struct world w = em_world();
        struct gate_rules *r;
        struct gate_result p;

        snprintf(file, sizeof(file), text, sections[i][0], sections[i][1]);
        r = rules_of(file);
        world_find(&w, "Rick")->state = AGENT_DEAD;
        e.is_approved = false;
        p = decided(r, &w, &e);
        CHECK_INT(p.answer, GATE_ESCALATE);
        CHECK_INT(p.cause, PASS_UNJUDGED);
        CHECK_STR(p.rule, "long");
        CHECK(p.sla_ms == 0 && p.n_keys == 0 && p.held_until_ms == 0);
        e.is_approved = true;
        p = decided(r, &w, &e);
        CHECK_INT(p.answer, i == 7 ? GATE_PAUSE : GATE_ROUTE);
        gate_rules_free(r);
    }
}

TEST(without_a_reference_nobody_can_wait_for_what_happens_to_it)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'dependencies': [{'rule': 'd', 'match':"
                 " {'type': 'NOTE'}, 'after': [{'type': 'SUBMITTED', 'from':"
                 " 'Jay'}]}]}");
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "NOTE");

    CHECK_INT(decided(r, &w, &e).answer, GATE_HOLD_INPUT);
    e.reference = STR("");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE);
    CHECK_INT(decided(r, &w, &e).cause, PASS_PREREQUISITE);
    CHECK(!gate_is_event(r, &e));
    e.is_message = true; /* which never has one */
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(who_has_thought_better_of_it_has_not_approved)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'dependencies': [{'rule': 'd', 'match':"
                 " {'type': 'NOTE'}, 'hold_for': '2h', 'on_expiry': 'escalate',"
                 " 'after': [{'type': 'RESULT', 'from': 'Z', 'approved': true},"
                 " {'type': 'DATA', 'within': '1h'}]}]}");
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "NOTE");
    struct gate_result p;

    world_event(&w, "SUBM-C042-001", "Z", "RESULT", APPROVED, NOW - 3 * MINUTE);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", APPROVAL_NONE,
                NOW - 2 * MINUTE);
    world_event(&w, "SUBM-C042-001", "Jay", "DATA", APPROVAL_NONE, NOW - HOUR);
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    world_event(&w, "SUBM-C042-001", "Z", "RESULT", DISAPPROVED, NOW - MINUTE);
    p = decided(r, &w, &e);
    CHECK_STR(
        str_of(p.reason),
        "waits for RESULT from Z that approves (so far: Z RESULT 1 minute "
        "ago, disapproved), for SUBM-C042-001");
    /* And the other event becomes too old while it waits. */
    CHECK(waits_for(&p, "event:SUBM-C042-001:RESULT") && waits_for(&p, "time"));
    CHECK(p.keys[1].at_ms == NOW + 1 || p.keys[0].at_ms == NOW + 1);
    CHECK_INT(p.held_until_ms, NOW + 2 * HOUR);
    CHECK_INT(p.on_expiry, EXPIRY_ESCALATE);
    gate_rules_free(r);
}

TEST(approved_it_still_needs_gate_agent_and_room)
{
    struct gate_rules *r = rules_of(
        "{" AGENTS "'escalations': [{'rule': 'all', 'match': {'to': 'Rick'}}],"
        "'dependencies': [{'rule': 'd', 'match': {'type': 'NOTE'}, 'after':"
        " [{'type': 'X', 'from': 'Jay'}]}]}");
    struct world w = em_world();
    struct envelope e = message_of("Leroy", "Rick", "NOTE");
    struct gate_result p;

    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE);
    e.is_approved = e.has_entered = true;
    p = decided(r, &w, &e);
    CHECK_INT(p.answer, GATE_ROUTE);
    CHECK_INT(p.cause, PASS_APPROVED);
    world_find(&w, "Rick")->state = AGENT_DEAD;
    p = decided(r, &w, &e);
    CHECK_INT(p.answer, GATE_HOLD_CAPACITY);
    CHECK_INT(p.cause, PASS_TARGET_DEAD);
    CHECK(waits_for(&p, "agent:Rick"));
    world_find(&w, "Rick")->state = AGENT_BUSY;
    world_find(&w, "Rick")->queue = 100;
    CHECK_INT(decided(r, &w, &e).answer, GATE_HOLD_CAPACITY);
    gate_rules_free(r);
}

/* A condition on a rule that holds: the data it reads may change without any
 * wait key. */
TEST(what_no_key_tells_of_is_looked_at_now_and_then)
{
    static const char text[] =
        "{" AGENTS "'capacity': [{'rule': 'c', 'match': {'to': 'Rick'},"
        " 'queue': 1, 'when': {'==': [{'var': '%s'}, '%s']}}],"
        "'priorities': [{'rule': 'p', 'match': {'type': 'NOTE'}, 'priority':"
        " 'URGENT', 'when': {'==': [{'var': '%s'}, 'x']}}]}";
    static const struct {
        const char *path, *is, *priority;
        bool looks;
    } rows[] = {
        {"message.type", "NOTE", "message.context", false},
        {"agents.Z.state", "IDLE", "message.context", true},
        {"message.type", "NOTE", "history.0.type", true},
        {"message.type", "NOTE", "now", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static char file[2000];
        struct world w = em_world();
        struct envelope e = message_of("Leroy", "Rick", "NOTE");
        struct gate_rules *r;
        struct gate_result p;

        snprintf(file, sizeof(file), text, rows[i].path, rows[i].is,
                 rows[i].priority);
        r = rules_of(file);
        world_find(&w, "Rick")->queue = 1;
        p = decided(r, &w, &e);
        CHECK_INT(p.answer, GATE_HOLD_CAPACITY);
        CHECK(waits_for(&p, "queue:Rick"));
        CHECK(waits_for(&p, "look") == rows[i].looks);
        gate_rules_free(r);
    }
}

TEST(the_special_deadline_stands_before_the_general_one)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'sla': [{'rule': 'a', 'match': {'to': 'Z',"
                 " 'priority': 'HIGH'}, 'within': '90m'}, {'rule': 'b',"
                 " 'match': {'to': 'Z'}, 'within': '1d'}]}");
    struct world w = em_world();
    struct envelope e = seed_message();

    CHECK_STR(str_of(decided(r, &w, &e).sla),
              "Expected Z response within 1 day");
    e.priority = PRIORITY_HIGH;
    CHECK_STR(str_of(decided(r, &w, &e).sla),
              "Expected Z response within 90 minutes");
    gate_rules_free(r);
}

TEST(durations_in_words)
{
    static const struct {
        int64_t ms;
        const char *words;
    } rows[] = {
        {0, "less than a second"},
        {-5, "less than a second"},
        {1000, "1 second"},
        {59999, "59 seconds"},
        {MINUTE, "1 minute"},
        {15 * MINUTE, "15 minutes"},
        {2 * HOUR + MINUTE, "2 hours"},
        {DAY, "1 day"},
        {90 * DAY, "90 days"},
        {INT64_MAX, "106751991167 days"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct buf b;

        buf_init(&b, 100);
        gate_word_duration(&b, rows[i].ms);
        CHECK_STR(buf_str(&b), rows[i].words);
        buf_fini(&b);
    }
}

static char traced[8000];

static void on_line(void *ctx, struct str section, struct str rule, bool fired,
                    struct str why)
{
    size_t n = strlen(traced);

    (void)ctx;
    snprintf(traced + n, sizeof(traced) - n, "%.*s %.*s %s: %.*s\n",
             STR_ARG(section), STR_ARG(rule), fired ? "yes" : "no",
             STR_ARG(why));
}

TEST(every_rule_that_was_asked_tells_what_it_said)
{
    struct gate_rules *r = rules_of(
        "{" AGENTS "'safety_gates': [{'rule': 'g', 'agent': 'Z', 'match':"
        " {'type': 'SUBMISSION'}}],"
        "'escalations': [{'rule': 'e', 'match': {'type': ['A', 'B']}},"
        " {'rule': 'f', 'when': {'==': [{'var': 'message.from'}, 'Z']}}],"
        "'dependencies': [{'rule': 'd', 'match': {'type': 'SUBMISSION'},"
        " 'after': [{'type': 'SUBMITTED', 'from': 'Jay'}]}],"
        "'capacity': [{'rule': 'c', 'match': {'to': 'Z'}, 'queue': 1},"
        " {'rule': 'c2', 'match': {'to': 'Rick'}, 'queue': 1}]}");
    struct gate_trace t = {on_line, NULL};
    struct world w = em_world();
    struct gate_view v = world_view(&w);
    struct envelope e = message_of("Leroy", "Rick", "SUBMISSION");
    struct gate_result p;

    world_event(&w, "SUBM-C042-001", "Jay", "SUBMITTED", APPROVAL_NONE,
                NOW - 2 * MINUTE);
    world_find(&w, "Z")->state = AGENT_ACTIVE;
    world_find(&w, "Rick")->queue = 1;
    gate_decide(r, &v, &e, NOW, &p, &t);
    CHECK_STR(str_of(traced),
              "safety_gates g no: Z is ACTIVE\n"
              "escalations e no: type is SUBMISSION, not A or B\n"
              "escalations f no: its condition does not hold\n"
              "target  no: Rick is IDLE\n"
              "dependencies d no: Jay SUBMITTED 2 minutes ago\n"
              "capacity c no: to is Rick, not Z\n"
              "capacity c2 yes: 1 task waits for Rick, which takes no more "
              "than 1 at a time\n");
    gate_rules_free(r);
}

TEST(only_what_somebody_may_wait_for_is_an_event)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'dependencies': [{'rule': 'd', 'match':"
                 " {'type': 'NOTE'}, 'after': [{'type': 'SUBMITTED', 'from':"
                 " 'Jay'}]}]}");
    struct gate_rules *when =
        rules_of("{'escalations': [{'rule': 'h', 'when': {'var':"
                 " 'history.0'}}]}");
    struct envelope e = seed_message();

    CHECK(!gate_is_event(gate_rules_none(), &e));
    CHECK(!gate_is_event(r, &e));
    CHECK(gate_is_event(when, &e));
    e.type = STR("SUBMITTED");
    CHECK(gate_is_event(r, &e));
    gate_rules_free(r);
    gate_rules_free(when);
}

TEST(long_names_are_cut_between_characters)
{
    static char name[ENVELOPE_NAME_MAX + 1], reference[ENVELOPE_REFERENCE_MAX];
    struct world w = em_world();
    struct envelope e = seed_message();
    struct gate_result p;

    for (size_t i = 0; i + 1 < sizeof(name); i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    memset(reference, 'x', sizeof(reference));
    e.to = e.from = e.type = str_of(name);
    e.reference = (struct str){reference, sizeof(reference)};
    p = decided(gate_rules_none(), &w, &e);
    CHECK_INT(p.answer, GATE_ESCALATE);
    CHECK(strlen(p.reason) < sizeof(p.reason));
    CHECK(strstr(p.reason, "is not known here"));
}

TEST(an_age_is_not_cut_to_a_day)
{
    static const struct {
        int64_t minutes;
        const char *words;
    } cases[] = {{59, "59 minutes"},         {24 * 60, "1 day"},
                 {24 * 60 + 59, "24 hours"}, {30 * 60, "30 hours"},
                 {48 * 60, "2 days"},        {71 * 60, "2 days"}};
    struct buf out;

    buf_init(&out, 64);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        buf_clear(&out);
        gate_word_duration(&out, cases[i].minutes * 60000);
        CHECK_STR(buf_str(&out), cases[i].words);
    }
    buf_fini(&out);
}

/* Give an agent the name of one that the rules mean, without being it. */

static void make_foreign(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->n_agents; i++)
        if (str_eq_nocase(w->agents[i].name, str_of(name)))
            w->agents[i].is_foreign = true;
}

TEST(a_stranger_who_has_the_name_opens_no_gate)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'safety_gates': [{'rule': 'g', 'agent': 'Leroy', "
                 "'states': ['SLOW'], 'match': {'type': 'REQUEST'}}]}");
    struct world w = em_world();
    struct envelope e = seed_message();

    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    make_foreign(&w, "Leroy");
    CHECK_INT(decided(r, &w, &e).answer, GATE_PAUSE);
    CHECK(strstr(decided(r, &w, &e).reason, "Leroy is not an agent of the "
                                            "operator's"));
    gate_rules_free(r);
}

TEST(as_the_target_a_stranger_counts_and_in_conditions_not)
{
    struct gate_rules *r =
        rules_of("{" AGENTS "'escalations': [{'rule': 'x', 'when': "
                 "{'var': 'agents.Z.known'}}]}");
    struct world w = em_world();
    struct envelope e = seed_message();

    CHECK_INT(decided(r, &w, &e).answer, GATE_ESCALATE);
    make_foreign(&w, "Z");
    CHECK_STR(e.to, "Z");
    CHECK_INT(decided(r, &w, &e).answer, GATE_ROUTE);
    gate_rules_free(r);
}

TEST(a_file_says_who_may_hold_its_names)
{
    struct gate_rules *r =
        rules_of("{'agents': {'Jay': {'owner': 'em@example.org'}, 'Z': {}}}");
    struct str owner;

    CHECK(gate_rules_name(r, STR("jay"), &owner));
    CHECK_STR(owner, "em@example.org");
    CHECK(gate_rules_name(r, STR("Z"), &owner) && !owner.n);
    CHECK(!gate_rules_name(r, STR("Y"), &owner) && !owner.n);
    gate_rules_free(r);
}

/* Many rules, each of which reads many numbers of the payload. */
static struct gate_result decided_by_many(int n_rules, int n_numbers)
{
    struct envelope e = seed_message();
    struct world w = em_world();
    struct gate_rules *r;
    struct buf rules, payload;
    struct gate_result p;

    buf_init(&rules, 1 << 20);
    buf_init(&payload, 1 << 20);
    buf_add_str(&rules, STR("{'escalations': ["));
    for (int i = 0; i < n_rules; i++)
        buf_addf(&rules,
                 "%s{'rule': 'r%d', 'when': {'some': [{'var': "
                 "'message.payload.n'}, {'<': [{'var': ''}, 0]}]}}",
                 i ? "," : "", i);
    buf_add_str(&rules, STR("]}"));
    buf_add_char(&rules, '\0');
    buf_add_str(&payload, STR("{\"n\":["));
    for (int i = 0; i < n_numbers; i++)
        buf_addf(&payload, "%s%d", i ? "," : "", i);
    buf_add_str(&payload, STR("]}"));
    e.payload = buf_str(&payload);
    r = rules_of(rules.p);
    p = decided(r, &w, &e);
    gate_rules_free(r);
    buf_fini(&rules);
    buf_fini(&payload);
    return p;
}

/* A number takes three steps: 9,000 numbers are far below the limit of one
 * condition, and with 100 rules far above the limit for all of them. */
TEST(conditions_are_bounded_for_all_rules_together)
{
    struct gate_result p = decided_by_many(100, 9000);

    CHECK_INT(p.answer, GATE_ESCALATE);
    CHECK_INT(p.cause, PASS_UNJUDGED);
    CHECK_INT(decided_by_many(10, 9000).answer, GATE_ROUTE);
    CHECK_INT(decided_by_many(1, 30000).answer, GATE_ROUTE);
    CHECK_INT(decided_by_many(500, 50).answer, GATE_ROUTE);
}

TEST(the_test_above_would_notice_that_each_rule_has_all)
{
    fault_arm_at("gate.room_per_rule", 1);
    CHECK_INT(decided_by_many(100, 9000).answer, GATE_ROUTE);
}
