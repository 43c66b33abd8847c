/* Agent queues: the next job, and what blocks it. */
#include "test/lib/queue_stage.h"

/* The next job. */

TEST(the_higher_priority_goes_first_and_then_who_was_accepted_first)
{
    static const int expected[] = {0, 6, 3, 7, 2, 5, 1, 4};
    struct agent *a;

    open_queues();
    a = slow("a");
    a->limits.in_flight = 1;
    offer_as(0, a, PRIORITY_LOW);
    turns(1);
    offer_as(4, a, PRIORITY_LOW);
    offer_as(1, a, PRIORITY_LOW); /* tried again, say */
    offer_as(5, a, PRIORITY_NORMAL);
    offer_as(2, a, PRIORITY_NORMAL);
    offer_as(7, a, PRIORITY_HIGH);
    offer_as(3, a, PRIORITY_HIGH);
    offer_as(6, a, PRIORITY_URGENT);
    let_all_go();
    CHECK_INT(n_order, 8);
    for (int i = 0; i < 8; i++)
        CHECK_INT(order[i], expected[i]);
    close_queues();
}

TEST(who_waits_longest_is_passed_fifteen_times_at_most)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    a->limits.in_flight = 1;
    offer_as(0, a, PRIORITY_URGENT);
    turns(1);
    offer_as(1, a, PRIORITY_LOW);
    offer_as(2, a, PRIORITY_LOW);
    for (int i = 3; i < 60; i++)
        offer_as(i, a, PRIORITY_URGENT);
    let_all_go();
    CHECK_INT(n_order, 60);
    CHECK_INT(AGENT_QUEUE_PASSED_MAX, 15);
    for (int i = 1; i <= 15; i++)
        CHECK_INT(order[i], i + 2);
    CHECK_INT(order[16], 1);
    for (int i = 17; i <= 31; i++)
        CHECK_INT(order[i], i + 1);
    CHECK_INT(order[32], 2);
    CHECK_INT(order[33], 33); /* none is passed from here on */
    close_queues();
}

TEST(it_is_not_told_twice_however_often_it_is_offered)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    offer_as(0, a, PRIORITY_LOW);
    CHECK(deliver_offer(st.d, &st.tasks[0].task, a) == OK);
    CHECK(deliver_has(st.d, str_of(id_of(&st.tasks[0]))));
    turns(1);
    CHECK(deliver_offer(st.d, &st.tasks[0].task, a) == OK);
    turns(1);
    CHECK(n_order == 1 && deliver_stats(st.d).started_total == 1);
    CHECK(!deliver_has(st.d, STR("task_x")));
    close_queues();
}

/* How many. */

TEST(an_agent_has_so_many_at_a_time)
{
    struct agent_queue_stats k;
    struct agent *a, *b;

    open_queues();
    a = slow("a");
    b = slow("B");
    b->limits.in_flight = 2;
    for (int i = 0; i < 12; i++) {
        offer_as(i, a, PRIORITY_NORMAL);
        offer_as(20 + i, b, PRIORITY_NORMAL);
    }
    turns(3);
    CHECK(deliver_queue_stats(st.d, STR("A"), &k));
    CHECK(k.in_flight == 8 && k.waiting == 4); /* settings.in_flight */
    CHECK(deliver_queue_stats(st.d, STR("b"), &k));
    CHECK(k.in_flight == 2 && k.waiting == 10);
    CHECK(!deliver_queue_stats(st.d, STR("c"), &k));
    deliver_cancel(st.d, str_of(id_of(&st.tasks[0])));
    deliver_cancel(st.d, str_of(id_of(&st.tasks[31]))); /* waits */
    turns(1);
    CHECK(deliver_queue_stats(st.d, STR("a"), &k));
    CHECK(k.in_flight == 8 && k.waiting == 3 && k.cancelled_total == 1);
    CHECK(deliver_queue_stats(st.d, STR("b"), &k));
    CHECK(k.in_flight == 2 && k.waiting == 9 && k.cancelled_total == 0);
    b->limits.in_flight = 5; /* its card has changed */
    deliver_agents_changed(st.d);
    later(1000);
    CHECK(deliver_queue_stats(st.d, STR("b"), &k) && k.in_flight == 5);
    close_queues();
}

TEST(at_the_limit_of_all_the_agents_priority_counts_and_equals_take_turns)
{
    struct deliver_settings s;
    struct agent *low, *a, *b, *high;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 1;
    set(s);
    low = slow("low");
    low->limits.priority = -AGENT_PRIORITY_MAX;
    high = slow("high");
    high->limits.priority = AGENT_PRIORITY_MAX;
    a = slow("a");
    b = slow("b");
    offer_as(0, low, PRIORITY_URGENT);
    turns(1);
    for (int i = 0; i < 3; i++) {
        offer_as(1 + i, low, PRIORITY_URGENT);
        offer_as(10 + i, a, PRIORITY_NORMAL);
        offer_as(20 + i, b, PRIORITY_NORMAL);
    }
    offer_as(30, high, PRIORITY_LOW);
    offer_as(31, high, PRIORITY_LOW);
    let_all_go();
    {
        static const int expected[] = {0,  30, 31, 10, 20, 11,
                                       21, 12, 22, 1,  2,  3};

        CHECK_INT(n_order, 12);
        for (int i = 0; i < 12; i++)
            CHECK_INT(order[i], expected[i]);
    }
    close_queues();
}

TEST(more_may_go_once_the_limit_of_all_is_raised)
{
    struct deliver_settings s;
    struct agent *a;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 3;
    set(s);
    a = slow("a");
    for (int i = 0; i < 6; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    turns(2);
    CHECK_INT(deliver_stats(st.d).on_the_way, 3);
    s.max_in_flight = 5;
    set(s);
    turns(1);
    CHECK_INT(deliver_stats(st.d).on_the_way, 5);
    close_queues();
}

static int64_t n_going(const char *agent)
{
    struct agent_queue_stats k = {0};

    CHECK(deliver_queue_stats(st.d, str_of(agent), &k));
    return k.in_flight;
}

TEST(nobody_uses_up_the_limit_of_all)
{
    struct deliver_settings s;
    struct agent *a[3], *own, *other;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 8;
    s.in_flight = 1;
    set(s);
    for (int i = 0; i < 3; i++) {
        a[i] = slow(i == 0 ? "a0" : i == 1 ? "a1" : "a2");
        a[i]->limits.in_flight = 10000;
        for (int j = 0; j < 6; j++)
            offer_as(10 * i + j, a[i], PRIORITY_URGENT);
    }
    turns(2);
    CHECK(n_going("a0") == 2); /* a quarter, */
    CHECK_INT(n_going("a0") + n_going("a1") + n_going("a2"), 4); /* half */
    other = slow("other");
    other->creator = STR("bert");
    own = slow("own");
    own->is_configured = true;
    own->creator = STR("anna");
    offer_as(40, other, PRIORITY_LOW);
    offer_as(41, own, PRIORITY_LOW);
    turns(1);
    CHECK(is_going(40) && is_going(41));
    CHECK_INT(deliver_stats(st.d).on_the_way, 6);
    for (int i = 0; i < 2; i++) { /* what ends makes room for the next */
        end_well(order[i]);
        turns(1);
        CHECK(deliver_check(st.d));
    }
    CHECK_INT(n_going("a0") + n_going("a1") + n_going("a2"), 4);
    s.max_in_flight = 16;
    set(s);
    later(1000);
    CHECK_INT(n_going("a0") + n_going("a1") + n_going("a2"), 8);
    for (int i = 0; i < n_order; i++)
        if (is_going(order[i])) {
            end_well(order[i]);
            turns(2);
        }
    CHECK(deliver_stats(st.d).waiting == 0 && n_order == 20);
    close_queues();
}

TEST(one_that_finds_nothing_to_do_lets_the_next_of_its_patron_go)
{
    struct deliver_settings s;
    struct agent *a, *b, *c;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 2;
    s.in_flight = 1;
    set(s);
    a = slow("a");
    b = slow("b");
    c = slow("c");
    offer_as(0, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(1, b, PRIORITY_NORMAL);
    offer_as(2, c, PRIORITY_NORMAL);
    turns(1);
    CHECK(!is_going(1) && !is_going(2));
    deliver_cancel(st.d, str_of(id_of(&st.tasks[1])));
    end_well(0);
    turns(1);
    CHECK(is_going(2));
    close_queues();
}

/* Otherwise a task that waits for its child would block it. */
TEST(what_is_part_of_other_work_goes_beyond_the_limit_of_all)
{
    struct deliver_settings s;
    struct agent *a, *b, *c;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = s.in_flight = 2;
    set(s);
    a = slow("a");
    b = slow("b");
    c = slow("c");
    a->is_configured = b->is_configured = c->is_configured = true;
    offer_as(0, a, PRIORITY_NORMAL);
    offer_as(1, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(2, b, PRIORITY_URGENT);
    turns(1);
    offer_below(3, b, PRIORITY_LOW, 1); /* its queue is already put away */
    turns(1);
    CHECK(is_going(3) && !is_going(2));
    offer_as(4, c, PRIORITY_URGENT);
    offer_below(5, c, PRIORITY_LOW, 1);
    offer_below(6, c, PRIORITY_LOW, 2);
    offer_below(7, c, PRIORITY_LOW, 3); /* the agent's own limit counts */
    turns(1);
    CHECK(is_going(5) && is_going(6) && !is_going(4) && !is_going(7));
    end_well(5);
    turns(1);
    CHECK(is_going(7) && !is_going(4));
    for (int i = 0; i < n_order; i++)
        if (is_going(order[i])) {
            end_well(order[i]);
            turns(2);
        }
    CHECK(deliver_stats(st.d).waiting == 0 && n_order == 8);
    close_queues();
}

TEST(what_is_part_of_other_work_goes_beyond_its_patrons_share)
{
    struct deliver_settings s;
    struct agent *a, *b;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 4;
    s.in_flight = 2;
    set(s);
    a = slow("a");
    b = slow("b");
    offer_as(0, a, PRIORITY_NORMAL);
    offer_as(1, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(2, b, PRIORITY_NORMAL);
    turns(1);
    CHECK(is_going(0) && is_going(1) && !is_going(2));
    offer_below(3, b, PRIORITY_NORMAL, 1);
    turns(1);
    CHECK(is_going(3) && !is_going(2));
    end_well(0);
    turns(1);
    CHECK(!is_going(2)); /* what goes beyond it counts for it */
    end_well(1);
    turns(1);
    CHECK(is_going(2));
    close_queues();
}

TEST(the_limit_of_all_holds_up_nobody_who_does_not_wake)
{
    struct deliver_settings s;
    struct agent *a, *b;

    open_queues();
    s = st.d->opts.settings;
    s.max_in_flight = 1;
    set(s);
    a = slow("a");
    b = stage_agent("b", "ws-agent://b");
    b->wake.url = STR("http://wake.example/");
    offer_as(0, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(1, b, PRIORITY_NORMAL);
    turns(1);
    CHECK_INT(deliver_stats(st.d).wakes_total, 1);
    later(s.wake_ms);
    CHECK(is_going(0) && st.tasks[1].n_results == 1);
    CHECK_STR(str_of(st.tasks[1].code), "agent_did_not_wake");
    attach(0, b);
    offer_as(2, b, PRIORITY_NORMAL);
    turns(1);
    CHECK(!is_going(2));
    detach(&st.peers[0]);
    turns(1);
    CHECK_INT(deliver_stats(st.d).wakes_total, 2);
    later(s.wake_ms);
    CHECK(st.tasks[2].n_results == 1);
    close_queues();
}

TEST(a_turn_has_its_share_and_the_rest_goes_in_the_next)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    st.d->go_turn = loop_turn_number(&st.loop);
    st.d->n_gone = GO_MAX - 3; /* as if so many had gone */
    for (int i = 0; i < 8; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    loop_turn(&st.loop);
    CHECK_INT(deliver_stats(st.d).on_the_way, 3);
    CHECK(deliver_check(st.d));
    loop_turn(&st.loop);
    CHECK_INT(deliver_stats(st.d).on_the_way, 8);
    close_queues();
}

/* Agents that go. */

TEST(a_desk_goes_with_its_agent_once_nothing_is_on_it)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    a->limits.in_flight = 1;
    offer_as(0, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(1, a, PRIORITY_NORMAL);
    st.n_agents = 0;
    st.tasks[1].is_over = true; /* as the walk says no then */
    deliver_agents_changed(st.d);
    turns(2);
    CHECK(st.d->agent_queues.n == 1);
    later(1000);
    CHECK(!deliver_job_of(1) && is_going(0) && st.d->agent_queues.n == 1);
    end_well(0);
    agent_queue_hold(agent_queue_find(st.d, STR("a")));
    deliver_agents_changed(st.d);
    later(1000);
    CHECK(st.d->agent_queues.n == 1); /* it is held */
    agent_queue_release(agent_queue_find(st.d, STR("a")));
    deliver_agents_changed(st.d);
    later(1000);
    CHECK(st.d->agent_queues.n == 0);
    close_queues();
}

/* Gathered chunks. */

static void chunk(int i, const char *text)
{
    CHECK(delivery_chunk(deliver_job_of(i)->delivery, str_of(text)));
    CHECK(deliver_check(st.d));
}

TEST(chunks_are_the_text_as_far_as_there_is_room_for_them)
{
    struct deliver_settings s;
    struct agent *a;

    open_queues();
    s = st.d->opts.settings;
    s.max_gathered_bytes = 10;
    set(s);
    a = slow("a");
    for (int i = 0; i < 3; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    turns(1);
    chunk(0, "12345");
    chunk(1, "12345");
    chunk(2, "6");
    CHECK_INT(deliver_stats(st.d).gathered_bytes, 10);
    for (int i = 0; i < 3; i++)
        delivery_result(deliver_job_of(i)->delivery,
                        &(struct task_result){.status = TASK_COMPLETED}, false,
                        0);
    CHECK_STR(str_of(st.tasks[0].text), "12345");
    CHECK(st.tasks[1].result.status == TASK_COMPLETED);
    CHECK(st.tasks[2].n_results == 0); /* innocent: it goes again */
    CHECK_INT(st.tasks[2].n_retries, 1);
    CHECK_INT(deliver_job_of(2)->n_failures, 0);
    CHECK_INT(deliver_stats(st.d).gathered_bytes, 0);
    close_queues();
}

TEST(what_is_too_large_by_itself_fails_and_who_has_too_much_loses)
{
    static char mib[MSG_TEXT_MAX + 1];
    struct deliver_settings s;
    struct agent *a, *b;

    open_queues();
    s = st.d->opts.settings;
    s.max_gathered_bytes = 2 * MSG_TEXT_MAX;
    set(s);
    a = slow("a");
    b = slow("b");
    memset(mib, 'x', MSG_TEXT_MAX);
    for (int i = 0; i < 3; i++)
        offer_as(i, i < 2 ? a : b, PRIORITY_NORMAL);
    turns(1);
    chunk(0, mib);
    chunk(1, "x"); /* its agent has a share, */
    chunk(2, "x"); /* and the others have theirs */
    CHECK_INT(deliver_stats(st.d).gathered_bytes, MSG_TEXT_MAX + 1);
    chunk(0, "x");
    for (int i = 0; i < 3; i++)
        delivery_result(deliver_job_of(i)->delivery,
                        &(struct task_result){.status = TASK_COMPLETED}, false,
                        i == 1 ? 77 : 0);
    CHECK_STR(str_of(st.tasks[0].code), "too_large");
    CHECK(st.tasks[1].n_results == 0 && st.tasks[1].n_retries == 1);
    CHECK(st.recorded == 77 && st.recorded_as == ERR_GONE);
    CHECK_STR(str_of(st.tasks[2].text), "x");
    CHECK(deliver_check(st.d));
    close_queues();
}

/* Stopping. */

static int n_stopped;

static void on_stopped(void *ctx)
{
    CHECK(ctx == &n_stopped);
    n_stopped++;
}

static void part_stop(struct deliver *d, struct deliver_part *p)
{
    (void)d;
    (void)p;
}

TEST(what_is_on_its_way_stays_and_nothing_begins_once_it_stops)
{
    struct deliver_part part = {.stop = part_stop};
    struct agent *a;

    open_queues();
    n_stopped = 0;
    deliver_part_add(st.d, &part);
    a = slow("a");
    a->limits.in_flight = 1;
    offer_as(0, a, PRIORITY_NORMAL);
    turns(1);
    offer_as(1, a, PRIORITY_NORMAL);
    deliver_stop(st.d, on_stopped, &n_stopped);
    CHECK(deliver_stats(st.d).on_the_way == 0 && n_stopped == 0);
    turns(3);
    CHECK(deliver_stats(st.d).started_total == 1 && n_stopped == 0);
    deliver_part_stopped(st.d, &part);
    CHECK(n_stopped == 0); /* from the loop */
    turns(3);
    CHECK(n_stopped == 1);
    CHECK(!st.tasks[0].is_over && st.tasks[0].n_retries == 0);
    close_queues();
}

/* Without memory. */

/* Some work for two agents, whatever fails once: all of it ends. */
static bool survive(long nth)
{
    struct agent *a, *b;
    bool has_fired;

    stage_clear();
    fault_arm(nth);
    st.d = stage_make(NULL);
    if (!st.d) {
        CHECK(fault_fired());
        st.d = stage_make(NULL);
        CHECK(st.d);
    }
    a = stage_agent("a", "echo:");
    b = stage_agent("b", "ws-agent://b");
    b->wake.url = STR("http://wake.example/");
    for (int i = 0; i < 20; i++)
        offer(i, i % 2 ? a : b);
    turns(3);
    if (peer_attach(0, b) != OK)
        CHECK(peer_attach(0, b) == OK);
    for (int n = 0; n < 10; n++) {
        later(1000);
        CHECK(deliver_check(st.d));
        for (int i = 0; i < 20; i += 2)
            if (is_going(i))
                (void)hear_result(&st.peers[0], &st.tasks[i], "x", 0);
        deliver_report(st.d, STR("c"), AGENT_BUSY);
        deliver_agents_changed(st.d);
    }
    for (int i = 0; i < 20; i++)
        CHECK(st.tasks[i].n_results == 1);
    has_fired = fault_fired();
    fault_arm(0);
    stage_close();
    return has_fired;
}

TEST(desks_survive_every_fault)
{
    long nth = 0;

    while (survive(++nth))
        CHECK(nth < 1000);
    CHECK(nth > 20);
}
