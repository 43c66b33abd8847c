/* The pause after an attempt that came to nothing, and how much each agent has
 * to do. */
#include "test/lib/task_stage.h"

static void retry(const struct id *id, int64_t delay_ms)
{
    task_retry(stage.tasks, str_of(id->text), delay_ms);
    CHECK(tasks_check(stage.tasks));
}

/* Accepted, offered, and an attempt is on its way. */
static struct id begun(const char *conversation)
{
    struct id id = accepted("anna", conversation, "x");

    turn();
    move(&id, TASK_DISPATCHED);
    stage.n_ready = 0;
    return id;
}

TEST(it_is_offered_again_when_the_pause_is_over_and_the_attempt_written)
{
    struct id id;

    stage_open();
    id = begun("c");
    retry(&id, 700);
    CHECK(found(&id)->status == TASK_QUEUED && found(&id)->attempt == 1);
    pass_ms(699);
    tasks_offer_again(stage.tasks); /* the pause stands */
    turn();
    CHECK_INT(stage.n_ready, 0);
    stage.n_ops = 0;
    pass_ms(1);
    CHECK_INT(stage.n_ready, 0); /* on its way to the disk */
    turn();
    CHECK_INT(stage.n_ops, 1);
    CHECK_INT(stage.n_ready, 1);
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, 2);
    stage_close();
}

TEST(each_has_its_own_pause)
{
    struct id a, b;

    stage_open();
    a = begun("a");
    b = begun("b");
    retry(&a, 3000);
    retry(&b, 100);
    pass_ms(100);
    turn();
    CHECK(stage.n_ready == 1 && strcmp(stage.ready[0].text, b.text) == 0);
    pass_ms(2900);
    turn();
    CHECK(stage.n_ready == 2 && strcmp(stage.ready[1].text, a.text) == 0);
    stage_close();
}

TEST(it_may_end_in_its_pause)
{
    struct id a, b;

    stage_open();
    a = begun("c");
    b = accepted("anna", "c", "y");
    retry(&a, 3000);
    CHECK_INT(ended(&a, TASK_CANCELLED, ""), OK);
    turn();
    CHECK(stage.n_ready == 1 && strcmp(stage.ready[0].text, b.text) == 0);
    pass_ms(5000);
    turn();
    CHECK_INT(stage.n_ready, 1);
    stage_close();
}

TEST(the_deadline_is_not_put_off_by_a_pause)
{
    struct id a;

    stage_open();
    a = begun("c");
    retry(&a, INT64_MAX / 4);
    pass_ms(600000);
    CHECK(stage.n_due == 1 && strcmp(stage.due[0].text, a.text) == 0);
    stage_close();
}

TEST(what_is_not_there_or_waits_already_stays_as_it_is)
{
    struct id a, b;

    stage_open();
    a = begun("c");
    b = accepted("anna", "c", "y"); /* behind a */
    retry(&b, 10);
    retry(&(struct id){"task_none"}, 10);
    CHECK_INT(ended(&a, TASK_COMPLETED, ""), OK);
    retry(&a, 10);
    turn();
    CHECK(stage.n_ready == 1 && strcmp(stage.ready[0].text, b.text) == 0);
    stage_close();
}

/* How much each agent has to do. */

static struct id accepted_for(const char *agent)
{
    struct msg *m = message("anna", "", "x");
    struct id id;

    m->choice.agent = str_of(agent);
    CHECK_INT(accept_turn(m, NULL), OK);
    id = m->task.id;
    msg_free(m);
    return id;
}

static size_t n_of(const char *agent)
{
    return tasks_of_agent(stage.tasks, str_of(agent));
}

TEST(tasks_are_counted_by_agent_until_they_are_over)
{
    struct id a, b;
    struct msg *m;

    stage_open();
    CHECK_INT(n_of("Anna"), 0);
    a = accepted_for("Anna");
    b = accepted_for("anna");
    accepted_for("bert");
    CHECK(n_of("ANNA") == 2 && n_of("bert") == 1 && n_of("ann") == 0);
    m = message("anna", "", "x"); /* on its way to the disk counts too */
    m->choice.agent = STR("anna");
    CHECK_INT(task_create(stage.tasks, m, NULL), OK);
    CHECK_INT(n_of("anna"), 3);
    submit_message(m);
    store_turn(stage.store);
    CHECK_INT(ended(&m->task.id, TASK_FAILED, ""), OK);
    msg_free(m);
    CHECK_INT(ended(&a, TASK_COMPLETED, ""), OK);
    CHECK_INT(n_of("anna"), 1);
    stage_restart();
    CHECK(n_of("anna") == 1 && n_of("bert") == 1);
    CHECK_INT(ended(&b, TASK_CANCELLED, ""), OK);
    CHECK(n_of("anna") == 0 && tasks_check(stage.tasks));
    stage_close();
}
