/* Anything in any order: what was offered ends once, or waits where the checker
 * finds it. */
#include <stdlib.h>

#include "test/lib/line_stage.h"

enum { TASKS = 60, AGENTS = 6, STEPS = 4000 };

static struct rand_seeded state;

static unsigned pick(unsigned n)
{
    return (unsigned)(rand_u64(rand_seeded(&state)) % n);
}

static struct deliver_job *deliver_job_of(int i)
{
    return map_get(&st.d->deliver_jobs, str_of(st.tasks[i].task.id.text));
}

static void offer_some(int i)
{
    const struct agent *a = &st.agents[pick(AGENTS)];
    struct stage_task *x = &st.tasks[i];

    if (x->is_offered && !x->is_over)
        return;
    offer(i, a);
    deliver_cancel(st.d, str_of(id_of(x)));
    x->task.priority = (enum task_priority)pick(4);
    x->task.place = (int64_t)pick(1000);
    x->task.depth = (int)pick(3);
    x->waits = deliver_offer(st.d, &x->task, a) != OK;
}

static void end_some(int i)
{
    struct deliver_job *e = deliver_job_of(i);

    if (!e || e->state != DELIVER_JOB_GOING)
        return;
    switch (pick(5)) {
    case 0:
        delivery_failed(e->delivery,
                        &(struct delivery_failure){
                            .code = STR("x"),
                            .words = STR("y"),
                            .is_final = !pick(4),
                            .is_innocent = !pick(3),
                            .retry_ms = pick(8) ? 0 : (int64_t)pick(3000)});
        break;
    case 1:
        deliver_cancel(st.d, str_of(id_of(&st.tasks[i])));
        st.tasks[i].is_over = true;
        break;
    case 2: CHECK(delivery_chunk(e->delivery, STR("some words"))); break;
    default:
        delivery_result(e->delivery,
                        &(struct task_result){.status = TASK_COMPLETED},
                        pick(2), 0);
    }
}

static void turn_line(void)
{
    struct peer *p = &st.peers[0];

    if (p->is_there)
        detach(p);
    else
        attach(0, &st.agents[0]);
    while (p->n_said > STAGE_SAID / 2)
        free(p->said[--p->n_said]);
}

static void change_settings(void)
{
    struct deliver_settings s = st.d->opts.settings;

    s.max_in_flight = 1 + pick(20);
    s.in_flight = 1 + pick(6);
    s.breaker_failures = 2 + (int)pick(5);
    s.max_gathered_bytes = 20 + pick(200);
    deliver_set(st.d, &s);
}

static void some_step(void)
{
    static struct agent_queue_row rows[DELIVER_SHOWN_MAX];
    struct agent_queue_stats others;
    struct agent *a = &st.agents[pick(AGENTS)];

    switch (pick(16)) {
    case 0: turn_line(); break;
    case 1: change_settings(); break;
    case 2: a->limits.priority = (int64_t)pick(5) - 2; break;
    case 3: a->limits.in_flight = pick(4); break;
    case 4:
        (void)deliver_shown(st.d, rows, &others);
        a->visibility = pick(2) ? VISIBILITY_PUBLIC : VISIBILITY_PRIVATE;
        break;
    case 5: deliver_agents_changed(st.d); break;
    case 6: later(pick(1500)); break;
    case 7: later(0); break;
    case 8:
    case 9:
    case 10: end_some((int)pick(TASKS)); break;
    default: offer_some((int)pick(TASKS));
    }
}

/* Everybody is there and nothing fails: all of it ends. */
static void let_all_end(void)
{
    struct deliver_settings s = st.d->opts.settings;

    s.max_in_flight = s.in_flight = 1000;
    deliver_set(st.d, &s);
    if (!st.peers[0].is_there)
        attach(0, &st.agents[0]);
    for (int n = 0; n < 200; n++) {
        later(10000);
        for (int i = 0; i < TASKS; i++) {
            struct deliver_job *e = deliver_job_of(i);

            if (e && e->state == DELIVER_JOB_GOING)
                delivery_result(e->delivery,
                                &(struct task_result){.status = TASK_COMPLETED},
                                true, 0);
        }
        while (st.peers[0].n_said)
            free(st.peers[0].said[--st.peers[0].n_said]);
    }
    for (int i = 0; i < TASKS; i++)
        CHECK(!st.tasks[i].is_offered || st.tasks[i].is_over);
    CHECK(st.d->deliver_jobs.n == 0);
}

TEST(anything_in_any_order_keeps_everything_where_it_belongs)
{
    static char names[AGENTS][8];

    for (uint64_t seed = 1; seed <= 3; seed++) {
        state.state = seed;
        stage_open();
        for (int i = 0; i < AGENTS; i++) {
            snprintf(names[i], sizeof(names[i]), "a%d", i);
            stage_agent(names[i], i ? "echo:3600000" : "ws-agent://a0");
        }
        for (int i = 0; i < STEPS; i++) {
            some_step();
            CHECK(deliver_check(st.d));
            CHECK(st.d->n_on_the_way <= 1000);
        }
        CHECK(deliver_stats(st.d).results_total > 20);
        let_all_end();
        CHECK(deliver_check(st.d));
        stage_close();
    }
}
