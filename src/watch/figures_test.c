/* Figures of the gate from the feed: which entry counts as what, over which
 * time, and the same after a restart. */
#include "test/lib/feed_stage.h"

static const uint64_t seed[2] = {1, 2};

static void tell(struct stage *s, const char *type, const char *task,
                 const char *priority)
{
    struct tx *tx = new_tx();
    char data[64];

    snprintf(data, sizeof(data), "{\"priority\":\"%s\"}", priority);
    feed_append(tx, &(struct feed_entry){.at_ms = s->time.wall_ms,
                                         .type = str_of(type),
                                         .task_id = str_of(task),
                                         .data = str_of(data)});
    CHECK_INT(submitted(s, tx), TX_COMMITTED);
}

static void pass(struct stage *s, int64_t ms)
{
    s->time.wall_ms += ms;
    s->time.mono_ms += ms;
    turns(s, 3);
}

static void check(const struct figures *f, bool is_hour, int64_t routed,
                  int64_t holds, int64_t hold_ms, int64_t max_ms)
{
    struct gate_figures n = figures_of(f, is_hour);

    CHECK_INT(n.routed, routed);
    CHECK_INT(n.holds, holds);
    CHECK_INT(n.hold_ms, hold_ms);
    CHECK_INT(n.hold_max_ms, max_ms);
}

TEST(each_message_counts_once_and_holds_are_timed)
{
    struct figures *f;
    struct stage s;

    stage_open(&s);
    f = figures_new(&s.loop, s.feed, seed);
    tell(&s, "task.accepted", "task_1", "NORMAL"); /* no rule's */
    tell(&s, "task.accepted", "task_2", "NORMAL");
    tell(&s, "gate.routed", "task_2", "NORMAL");
    tell(&s, "gate.held", "task_3", "NORMAL");
    tell(&s, "task.accepted", "task_3", "NORMAL");
    tell(&s, "task.accepted", "task_4", "URGENT");
    tell(&s, "gate.escalated", "task_4", "URGENT");
    tell(&s, "gate.paused", "task_5", "LOW");
    tell(&s, "gate.dropped", "task_6", "LOW");
    turns(&s, 5);
    check(f, true, 2, 0, 0, 0);
    CHECK_INT(figures_of(f, true).decisions[FIGURE_HELD], 1);
    CHECK_INT(figures_of(f, true).decisions[FIGURE_PAUSED], 1);
    CHECK_INT(figures_of(f, true).decisions[FIGURE_ESCALATED], 1);
    CHECK_INT(figures_of(f, true).decisions[FIGURE_DROPPED], 1);
    pass(&s, 60000);
    tell(&s, "gate.held", "task_3", "NORMAL"); /* still */
    pass(&s, 60000);
    tell(&s, "gate.released", "task_3", "NORMAL");
    pass(&s, 60000);
    tell(&s, "gate.expired", "task_5", "LOW");
    turns(&s, 5);
    check(f, true, 3, 2, 300000, 180000);
    CHECK_INT(figures_of(f, true).normal_holds, 1);
    CHECK_INT(figures_of(f, true).normal_hold_ms, 120000);
    figures_free(f);
    stage_close(&s);
}

static void tell_batch(struct stage *s, const char *type, const char *task)
{
    struct tx *tx = new_tx();

    feed_append(
        tx, &(struct feed_entry){.at_ms = s->time.wall_ms,
                                 .type = str_of(type),
                                 .task_id = str_of(task),
                                 .data = STR("{\"type\":\"BATCH\",\"priority\":"
                                             "\"NORMAL\"}")});
    CHECK_INT(submitted(s, tx), TX_COMMITTED);
}

TEST(what_goes_as_one_counts_as_what_it_is_made_of)
{
    struct figures *f;
    struct stage s;

    stage_open(&s);
    f = figures_new(&s.loop, s.feed, seed);
    tell(&s, "gate.held", "task_1", "NORMAL");
    tell(&s, "gate.held", "task_2", "NORMAL");
    pass(&s, 60000);
    tell_batch(&s, "task.accepted", "task_3");
    tell(&s, "gate.released", "task_1", "NORMAL");
    tell(&s, "gate.released", "task_2", "NORMAL");
    tell_batch(&s, "gate.routed", "task_3");
    turns(&s, 5);
    check(f, true, 2, 2, 120000, 60000);
    CHECK_INT(figures_of(f, true).decisions[FIGURE_ROUTED], 1);
    figures_free(f);
    stage_close(&s);
}

TEST(an_hour_and_a_day_pass_and_a_restart_changes_nothing)
{
    enum { HOUR = 3600 * 1000 };
    struct figures *f;
    struct stage s;

    stage_open(&s);
    f = figures_new(&s.loop, s.feed, seed);
    for (int i = 0; i < 3; i++) {
        char task[16];

        snprintf(task, sizeof(task), "task_%d", i);
        tell(&s, "gate.held", task, "NORMAL");
        pass(&s, 60000);
        tell(&s, "gate.released", task, "NORMAL");
        pass(&s, 2 * HOUR);
    }
    for (int i = 0; i < 2; i++) {
        check(f, true, 0, 0, 0, 0);
        check(f, false, 3, 3, 180000, 60000);
        figures_free(f);
        stage_again(&s);
        f = figures_new(&s.loop, s.feed, seed);
        turns(&s, 10);
    }
    pass(&s, 20 * HOUR);
    check(f, false, 1, 1, 60000, 60000);
    pass(&s, 24 * HOUR);
    check(f, false, 0, 0, 0, 0);
    s.time.wall_ms -= 72 * (int64_t)HOUR; /* the clock jumps back */
    turns(&s, 2);
    tell(&s, "gate.routed", "task_9", "NORMAL");
    turns(&s, 5);
    check(f, false, 1, 0, 0, 0);
    figures_free(f);
    stage_close(&s);
}
