/* Agent queues: failed attempts and the breaker. */
#include "test/lib/queue_stage.h"

/* Failed attempts. */

TEST(the_pause_doubles_at_most_and_is_left_to_chance)
{
    static const int64_t most[] = {100, 200, 400, 800, 1000, 1000};
    int64_t sum[6] = {0};
    struct deliver_settings s;
    struct agent *a;

    open_queues();
    s = st.d->opts.settings;
    s.max_attempts = 7;
    set(s);
    a = slow("a");
    st.on_word = NULL;
    for (int i = 0; i < 60; i++) {
        struct stage_task *x = offer_as(i, a, PRIORITY_NORMAL);

        for (int n = 0; n < 6; n++) {
            turns(2);
            end_badly(i, &plain);
            CHECK(x->retry_ms >= 0 && x->retry_ms <= most[n]);
            sum[n] += x->retry_ms;
        }
        CHECK(x->n_retries == 6 && !x->is_over);
        deliver_cancel(st.d, str_of(id_of(x)));
        x->waits = false;
    }
    for (int n = 0; n < 6; n++) /* half of it, about */
        CHECK(sum[n] > 60 * most[n] / 3 && sum[n] < 60 * most[n] * 2 / 3);
    close_queues();
}

TEST(after_so_many_attempts_it_fails_with_the_words_of_the_last)
{
    struct stage_task *x;
    struct agent_queue_stats k;
    struct agent *a;

    open_queues();
    a = slow("a");
    x = offer_as(0, a, PRIORITY_NORMAL);
    for (int n = 1; n <= 4; n++) {
        turns(2);
        CHECK(is_going(0) && x->task.attempt == n);
        end_badly(0, &plain);
    }
    CHECK(x->is_over && x->n_results == 1 && x->n_retries == 3);
    CHECK(x->result.status == TASK_FAILED);
    CHECK_STR(str_of(x->code), "unreachable");
    CHECK_STR(str_of(x->error), "no one there");
    CHECK(deliver_queue_stats(st.d, STR("a"), &k));
    CHECK(k.failed_total == 1 && k.retries_total == 3);
    CHECK(deliver_stats(st.d).failed_total == 1);
    close_queues();
}

TEST(what_is_nobodys_fault_does_not_count_and_what_is_final_is_not_retried)
{
    static const struct delivery_failure innocent = {.is_innocent = true};
    static const struct delivery_failure final = {.is_final = true};
    struct stage_task *x, *y;
    struct agent *a;

    open_queues();
    a = slow("a");
    x = offer_as(0, a, PRIORITY_NORMAL);
    y = offer_as(1, a, PRIORITY_NORMAL);
    for (int n = 0; n < 20; n++) {
        turns(2);
        end_badly(0, &innocent);
    }
    CHECK(!x->is_over && x->n_retries == 20);
    end_badly(1, &final);
    CHECK(y->is_over && y->n_retries == 0);
    close_queues();
}

TEST(a_pause_that_is_asked_for_is_kept_within_bounds)
{
    struct stage_task *x;
    struct agent *a;

    open_queues();
    a = slow("a");
    x = offer_as(0, a, PRIORITY_NORMAL);
    turns(1);
    end_badly(0, &(struct delivery_failure){.retry_ms = 5000});
    CHECK_INT(x->retry_ms, 5000);
    turns(2); /* and the queue respects it */
    CHECK(!is_going(0) && deliver_stats(st.d).breakers_open == 1);
    later(5000);
    CHECK(is_going(0));
    end_badly(0, &(struct delivery_failure){.retry_ms = INT64_MAX});
    CHECK_INT(x->retry_ms, BREAKER_PAUSE_MAX_MS);
    close_queues();
}

TEST(no_pause_is_longer_than_the_time_there_is)
{
    struct stage_task *x;
    struct agent *a;

    open_queues();
    a = slow("a");
    x = offer_as(0, a, PRIORITY_NORMAL);
    x->task.deadline_ms = st.time.wall_ms + 700;
    deliver_cancel(st.d, str_of(id_of(x)));
    CHECK(deliver_offer(st.d, &x->task, a) == OK);
    turns(1);
    end_badly(0, &(struct delivery_failure){.retry_ms = 5000});
    CHECK_INT(x->retry_ms, 700);
    turns(1);
    later(5000);
    end_badly(0, &(struct delivery_failure){.retry_ms = 5000});
    CHECK_INT(x->retry_ms, 0);
    close_queues();
}

/* The breaker. */

static void open_breaker(struct agent *a)
{
    struct deliver_settings s = st.d->opts.settings;

    s.breaker_failures = 3;
    s.breaker_pause_ms = 1000;
    set(s);
    for (int i = 0; i < 3; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    turns(1);
    for (int i = 0; i < 3; i++)
        end_badly(i, &plain);
}

TEST(who_fails_again_and_again_is_left_alone_and_then_given_one)
{
    struct agent_queue_stats k;
    struct agent *a;
    int n = 0;

    open_queues();
    a = slow("a");
    open_breaker(a);
    turns(2); /* they are offered again, and wait */
    later(900);
    CHECK(deliver_stats(st.d).on_the_way == 0);
    CHECK(deliver_queue_stats(st.d, STR("a"), &k) && k.is_open &&
          k.waiting == 3);
    CHECK(st.tasks[0].task.attempt == 1); /* no attempt is used up */
    later(100);
    for (int i = 0; i < 3; i++)
        n += is_going(i);
    CHECK_INT(n, 1);
    end_badly(0, &plain); /* the probe */
    later(999);
    CHECK(deliver_stats(st.d).on_the_way == 0);
    later(1);
    CHECK(deliver_stats(st.d).on_the_way == 1);
    for (int i = 0; i < 3; i++)
        if (is_going(i)) {
            end_well(i);
            break;
        }
    CHECK(deliver_stats(st.d).breakers_open == 0);
    turns(1);
    CHECK(deliver_stats(st.d).on_the_way == 2);
    close_queues();
}

TEST(a_probe_that_is_cancelled_lets_another_go)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    open_breaker(a);
    turns(1);
    later(1000);
    CHECK(is_going(0) && deliver_stats(st.d).on_the_way == 1);
    deliver_cancel(st.d, str_of(id_of(&st.tasks[0])));
    turns(1);
    CHECK(is_going(1) && deliver_stats(st.d).on_the_way == 1);
    close_queues();
}

TEST(a_final_failure_is_an_answer)
{
    struct agent *a;

    open_queues();
    a = slow("a");
    open_breaker(a);
    turns(1);
    later(1000);
    end_badly(0, &(struct delivery_failure){.is_final = true});
    CHECK(deliver_stats(st.d).breakers_open == 0);
    turns(1);
    CHECK(deliver_stats(st.d).on_the_way == 2);
    close_queues();
}

TEST(one_that_was_away_begins_anew)
{
    struct deliver_settings s;
    struct agent *a;
    struct peer *p;

    open_queues();
    s = st.d->opts.settings;
    s.breaker_failures = 3;
    set(s);
    a = stage_agent("a", "ws-agent://a");
    p = attach(0, a);
    for (int i = 0; i < 5; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    turns(1);
    detach(p); /* five failures */
    CHECK(deliver_stats(st.d).breakers_open == 1);
    turns(2);
    CHECK(deliver_stats(st.d).on_the_way == 0);
    attach(1, a);
    turns(2);
    CHECK_INT(deliver_stats(st.d).on_the_way, 5);
    CHECK(deliver_stats(st.d).breakers_open == 0);
    close_queues();
}

TEST(one_that_is_full_for_a_moment_was_not_away)
{
    struct deliver_settings s;
    struct agent_queue_stats k;
    struct agent *a;
    struct peer *p;

    open_queues();
    s = st.d->opts.settings;
    s.breaker_failures = 3;
    set(s);
    a = stage_agent("a", "ws-agent://a");
    p = attach(0, a);
    for (int i = 0; i < 2; i++)
        offer_as(i, a, PRIORITY_NORMAL);
    turns(1);
    for (int i = 0; i < 2; i++)
        end_badly(i, &plain);
    p->is_full = true;
    turns(2);
    p->is_full = false;
    deliver_line_room(st.d, p->line);
    turns(2);
    for (int i = 0; i < 2; i++)
        if (is_going(i)) {
            end_badly(i, &plain); /* the third in a row */
            break;
        }
    CHECK(deliver_queue_stats(st.d, STR("a"), &k) && k.is_open);
    close_queues();
}
