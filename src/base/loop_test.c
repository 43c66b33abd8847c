#include "base/loop.h"
#include "test/t.h"

#include <unistd.h>

/* Timers: what fired, in order. */
struct probe {
    struct timer timer;
    int name;
};

static int fired[64];
static int n_fired;

static void note(struct timer *t)
{
    fired[n_fired++ % 64] = LIST_OF(t, struct probe, timer)->name;
}

TEST(timers_fire_by_time_and_then_by_order_of_setting)
{
    struct timers ts;
    struct probe p[4] = {{{.fire = note}, 0},
                         {{.fire = note}, 1},
                         {{.fire = note}, 2},
                         {{.fire = note}, 3}};

    timers_init(&ts);
    CHECK(timers_next_ms(&ts) == INT64_MAX);
    timers_set(&ts, &p[0].timer, 30);
    timers_set(&ts, &p[1].timer, 10);
    timers_set(&ts, &p[2].timer, 20);
    timers_set(&ts, &p[3].timer, 10);
    timers_set(&ts, &p[2].timer, 10); /* moved, now behind 3 */
    timers_cancel(&ts, &p[0].timer);
    timers_cancel(&ts, &p[0].timer);
    CHECK(timers_fire(&ts, 9, 99) == 0 && timers_next_ms(&ts) == 10);
    CHECK(timers_fire(&ts, 10, 2) == 2 && timers_fire(&ts, 10, 2) == 1);
    CHECK(fired[0] == 1 && fired[1] == 3 && fired[2] == 2);
    CHECK(!timer_is_set(&p[1].timer));
    timers_fini(&ts);
}

TEST(the_heap_stays_a_heap)
{
    enum { N = 300 };
    static struct probe p[N];
    struct rand_seeded state = {3};
    struct rand r = rand_seeded(&state);
    struct timers ts;

    timers_init(&ts);
    for (int i = 0; i < N; i++)
        p[i] = (struct probe){{.fire = note}, i};
    for (int step = 0; step < 20000; step++) {
        struct timer *t = &p[rand_u64(r) % N].timer;

        if (rand_u64(r) % 3)
            timers_set(&ts, t, (int64_t)(rand_u64(r) % 1000));
        else
            timers_cancel(&ts, t);
        if (step % 50 == 0)
            CHECK(timers_check(&ts));
    }
    timers_fini(&ts);
    for (int i = 0; i < N; i++)
        CHECK(!timer_is_set(&p[i].timer));
}

TEST(the_loop_turns_with_the_clock_it_was_given)
{
    struct clock_fake time = {.wall_ms = 5000, .mono_ms = 100};
    struct probe p = {{.fire = note}, 9};
    struct loop l;

    CHECK(loop_init(&l, clock_fake(&time)) == OK);
    CHECK(loop_wall_ms(&l) == 5000);
    loop_timer_set(&l, &p.timer, 50);
    time.mono_ms = 149;
    loop_turn(&l);
    CHECK(n_fired == 0);
    time.mono_ms = 150;
    loop_turn(&l);
    CHECK(n_fired == 1 && fired[0] == 9);
    loop_fini(&l);
}

TEST(the_clock_is_read_once_per_turn)
{
    struct clock_fake time = {.wall_ms = 1, .mono_ms = 1};
    struct loop l;

    CHECK(loop_init(&l, clock_fake(&time)) == OK);
    CHECK(loop_wall_ms(&l) == 1);
    time.wall_ms = 2;
    CHECK(loop_wall_ms(&l) == 1);
    loop_turn(&l);
    CHECK(loop_wall_ms(&l) == 2);
    loop_fini(&l);
}

static struct loop jobs_loop;
static int n_runs;

static void run_again(struct loop_job *job)
{
    if (++n_runs < 3)
        loop_at_end(&jobs_loop, job);
    else
        loop_stop(&jobs_loop);
}

TEST(a_job_runs_once_per_asking)
{
    struct loop_job job = {.run = run_again}, never = {.run = run_again};

    CHECK(loop_init(&jobs_loop, clock_system()) == OK);
    loop_at_end(&jobs_loop, &job);
    loop_at_end(&jobs_loop, &job);
    loop_at_end(&jobs_loop, &never);
    loop_not_at_end(&never);
    loop_run(&jobs_loop);
    CHECK(n_runs == 3);
    loop_fini(&jobs_loop);
}

static int n_endless;

static void run_endlessly(struct loop_job *job)
{
    n_endless++;
    loop_at_end(&jobs_loop, job);
}

TEST(endless_jobs_do_not_keep_the_loop_from_turning)
{
    struct loop_job job = {.run = run_endlessly};

    CHECK(loop_init(&jobs_loop, clock_system()) == OK);
    loop_at_end(&jobs_loop, &job);
    loop_turn(&jobs_loop);
    CHECK(n_endless > 0 && list_has(&job.node));
    loop_not_at_end(&job);
    loop_fini(&jobs_loop);
}

static int pipe_fds[2], n_read_before;
static uv_poll_t other;

static void on_other(uv_poll_t *h, int status, int events)
{
    (void)h, (void)status, (void)events;
    n_read_before++;
    uv_poll_stop(h);
}

static void run_next(struct loop_job *job)
{
    /* The second time, the other job ran in between. */
    CHECK(n_read_before == n_runs);
    if (++n_runs == 2)
        loop_stop(&jobs_loop);
    else
        loop_next_turn(&jobs_loop, job);
}

TEST(a_job_of_the_next_turn_lets_others_go_before)
{
    struct loop_job job = {.run = run_next};

    CHECK(loop_init(&jobs_loop, clock_system()) == OK);
    CHECK(pipe(pipe_fds) == 0 && write(pipe_fds[1], "x", 1) == 1);
    uv_poll_init(&jobs_loop.uv, &other, pipe_fds[0]);
    uv_poll_start(&other, UV_READABLE, on_other);
    loop_at_end(&jobs_loop, &job);
    loop_run(&jobs_loop); /* would hang if it waited for events */
    CHECK(n_runs == 2 && !list_has(&job.node));
    uv_close((uv_handle_t *)&other, NULL);
    loop_fini(&jobs_loop);
}

TEST(a_job_may_be_wanted_now_after_all)
{
    struct loop_job job = {.run = run_endlessly}, never = job;
    uint64_t turn;

    CHECK(loop_init(&jobs_loop, clock_system()) == OK);
    turn = loop_turn_number(&jobs_loop);
    loop_next_turn(&jobs_loop, &job);
    loop_next_turn(&jobs_loop, &never);
    loop_not_at_end(&never);
    loop_turn(&jobs_loop);
    CHECK(n_endless == 0 && loop_turn_number(&jobs_loop) == turn + 1);
    loop_not_at_end(&job);
    loop_next_turn(&jobs_loop, &job);
    loop_at_end(&jobs_loop, &job);
    loop_turn(&jobs_loop);
    CHECK(n_endless > 0);
    loop_not_at_end(&job);
    loop_fini(&jobs_loop);
}

static void stop_from_timer(struct timer *t)
{
    (void)t;
    loop_stop(&jobs_loop);
}

TEST(a_waiting_loop_wakes_for_its_first_timer)
{
    struct timer t = {.fire = stop_from_timer};

    CHECK(loop_init(&jobs_loop, clock_system()) == OK);
    loop_timer_set(&jobs_loop, &t, 5);
    loop_run(&jobs_loop);
    CHECK(!timer_is_set(&t));
    loop_fini(&jobs_loop);
}
