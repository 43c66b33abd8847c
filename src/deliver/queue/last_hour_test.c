/* The figures of the last hour and the last error. */
#include "test/lib/line_stage.h"

enum { MINUTE_MS = DELIVER_MINUTE_MS };

static struct agent_queue_figures f;

static void look(void)
{
    deliver_figures(st.d, STR("A"), &f);
}

static struct delivery *begun(int i, const struct agent *a)
{
    struct deliver_job *e;

    offer(i, a);
    turns(1);
    e = map_get(&st.d->deliver_jobs, str_of(st.tasks[i].task.id.text));
    CHECK(e && e->delivery);
    return e->delivery;
}

static void end_in(const struct agent *a, enum task_status s, int64_t ms)
{
    struct delivery *y = begun(0, a);

    st.time.mono_ms += ms;
    st.time.wall_ms += ms;
    turns(1); /* the clock is read */
    delivery_result(y,
                    &(struct task_result){.status = s,
                                          .error_code = STR("broken"),
                                          .error = STR("the oven is cold")},
                    true, 0);
    turns(1);
}

/* To the beginning of the next minute. */
static void next_minute(void)
{
    later(MINUTE_MS - st.time.mono_ms % MINUTE_MS);
}

static const struct agent_queue_minute *ago(int minutes)
{
    look();
    return &f.hour[DELIVER_HOUR - 1 - minutes];
}

static struct agent *idler(void)
{
    return stage_agent("a", "echo:3600000");
}

TEST(who_has_done_nothing_has_no_hour)
{
    stage_open();
    idler();
    look();
    CHECK(!f.has_hour && !f.waiting && !f.in_flight && !f.failed_ms);
    CHECK(f.latency_ms == -1 && !f.usual_ms && !f.error.n && !f.is_paused);
    CHECK(!agent_queue_find(st.d,
                            STR("a"))); /* nor has reading created a queue */
    stage_close();
}

TEST(who_has_the_name_of_another_is_told_nothing_of_that_one)
{
    struct agent *a;

    stage_open();
    a = idler();
    a->created_ms = 10;
    end_in(a, TASK_COMPLETED, 5);
    end_in(a, TASK_FAILED, 5);
    CHECK(deliver_pause(st.d, STR("a"), STR("bob"), 20) == OK);
    look();
    CHECK(f.has_hour && f.failed_total == 1 && f.latency_ms == 5);
    CHECK(str_eq(f.error, STR("the oven is cold")));
    CHECK(str_eq(f.paused_by, STR("bob")));

    a->created_ms = 6000;
    look();
    CHECK(!f.has_hour && !f.failed_total && !f.completed_total);
    CHECK(!f.error.n && !f.error_code.n && !f.failed_ms);
    CHECK(f.latency_ms == -1 && f.is_paused && !f.paused_by.n && !f.paused_ms);

    deliver_resume(st.d, STR("a"));
    end_in(a, TASK_FAILED, 5);
    look();
    CHECK(f.has_hour && f.failed_total == 1 && !f.completed_total);
    CHECK(f.error.n && f.failed_ms);
    stage_close();
}

TEST(a_pause_from_before_a_start_and_before_its_agent_has_no_author)
{
    stage_open();
    CHECK(deliver_pause(st.d, STR("a"), STR("bob"), 20) == OK);
    idler()->created_ms = 20;
    look();
    CHECK(f.is_paused && str_eq(f.paused_by, STR("bob")));
    st.agents[0].created_ms = 21;
    look();
    CHECK(f.is_paused && !f.paused_by.n && !f.paused_ms);
    stage_close();
}

TEST(what_ended_is_in_its_minute_and_gone_after_an_hour)
{
    struct agent *a;

    stage_open();
    a = idler();
    next_minute();
    end_in(a, TASK_COMPLETED, 100);
    end_in(a, TASK_COMPLETED, 300);
    end_in(a, TASK_FAILED, 5);
    end_in(a, TASK_CANCELLED, 5);
    look();
    CHECK(f.has_hour && f.running_ms == 410);
    CHECK(f.completed_total == 2 && f.failed_total == 1);
    CHECK(f.cancelled_total == 1 && f.latency_ms == 200);
    next_minute();
    end_in(a, TASK_COMPLETED, 7);
    CHECK(ago(0)->completed == 1 && ago(0)->latency_sum_ms == 7);
    CHECK(ago(1)->completed == 2 && ago(1)->latency_sum_ms == 400);
    CHECK(ago(1)->failed == 1 && ago(1)->cancelled == 1);
    CHECK(!ago(2)->completed);
    later(58 * (int64_t)MINUTE_MS);
    CHECK(ago(59)->completed == 2 && ago(58)->completed == 1);
    CHECK(!ago(0)->completed);
    /* Counting moves the ring on as looking does. */
    end_in(a, TASK_COMPLETED, 1);
    CHECK(ago(59)->completed == 2 && ago(58)->completed == 1);
    CHECK(ago(0)->completed == 1);
    next_minute();
    CHECK(ago(59)->completed == 1 && ago(1)->completed == 1);
    later(59 * (int64_t)MINUTE_MS);
    look();
    CHECK(!f.has_hour && f.completed_total == 4);
    later(1000 * (int64_t)MINUTE_MS);
    end_in(a, TASK_COMPLETED, 1);
    CHECK(ago(0)->completed == 1);
    for (int i = 1; i < DELIVER_HOUR; i++)
        CHECK(!ago(i)->completed && !ago(i)->failed);
    stage_close();
}

TEST(the_last_failure_is_told_also_of_what_is_tried_again)
{
    static char words[400];
    struct agent *a;

    stage_open();
    a = idler();
    end_in(a, TASK_FAILED, 5);
    look();
    CHECK_STR(f.error_code, "broken");
    CHECK_STR(f.error, "the oven is cold");
    CHECK(f.failed_ms == st.time.wall_ms);
    /* No more of it than there is room for, and no character in two. */
    memset(words, 'x', sizeof(words));
    memcpy(words + AGENT_QUEUE_WORDS_BYTES - 2, "\xc3\xa4", 2);
    later(1000);
    delivery_failed(begun(0, a), &(struct delivery_failure){
                                     .code = STR("unreachable"),
                                     .words = {words, sizeof(words)}});
    look();
    CHECK_STR(f.error_code, "unreachable");
    CHECK_INT(f.error.n, AGENT_QUEUE_WORDS_BYTES - 2);
    CHECK(f.retries_total == 1 && f.failed_total == 1);
    CHECK(f.failed_ms == st.time.wall_ms);
    CHECK(ago(0)->failed == 1); /* it has not failed yet */
    stage_close();
}

TEST(without_fault_of_its_own_there_is_no_failure_of_its_own)
{
    struct agent *a;

    stage_open();
    a = idler();
    delivery_failed(begun(0, a),
                    &(struct delivery_failure){.code = STR("gone"),
                                               .words = STR("we stop"),
                                               .is_innocent = true});
    look();
    CHECK(f.retries_total == 1 && !f.failed_ms && !f.error.n);
    stage_close();
}

TEST(figures_stop_at_their_largest_number)
{
    struct agent *a;
    struct agent_queue *k;

    stage_open();
    a = idler();
    end_in(a, TASK_COMPLETED, 1);
    k = agent_queue_find(st.d, STR("a"));
    for (int i = 0; i < DELIVER_HOUR; i++)
        k->hour->box[i] = (struct agent_queue_minute){
            .completed = UINT32_MAX, .latency_sum_ms = UINT32_MAX - 1};
    last_hour_count(k, MINUTE_COMPLETED, 1);
    CHECK(ago(0)->completed == UINT32_MAX);
    CHECK(ago(0)->latency_sum_ms == UINT32_MAX);
    last_hour_count(k, MINUTE_COMPLETED, INT64_MAX);
    CHECK(ago(0)->latency_sum_ms == UINT32_MAX);
    stage_close();
}

TEST(ten_thousand_agents_at_work_cost_less_than_ten_megabytes)
{
    CHECK(sizeof(struct agent_queue_hour) <= 1000);
}
