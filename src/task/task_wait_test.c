/* Tasks that wait for an agent or the disk, and that a great many may wait
 * without a scan of all of them. Those tests measure no time: with a scan, they
 * would not finish within the limit. */
#include <sqlite3.h>

#include "test/lib/task_stage.h"

/* Sanitizers take their time for each as it is. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MANY = 10 * 1000, MANY_TIMES = 60 * 1000 };
#else
enum { MANY = 50 * 1000, MANY_TIMES = 300 * 1000 };
#endif

static void accept_many(const char *conversation, int n)
{
    struct msg *m[100];

    for (int i = 0; i < n; i += 100) {
        for (int k = 0; k < 100; k++) {
            m[k] = message("anna", conversation, "x");
            CHECK_INT(task_create(stage.tasks, m[k], NULL), OK);
            submit_message(m[k]);
        }
        store_turn(stage.store);
        for (int k = 0; k < 100; k++) {
            CHECK_INT(m[k]->err, OK);
            msg_free(m[k]);
        }
    }
    CHECK(tasks_check(stage.tasks));
}

/* Against the order of the rows, as if each were a further turn of a task that
 * is older than all those before it. */
static void turn_places_round(void)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/signalbox.db", stage.root);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "UPDATE task SET place = 1000000 - seq", NULL, NULL,
                       NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

TEST(a_start_takes_up_a_long_conversation_against_the_order_of_its_rows)
{
    stage_open();
    accept_many("c", MANY);
    stage_stop();
    turn_places_round();
    stage_start(); /* which checks the order */
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], MANY);
    for (int i = 0; i < 3; i++) {
        stage.n_ready = 0;
        loop_turn(&stage.loop);
        CHECK_INT(stage.n_ready, 1);
        CHECK_INT(found(&stage.ready[0])->seq, MANY - i);
        CHECK_INT(ended(&stage.ready[0], TASK_COMPLETED, ""), OK);
    }
    stage_close();
}

/* The loop's share of one round; the rest is the store's. */
static void plan_prune(void)
{
    struct tx tx;

    tx_init(&tx);
    tasks_prune(stage.tasks, &tx,
                &(struct tasks_keep){.now_ms = loop_wall_ms(&stage.loop),
                                     .before_ms = INT64_MAX,
                                     .limit = 500});
    CHECK_INT(tx.build_error, OK);
    tx_fini(&tx);
}

TEST(tidying_does_not_look_at_every_unfinished_task)
{
    stage_open();
    accept_many("", MANY);
    for (int i = 0; i < MANY_TIMES; i++)
        plan_prune();
    stage_close();
}

static void prune(void)
{
    struct tx tx;

    tx_init(&tx);
    tasks_prune(stage.tasks, &tx,
                &(struct tasks_keep){.now_ms = loop_wall_ms(&stage.loop),
                                     .before_ms = INT64_MAX,
                                     .oldest_ms = INT64_MAX,
                                     .limit = 500});
    commit_tx(&tx);
    tx_fini(&tx);
}

TEST(the_oldest_that_goes_on_keeps_its_conversation_whatever_the_clock_did)
{
    struct id a, b;

    stage_open();
    a = accepted("anna", "a", "x");
    stage.now.wall_ms -= 5000;
    turn();
    b = accepted("anna", "b", "x");
    stage.now.wall_ms += 9000;
    turn();
    accepted("anna", "c", "x");
    stage_restart();
    prune();
    CHECK_INT(rows_of(&conversation_table), 3);
    CHECK_INT(ended(&b, TASK_COMPLETED, ""), OK);
    prune();
    CHECK_INT(rows_of(&conversation_table), 2);
    CHECK_INT(ended(&a, TASK_COMPLETED, ""), OK);
    prune();
    CHECK_INT(rows_of(&conversation_table), 1);
    stage_close();
}

/* Waiting to be carried. */

TEST(what_cannot_be_carried_for_now_is_offered_again_by_itself)
{
    struct id id;

    stage_open();
    stage.is_starved = true;
    id = accepted("anna", "c", "x");
    turn();
    CHECK_INT(stage.n_ready, 1);
    pass_ms(999);
    CHECK_INT(stage.n_ready, 1);
    for (int i = 0; i < 5; i++)
        pass_ms(i ? 1000 : 1);
    CHECK_INT(stage.n_ready, 6);
    stage.is_starved = false;
    move(&id, TASK_DISPATCHED);
    pass_ms(9000);
    CHECK_INT(stage.n_ready, 6);
    /* An attempt that failed is put back, and comes again too. */
    move(&id, TASK_QUEUED);
    pass_ms(999);
    CHECK_INT(stage.n_ready, 6);
    pass_ms(1);
    turn();
    CHECK_INT(stage.n_ready, 7);
    stage_close();
}

TEST(what_waits_for_its_agent_is_offered_only_when_the_agents_have_changed)
{
    struct id absent;
    int n;

    stage_open();
    absent = accepted("anna", "absent", "x");
    turn();
    CHECK_INT(stage.n_ready, 1);
    stage.is_starved = true;
    accepted("anna", "later", "x");
    for (int i = 0; i < 10; i++)
        pass_ms(1000);
    CHECK(stage.n_ready > 9);
    for (int i = 1; i < stage.n_ready; i++)
        CHECK(strcmp(stage.ready[i].text, absent.text) != 0);
    n = stage.n_ready;
    tasks_offer_again(stage.tasks);
    turn();
    CHECK_INT(stage.n_ready, n + 2); /* now both */
    stage_close();
}

static int lines_with(FILE *f, const char *what)
{
    char line[1024];
    int n = 0;

    rewind(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, what) != NULL;
    return n;
}

TEST(that_a_task_waits_for_its_agent_is_logged_once)
{
    FILE *f = tmpfile();

    CHECK(f);
    stage_open();
    log_init(&stage.log, fileno(f), LOG_INFO, LOG_TEXT, clock_fake(&stage.now));
    accepted("anna", "a", "x");
    accepted("anna", "b", "x");
    for (int i = 0; i < 5; i++) {
        tasks_offer_again(stage.tasks);
        turn();
    }
    CHECK_INT(stage.n_ready, 10);
    CHECK_INT(lines_with(f, "task.waits_for_agent"), 2);
    stage_restart(); /* and once more in another life */
    turn();
    CHECK_INT(lines_with(f, "task.waits_for_agent"), 4);
    stage_close();
    fclose(f);
}

/* Waiting for the disk. */

/* Its answer came in time and was refused for want of space. */
static struct task_change *refused_answer(struct id *id)
{
    struct msg *m = message("anna", "c", "x");
    struct task_change *c;

    m->call.timeout_ms = 100;
    CHECK_INT(accept_turn(m, NULL), OK);
    *id = m->task.id;
    msg_free(m);
    turn();
    move(id, TASK_DISPATCHED);
    c = change(id, TASK_COMPLETED, "twelve bytes");
    CHECK_INT(tasks_stats(stage.tasks).held_result_bytes, 12);
    fault_arm_at("store.op.full", 1);
    submit_change(c);
    turn();
    CHECK(fault_fired() && c->err == ERR_NO_SPACE);
    fault_arm(0);
    CHECK_INT(tasks_stats(stage.tasks).held_result_bytes, 12);
    return c;
}

/* on_deadline ends the task, and the disk has space for that. */
static void expire_what_is_due(void)
{
    for (; stage.n_due; stage.n_due--)
        CHECK_INT(ended(&stage.due[stage.n_due - 1], TASK_EXPIRED, ""), OK);
}

static enum task_status end_with_space_back(struct id *id,
                                            struct task_change *c)
{
    for (int i = 0; i < 5; i++) {
        pass_ms(1000);
        expire_what_is_due();
    }
    if (task_change_again(stage.tasks, c) == OK) {
        submit_change(c);
        turn();
    }
    task_change_free(c);
    CHECK(tasks_check(stage.tasks));
    CHECK_INT(tasks_stats(stage.tasks).held_result_bytes, 0);
    pass_ms(5000);
    CHECK_INT(stage.n_due, 0);
    return status_in_store(id);
}

TEST(an_answer_that_waits_for_space_is_not_overtaken_by_its_deadline)
{
    struct task_change *c;
    struct id id;

    stage_open();
    c = refused_answer(&id);
    CHECK_INT(end_with_space_back(&id, c), TASK_COMPLETED);
    stage_close();
}

TEST(the_test_above_would_notice_a_deadline_that_does_not_wait)
{
    struct task_change *c;
    struct id id;

    stage_open();
    c = refused_answer(&id);
    fault_arm_at("task.answers_do_not_count", 1);
    CHECK_INT(end_with_space_back(&id, c), TASK_EXPIRED);
    CHECK(fault_fired());
    fault_arm(0);
    stage_close();
}

TEST(a_deadline_counts_again_once_the_answer_was_dropped)
{
    struct task_change *c;
    struct id id;

    stage_open();
    c = refused_answer(&id);
    pass_ms(3000);
    CHECK_INT(stage.n_due, 0);
    task_change_free(c);
    CHECK_INT(tasks_stats(stage.tasks).held_result_bytes, 0);
    pass_ms(1000);
    CHECK_INT(stage.n_due, 1);
    expire_what_is_due();
    CHECK_INT(status_in_store(&id), TASK_EXPIRED);
    stage_close();
}

/* Only an answer holds a deadline, and only that of its own turn. */
TEST(a_cancel_may_still_be_first_and_holds_no_deadline)
{
    struct task_change *c, *cancel;
    struct query q;
    struct task before;
    struct msg *m;
    struct id id;

    stage_open();
    c = refused_answer(&id);
    CHECK_INT(ended(&id, TASK_CANCELLED, ""), OK);
    CHECK_INT(tasks_stats(stage.tasks).held_result_bytes, 0);
    turn(); /* the turn is gone, and the answer is not */
    before = row_of(&q, &id);
    m = message("anna", "", "again");
    m->call.timeout_ms = 100;
    CHECK_INT(accept_turn(m, &before), OK);
    query_fini(&q);
    msg_free(m);
    cancel = change(&id, TASK_CANCELLED, "");
    pass_ms(100);
    CHECK_INT(stage.n_due, 1);
    CHECK_INT(task_change_again(stage.tasks, c), ERR_TASK_IS_OVER);
    task_change_free(c);
    task_change_free(cancel);
    stage_close();
}

/* A change may outlive the module. */
TEST(an_answer_may_be_dropped_after_everything_else_is_gone)
{
    struct task_change *c;
    struct id id;

    stage_open();
    c = refused_answer(&id);
    stage_close();
    task_change_free(c);
}
