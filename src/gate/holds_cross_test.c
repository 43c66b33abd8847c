/* Changes that cross a release before its commit, and deadlines that pass
 * meanwhile: nothing is held forever. */
#include "test/lib/gatekeeper_stage.h"

static const char rules[] =
    "{'agents': {'Jay': {}, 'Z': {}, 'Rick': {}, 'Leroy': {}},"
    "'dependencies': [{'rule': 'order', 'match': {'to': 'Rick', 'type':"
    " 'ORDER'}, 'after': [{'type': 'SUBMITTED', 'from': 'Jay'}],"
    " 'hold_for': '2h'},"
    "{'rule': 'fresh', 'match': {'to': 'Rick', 'type': ['FRESH', 'HEAD']},"
    " 'after': [{'type': 'A', 'from': 'Jay', 'within': '10m'}, {'type': 'B',"
    " 'from': 'Jay'}], 'hold_for': '1h'}],"
    "'capacity': [{'rule': 'room', 'match': {'to': 'Leroy'}, 'queue': 1,"
    " 'hold_for': '1h'}]}";

static void open_all(void)
{
    stage_agent("Jay");
    stage_agent("Z");
    stage_agent("Rick");
    stage_agent("Leroy");
    stage_open(rules);
}

static void minutes(int n)
{
    for (int i = 0; i < n; i++)
        pass_ms(60000);
}

static void end_soon(const struct id *id, enum task_status to)
{
    stage_on_end(NULL, str_of(id->text),
                 &(struct task_result){.status = to, .text = STR("done")});
}

TEST(a_cancel_that_crosses_a_release_gives_back_its_room)
{
    struct sent a, b, c;

    open_all();
    a = sent("Jay", "Leroy", "X", "R-1");
    b = sent("Jay", "Leroy", "X", "R-2");
    CHECK_INT(status_of(&b.id), TASK_HELD);
    rest();
    end_soon(&a.id, TASK_COMPLETED);
    store_turn(stage.store); /* there is room for b */
    end_soon(&b.id, TASK_CANCELLED);
    loop_turn(&stage.loop); /* and its release is submitted behind it */
    rest();
    CHECK_INT(status_of(&b.id), TASK_CANCELLED);
    c = sent("Jay", "Leroy", "X", "R-3");
    CHECK_INT(c.gate_result.answer, GATE_ROUTE);
    stage_close(); /* no trace of it may remain */
}

TEST(a_clock_that_is_set_back_does_not_lose_the_end_of_a_hold)
{
    struct sent s;

    open_all();
    sent("Jay", "Leroy", "A", "R-1");
    s = sent("Jay", "Rick", "FRESH", "R-1");
    CHECK_INT(status_of(&s.id), TASK_HELD);
    rest();
    stage.now.wall_ms -= 5 * 60000;
    stage.loop.is_fresh = false;
    minutes(61);
    CHECK_INT(status_of(&s.id), TASK_EXPIRED);
    stage_close();
}

TEST(the_second_of_an_order_has_its_own_end)
{
    struct sent a, b;

    open_all();
    sent("Jay", "Z", "A", "R-1");
    a = sent("Jay", "Rick", "HEAD", "R-1");
    b = sent("Jay", "Rick", "FRESH", "R-1");
    CHECK_INT(status_of(&b.id), TASK_HELD);
    minutes(61);
    CHECK_INT(status_of(&a.id), TASK_EXPIRED);
    CHECK_INT(status_of(&b.id), TASK_EXPIRED);
    stage_close();
}

TEST(one_that_goes_while_all_are_looked_at_leaves_nobody_out)
{
    struct sent s[150];
    char reference[16];

    open_all();
    for (int i = 0; i < 150; i++) {
        snprintf(reference, sizeof(reference), "R-%d", i);
        s[i] = sent("Jay", "Rick", "ORDER", reference);
    }
    rest();
    CHECK_INT(rows_of(&hold_table), 150);
    gatekeeper_set_rules(stage.gatekeeper, gate_rules_none());
    loop_turn(&stage.loop); /* so many were looked at */
    end_soon(&s[GATEKEEPER_PER_TURN].id, TASK_CANCELLED);
    store_turn(stage.store);
    rest();
    CHECK_INT(rows_of(&hold_table), 0);
    CHECK_INT(status_of(&s[149].id), TASK_QUEUED);
    stage_close();
}
