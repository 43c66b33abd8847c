/* Waking: who is asked, for how long is waited, and what becomes of what
 * waited. The requests themselves are test/e2e/wake_test.py's. */
#include "deliver/transports/line.h"
#include "test/lib/line_stage.h"

enum { AT_ONCE = 64, WAKE_MS = 30 * 1000 };

static struct agent *sleeper(const char *name, const char *url)
{
    struct agent *a = stage_agent(name, url);

    a->wake.url = STR("http://wake.example/");
    return a;
}

static int64_t n_wakes(void)
{
    return deliver_stats(st.d).wakes_total;
}

TEST(one_wake_serves_all_that_wait_and_nothing_is_lost)
{
    struct stage_task *x[5];
    struct agent *a;
    struct peer *p;

    stage_open();
    a = sleeper("Night", "ws-agent://Night");
    CHECK(deliver_reaches(st.d, a, NULL) == OK);
    for (int i = 0; i < 5; i++) {
        x[i] = offer(i, a);
        later(100);
    }
    CHECK(n_wakes() == 1 && deliver_stats(st.d).waiting == 5);
    p = attach(0, a);
    turns(2);
    CHECK_INT(p->n_said, 5);
    for (int i = 0; i < 5; i++) {
        CHECK(strstr(p->said[i], id_of(x[i])) && x[i]->task.attempt == 1);
        CHECK(hear_result(p, x[i], "x", 0) == OK && x[i]->n_results == 1);
    }
    later(10 * WAKE_MS);
    CHECK(n_wakes() == 1 && deliver_stats(st.d).wakes_failed_total == 0);
    stage_close();
}

TEST(who_does_not_come_in_time_fails_what_waited)
{
    struct stage_task *x;
    struct agent *a;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    x = offer(1, a);
    turns(1);
    later(WAKE_MS - 1);
    CHECK(x->n_results == 0);
    later(1);
    CHECK(x->n_results == 1 && x->result.status == TASK_FAILED);
    CHECK_STR(str_of(x->code), "agent_did_not_wake");
    CHECK(strstr(x->error, "30000 ms"));
    CHECK(deliver_stats(st.d).wakes_failed_total == 1);
    later(10 * WAKE_MS);
    CHECK(n_wakes() == 1); /* nothing waits: no wake */
    stage_close();
}

TEST(the_card_says_how_long)
{
    struct stage_task *x;
    struct agent *a;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    a->wake.timeout_ms = 500;
    x = offer(1, a);
    turns(1);
    later(499);
    CHECK_INT(x->n_results, 0);
    later(1);
    CHECK_INT(x->n_results, 1);
    stage_close();
}

TEST(who_comes_while_it_is_woken_gets_a_whole_chance)
{
    struct stage_task *x, *y;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    x = offer(1, a);
    turns(1);
    later(WAKE_MS - 10);
    y = offer(2, a);
    turns(1);
    later(10);
    CHECK(x->n_results == 1 && y->n_results == 0);
    CHECK(n_wakes() == 2);
    later(WAKE_MS - 1);
    CHECK(y->n_results == 0);
    p = attach(0, a);
    turns(2);
    CHECK(hear_result(p, y, "y", 0) == OK && y->n_results == 1);
    CHECK(y->result.status == TASK_COMPLETED);
    stage_close();
}

TEST(who_came_by_another_way_meanwhile_fails_nothing)
{
    struct stage_task *x, *y;
    struct agent *a, *b, *front;
    struct peer *p;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    b = sleeper("owl", "ws-agent://owl");
    front = stage_agent("front", "ws-agent://front");
    p = attach(0, front);
    x = offer(1, a);
    y = offer(2, b);
    turns(1);
    CHECK_INT(n_wakes(), 2);
    a->url = STR("ws-agent://front"); /* another seat */
    b->url = STR("echo:");            /* another transport */
    later(WAKE_MS);
    later(WAKE_MS);
    CHECK(n_said(p, id_of(x)) == 1 && x->n_results == 0);
    CHECK(y->n_results == 1 && y->result.status == TASK_COMPLETED);
    CHECK(deliver_stats(st.d).wakes_failed_total == 0);
    CHECK(hear_result(p, x, "x", 0) == OK && x->n_results == 1);
    stage_close();
}

TEST(who_comes_in_the_moment_its_time_is_over_fails_nothing)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    x = offer(1, a);
    turns(1);
    agent_queue_fail(
        st.d, agent_queue_find(st.d, STR("night")), INT64_MAX,
        &(struct delivery_failure){.code = STR("agent_did_not_wake"),
                                   .words = STR("it did not"),
                                   .is_final = true});
    p = attach(0, a);
    turns(1);
    CHECK(x->n_results == 0 && n_said(p, id_of(x)) == 1);
    CHECK(hear_result(p, x, "x", 0) == OK && x->n_results == 1);
    stage_close();
}

TEST(after_three_wakes_in_vain_it_counts_as_dead_until_it_comes)
{
    struct agent *a;

    stage_open();
    a = sleeper("Night", "ws-agent://night");
    CHECK(deliver_state(st.d, a) == AGENT_IDLE);
    for (int i = 0; i < 3; i++) {
        CHECK(!wakes_have_failed(st.d, STR("night"), NULL));
        offer(i, a);
        turns(1);
        later(WAKE_MS);
        CHECK_INT(st.tasks[i].n_results, 1);
    }
    CHECK(wakes_have_failed(st.d, STR("NIGHT"), NULL));
    CHECK(deliver_state(st.d, a) == AGENT_DEAD);
    CHECK(deliver_reaches(st.d, a, NULL) == OK); /* it is tried all the same */
    offer(4, a);
    turns(1);
    CHECK_INT(n_wakes(), 4);
    detach(attach(0, a));
    CHECK(!wakes_have_failed(st.d, STR("night"), NULL));
    CHECK(deliver_state(st.d, a) != AGENT_DEAD);
    stage_close();
}

TEST(who_has_no_wake_url_is_waited_for)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = stage_agent("day", "ws-agent://day");
    st.d->opts.settings.holds_for_offline = true;
    CHECK(deliver_reaches(st.d, a, NULL) == OK);
    x = offer(1, a);
    turns(1);
    later(10 * WAKE_MS);
    CHECK(n_wakes() == 0 && x->n_results == 0);
    p = attach(0, a);
    turns(2);
    CHECK(hear_result(p, x, "x", 0) == OK);
    stage_close();
}

TEST(whoever_shares_its_routing_id_wakes_it_too)
{
    struct stage_task *x, *y;
    struct agent *a, *b;
    struct peer *p;

    stage_open();
    a = sleeper("front", "ws-agent://desk");
    b = sleeper("night", "ws-agent://desk");
    x = offer(1, a);
    y = offer(2, b);
    turns(1);
    CHECK_INT(n_wakes(), 2);
    p = attach(0, b);
    turns(2);
    CHECK(hear_result(p, x, "x", 0) == OK && hear_result(p, y, "y", 0) == OK);
    later(WAKE_MS);
    CHECK(deliver_stats(st.d).wakes_failed_total == 0);
    stage_close();
}

TEST(it_may_move_to_another_seat_while_it_sleeps)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = sleeper("night", "ws-agent://old");
    x = offer(1, a);
    turns(1);
    a->url = STR("ws-agent://new");
    offer(2, a);
    turns(1);
    p = attach(0, a);
    turns(2);
    CHECK(p->n_said == 2 && n_said(p, id_of(x)) == 1);
    CHECK(!seat_find(st.d, STR("old\nanna")) && n_wakes() == 1);
    stage_close();
}

TEST(who_drops_its_work_is_woken_for_it)
{
    struct stage_task *x;
    struct agent *a;
    struct peer *p;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    p = attach(0, a);
    x = offer(1, a);
    turns(1);
    CHECK_INT(p->n_said, 1);
    detach(p);
    turns(3);
    CHECK(n_wakes() == 1 && x->n_results == 0);
    p = attach(1, a);
    turns(2);
    CHECK(x->task.attempt == 2 && hear_result(p, x, "x", 0) == OK);
    stage_close();
}

TEST(so_many_are_woken_at_once_and_then_the_others)
{
    enum { N = AT_ONCE + 6 };
    static char names[N][16], urls[N][32];

    stage_open();
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d", i);
        snprintf(urls[i], sizeof(urls[i]), "ws-agent://s%d", i);
        offer(i, sleeper(names[i], urls[i]));
    }
    turns(2);
    CHECK_INT(n_wakes(), AT_ONCE);
    attach(0, &st.agents[0]); /* one comes, the next is woken */
    turns(1);
    CHECK_INT(n_wakes(), AT_ONCE + 1);
    later(WAKE_MS);
    CHECK_INT(n_wakes(), N);
    for (int i = 1; i < N; i++)
        CHECK_INT(st.tasks[i].n_results, i <= AT_ONCE - 1 || i == AT_ONCE);
    later(WAKE_MS); /* each had its whole time */
    for (int i = 1; i < N; i++)
        CHECK_INT(st.tasks[i].n_results, 1);
    stage_close();
}

TEST(nobody_is_woken_for_a_desk_that_has_gone)
{
    struct agent *a;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    offer(1, a);
    turns(1);
    CHECK_INT(n_wakes(), 1);
    wakes_forget(st.d, STR("Night"));
    wakes_forget(st.d, STR("Night"));
    later(2 * WAKE_MS);
    CHECK(deliver_stats(st.d).wakes_failed_total == 0);
    CHECK(!seat_find(st.d, STR("night\nanna")));
    stage_close();
}

static int n_stopped;

static void on_stopped(void *ctx)
{
    (void)ctx;
    n_stopped++;
}

TEST(nobody_is_woken_while_the_server_ends)
{
    struct stage_task *x;
    struct agent *a;

    stage_open();
    a = sleeper("night", "ws-agent://night");
    x = offer(1, a);
    turns(1);
    n_stopped = 0;
    deliver_stop(st.d, on_stopped, NULL);
    turns(2);
    CHECK_INT(n_stopped, 1);
    later(2 * WAKE_MS);
    CHECK(x->n_results == 0); /* it is there after the next start */
    stage_close();
}
