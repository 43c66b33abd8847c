/* Order, attempts, deadlines, and what a start takes up. */
#include "test/lib/task_stage.h"

static bool was_ready(int i, const struct id *id)
{
    return i < stage.n_ready && strcmp(stage.ready[i].text, id->text) == 0;
}

TEST(those_of_one_conversation_go_one_after_the_other)
{
    struct id a1, a2, a3, b1;

    stage_open();
    a1 = accepted("anna", "c", "1");
    a2 = accepted("anna", "c", "2");
    b1 = accepted("anna", "d", "1");
    a3 = accepted("anna", "c", "3");
    turn();
    CHECK(stage.n_ready == 2 && was_ready(0, &a1) && was_ready(1, &b1));
    move(&a1, TASK_DISPATCHED);
    move(&a1, TASK_WORKING);
    turn();
    CHECK_INT(stage.n_ready, 2);
    CHECK_INT(ended(&a2, TASK_CANCELLED, ""), OK); /* from the middle */
    turn();
    CHECK_INT(stage.n_ready, 2);
    CHECK_INT(ended(&a1, TASK_COMPLETED, ""), OK);
    CHECK_INT(stage.n_ready, 2);
    turn();
    CHECK(stage.n_ready == 3 && was_ready(2, &a3));
    stage_close();
}

TEST(two_users_have_two_conversations_of_one_name)
{
    struct id id[5];

    stage_open();
    id[0] = accepted("anna", "c", "x");
    id[1] = accepted("ben", "c", "x");
    id[2] = accepted("a", "b/c", "x");
    id[3] = accepted("a", "b", "x");
    id[4] = accepted("a", "/b", "x");
    turn();
    CHECK_INT(stage.n_ready, 5);
    for (int i = 0; i < 5; i++)
        CHECK(was_ready(i, &id[i]));
    stage_close();
}

TEST(any_bytes_name_a_conversation)
{
    char name[MSG_CONVERSATION_MAX];
    struct msg *m[2];

    memset(name, 0xf4, sizeof(name));
    name[3] = '\0';
    stage_open();
    for (int i = 0; i < 2; i++) {
        m[i] = message("anna", "", "x");
        m[i]->call.conversation_id = (struct str){name, sizeof(name)};
        name[sizeof(name) - 1]++; /* two names, alike but for the end */
        CHECK_INT(accept_turn(m[i], NULL), OK);
        CHECK_INT(m[i]->task.conversation_id.n, sizeof(name));
    }
    turn();
    CHECK_INT(stage.n_ready, 2);
    for (int i = 0; i < 2; i++)
        msg_free(m[i]);
    stage_close();
}

TEST(a_head_is_offered_once_until_somebody_asks_again)
{
    struct id a, b;

    stage_open();
    a = accepted("anna", "a", "x");
    b = accepted("anna", "b", "x");
    turn();
    CHECK_INT(stage.n_ready, 2);
    move(&b, TASK_DISPATCHED);
    turn();
    turn();
    CHECK_INT(stage.n_ready, 2);
    tasks_offer_again(stage.tasks);
    CHECK(tasks_check(stage.tasks));
    turn();
    CHECK(stage.n_ready == 3 && was_ready(2, &a));
    stage_close();
}

TEST(a_bounded_number_is_offered_in_one_turn)
{
    enum { N = 1000 };
    int seen = 0, turns = 0;

    stage_open();
    for (int i = 0; i < N; i++) {
        struct msg *m = message("anna", "", "x");

        CHECK_INT(task_create(stage.tasks, m, NULL), OK);
        submit_message(m);
        store_turn(stage.store);
        msg_free(m);
    }
    while (stage.n_ready < N) {
        loop_turn(&stage.loop);
        CHECK(stage.n_ready > seen && stage.n_ready <= seen + 256);
        seen = stage.n_ready;
        turns++;
    }
    CHECK(turns >= N / 256);
    CHECK(tasks_check(stage.tasks));
    stage_close();
}

/* A further turn has the old seq and yet waits behind what came before it. */
TEST(a_further_turn_waits_for_its_place_also_after_a_restart)
{
    struct id old, busy, waiting;
    struct task before;
    struct query q;
    struct msg *m;

    stage_open();
    old = accepted("anna", "c", "1");
    CHECK_INT(ended(&old, TASK_COMPLETED, ""), OK);
    turn();
    busy = accepted("anna", "c", "2");
    waiting = accepted("anna", "c", "3");
    before = row_of(&q, &old);
    m = message("anna", "", "4");
    CHECK_INT(accept_turn(m, &before), OK);
    query_fini(&q);
    msg_free(m);
    stage_restart();
    stage.n_ready = 0;
    turn();
    CHECK(stage.n_ready == 1 && was_ready(0, &busy));
    CHECK_INT(ended(&busy, TASK_COMPLETED, ""), OK);
    turn();
    CHECK(stage.n_ready == 2 && was_ready(1, &waiting));
    CHECK_INT(ended(&waiting, TASK_COMPLETED, ""), OK);
    turn();
    CHECK(stage.n_ready == 3 && was_ready(2, &old));
    stage_close();
}

TEST(a_clock_that_goes_back_does_not_change_the_order)
{
    struct id id[4];

    stage_open();
    id[0] = accepted("anna", "c", "1");
    turn();
    stage.now.wall_ms -= 900000;
    turn();
    id[1] = accepted("anna", "c", "2");
    stage_restart();
    stage.now.wall_ms -= 90000;
    turn();
    id[2] = accepted("anna", "c", "3");
    stage_restart();
    id[3] = accepted("anna", "c", "4");
    stage.n_ready = 0;
    for (int i = 0; i < 4; i++) {
        turn();
        CHECK(stage.n_ready == i + 1 && was_ready(i, &id[i]));
        CHECK_INT(ended(&id[i], TASK_COMPLETED, ""), OK);
    }
    stage_close();
}

/* Attempts. */

TEST(every_attempt_has_a_larger_number_over_any_number_of_restarts)
{
    int64_t last = 0;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    for (int life = 0; life < 5; life++) {
        /* Some lives try more than once, some not at all. */
        for (int i = 0; i < (life * 3) % 5; i++) {
            turn();
            turn();
            CHECK_INT(found(&id)->status, TASK_QUEUED);
            move(&id, TASK_DISPATCHED);
            CHECK(found(&id)->attempt > last);
            last = found(&id)->attempt;
            if (i % 2)
                move(&id, TASK_WORKING);
            move(&id, TASK_QUEUED);
            tasks_offer_again(stage.tasks);
        }
        stage_restart();
        CHECK(found(&id)->attempt >= last);
    }
    CHECK(last >= 8);
    stage_close();
}

TEST(a_start_writes_nothing_and_counts_the_last_attempt_as_failed)
{
    struct store_stats before, after;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    turn();
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, 1);
    stage_restart();
    before = store_stats(stage.store);
    CHECK_INT(found(&id)->status, TASK_QUEUED);
    CHECK_INT(found(&id)->attempt, 1);
    stage.n_ready = 0;
    turn();
    CHECK_INT(stage.n_ready, 1);
    after = store_stats(stage.store);
    CHECK_INT(after.rows_written_total, before.rows_written_total);
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, 2);
    CHECK_INT(ended(&id, TASK_COMPLETED, "late"), OK);
    stage_close();
}

TEST(an_attempt_after_a_start_is_counted_before_it_begins)
{
    struct id id, other;

    stage_open();
    id = accepted("anna", "c", "x");
    other = accepted("bert", "c", "x");
    for (int life = 0; life < 4; life++) {
        turn();
        CHECK_INT(found(&id)->interrupted, life ? life - 1 : 0);
        if (life == 3)
            pass_ms(999);
        CHECK_INT(stage.n_ready, life == 3 ? 1 : 2); /* a suspect waits */
        if (life == 3)
            pass_ms(1);
        move(&id, TASK_DISPATCHED);
        stage_restart();
        stage.n_ready = 0;
    }
    CHECK_INT(found(&id)->interrupted, 3);
    CHECK_INT(found(&other)->interrupted, 0); /* it was never given out */
    stage_close();
}

TEST(a_stop_in_order_interrupts_no_attempt)
{
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    for (int life = 0; life < 6; life++) {
        turn();
        CHECK_INT(found(&id)->interrupted, 0);
        CHECK_INT(stage.n_ready, 1);
        move(&id, TASK_DISPATCHED);
        CHECK_INT(found(&id)->attempt, life + 1);
        store_note_stop(stage.store);
        stage_restart();
        stage.n_ready = 0;
    }
    stage_close();
}

TEST(a_second_attempt_in_one_life_is_written_before_it_is_offered)
{
    struct query q;
    struct task t;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    turn();
    move(&id, TASK_DISPATCHED);
    move(&id, TASK_QUEUED);
    turn();
    CHECK_INT(stage.n_ready, 1); /* not by itself */
    tasks_offer_again(stage.tasks);
    loop_turn(&stage.loop);
    CHECK(tasks_check(stage.tasks));
    CHECK_INT(stage.n_ready, 1); /* on its way to the disk */
    turn();
    CHECK_INT(stage.n_ready, 2);
    t = row_of(&q, &id);
    CHECK_INT(t.attempt, 1);
    CHECK_INT(t.version, 1);
    query_fini(&q);
    move(&id, TASK_DISPATCHED);
    CHECK_INT(found(&id)->attempt, 2);
    stage_close();
}

TEST(an_attempt_that_cannot_be_written_is_tried_again_a_second_later)
{
    struct id id;

    stage_open();
    log_set(&stage.log, LOG_ERROR, LOG_TEXT);
    id = accepted("anna", "c", "x");
    turn();
    for (int i = 0; i < 2; i++) {
        int n = stage.n_ready;

        move(&id, TASK_DISPATCHED);
        move(&id, TASK_QUEUED);
        fault_arm_at("store.op.full", 1);
        tasks_offer_again(stage.tasks);
        turn();
        turn();
        CHECK(fault_fired() && stage.n_ready == n);
        pass_ms(999);
        CHECK_INT(stage.n_ready, n);
        pass_ms(1);
        turn();
        CHECK_INT(stage.n_ready, n + 1);
    }
    stage_close();
}

TEST(a_task_may_end_while_its_attempt_is_being_written)
{
    struct task_change *c;
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    turn();
    move(&id, TASK_DISPATCHED);
    move(&id, TASK_QUEUED);
    tasks_offer_again(stage.tasks);
    c = change(&id, TASK_CANCELLED, "");
    submit_change(c); /* before the attempt, whose guard then fails */
    loop_turn(&stage.loop);
    turn();
    CHECK_INT(c->err, OK);
    task_change_free(c);
    turn();
    CHECK(!found(&id) && stage.n_ready == 1);

    id = accepted("anna", "c", "y");
    turn();
    move(&id, TASK_DISPATCHED);
    move(&id, TASK_QUEUED);
    tasks_offer_again(stage.tasks);
    loop_turn(&stage.loop);
    CHECK_INT(ended(&id, TASK_EXPIRED, ""), OK); /* and behind it */
    turn();
    CHECK(!found(&id));
    stage_close();
}

/* Deadlines. */

TEST(a_deadline_comes_to_the_millisecond_and_once)
{
    struct msg *m;

    stage_open();
    m = message("anna", "c", "x");
    m->call.timeout_ms = 100;
    CHECK_INT(accept_turn(m, NULL), OK);
    pass_ms(99);
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    CHECK_INT(stage.n_due, 1);
    CHECK_STR(str_of(stage.due[0].text), m->task.id.text);
    pass_ms(5000);
    CHECK_INT(stage.n_due, 1);
    msg_free(m);
    stage_close();
}

TEST(a_deadline_that_was_not_dealt_with_comes_again)
{
    struct msg *m;

    stage_open();
    stage.is_deadline_refused = true;
    m = message("anna", "c", "x");
    m->call.timeout_ms = 1;
    CHECK_INT(accept_turn(m, NULL), OK);
    pass_ms(1);
    CHECK_INT(stage.n_due, 1);
    pass_ms(999);
    CHECK_INT(stage.n_due, 1);
    pass_ms(1);
    CHECK_INT(stage.n_due, 2);
    stage.is_deadline_refused = false;
    pass_ms(1000);
    CHECK_INT(stage.n_due, 3);
    pass_ms(9000);
    CHECK_INT(stage.n_due, 3);
    msg_free(m);
    stage_close();
}

TEST(a_task_that_is_over_has_no_deadline)
{
    struct id id;

    stage_open();
    id = accepted("anna", "c", "x");
    CHECK_INT(ended(&id, TASK_COMPLETED, ""), OK);
    pass_ms(600000);
    CHECK_INT(stage.n_due, 0);
    stage_close();
}

TEST(a_deadline_that_passes_before_the_commit_comes_after_it)
{
    struct msg *m;

    stage_open();
    m = message("anna", "c", "x");
    m->call.timeout_ms = 1;
    CHECK_INT(task_create(stage.tasks, m, NULL), OK);
    stage.now.mono_ms += 50;
    loop_turn(&stage.loop);
    CHECK_INT(stage.n_due, 0);
    submit_message(m);
    turn();
    CHECK_INT(stage.n_due, 1);
    msg_free(m);
    stage_close();
}

TEST(a_wall_clock_that_jumps_ends_nothing_early_or_late)
{
    stage_open();
    accepted("anna", "c", "x");
    stage.now.wall_ms += 10 * 600000;
    turn();
    CHECK_INT(stage.n_due, 0);
    stage.now.wall_ms -= 20 * 600000;
    turn();
    stage.now.mono_ms += 599999;
    turn();
    CHECK_INT(stage.n_due, 0);
    stage.now.mono_ms += 1;
    turn();
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

TEST(after_a_restart_what_is_left_of_the_time_counts)
{
    stage_open();
    accepted("anna", "c", "x");
    pass_ms(200000);
    stage_restart();
    pass_ms(399999);
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

TEST(after_a_restart_with_the_clock_set_back_nobody_gets_more_time)
{
    stage_open();
    accepted("anna", "c", "x");
    stage.now.wall_ms = 0;
    turn();
    stage_restart();
    pass_ms(599999);
    CHECK_INT(stage.n_due, 0);
    pass_ms(1);
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

TEST(what_expired_while_the_server_was_away_is_due_at_once)
{
    stage_open();
    accepted("anna", "c", "x");
    stage_stop();
    stage.now.wall_ms += 700000;
    loop_turn(&stage.loop);
    stage_start();
    CHECK_INT(stage.n_due, 0); /* but not before the loop runs */
    turn();
    CHECK_INT(stage.n_due, 1);
    stage_close();
}

/* Starts. */

TEST(a_start_takes_up_what_is_not_over_and_only_that)
{
    struct id a, b;

    stage_open();
    a = accepted("anna", "c", "first");
    b = accepted("anna", "d", "second");
    CHECK_INT(ended(&a, TASK_COMPLETED, ""), OK);
    stage_restart();
    CHECK(!found(&a) && found(&b));
    CHECK_STR(found(&b)->text, "second");
    CHECK_STR(found(&b)->order_key, "anna/d");
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], 1);
    CHECK_INT(tasks_stats(stage.tasks).unfinished_bytes, 6);
    stage.n_ready = 0;
    turn();
    CHECK(stage.n_ready == 1 && was_ready(0, &b));
    stage_close();
}

TEST(a_start_takes_up_thousands_in_order)
{
    enum { N = 3000 };
    char name[16];

    stage_open();
    for (int i = 0; i < N; i++) {
        struct msg *m;

        snprintf(name, sizeof(name), "c-%d", i % 100);
        m = message("anna", name, "hello there");
        CHECK_INT(task_create(stage.tasks, m, NULL), OK);
        submit_message(m);
        store_turn(stage.store);
        msg_free(m);
    }
    stage_restart();
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], N);
    for (int done = 0; done < N;) {
        stage.n_ready = 0;
        loop_turn(&stage.loop);
        CHECK(stage.n_ready > 0);
        for (int i = 0; i < stage.n_ready; i++, done++) {
            const struct task *t = found(&stage.ready[i]);
            struct task_change *c;

            CHECK_INT(t->seq, done + 1); /* the lanes take turns */
            c = change(&stage.ready[i], TASK_COMPLETED, "x");
            submit_change(c);
            store_turn(stage.store);
            CHECK_INT(c->err, OK);
            task_change_free(c);
        }
    }
    turn();
    CHECK_INT(tasks_stats(stage.tasks).by_status[TASK_QUEUED], 0);
    CHECK_INT(tasks_stats(stage.tasks).ring_bytes, 0);
    stage_close();
}

TEST(a_row_that_nobody_understands_stops_the_start)
{
    struct why why = {""};
    struct tx_op *op;
    struct tx tx;

    stage_open();
    accepted("anna", "c", "x");
    tx_init(&tx);
    op = tx_update(&tx, &task_table);
    tx_if(op, TASK_SEQ, IS, value_int(1));
    tx_set(op, TASK_STATUS, value_int(77));
    commit_tx(&tx);
    tx_fini(&tx);
    stage_stop();
    CHECK_INT(stage_open_store(&why), OK);
    stage.tasks = stage_new_tasks();
    CHECK_INT(tasks_load(stage.tasks, 0, &why), ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "newer version"));
    stage_close();
}
