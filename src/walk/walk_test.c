/* The walk of messages through all stages, without sockets. */
#include "test/lib/walk_stage.h"

TEST(a_message_is_accepted_carried_and_answered_once)
{
    struct told t;
    char text[64];
    int64_t attempt;

    stage_open();
    t = sent((struct letter){.text = "good morning"});
    CHECK_INT(t.err, OK);
    pass_ms(1);
    CHECK_INT(stored(&t.task_id, text, &attempt), TASK_COMPLETED);
    CHECK(strcmp(text, "good morning") == 0 && attempt == 1);
    CHECK_INT(told_in_feed("task.accepted", &t.task_id), 1);
    CHECK_INT(told_in_feed("task.completed", &t.task_id), 1);
    stage_close();
}

TEST(a_message_to_nobody_makes_no_task)
{
    struct told t;

    stage_open();
    t = sent((struct letter){.to = "ecko", .key = "k"});
    CHECK_INT(t.err, ERR_AGENT_NOT_FOUND);
    CHECK(strstr(t.why.text, "echo"));
    CHECK_INT(told_in_feed("task.accepted", NULL), 0);
    CHECK_INT(sent((struct letter){.to = "echo", .key = "k"}).err, OK);
    stage_close();
}

TEST(a_repeat_gives_back_the_same_task_whatever_has_changed)
{
    struct told first, t;

    stage_open();
    first = sent((struct letter){.to = "slow", .key = "k"});
    CHECK_INT(first.err, OK);
    /* While it runs, when it is over, after a restart, and without the
     * agent. */
    for (int i = 0; i < 4; i++) {
        t = sent((struct letter){.to = "slow", .key = "k"});
        CHECK(t.err == OK && t.is_repeat);
        CHECK(strcmp(t.task_id.text, first.task_id.text) == 0);
        if (i == 0)
            pass_ms(1000);
        else if (i == 1)
            stage_restart();
        else if (i == 2)
            stage.n_agents = 0, stage_restart();
    }
    CHECK_INT(told_in_feed("task.accepted", NULL), 1);
    t = sent((struct letter){.to = "slow", .key = "k", .text = "another"});
    CHECK_INT(t.err, ERR_IDEMPOTENCY_MISMATCH);
    CHECK(t.why.text[0] == '\0');
    /* The same key of another user is another key. */
    stage.n_agents = 2;
    stage_restart();
    t = sent((struct letter){.from = "bob", .key = "k"});
    CHECK(t.err == OK && !t.is_repeat);
    /* After a day it is free again. */
    pass_ms(24 * 3600 * 1000);
    t = sent((struct letter){.to = "slow", .key = "k", .text = "another"});
    CHECK(t.err == OK && !t.is_repeat);
    stage_close();
}

TEST(two_at_once_with_one_key_are_one_task)
{
    struct told a, b;

    stage_open();
    CHECK(post((struct letter){.key = "k"}, &a));
    CHECK(post((struct letter){.key = "k"}, &b));
    pass_ms(0);
    CHECK(a.is_back && b.is_back && !a.err && !b.err);
    CHECK(!a.is_repeat && b.is_repeat);
    CHECK(strcmp(a.task_id.text, b.task_id.text) == 0);
    CHECK_INT(told_in_feed("task.accepted", NULL), 1);
    stage_close();
}

TEST(a_further_turn_is_the_same_task_and_only_for_who_may_see_it)
{
    struct told first, t;
    struct letter more = {.text = "and more", .key = "second"};

    stage_open();
    first = sent((struct letter){.to = "slow", .text = "one"});
    more.task_id = first.task_id.text;
    CHECK_INT(sent(more).err, ERR_TASK_NOT_OVER);
    pass_ms(1000);
    more.from = "bob";
    CHECK_INT(sent(more).err, ERR_NOT_FOUND);
    more.from = "admin"; /* who may see it, but does not own it */
    t = sent(more);
    CHECK_INT(t.err, ERR_NOT_ALLOWED);
    CHECK(strstr(t.why.text, "anna"));
    more.from = NULL;
    stage_restart(); /* not in memory any more */
    t = sent(more);
    CHECK(t.err == OK && strcmp(t.task_id.text, first.task_id.text) == 0);
    CHECK(sent(more).is_repeat); /* although it is not over now */
    pass_ms(1000);
    CHECK_INT(told_in_feed("task.completed", &t.task_id), 2);
    more.task_id = "task_00000000000000000000000000";
    more.key = NULL;
    CHECK_INT(sent(more).err, ERR_NOT_FOUND);
    stage_close();
}

/* The row is read, the turn is rejected, and then the key is looked up. */
TEST(a_further_turn_that_is_refused_may_yet_be_a_repeat)
{
    struct told first, t[3];
    struct letter more = {.key = "second"};

    stage_open();
    first = sent((struct letter){.to = "slow"});
    more.task_id = first.task_id.text;
    pass_ms(1000);
    stage.n_agents = 1; /* the agent of the task is gone */
    stage_restart();
    CHECK_INT(sent(more).err, ERR_AGENT_NOT_FOUND);
    stage.n_agents = 2;
    stage_restart();
    for (int i = 0; i < 3; i++)
        CHECK(post(more, &t[i]));
    pass_ms(0);
    for (int i = 0; i < 3; i++) {
        CHECK(t[i].is_back && t[i].err == OK);
        CHECK(t[i].is_repeat == (i > 0));
    }
    CHECK_INT(told_in_feed("task.accepted", &first.task_id), 2);
    stage_close();
}

static void on_cancelled(void *ctx, struct str task_id, enum err e)
{
    (void)task_id;
    *(int *)ctx = e ? (int)e : -1;
}

TEST(a_cancel_ends_it_and_no_result_comes)
{
    struct told t;
    int told = 0, again = 0;

    stage_open();
    t = sent((struct letter){.to = "slow"});
    CHECK_INT(walk_cancel(stage.walk, str_of(t.task_id.text), STR("anna"),
                          on_cancelled, &told),
              OK);
    CHECK_INT(walk_cancel(stage.walk, str_of(t.task_id.text), STR("anna"),
                          on_cancelled, &again),
              OK);
    CHECK(told == 0);
    pass_ms(0);
    CHECK_INT(told, -1);
    CHECK_INT(again, ERR_TASK_IS_OVER);
    pass_ms(5000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_CANCELLED);
    CHECK_INT(told_in_feed("task.completed", &t.task_id), 0);
    CHECK_INT(told_in_feed("task.cancelled", &t.task_id), 1);
    stage_close();
}

TEST(a_deadline_ends_it_and_a_jump_of_the_clock_does_not)
{
    struct told t;

    stage_open();
    t = sent((struct letter){.to = "slow", .timeout_ms = 900});
    stage.now.wall_ms += 3600 * 1000;
    pass_ms(0);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    stage.now.wall_ms -= 2 * 3600 * 1000;
    pass_ms(900);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_EXPIRED);
    pass_ms(5000);
    CHECK_INT(told_in_feed("task.expired", &t.task_id), 1);
    CHECK_INT(told_in_feed("task.completed", &t.task_id), 0);
    stage_close();
}

TEST(what_was_not_done_is_done_after_a_restart_with_another_attempt)
{
    struct told t;
    int64_t attempt;

    stage_open();
    t = sent((struct letter){.to = "slow"});
    stage_restart();
    pass_ms(500);
    stage_restart();
    pass_ms(500);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, &attempt), TASK_COMPLETED);
    CHECK_INT(attempt, 3);
    stage_close();
}

TEST(a_task_waits_for_an_agent_that_is_gone)
{
    struct walk_opts opts;
    struct told t;
    struct why why;

    stage_open();
    t = sent((struct letter){.to = "slow"});
    stage.n_agents = 1;
    stage_restart();
    pass_ms(2000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    opts = stage_walk_opts();
    stage.n_agents = 2;
    CHECK_INT(stage_configure(&why), OK);
    walk_set(stage.walk, &opts);
    pass_ms(0);
    pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

/* Tasks of a conversation run one after the other, in the order of
 * acceptance. */
TEST(order_is_kept_in_a_conversation)
{
    struct told t[5];

    stage_open();
    for (int i = 0; i < 5; i++)
        CHECK(post(
            (struct letter){.to = i % 2 ? "echo" : "slow", .conversation = "c"},
            &t[i]));
    pass_ms(0);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(stored(&t[i].task_id, NULL, NULL),
                  i % 2 ? TASK_COMPLETED : TASK_QUEUED);
        if (i % 2 == 0 && i < 4)
            CHECK_INT(stored(&t[i + 1].task_id, NULL, NULL), TASK_QUEUED);
        if (i % 2 == 0)
            pass_ms(1000);
        CHECK_INT(stored(&t[i].task_id, NULL, NULL), TASK_COMPLETED);
    }
    stage_close();
}

/* A full disk: new work is rejected, the agent's result is not lost. */
TEST(a_result_waits_for_space_and_its_deadline_does_not_take_it)
{
    struct told t, refused;
    char text[64];

    stage_open();
    t = sent((struct letter){.to = "slow", .timeout_ms = 1200, .text = "kept"});
    for (int i = 0; i < 10; i++) {
        fault_arm_at("store.op.full", 1);
        pass_ms(i ? 500 : 1000);
        CHECK(fault_fired());
        CHECK_INT(walk_stats(stage.walk).results_waiting, 1);
    }
    fault_arm_at("store.op.full", 1);
    refused = sent((struct letter){.key = "new"});
    CHECK_INT(refused.err, ERR_NO_SPACE);
    fault_arm(0);
    pass_ms(500);
    CHECK_INT(stored(&t.task_id, text, NULL), TASK_COMPLETED);
    CHECK(strcmp(text, "kept") == 0);
    CHECK_INT(walk_stats(stage.walk).results_waiting, 0);
    CHECK_INT(told_in_feed("task.accepted", NULL), 1);
    stage_close();
}

/* The result is tried again just when the deadline passes; small writes would
 * still fit. */
TEST(a_deadline_does_not_overtake_a_result_that_is_being_tried_again)
{
    struct told t;

    stage_open();
    t = sent((struct letter){.to = "slow", .timeout_ms = 1501});
    fault_arm_at("store.op.full", 1);
    pass_ms(1000);
    CHECK(fault_fired());
    fault_arm_at("store.op.full", 1);
    pass_ms(501);
    CHECK(fault_fired());
    CHECK_INT(walk_stats(stage.walk).results_waiting, 1);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    fault_arm(0);
    pass_ms(500);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    pass_ms(5000);
    CHECK_INT(told_in_feed("task.expired", NULL), 0);
    stage_close();
}

/* One batch of retries does not wait once there is space. */
TEST(what_waited_for_space_is_written_without_a_pause)
{
    enum { MANY = 700 };
    struct told t[MANY];

    stage_open();
    for (int i = 0; i < MANY; i++)
        CHECK(post((struct letter){.to = "slow"}, &t[i]));
    pass_ms(0);
    stage.now.mono_ms += 1000;
    for (int i = 0; i < 40; i++) {
        fault_arm_at("store.begin.busy", 1);
        loop_turn(&stage.loop);
    }
    CHECK_INT(walk_stats(stage.walk).results_waiting, MANY);
    fault_arm(0);
    pass_ms(500);
    CHECK_INT(walk_stats(stage.walk).results_waiting, 0);
    CHECK_INT(told_in_feed("task.completed", NULL), MANY);
    stage_close();
}

/* More than the limit: the agent does the task again, and nothing is lost. */
TEST(results_that_wait_for_space_have_a_limit)
{
    struct walk_opts opts;
    struct told t;
    struct why why;
    char text[64];
    int64_t attempt;

    stage_open();
    t = sent((struct letter){.to = "slow", .text = "longer than ten"});
    opts = stage_walk_opts();
    opts.limits.max_unfinished_bytes = 10;
    stage.n_agents = 2;
    CHECK_INT(stage_configure(&why), OK);
    walk_set(stage.walk, &opts);
    fault_arm_at("store.op.full", 1);
    pass_ms(1000);
    CHECK(fault_fired());
    CHECK_INT(walk_stats(stage.walk).results_waiting, 0);
    fault_arm(0);
    for (int i = 0; i < 8; i++)
        pass_ms(500);
    CHECK_INT(stored(&t.task_id, text, &attempt), TASK_COMPLETED);
    CHECK(attempt == 2 && strcmp(text, "longer than ten") == 0);
    stage_close();
}

/* An end without a result does not count for the limit and waits for space. */
TEST(an_end_that_is_no_result_waits_for_space_too)
{
    struct walk_opts opts;
    struct told first, behind;
    struct why why;

    stage_open();
    first = sent((struct letter){.to = "slow", .conversation = "c"});
    behind = sent(
        (struct letter){.to = "slow", .conversation = "c", .timeout_ms = 1250});
    fault_arm_at("store.op.full", 1);
    pass_ms(1000);
    CHECK_INT(walk_stats(stage.walk).results_waiting, 1);
    opts = stage_walk_opts();
    opts.limits.max_unfinished_bytes = 1;
    stage.n_agents = 2;
    CHECK_INT(stage_configure(&why), OK);
    walk_set(stage.walk, &opts);
    for (int i = 0; i < 20; i++) { /* locked, for all of a batch */
        fault_arm_at("store.begin.busy", 1);
        stage.now.mono_ms += 20;
        loop_turn(&stage.loop);
    }
    fault_arm(0);
    for (int i = 0; i < 10; i++)
        pass_ms(500);
    CHECK_INT(stored(&behind.task_id, NULL, NULL), TASK_EXPIRED);
    CHECK_INT(stored(&first.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

TEST(after_a_failed_sync_nothing_is_acknowledged)
{
    struct told t, later;

    stage_open();
    fault_arm_at("store.sync", 1);
    t = sent((struct letter){.key = "k"});
    CHECK(fault_fired());
    CHECK_INT(t.err, ERR_OUTCOME_UNKNOWN);
    fault_arm(0);
    later = sent((struct letter){0});
    CHECK_INT(later.err, ERR_OUTCOME_UNKNOWN);
    CHECK_INT(stage.n_fatal, 1);
    /* Whatever happened, after a repeat there is one. */
    stage_restart();
    t = sent((struct letter){.key = "k"});
    CHECK_INT(t.err, OK);
    CHECK_INT(told_in_feed("task.accepted", &t.task_id), 1);
    stage_close();
}

TEST(what_is_old_is_tidied_away_and_nothing_unfinished)
{
    struct told done, waits;
    struct walk_opts opts;
    struct why why;

    stage_open();
    done = sent((struct letter){.to = "echo"});
    waits = sent((struct letter){.to = "slow", .timeout_ms = 24 * 3600 * 1000});
    stage.n_agents = 1; /* there is no agent for the second */
    stage_restart();
    opts = stage_walk_opts();
    opts.retention_ms = 60 * 1000;
    stage.n_agents = 1;
    CHECK_INT(stage_configure(&why), OK);
    walk_set(stage.walk, &opts);
    for (int i = 0; i < 4; i++)
        pass_ms(60 * 1000);
    CHECK_INT(stored(&done.task_id, NULL, NULL), 0);
    CHECK_INT(stored(&waits.task_id, NULL, NULL), TASK_QUEUED);
    CHECK_INT(told_in_feed("task.completed", NULL), 0);
    stage_close();
}

static size_t rows_of(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 1000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

TEST(conversations_go_with_their_tasks)
{
    struct walk_opts opts;
    struct told waits;
    struct why why;
    int told = 0;

    stage_open();
    waits = sent((struct letter){.to = "slow", .timeout_ms = 24 * 3600 * 1000});
    stage.n_agents = 1; /* there is no agent for this one */
    stage_restart();
    for (int i = 0; i < 30; i++) {
        pass_ms(10);
        CHECK_INT(sent((struct letter){0}).err, OK);
    }
    pass_ms(10);
    opts = stage_walk_opts();
    opts.retention_rows = 5;
    stage.n_agents = 1;
    CHECK_INT(stage_configure(&why), OK);
    walk_set(stage.walk, &opts);
    pass_ms(60 * 1000);
    CHECK_INT(rows_of(&task_table), 5 + 1);
    CHECK_INT(rows_of(&conversation_table), 30 + 1); /* the oldest stays */
    CHECK_INT(walk_cancel(stage.walk, str_of(waits.task_id.text), STR("anna"),
                          on_cancelled, &told),
              OK);
    for (int i = 0; i < 3; i++)
        pass_ms(60 * 1000);
    CHECK_INT(rows_of(&task_table), 5);
    CHECK_INT(rows_of(&conversation_table), 5);
    stage_close();
}

TEST(what_is_known_of_an_end_is_in_its_decision_with_it)
{
    struct told quick, first, second, late, unwanted;
    char known[64];
    int told = 0;

    stage_open();
    quick = sent((struct letter){.text = "gr\xc3\xbc\xc3\x9f dich"});
    CHECK_STR(str_of(end_known(&quick.decision_id, known)),
              "done in 0 ms, 9 chars");
    first = sent((struct letter){.to = "slow", .text = "one"});
    CHECK_STR(str_of(end_known(&first.decision_id, known)), "open");
    pass_ms(250);
    stage_restart(); /* it is known by the task's row, not by memory */
    pass_ms(1000);
    CHECK_STR(str_of(end_known(&first.decision_id, known)),
              "done in 1250 ms, 3 chars");
    /* Each turn has its own decision. */
    second = sent((struct letter){
        .to = "slow", .text = "once more", .task_id = first.task_id.text});
    CHECK_STR(str_of(end_known(&second.decision_id, known)), "open");
    pass_ms(1000);
    CHECK_STR(str_of(end_known(&second.decision_id, known)),
              "done in 1000 ms, 9 chars");
    CHECK_STR(str_of(end_known(&first.decision_id, known)),
              "done in 1250 ms, 3 chars");
    late = sent((struct letter){.to = "slow", .timeout_ms = 400});
    unwanted = sent((struct letter){.to = "slow"});
    pass_ms(400);
    CHECK_STR(str_of(end_known(&late.decision_id, known)),
              "expired in 400 ms, 0 chars");
    CHECK_INT(walk_cancel(stage.walk, str_of(unwanted.task_id.text),
                          STR("anna"), on_cancelled, &told),
              OK);
    pass_ms(1);
    CHECK_STR(str_of(end_known(&unwanted.decision_id, known)),
              "cancelled in 400 ms, 0 chars");
    stage_close();
}

/* Retention may be faster than an agent. */
TEST(a_task_ends_without_its_decision)
{
    struct told t;
    struct tx tx;
    bool is_back = false;
    char known[64];

    stage_open();
    t = sent((struct letter){.to = "slow"});
    tx_init(&tx);
    tx_prune(&tx, &decision_table, 10);
    store_submit(stage.store, &tx, stage_on_user, &is_back);
    pass_ms(1000);
    CHECK(is_back && tx.result == TX_COMMITTED);
    tx_fini(&tx);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_STR(str_of(end_known(&t.decision_id, known)), "gone");
    stage_close();
}

/* The sweep: every step of every stage fails, one after the other. */

struct sweep {
    struct told accepted, followed;
    int cancelled; /* set by on_cancelled */
};

/* Two messages of one conversation, a repeat, a cancel, a result. */
static void live_through(struct sweep *s)
{
    struct told repeat;

    *s = (struct sweep){0};
    if (post((struct letter){.key = "a", .conversation = "c"}, &s->accepted))
        pass_ms(0);
    if (post((struct letter){.key = "a", .conversation = "c"}, &repeat))
        pass_ms(0);
    if (post((struct letter){.to = "slow", .key = "b", .conversation = "c"},
             &s->followed))
        pass_ms(0);
    if (s->followed.is_back && !s->followed.err &&
        walk_cancel(stage.walk, str_of(s->followed.task_id.text), STR("anna"),
                    on_cancelled, &s->cancelled))
        s->cancelled = ERR_NOMEM;
    pass_ms(0);
    for (int i = 0; i < 6; i++)
        pass_ms(500);
}

/* An accepted message is stored and a rejected one is not; after a repeat with
 * its key there is exactly one, and it ends once. */
static void check_life(const struct sweep *s)
{
    struct told again[2];

    fault_arm(0);
    stage_restart();
    if (s->accepted.is_back && !s->accepted.err)
        CHECK(stored(&s->accepted.task_id, NULL, NULL));
    if (s->followed.is_back && !s->followed.err)
        CHECK(stored(&s->followed.task_id, NULL, NULL));
    if (s->cancelled == -1)
        CHECK_INT(stored(&s->followed.task_id, NULL, NULL), TASK_CANCELLED);
    again[0] = sent((struct letter){.key = "a", .conversation = "c"});
    again[1] =
        sent((struct letter){.to = "slow", .key = "b", .conversation = "c"});
    pass_ms(1000);
    pass_ms(1000);
    for (int i = 0; i < 2; i++) {
        const struct told *was = i ? &s->followed : &s->accepted;

        CHECK_INT(again[i].err, OK);
        CHECK(!was->is_back || was->err || again[i].is_repeat);
        CHECK(task_is_over(stored(&again[i].task_id, NULL, NULL)));
        CHECK_INT(told_in_feed("task.accepted", &again[i].task_id), 1);
        CHECK_INT(told_in_feed("task.completed", &again[i].task_id) +
                      told_in_feed("task.cancelled", &again[i].task_id),
                  1);
    }
    CHECK_INT(told_in_feed("task.accepted", NULL), 2);
}

static void wipe(void)
{
    char command[160];

    snprintf(command, sizeof(command), "rm -f %s/signalbox.db*", stage.root);
    CHECK(system(command) == 0);
}

TEST(the_walk_survives_every_fault_of_every_room)
{
    struct sweep s;
    long nth = 0;
    bool fired;

    stage_ground();
    do {
        stage_start();
        fault_arm(nth += T_SWEEP_STEP);
        live_through(&s);
        fired = fault_fired();
        check_life(&s);
        stage_stop();
        wipe();
    } while (fired);
    CHECK(nth > 100); /* there were steps to fail */
    CHECK(!s.accepted.err && !s.followed.err && s.cancelled == -1);
    loop_fini(&stage.loop);
    store_folder_close(&stage.folder);
}

TEST(a_start_survives_every_fault_of_every_room)
{
    struct why why = {""};
    struct told t;
    long nth = 0;
    enum err e;

    stage_open();
    t = sent((struct letter){.to = "slow"});
    do {
        stage_stop();
        fault_arm(++nth);
        e = stage_try_start(&why);
        CHECK(!e || fault_fired());
        CHECK(!e || why.text[0]);
    } while (fault_fired());
    CHECK(nth > 10);
    fault_arm(0);
    pass_ms(0);
    pass_ms(1000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

/* A control for the sweep: a store that acknowledges writes it does not
 * make. */
TEST(the_checks_notice_a_task_that_was_acknowledged_and_lost)
{
    struct store_sabotage early = {.acks_early = true};
    struct told t;

    store_sabotage(&early);
    stage_open();
    store_sabotage(NULL);
    fault_arm_at("store.commit.io", 1);
    t = sent((struct letter){.key = "a"});
    fault_arm(0);
    CHECK_INT(t.err, OK);
    stage_restart();
    CHECK_INT(stored(&t.task_id, NULL, NULL), 0);
    stage_close();
}
