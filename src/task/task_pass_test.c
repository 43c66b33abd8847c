/* Held, escalated and dropped tasks, and moves that are not an end. */
#include "test/lib/task_stage.h"

/* As part of the work on parent, if there is one. */
static struct id judged_below(const struct id *parent, const char *conversation,
                              enum gate_answer answer,
                              const struct envelope *envelope)
{
    struct msg *m = message("anna", conversation, "text");
    struct id id;

    m->gate.gate_result.answer = answer;
    m->gate.gate_result.priority = PRIORITY_HIGH;
    snprintf(m->gate.gate_result.reason, sizeof(m->gate.gate_result.reason),
             "a reason");
    m->call.timeout_ms = 5000;
    m->call.envelope = envelope;
    if (parent)
        m->delegation.parent_id = str_of(parent->text);
    CHECK_INT(accept_turn(m, NULL), OK);
    id = m->task.id;
    msg_free(m);
    return id;
}

static struct id judged(const char *conversation, enum gate_answer answer,
                        const struct envelope *envelope)
{
    return judged_below(NULL, conversation, answer, envelope);
}

static struct task_change *passing(const struct id *id, enum task_status to,
                                   const char *agent, enum err *e)
{
    return task_pass_new(
        stage.tasks, str_of(id->text),
        &(struct task_release){to, str_of(agent), PRIORITY_NORMAL}, e);
}

static enum err passed(const struct id *id, enum task_status to,
                       const char *agent)
{
    enum err e;
    struct task_change *c = passing(id, to, agent, &e);

    if (!c)
        return e;
    submit_change(c);
    store_turn(stage.store);
    e = c->err;
    task_change_free(c);
    CHECK(tasks_check(stage.tasks));
    return e;
}

TEST(what_is_held_holds_up_its_lane_and_its_time_waits)
{
    struct id held, next;

    stage_open();
    held = judged("c", GATE_HOLD_INPUT, NULL);
    next = judged("c", GATE_ROUTE, NULL);
    turn();
    CHECK_INT(stage.n_ready, 0);
    CHECK_INT(found(&held)->status, TASK_HELD);
    CHECK_INT(found(&held)->priority, PRIORITY_HIGH);
    pass_ms(5000);
    turn();
    stage_restart();
    CHECK_INT(found(&held)->status, TASK_HELD);
    pass_ms(100000);
    CHECK_INT(stage.n_due, 0); /* nor of who stands behind it */
    CHECK_INT(passed(&held, TASK_QUEUED, ""), OK);
    turn();
    CHECK_STR(str_of(stage.ready[stage.n_ready - 1].text), held.text);
    CHECK_INT(found(&held)->priority, PRIORITY_NORMAL);
    CHECK_INT(found(&held)->deadline_ms, stage.now.wall_ms + 5000);
    CHECK_INT(found(&next)->deadline_ms, stage.now.wall_ms + 5000);
    pass_ms(4999);
    turn();
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    turn();
    CHECK_INT(stage.n_due, 2);
    stage_close();
}

/* A restart may find any state of the first three tasks of a lane. */
static void check_left(const struct id ids[3], int64_t left_ms)
{
    stage_restart();
    stage.n_due = 0;
    for (int i = 0; i < 3; i++)
        if (found(&ids[i]))
            CHECK_INT(found(&ids[i])->deadline_ms, stage.now.wall_ms + left_ms);
    pass_ms(0);
    CHECK_INT(stage.n_due, 0);
}

TEST(a_time_that_began_late_is_no_shorter_after_a_start)
{
    struct id ids[3];

    stage_open();
    ids[0] = judged("c", GATE_HOLD_INPUT, NULL);
    ids[1] = judged("c", GATE_ROUTE, NULL);
    ids[2] = judged("c", GATE_ROUTE, NULL);
    pass_ms(60000);
    CHECK_INT(passed(&ids[0], TASK_QUEUED, ""), OK);
    pass_ms(1000);
    check_left(ids, 4000);
    CHECK_INT(ended(&ids[0], TASK_COMPLETED, ""), OK);
    check_left(ids, 4000);
    CHECK_INT(ended(&ids[1], TASK_CANCELLED, ""), OK);
    check_left(ids, 4000);
    pass_ms(4000);
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

TEST(a_time_begins_when_who_waited_before_it_ends)
{
    struct id ids[3];

    stage_open();
    ids[0] = judged("c", GATE_ESCALATE, NULL);
    ids[1] = judged("c", GATE_HOLD_INPUT, NULL);
    ids[2] = judged("c", GATE_ROUTE, NULL);
    pass_ms(60000);
    CHECK_INT(ended(&ids[1], TASK_CANCELLED, ""), OK);
    pass_ms(60000);
    CHECK_INT(stage.n_due, 0); /* one is left that waits */
    CHECK_INT(ended(&ids[0], TASK_CANCELLED, ""), OK);
    pass_ms(1000);
    check_left(ids, 4000);
    pass_ms(4000);
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

/* A task is taken from its agent: the time of the tasks behind it stops, and
 * starts again later. */
TEST(a_time_stops_when_who_is_before_it_must_wait_again)
{
    struct id first, next;

    stage_open();
    first = judged("c", GATE_ROUTE, NULL);
    next = judged("c", GATE_ROUTE, NULL);
    turn();
    move(&first, TASK_DISPATCHED);
    pass_ms(3000);
    CHECK_INT(passed(&first, TASK_HELD, "other"), OK);
    pass_ms(60000);
    CHECK_INT(stage.n_due, 0);
    CHECK_INT(passed(&next, TASK_HELD, ""), OK);
    CHECK_INT(passed(&next, TASK_QUEUED, ""), OK);
    pass_ms(60000);
    CHECK_INT(stage.n_due, 0);
    CHECK_INT(passed(&first, TASK_QUEUED, ""), OK);
    pass_ms(4999);
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    CHECK_INT(stage.n_due, 2);
    stage_close();
}

/* Held, and in the lane behind one that is: first, second and third of it. */
static void hold_children(const struct id *parent, struct id ids[3])
{
    ids[0] = judged_below(parent, "c", GATE_HOLD_INPUT, NULL);
    ids[1] = judged_below(parent, "c", GATE_ROUTE, NULL);
    ids[2] = judged_below(parent, "c", GATE_ROUTE, NULL);
}

TEST(a_child_that_waited_is_over_no_later_than_its_parent)
{
    struct id parent, ids[3];

    stage_open();
    parent = judged("p", GATE_ROUTE, NULL);
    hold_children(&parent, ids);
    turn();
    move(&parent, TASK_DISPATCHED);
    pass_ms(2000);
    CHECK_INT(passed(&ids[0], TASK_QUEUED, ""), OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(found(&ids[i])->deadline_ms, found(&parent)->deadline_ms);
    pass_ms(1000);
    CHECK_INT(passed(&ids[0], TASK_QUEUED, "other"), OK); /* handed over */
    check_left(ids, 2000);
    CHECK_INT(ended(&ids[0], TASK_COMPLETED, ""), OK);
    check_left(ids, 2000);
    pass_ms(1999);
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    CHECK_INT(stage.n_due, 3);
    stage_close();
}

TEST(a_child_of_a_parent_that_is_over_has_its_whole_time)
{
    struct id parent, ids[3];

    stage_open();
    parent = judged("p", GATE_ROUTE, NULL);
    hold_children(&parent, ids);
    turn();
    move(&parent, TASK_DISPATCHED);
    CHECK_INT(ended(&parent, TASK_COMPLETED, ""), OK);
    pass_ms(60000);
    CHECK_INT(passed(&ids[0], TASK_QUEUED, ""), OK);
    check_left(ids, 5000);
    stage_close();
}

/* They are not over, so they count as anything else. */
TEST(what_waits_counts_for_the_limits)
{
    struct msg *m;

    stage_ground();
    stage.limits.max_unfinished = 4;
    stage.limits.max_per_user = 3;
    stage_start();
    judged("c", GATE_HOLD_INPUT, NULL);
    judged("d", GATE_ESCALATE, NULL);
    judged("e", GATE_DROP, NULL); /* is over */
    judged("e", GATE_PAUSE, NULL);
    m = message("anna", "f", "text");
    CHECK_INT(accept_turn(m, NULL), ERR_TOO_MANY_TASKS);
    msg_free(m);
    accepted("ben", "c", "text");
    m = message("ben", "d", "text");
    CHECK_INT(accept_turn(m, NULL), ERR_OVERLOADED);
    msg_free(m);
    stage_restart();
    m = message("anna", "f", "text");
    CHECK_INT(accept_turn(m, NULL), ERR_TOO_MANY_TASKS);
    msg_free(m);
    stage_close();
}

static enum err dropped_turn(const struct id *id, struct id *message_id)
{
    struct msg *m = message("anna", "c", "again");
    struct query q;
    struct task before = row_of(&q, id);
    enum err e;

    m->gate.gate_result.answer = GATE_DROP;
    snprintf(m->gate.gate_result.reason, sizeof(m->gate.gate_result.reason),
             "a reason");
    e = accept_turn(m, &before);
    *message_id = m->task.message_id;
    msg_free(m);
    query_fini(&q);
    return e;
}

/* And who sent it finds what became of it. */
TEST(a_further_turn_that_is_dropped_leaves_the_answer_as_it_is)
{
    struct id id, message_id;
    struct msg *m;
    struct query q;
    struct task t;

    stage_open();
    id = judged("c", GATE_ROUTE, NULL);
    CHECK_INT(ended(&id, TASK_COMPLETED, "hi"), OK);
    turn();
    CHECK_INT(dropped_turn(&id, &message_id), OK);
    CHECK_INT(dropped_turn(&id, &message_id), OK);
    CHECK_INT(tasks_stats(stage.tasks).over_total[TASK_DROPPED], 2);
    CHECK(!found(&id));
    t = row_of(&q, &id);
    CHECK(t.status == TASK_COMPLETED && t.turn == 1);
    CHECK_STR(t.result.text, "hi");
    query_fini(&q);
    query_init(&q, &turn_table, 2);
    query_if(&q, TURN_MESSAGE_ID, IS, value_text(str_of(message_id.text)));
    look(&q);
    CHECK_INT(q.n_rows, 1);
    task_of_turn(&t, q.rows);
    CHECK(t.status == TASK_DROPPED && t.turn == 0);
    CHECK_STR(t.result.error, "a reason");
    query_fini(&q);
    t = row_of(&q, &id);
    m = message("anna", "c", "and then");
    CHECK_INT(accept_turn(m, &t), OK);
    CHECK_INT(m->task.turn, 2);
    msg_free(m);
    query_fini(&q);
    stage_close();
}

TEST(what_is_dropped_is_over_from_the_beginning)
{
    struct query q;
    struct task t;
    struct id id, next;

    stage_open();
    id = judged("c", GATE_DROP, NULL);
    CHECK_INT(tasks_stats(stage.tasks).over_total[TASK_DROPPED], 1);
    turn();
    CHECK(!found(&id));
    t = row_of(&q, &id);
    CHECK_INT(t.status, TASK_DROPPED);
    CHECK_INT(t.finished_ms, t.created_ms);
    CHECK_STR(t.result.error_code, "dropped");
    CHECK_STR(t.result.error, "a reason");
    query_fini(&q);
    query_init(&q, &conversation_table, 1);
    look(&q);
    CHECK(row_is_null(q.rows, CONVERSATION_AGENT));
    query_fini(&q);
    next = judged("c", GATE_ROUTE, NULL);
    turn();
    CHECK_STR(str_of(stage.ready[0].text), next.text);
    stage_restart();
    CHECK(!found(&id) && found(&next));
    stage_close();
}

TEST(a_held_task_counts_as_held_and_goes_over_to_another_agent)
{
    struct id id;
    struct str was;

    stage_open();
    id = judged("c", GATE_ESCALATE, NULL);
    was = found(&id)->agent;
    CHECK_INT(tasks_of_agent(stage.tasks, was), 0);
    CHECK_INT(tasks_held_of_agent(stage.tasks, was), 1);
    CHECK_INT(passed(&id, TASK_HELD, "Other"), OK);
    CHECK_INT(tasks_held_of_agent(stage.tasks, STR("OTHER")), 1);
    CHECK_STR(found(&id)->agent, "Other");
    CHECK_INT(passed(&id, TASK_QUEUED, ""), OK);
    CHECK_INT(tasks_of_agent(stage.tasks, STR("other")), 1);
    CHECK_INT(tasks_held_of_agent(stage.tasks, STR("other")), 0);
    stage_restart();
    CHECK_STR(found(&id)->agent, "Other");
    CHECK_INT(found(&id)->status, TASK_QUEUED);
    stage_close();
}

TEST(what_an_agent_has_is_taken_from_it_only_for_another)
{
    struct id id;
    int64_t attempt;

    stage_open();
    id = judged("c", GATE_ROUTE, NULL);
    turn();
    CHECK_INT(passed(&id, TASK_QUEUED, ""), ERR_NOT_ALLOWED);
    move(&id, TASK_DISPATCHED);
    attempt = found(&id)->attempt;
    CHECK_INT(passed(&id, TASK_QUEUED, ""), ERR_NOT_ALLOWED);
    CHECK_INT(passed(&id, TASK_HELD, ""), ERR_NOT_ALLOWED);
    CHECK_INT(passed(&id, TASK_QUEUED, "other"), OK);
    CHECK_INT(found(&id)->status, TASK_QUEUED);
    stage.n_ready = 0;
    turn();
    CHECK_INT(stage.n_ready, 1);
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, attempt + 1);
    stage_close();
}

/* The first of two changes wins, and the other may be made again. */
TEST(a_move_and_an_end_at_once)
{
    struct task_change *c, *end;
    struct id id;
    enum err e;

    stage_open();
    id = judged("c", GATE_HOLD_INPUT, NULL);
    c = passing(&id, TASK_QUEUED, "other", &e);
    end = change(&id, TASK_CANCELLED, "");
    submit_change(c);
    submit_change(end);
    store_turn(stage.store);
    CHECK_INT(c->err, OK);
    CHECK_INT(end->err, ERR_BUSY);
    CHECK_INT(task_change_again(stage.tasks, end), OK);
    submit_change(end);
    store_turn(stage.store);
    CHECK_INT(end->err, OK);
    task_change_free(c);
    task_change_free(end);
    id = judged("c", GATE_HOLD_INPUT, NULL);
    c = passing(&id, TASK_QUEUED, "other", &e);
    end = change(&id, TASK_CANCELLED, "");
    submit_change(end);
    submit_change(c);
    store_turn(stage.store);
    CHECK_INT(end->err, OK);
    CHECK_INT(c->err, ERR_TASK_IS_OVER);
    task_change_free(c);
    task_change_free(end);
    CHECK(tasks_check(stage.tasks));
    stage_close();
}

/* A result of who had it is not the other's. */
TEST(an_answer_on_its_way_does_not_count_for_another_agent)
{
    struct task_change *c, *end;
    struct id id;
    enum err e;

    stage_open();
    id = judged("c", GATE_ROUTE, NULL);
    turn();
    move(&id, TASK_DISPATCHED);
    c = passing(&id, TASK_QUEUED, "other", &e);
    end = change(&id, TASK_COMPLETED, "said");
    submit_change(c);
    submit_change(end);
    store_turn(stage.store);
    CHECK_INT(end->err, ERR_BUSY);
    CHECK_INT(task_change_again(stage.tasks, end), ERR_NOT_FOUND);
    task_change_free(c);
    task_change_free(end);
    stage_close();
}

TEST(envelopes_go_by_who_to_whom_about_what_and_how_urgent)
{
    struct envelope e = {.from = STR("Jay"),
                         .to = STR("x"),
                         .type = STR("T"),
                         .reference = STR("L/1")};
    struct query q;
    struct task t;
    struct id id;

    stage_open();
    id = judged("c", GATE_HOLD_INPUT, &e);
    t = row_of(&q, &id);
    CHECK(t.is_envelope && found(&id)->is_envelope);
    CHECK(str_eq(str_sub(t.order_key, t.order_key.n - 6, t.order_key.n),
                 STR("/n/L/1")));
    CHECK(str_starts(t.order_key, STR("/jay/")));
    query_fini(&q);
    stage_close();
}

TEST(an_envelope_about_nothing_in_particular_holds_up_no_other)
{
    struct envelope e = {.from = STR("Jay"), .to = STR("x"), .type = STR("T")};
    struct id next;

    stage_open();
    judged("c", GATE_ESCALATE, &e);
    next = judged("d", GATE_ROUTE, &e);
    turn();
    CHECK_INT(stage.n_ready, 1);
    CHECK_STR(str_of(stage.ready[0].text), next.text);
    stage_close();
}
