/* The six states, and the figures that they follow from. */
#include "test/lib/line_stage.h"

enum { MINUTE_MS = 60 * 1000, DAY_MS = 24 * 3600 * 1000 };

static struct deliver_job *deliver_job_of(int i)
{
    return map_get(&st.d->deliver_jobs, str_of(st.tasks[i].task.id.text));
}

static void check_state(const struct agent *a, enum agent_state s)
{
    CHECK_INT(deliver_state(st.d, a), s);
}

/* The i-th task is begun. */
static struct delivery *begun(int i, const struct agent *a)
{
    offer(i, a);
    turns(1);
    CHECK(deliver_job_of(i) && deliver_job_of(i)->delivery);
    return deliver_job_of(i)->delivery;
}

static void end(struct delivery *y, enum task_status s)
{
    delivery_result(y, &(struct task_result){.status = s}, true, 0);
}

static void fail(struct delivery *y, bool is_final)
{
    delivery_failed(y, &(struct delivery_failure){.code = STR("x"),
                                                  .words = STR("y"),
                                                  .is_final = is_final});
}

/* One answer that took so long. */
static void answer_in(const struct agent *a, int64_t ms)
{
    struct delivery *y = begun(0, a);

    st.time.mono_ms += ms;
    st.time.wall_ms += ms;
    turns(1); /* the clock is read */
    end(y, TASK_COMPLETED);
    turns(1);
}

static struct agent *idler(void)
{
    return stage_agent("a", "echo:3600000");
}

TEST(idle_is_who_has_done_nothing_for_a_minute_and_active_who_has)
{
    struct delivery *y;
    struct agent *a;

    stage_open();
    a = idler();
    check_state(a, AGENT_IDLE);
    y = begun(0, a);
    check_state(a, AGENT_ACTIVE);
    later(10 * MINUTE_MS); /* it works */
    check_state(a, AGENT_ACTIVE);
    end(y, TASK_COMPLETED);
    later(MINUTE_MS - 1);
    check_state(a, AGENT_ACTIVE);
    later(1);
    check_state(a, AGENT_IDLE);
    y = begun(0, a);
    deliver_cancel(st.d, str_of(id_of(&st.tasks[0])));
    (void)y;
    check_state(a, AGENT_ACTIVE);
    stage_close();
}

TEST(busy_is_who_has_as_much_as_may_be)
{
    struct agent *a;

    stage_open();
    a = idler();
    a->limits.in_flight = 2;
    begun(0, a);
    check_state(a, AGENT_ACTIVE);
    begun(1, a);
    check_state(a, AGENT_BUSY);
    a->limits.in_flight = 3;
    check_state(a, AGENT_ACTIVE);
    a->limits.in_flight = 0; /* eight, by the settings */
    check_state(a, AGENT_ACTIVE);
    for (int i = 2; i < 8; i++)
        begun(i, a);
    check_state(a, AGENT_BUSY);
    end(deliver_job_of(3)->delivery, TASK_COMPLETED);
    check_state(a, AGENT_ACTIVE);
    stage_close();
}

TEST(error_is_three_failures_in_a_row)
{
    struct agent *a;

    stage_open();
    a = idler();
    for (int i = 0; i < 2; i++)
        fail(begun(i, a), true);
    check_state(a, AGENT_ACTIVE);
    end(begun(2, a), TASK_COMPLETED); /* not in a row */
    for (int i = 3; i < 5; i++)
        end(begun(i, a), TASK_FAILED);
    check_state(a, AGENT_ACTIVE);
    fail(begun(5, a), false);
    check_state(a, AGENT_ERROR);
    later(100 * MINUTE_MS);
    check_state(a, AGENT_ERROR); /* until it does better */
    end(deliver_job_of(5)->delivery, TASK_COMPLETED);
    check_state(a, AGENT_ACTIVE);
    stage_close();
}

TEST(error_is_an_open_breaker_too)
{
    struct agent *a;

    stage_open();
    a = idler();
    delivery_failed(begun(0, a), &(struct delivery_failure){.code = STR("x"),
                                                            .words = STR("y"),
                                                            .retry_ms = 10});
    check_state(a, AGENT_ERROR);
    later(10);
    check_state(a, AGENT_ERROR); /* the probe is out */
    end(deliver_job_of(0)->delivery, TASK_COMPLETED);
    check_state(a, AGENT_ACTIVE);
    stage_close();
}

TEST(dead_is_who_is_not_there_and_cannot_be_woken)
{
    struct agent *a, *b;

    stage_open();
    a = stage_agent("a", "ws-agent://a");
    b = stage_agent("b", "ws-agent://b");
    b->wake.url = STR("http://wake.example/");
    check_state(a, AGENT_DEAD);
    check_state(b, AGENT_IDLE); /* asleep */
    attach(0, a);
    check_state(a, AGENT_IDLE);
    detach(&st.peers[0]);
    check_state(a, AGENT_DEAD);
    for (int i = 0; i < 3; i++) {
        offer(i, b);
        check_state(b, AGENT_IDLE);
        later(30000);
        later(0);
    }
    check_state(b, AGENT_DEAD);
    attach(1, b);
    CHECK(deliver_state(st.d, b) != AGENT_DEAD);
    check_state(stage_agent("c", "process:none"), AGENT_DEAD);
    check_state(stage_agent("d", "nonsense"), AGENT_DEAD);
    stage_close();
}

/* A week of answers that took 100 ms, fifteen each day. */
static struct agent *a_week(void)
{
    struct agent *a = idler();

    for (int day = 0; day < 7; day++) {
        for (int i = 0; i < 15; i++)
            answer_in(a, 100);
        later(DAY_MS);
    }
    return a;
}

TEST(slow_is_three_times_its_own_week)
{
    struct agent *a;

    stage_open();
    a = a_week();
    for (int i = 0; i < 15; i++) /* for the week to have enough */
        answer_in(a, 100);
    check_state(a, AGENT_ACTIVE);
    for (int i = 0; i < 10; i++)
        answer_in(a, 400);
    check_state(a, AGENT_ACTIVE); /* half of the last twenty */
    for (int i = 0; i < 2; i++)
        answer_in(a, 400);
    check_state(a, AGENT_SLOW);
    a->limits.in_flight = 1;
    begun(1, a);
    check_state(a, AGENT_SLOW); /* which says more than BUSY */
    end(deliver_job_of(1)->delivery, TASK_COMPLETED);
    later(3600 * 1000);
    check_state(a, AGENT_IDLE); /* the age limit has passed */
    answer_in(a, 400);
    check_state(a, AGENT_SLOW);
    for (int i = 0; i < 12; i++)
        answer_in(a, 100);
    check_state(a, AGENT_ACTIVE);
    stage_close();
}

TEST(slow_is_measured_by_a_week_and_not_by_what_was_before_it)
{
    struct agent *a;

    stage_open();
    a = a_week();
    later(8LL * DAY_MS); /* all of it is forgotten */
    for (int i = 0; i < 99; i++)
        answer_in(a, 400);
    check_state(a, AGENT_ACTIVE);
    for (int i = 0; i < 20; i++)
        answer_in(a, 1000);
    check_state(a, AGENT_ACTIVE);
    for (int i = 0; i < 20; i++)
        answer_in(a, 2000);
    check_state(a, AGENT_SLOW);
    stage_close();
}

TEST(without_enough_answers_nobody_is_slow)
{
    struct agent *a;

    stage_open();
    a = idler();
    for (int i = 0; i < 79; i++)
        answer_in(a, 10);
    for (int i = 0; i < 20; i++)
        answer_in(a, 1000);
    check_state(a, AGENT_ACTIVE); /* 99 */
    answer_in(a, 1000);
    check_state(a, AGENT_SLOW);
    stage_close();
}

TEST(very_long_and_very_many_answers_are_counted_too)
{
    struct agent *a;
    struct agent_queue *k;

    stage_open();
    a = idler();
    answer_in(a, 3500 * 1000);
    k = agent_queue_find(st.d, STR("a"));
    for (int i = 0; i < 20; i++)
        answer_in(a, 0);
    for (int i = 0; i < PAST_DAYS; i++)
        if (k->past->n[i][0])
            k->past->n[i][0] = UINT16_MAX;
    answer_in(a, 0);
    check_state(a, AGENT_ACTIVE);
    CHECK(k->stats.latency_total[0] == 21);
    CHECK(k->stats.latency_total[DELIVER_BUCKETS - 1] == 1);
    CHECK(k->stats.latency_sum_ms == 3500 * 1000);
    stage_close();
}

TEST(what_it_says_of_itself_counts_where_it_is_worse)
{
    struct agent *a;

    stage_open();
    a = idler();
    deliver_report(st.d, STR("A"), AGENT_ACTIVE);
    check_state(a, AGENT_IDLE);
    deliver_report(st.d, STR("a"), AGENT_BUSY);
    check_state(a, AGENT_BUSY);
    for (int i = 0; i < 3; i++)
        fail(begun(i, a), true);
    check_state(a, AGENT_ERROR); /* which is worse */
    deliver_report(st.d, STR("a"), AGENT_DEAD);
    check_state(a, AGENT_DEAD);
    deliver_report(st.d, STR("a"), 0);
    check_state(a, AGENT_ERROR);
    deliver_report(st.d, STR("unknown"), 0);
    CHECK(st.d->agent_queues.n == 1);
    stage_close();
}

TEST(a_report_goes_with_its_line)
{
    struct agent *a;

    stage_open();
    a = stage_agent("a", "ws-agent://a");
    attach(0, a);
    deliver_report(st.d, STR("a"), AGENT_ERROR);
    check_state(a, AGENT_ERROR);
    detach(&st.peers[0]);
    attach(1, a);
    check_state(a, AGENT_IDLE);
    stage_close();
}

/* Public figures. */

TEST(public_agents_have_their_names_shown_and_all_others_are_one)
{
    static struct agent_queue_row rows[DELIVER_SHOWN_MAX];
    struct agent_queue_stats others, all;
    int64_t n_latencies = 0;
    struct agent *a, *b;

    stage_open();
    stage_agent("other", "echo:")->visibility = VISIBILITY_PUBLIC;
    a = stage_agent("Open", "echo:3600000");
    a->visibility = VISIBILITY_PUBLIC;
    b = stage_agent("closed", "echo:3600000");
    b->visibility = VISIBILITY_SHARED;
    CHECK_INT(deliver_shown(st.d, rows, &others), 0);
    end(begun(0, a), TASK_COMPLETED);
    end(begun(1, b), TASK_COMPLETED);
    CHECK(agent_queue_named(st.d, STR("other"))); /* the sum's name */
    begun(2, a);
    begun(3, b);
    begun(4, b);
    CHECK_INT(deliver_shown(st.d, rows, &others), 1);
    CHECK_STR(rows[0].agent, "Open");
    CHECK(rows[0].state == AGENT_ACTIVE);
    /* Its first task is its own, even if no one asked before. */
    CHECK(rows[0].stats.completed_total == 1 && rows[0].stats.in_flight == 1);
    CHECK(others.in_flight == 2 && others.completed_total == 1);
    end(deliver_job_of(2)->delivery, TASK_COMPLETED);
    end(deliver_job_of(3)->delivery, TASK_FAILED);
    CHECK_INT(deliver_shown(st.d, rows, &others), 1);
    CHECK(rows[0].stats.completed_total == 2);
    CHECK(others.completed_total == 1 && others.failed_total == 1);
    CHECK(deliver_queue_stats(st.d, STR("open"), &all) &&
          all.completed_total == 2);
    a->visibility = VISIBILITY_PRIVATE;
    CHECK_INT(deliver_shown(st.d, rows, &others), 0);
    CHECK(others.completed_total == 3 && others.failed_total == 1);
    a->visibility = VISIBILITY_PUBLIC;
    later(10000);
    CHECK_INT(deliver_shown(st.d, rows, &others), 1);
    CHECK(rows[0].stats.completed_total == 0 && others.completed_total == 3);
    for (int i = 0; i < DELIVER_BUCKETS; i++) {
        CHECK(rows[0].stats.latency_total[i] == 0);
        n_latencies += others.latency_total[i];
    }
    CHECK(n_latencies == 3);
    CHECK(deliver_check(st.d));
    stage_close();
}

TEST(at_most_two_hundred_are_shown_the_most_used_first)
{
    static struct agent_queue_row rows[DELIVER_SHOWN_MAX];
    struct agent_queue_stats others;
    struct agent_queue *k;
    char name[16];

    stage_open();
    for (int i = 0; i < 80; i++)
        stage_agent("x", "echo:")->visibility = VISIBILITY_PUBLIC;
    /* The stage has not so many agents: one of them stands for all. */
    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        k = agent_queue_named(st.d, str_of(name));
        CHECK(k);
        k->stats.completed_total = i;
    }
    st.agents[0].name = STR("none");
    st.any_agent = &st.agents[1];
    CHECK_INT(deliver_shown(st.d, rows, &others), DELIVER_SHOWN_MAX);
    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        CHECK(agent_queue_find(st.d, str_of(name))->is_shown == (i >= 50));
    }
    agent_queue_find(st.d, STR("x0"))->stats.completed_total = 1000;
    later(10000);
    CHECK_INT(deliver_shown(st.d, rows, &others), DELIVER_SHOWN_MAX);
    CHECK(!agent_queue_find(st.d, STR("x0"))->is_shown); /* there is no room */
    CHECK(deliver_check(st.d));
    stage_close();
}
