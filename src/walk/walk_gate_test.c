/* Messages between agents through the whole walk, one case at a time: which
 * wait, which queue behind them, and ends meanwhile. walk_gate_random_test.c
 * checks the general properties. */
#include "test/lib/walk_gate_stage.h"

/* "echo" answers at once, "slow" guards its submissions. */
static const char rules_text[] =
    "{ \"agents\": {\"echo\": {}, \"slow\": {}, \"Jay\": {}},"
    "  \"safety_gates\": [{\"rule\": \"guard\", \"agent\": \"slow\","
    "     \"states\": [\"ERROR\"], \"match\": {\"type\": \"SUBMIT\"},"
    "     \"hold_for\": \"30d\"}],"
    "  \"dependencies\": [{\"rule\": \"first\","
    "     \"match\": {\"type\": \"ACT\"},"
    "     \"after\": [{\"type\": \"PREPARE\"}], \"hold_for\": \"30d\"}],"
    "  \"escalations\": [{\"rule\": \"ask\", \"match\": {\"type\": \"ASK\"}}],"
    "  \"duplicates\": [{\"rule\": \"again\","
    "     \"match\": {\"type\": \"MESSAGE\"}, \"within\": \"10m\"}],"
    "  \"sla\": [{\"rule\": \"soon\", \"match\": {\"to\": \"slow\"},"
    "     \"within\": \"5s\"}]}";

static void open_gate(void)
{
    stage_use_rules(rules_text);
    stage_open();
}

static struct id send_one(const char *type, bool is_urgent)
{
    return enveloped((struct enveloped){"echo", type, "r0", is_urgent});
}

static void guard(bool is_well)
{
    deliver_report(walk_deliver(stage.walk), STR("slow"),
                   is_well ? AGENT_IDLE : AGENT_ERROR);
    gatekeeper_agent_changed(walk_gatekeeper(stage.walk), STR("slow"));
}

static void pass_often(int n, int64_t ms)
{
    for (int i = 0; i < n; i++)
        pass_ms(ms);
}

TEST(an_urgent_one_passes_a_prerequisite_and_never_a_safety_gate)
{
    struct id held, urgent, gated;

    open_gate();
    held = send_one("ACT", false);
    urgent = send_one("ACT", true);
    guard(false);
    gated = send_one("SUBMIT", true);
    pass_often(10, 60000);
    CHECK_INT(status_of(&held), TASK_HELD);
    CHECK_INT(status_of(&urgent), TASK_COMPLETED);
    CHECK_INT(status_of(&gated), TASK_HELD);
    stage_restart();
    guard(false);
    pass_often(10, 1000);
    CHECK_INT(status_of(&held), TASK_HELD);
    send_one("PREPARE", true);
    guard(true);
    pass_often(10, 1000);
    CHECK_INT(status_of(&held), TASK_COMPLETED);
    CHECK_INT(status_of(&gated), TASK_COMPLETED);
    stage_close_gate();
}

TEST(a_persons_wish_ends_what_is_held)
{
    struct id held;

    open_gate();
    held = send_one("ACT", false);
    CHECK_INT(status_of(&held), TASK_HELD);
    CHECK_INT(
        walk_cancel(stage.walk, str_of(held.text), STR("Jay"), NULL, NULL), OK);
    pass_ms(0);
    CHECK_INT(status_of(&held), TASK_CANCELLED);
    send_one("PREPARE", false);
    pass_often(5, 1000);
    CHECK_INT(status_of(&held), TASK_CANCELLED);
    CHECK_INT(gatekeeper_stats(walk_gatekeeper(stage.walk)).held, 0);
    stage_close_gate();
}

/* Its deadline starts when no earlier message waits, whatever restarts are
 * between. */
TEST(what_stands_behind_a_held_one_waits_as_long_as_that)
{
    struct id held, behind;

    open_gate();
    held = send_one("ACT", false);
    behind = send_one("UPDATE", false);
    pass_often(120, 60000);
    CHECK_INT(status_of(&held), TASK_HELD);
    CHECK_INT(status_of(&behind), TASK_QUEUED);
    stage_restart();
    pass_often(10, 60000);
    CHECK_INT(status_of(&behind), TASK_QUEUED);
    send_one("PREPARE", true);
    pass_often(5, 1000);
    CHECK_INT(status_of(&held), TASK_COMPLETED);
    CHECK_INT(status_of(&behind), TASK_COMPLETED);
    stage_close_gate();
}

/* The deadline came after the decision that reassigned it: with the new agent
 * it has a new deadline. */
TEST(a_deadline_that_lost_to_a_redirect_is_dropped)
{
    struct id id;

    stage_use_rules(rules_text);
    stage_ground();
    stage.agents[0].url = STR("echo:600000");
    stage.agents[1].url = STR("echo:600000");
    stage_start();
    id = enveloped((struct enveloped){"slow", "X", "r0", false});
    pass_often(19, 1000); /* it is late, and a person was told */
    CHECK(said_of_open(0, ESCALATION_REDIRECTED, "echo"));
    CHECK_INT(walk_end(stage.walk, str_of(id.text),
                       &(struct task_result){.status = TASK_EXPIRED,
                                             .error_code = STR("expired")},
                       NULL, NULL),
              OK);
    pass_often(10, 1000);
    CHECK_INT(status_of(&id), TASK_QUEUED);
    pass_often(60, 1000);
    CHECK_INT(status_of(&id), TASK_EXPIRED);
    CHECK_INT(told_in_feed("task.expired", &id), 1);
    stage_close_gate();
}

TEST(a_person_who_says_the_same_again_keeps_the_answer_they_have)
{
    struct told first, again, other;
    char text[64], known[64];

    open_gate();
    first = sent((struct letter){.text = "hi"});
    pass_ms(1000);
    CHECK_INT(stored(&first.task_id, text, NULL), TASK_COMPLETED);
    CHECK_STR(str_of(text), "hi");
    again = sent((struct letter){.text = "hi", .task_id = first.task_id.text});
    pass_ms(1000);
    CHECK_INT(again.err, OK);
    CHECK_INT(told_in_feed("gate.dropped", &first.task_id), 1);
    CHECK_STR(str_of(end_known(&again.decision_id, known)),
              "dropped in 0 ms, 0 chars");
    CHECK_STR(str_of(end_known(&first.decision_id, known)),
              "done in 0 ms, 2 chars");
    CHECK_INT(stored(&first.task_id, text, NULL), TASK_COMPLETED);
    CHECK_STR(str_of(text), "hi");
    other = sent(
        (struct letter){.text = "delete it", .task_id = first.task_id.text});
    pass_ms(1000);
    CHECK_INT(other.err, OK);
    CHECK_INT(stored(&first.task_id, text, NULL), TASK_COMPLETED);
    CHECK_STR(str_of(text),
              "delete it"); /* a different text is a different message */
    stage_close_gate();
}

static size_t n_late(const struct id *id)
{
    struct query q;
    size_t n;

    query_init(&q, &escalation_table, 10);
    query_if(&q, ESCALATION_KIND, IS, value_int(ESCALATION_LATE));
    query_if(&q, ESCALATION_TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static bool says_late(const struct id *id)
{
    struct query q;
    char metadata[256];

    query_init(&q, &task_table, 1);
    query_if(&q, TASK_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    snprintf(metadata, sizeof(metadata), "%.*s",
             STR_ARG(row_str(q.rows, TASK_RESULT_METADATA)));
    query_fini(&q);
    return strstr(metadata, "\"late_ms\"");
}

/* For a held message, and for an approved one. */
TEST(an_answer_is_due_from_when_its_question_was_let_go)
{
    struct id held, asked, soon;

    stage_use_rules(rules_text);
    stage_ground();
    stage.agents[1].url = STR("echo:10000");
    stage_start();
    held = enveloped((struct enveloped){"slow", "ACT", "r0", false});
    asked = enveloped((struct enveloped){"slow", "ASK", "r1", false});
    pass_often(10, 60000);
    CHECK(n_late(&held) == 0 && n_late(&asked) == 0);
    soon = send_one("PREPARE", false);
    CHECK(said_of_open(0, ESCALATION_APPROVED, ""));
    pass_often(4, 1000);
    CHECK(n_late(&held) == 0 && n_late(&asked) == 0);
    pass_often(4, 1000);
    CHECK(n_late(&held) == 1 && n_late(&asked) == 1);
    pass_often(10, 1000);
    CHECK_INT(status_of(&held), TASK_COMPLETED);
    CHECK_INT(status_of(&asked), TASK_COMPLETED);
    CHECK(says_late(&held) && says_late(&asked) && !says_late(&soon));
    stage_close_gate();
}
