/* A message that is let go because its time is over is decided like any other,
 * except for the condition that held it: it passes no safety gate, and goes to
 * no dead agent. */
#include "test/lib/gatekeeper_stage.h"

enum { HOUR_MS = 3600 * 1000 };

static const char rules[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"
    "'safety_gates': [{'rule': 'z-gate', 'agent': 'Z', 'match': {'type':"
    " 'SUBMISSION'}, 'hold_for': '10h', 'on_expiry': 'route'}],"
    "'dependencies': [{'rule': 'order', 'match': {'to': ['Rick', 'Leroy'],"
    " 'type': ['SUBMISSION', 'ORDER']}, 'after': [{'type': 'B', 'from': "
    "'Jay'}],"
    " 'hold_for': '1h', 'on_expiry': 'route'},"
    "{'rule': 'seen', 'match': {'type': 'CARE'}, 'after': [{'type': 'B'}],"
    " 'hold_for': '1h', 'on_expiry': 'escalate'}],"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Leroy'}, 'queue': 1,"
    " 'hold_for': '2h', 'on_expiry': 'route'}],"
    "'sla': [{'rule': 'soon', 'within': '15m'}]}";

static void open_all(void)
{
    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_agent("Leroy");
    stage_open(rules);
}

static enum gate_answer answer_of(const struct id *id)
{
    const struct hold *h = hold_find(stage.gatekeeper, str_of(id->text));

    return h ? h->why->answer : 0;
}

TEST(what_waited_for_long_enough_goes_and_its_answer_is_due)
{
    struct sent s;

    open_all();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    CHECK_INT(s.gate_result.answer, GATE_HOLD_INPUT);
    pass_ms(HOUR_MS - 1);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    pass_ms(1);
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    CHECK_INT(rows_of(&hold_table), 0);
    CHECK_INT(rows_of(&expected_table), 1);
    CHECK_INT(feed_of("gate.released"), 1);
    stage_close();
}

TEST(what_is_to_be_seen_by_a_person_is)
{
    struct sent s;

    open_all();
    s = sent("Jay", "Rick", "CARE", "R-1");
    pass_ms(HOUR_MS);
    CHECK_INT(status_of(&s.id), TASK_ESCALATED);
    CHECK_INT(rows_of(&hold_table), 0);
    stage_close();
}

TEST(a_safety_gate_has_its_say_when_the_time_is_over)
{
    struct sent s;

    open_all();
    s = sent("Jay", "Rick", "SUBMISSION", "R-1");
    CHECK_INT(s.gate_result.answer, GATE_HOLD_INPUT);
    pass_ms(1000);
    stage_agent("Z")->state = AGENT_DEAD;
    pass_ms(HOUR_MS);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    CHECK_INT(answer_of(&s.id), GATE_PAUSE);
    CHECK_INT(feed_of("gate.paused"), 1);
    stage_stop(); /* a restart knows that its first deadline has passed */
    stage_start();
    rest();
    CHECK_INT(answer_of(&s.id), GATE_PAUSE);
    stage_agent("Z")->state = AGENT_IDLE;
    pass_ms(GATEKEEPER_STATES_MS);
    CHECK_INT(status_of(&s.id), TASK_QUEUED);
    CHECK_INT(rows_of(&expected_table), 1);
    stage_close();
}

TEST(a_gate_that_stays_shut_is_for_a_person)
{
    struct sent s;

    open_all();
    s = sent("Jay", "Rick", "SUBMISSION", "R-1");
    pass_ms(1000);
    stage_agent("Z")->state = AGENT_DEAD;
    pass_ms(HOUR_MS);
    CHECK_INT(answer_of(&s.id), GATE_PAUSE);
    pass_ms(9 * HOUR_MS - 2000);
    CHECK_INT(status_of(&s.id), TASK_HELD);
    pass_ms(2000); /* ten hours in total, the longest of its rules */
    CHECK_INT(status_of(&s.id), TASK_ESCALATED);
    stage_close();
}

TEST(one_whose_agent_is_dead_is_for_a_person)
{
    struct sent s;

    open_all();
    s = sent("Jay", "Rick", "ORDER", "R-1");
    pass_ms(1000);
    stage_agent("Rick")->state = AGENT_DEAD;
    pass_ms(HOUR_MS);
    CHECK_INT(status_of(&s.id), TASK_ESCALATED);
    CHECK_INT(rows_of(&hold_table), 0);
    stage_close();
}

TEST(room_that_it_did_not_wait_for_is_asked_about)
{
    struct sent a, b;

    open_all();
    b = sent("Jay", "Leroy", "ORDER", "R-2");
    a = sent("Jay", "Leroy", "NOTE", "R-1");
    CHECK_INT(a.gate_result.answer, GATE_ROUTE);
    CHECK_INT(b.gate_result.answer, GATE_HOLD_INPUT);
    pass_ms(HOUR_MS);
    CHECK_INT(status_of(&b.id), TASK_HELD);
    CHECK_INT(answer_of(&b.id), GATE_HOLD_CAPACITY);
    ends(&a.id, TASK_COMPLETED, "");
    CHECK_INT(status_of(&b.id), TASK_QUEUED);
    stage_close();
}

TEST(room_that_it_waited_for_is_not)
{
    struct sent a, b;

    open_all();
    a = sent("Jay", "Leroy", "NOTE", "R-1");
    b = sent("Jay", "Leroy", "NOTE", "R-2");
    CHECK_INT(b.gate_result.answer, GATE_HOLD_CAPACITY);
    pass_ms(2 * HOUR_MS);
    CHECK_INT(status_of(&a.id), TASK_QUEUED);
    CHECK_INT(status_of(&b.id), TASK_QUEUED);
    stage_close();
}
