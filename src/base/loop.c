/* The end of the turn is libuv's prepare phase, the last step before it waits:
 * it comes after the timers and after the callbacks of the previous wait, so
 * all the work they leave is done before the loop sleeps.
 *
 * We use our own timers, not one uv_timer_t each: an idle connection pays 32
 * bytes instead of 152, tests can use a fake clock, and all waits are in one
 * place. One uv_timer_t wakes the loop for the first of them. */
#include "base/loop.h"

#include <assert.h>

#include "base/fault.h"

enum {
    JOBS_PER_TURN = 4096,
    TIMERS_PER_TURN = 1024,
    LONGEST_SLEEP_MS = 60 * 1000,
};

static void loop_refresh_time(struct loop *l)
{
    if (l->is_fresh)
        return;
    l->wall_ms = l->clock.wall_ms(l->clock.ctx);
    l->mono_ms = l->clock.mono_ms(l->clock.ctx);
    l->is_fresh = true;
}

int64_t loop_wall_ms(struct loop *l)
{
    loop_refresh_time(l);
    return l->wall_ms;
}

int64_t loop_mono_us(struct loop *l)
{
    return l->clock.mono_us(l->clock.ctx);
}

int64_t loop_mono_ms(struct loop *l)
{
    loop_refresh_time(l);
    return l->mono_ms;
}

static void on_loop_alarm(uv_timer_t *t)
{
    (void)t; /* only wakes the loop; the end of the turn fires due timers */
}

static void on_loop_again(uv_idle_t *i)
{
    (void)i;
}

/* Sleep until the first timer at most, and not at all while jobs or due timers
 * are left. */
static void loop_set_alarm(struct loop *l)
{
    int64_t next_ms = timers_next_ms(&l->timers);
    int64_t sleep_ms = next_ms - l->mono_ms;

    if (sleep_ms <= 0 || !list_is_empty(&l->at_end))
        uv_idle_start(&l->again, on_loop_again);
    else
        uv_idle_stop(&l->again);
    if (next_ms == INT64_MAX || sleep_ms <= 0)
        uv_timer_stop(&l->alarm);
    else
        uv_timer_start(&l->alarm, on_loop_alarm,
                       (uint64_t)(sleep_ms < LONGEST_SLEEP_MS
                                      ? sleep_ms
                                      : LONGEST_SLEEP_MS),
                       0);
}

static void loop_run_jobs(struct loop *l)
{
    struct list_node *n;

    for (int i = 0; i < JOBS_PER_TURN && (n = list_pop(&l->at_end)); i++) {
        struct loop_job *job = LIST_OF(n, struct loop_job, node);

        job->run(job);
    }
}

/* Move the jobs of the next turn to this one. */
static void loop_take_next_jobs(struct loop *l)
{
    struct list_node *n;

    while ((n = list_pop(&l->at_next_end))) {
        LIST_OF(n, struct loop_job, node)->is_next = false;
        list_append(&l->at_end, n);
    }
}

static void on_loop_end_of_turn(uv_prepare_t *p)
{
    struct loop *l = LIST_OF(p, struct loop, end_of_turn);

    loop_refresh_time(l);
    timers_fire(&l->timers, l->mono_ms, TIMERS_PER_TURN);
    loop_run_jobs(l);
    loop_take_next_jobs(l);
    loop_set_alarm(l);
    l->is_fresh = false;
    l->n_turns++;
}

enum err loop_init(struct loop *l, struct clock clock)
{
    *l = (struct loop){.clock = clock};
    if (FAULT("loop.init") || uv_loop_init(&l->uv) != 0)
        return ERR_NOMEM;
    timers_init(&l->timers);
    list_init(&l->at_end);
    list_init(&l->at_next_end);
    uv_prepare_init(&l->uv, &l->end_of_turn);
    uv_timer_init(&l->uv, &l->alarm);
    uv_idle_init(&l->uv, &l->again);
    uv_prepare_start(&l->end_of_turn, on_loop_end_of_turn);
    return OK;
}

void loop_fini(struct loop *l)
{
    int left_open;

    loop_take_next_jobs(l);
    loop_run_jobs(l);
    uv_close((uv_handle_t *)&l->end_of_turn, NULL);
    uv_close((uv_handle_t *)&l->alarm, NULL);
    uv_close((uv_handle_t *)&l->again, NULL);
    /* Run twice: a loop_stop during shutdown ends the first run before it
     * begins. */
    uv_run(&l->uv, UV_RUN_DEFAULT);
    uv_run(&l->uv, UV_RUN_DEFAULT);
    timers_fini(&l->timers);
    /* A handle still open here belongs to a module that was not shut down. */
    left_open = uv_loop_close(&l->uv);
    assert(left_open == 0);
    (void)left_open;
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

void loop_turn(struct loop *l)
{
    /* libuv prepares, then polls for events; a turn does it the other way round
     * and ends once. */
    uv_prepare_stop(&l->end_of_turn);
    uv_run(&l->uv, UV_RUN_NOWAIT);
    uv_prepare_start(&l->end_of_turn, on_loop_end_of_turn);
    on_loop_end_of_turn(&l->end_of_turn);
}

void loop_at_end(struct loop *l, struct loop_job *job)
{
    if (job->is_next)
        loop_not_at_end(job);
    if (!list_has(&job->node))
        list_append(&l->at_end, &job->node);
}

void loop_next_turn(struct loop *l, struct loop_job *job)
{
    if (list_has(&job->node))
        return;
    job->is_next = true;
    list_append(&l->at_next_end, &job->node);
}

void loop_not_at_end(struct loop_job *job)
{
    list_remove(&job->node);
    job->is_next = false;
}

void loop_timer_set(struct loop *l, struct timer *t, int64_t delay_ms)
{
    int64_t at_ms;

    assert(delay_ms >= 0);
    if (__builtin_add_overflow(loop_mono_ms(l), delay_ms, &at_ms))
        at_ms = INT64_MAX - 1;
    timers_set(&l->timers, t, at_ms);
}

void loop_timer_cancel(struct loop *l, struct timer *t)
{
    timers_cancel(&l->timers, t);
}
