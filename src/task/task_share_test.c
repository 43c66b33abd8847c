/* One requester's share of the room for tasks: at the limit nothing happens,
 * one beyond it does, and others do not notice. */
#include "test/lib/task_stage.h"

static enum err try_one(const char *who, const char *text)
{
    struct msg *m = message(who, "", text);
    enum err e = accept_turn(m, NULL);

    CHECK((e == ERR_TOO_MANY_TASKS) ==
          (strstr(m->why.text, "tasks.maxUnfinishedPerUser: 3") != NULL));
    CHECK(tasks_check(stage.tasks));
    msg_free(m);
    return e;
}

static void open_three_each(void)
{
    stage_ground();
    stage.limits.max_per_user = 3;
    stage.limits.max_bytes_per_user = 100;
    stage_start();
}

/* Anna takes all she can; then another comes. */
static enum err another_after_many(void)
{
    int n = 0;

    while (n < 100 && try_one("anna", "x") == OK)
        n++;
    CHECK_INT(n, 3);
    return try_one("bert", "x");
}

TEST(one_user_at_the_limit_leaves_room_for_others)
{
    open_three_each();
    CHECK_INT(another_after_many(), OK);
    stage_close();
}

TEST(the_test_above_would_notice_one_share_for_all)
{
    open_three_each();
    fault_arm_at("task.one_share", 1);
    CHECK_INT(another_after_many(), ERR_TOO_MANY_TASKS);
    stage_close();
}

TEST(claims_count_and_what_is_over_makes_room)
{
    struct msg *m[4];
    struct id id;

    open_three_each();
    for (int i = 0; i < 4; i++)
        m[i] = message("anna", "", "x");
    for (int i = 0; i < 4; i++)
        CHECK_INT(task_create(stage.tasks, m[i], NULL),
                  i < 3 ? OK : ERR_TOO_MANY_TASKS);
    CHECK(!m[3]->task.claim && m[3]->tx.n_ops == 0);
    task_settle(stage.tasks, m[2]); /* never submitted: refused */
    CHECK_INT(accept_turn(m[3], NULL), OK);
    submit_message(m[0]);
    submit_message(m[1]);
    store_turn(stage.store);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    id = m[0]->task.id;
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    CHECK_INT(try_one("anna", "x"), OK);
    for (int i = 0; i < 4; i++)
        msg_free(m[i]);
    stage_close();
}

TEST(bytes_are_shared_too)
{
    char text[101];

    memset(text, 'x', 100);
    text[100] = '\0';
    open_three_each();
    CHECK_INT(try_one("anna", text + 1), OK);
    CHECK_INT(try_one("anna", "12"), ERR_TOO_MANY_TASKS);
    CHECK_INT(try_one("anna", "1"), OK);
    CHECK_INT(try_one("bert", text), OK);
    stage.limits.max_bytes_per_user = 0; /* as many as there may be */
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(try_one("anna", text), OK);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    stage.limits.max_per_user = 0;
    tasks_set_limits(stage.tasks, &stage.limits);
    for (int i = 0; i < 20; i++)
        CHECK_INT(try_one("anna", text), OK);
    stage_close();
}

TEST(what_was_accepted_is_taken_up_however_small_the_share_is_now)
{
    open_three_each();
    for (int i = 0; i < 3; i++)
        CHECK_INT(try_one("anna", "x"), OK);
    stage.limits.max_per_user = 1;
    stage_restart();
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], 3);
    stage.limits.max_per_user = 3; /* for the words in try_one */
    tasks_set_limits(stage.tasks, &stage.limits);
    CHECK_INT(try_one("anna", "x"), ERR_TOO_MANY_TASKS);
    CHECK_INT(try_one("bert", "x"), OK);
    stage_close();
}

TEST(a_further_turn_counts_for_whose_task_it_is)
{
    struct task before;
    struct query q;
    struct msg *m;
    struct id id;

    open_three_each();
    id = accepted("anna", "", "x");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(try_one("anna", "x"), OK);
    m = message("anna", "", "again");
    before = row_of(&q, &id);
    CHECK_INT(accept_turn(m, &before), ERR_TOO_MANY_TASKS);
    query_fini(&q);
    msg_free(m);
    stage_close();
}
