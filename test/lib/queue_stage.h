#ifndef TEST_LIB_QUEUE_STAGE_H
#define TEST_LIB_QUEUE_STAGE_H

/* Queues of slow echo agents: the tests decide the outcome of a delivery. */

#include "test/lib/line_stage.h"

enum { GO_MAX = 256 };

static int order[STAGE_TASKS], n_order;

static inline void note_order(struct stage_task *x, char word)
{
    if (word == 'w')
        order[n_order++] = (int)(x - st.tasks);
}

static inline struct agent *slow(const char *name)
{
    return stage_agent(name, "echo:3600000");
}

static inline void open_queues(void)
{
    stage_open();
    n_order = 0;
    st.on_word = note_order;
}

static inline void close_queues(void)
{
    CHECK(deliver_check(st.d));
    stage_close();
}

/* Offer a task of other work, at that depth. */
static inline struct stage_task *offer_below(int i, const struct agent *a,
                                             enum task_priority p, int depth)
{
    struct stage_task *x = &st.tasks[i];

    *x = (struct stage_task){.agent = a, .is_offered = true};
    snprintf(x->task.id.text, sizeof(x->task.id.text), "task_%026d", i);
    x->task.turn = 1;
    x->task.place = i;
    x->task.priority = p;
    x->task.depth = depth;
    x->task.deadline_ms = st.time.wall_ms + 3600 * 1000;
    CHECK(deliver_offer(st.d, &x->task, a) == OK);
    CHECK(deliver_check(st.d));
    return x;
}

static inline struct stage_task *offer_as(int i, const struct agent *a,
                                          enum task_priority p)
{
    return offer_below(i, a, p, 0);
}

static inline struct deliver_job *deliver_job_of(int i)
{
    return map_get(&st.d->deliver_jobs, str_of(st.tasks[i].task.id.text));
}

static inline bool is_going(int i)
{
    struct deliver_job *e = deliver_job_of(i);

    return e && e->state == DELIVER_JOB_GOING;
}

static inline void end_well(int i)
{
    delivery_result(deliver_job_of(i)->delivery,
                    &(struct task_result){.status = TASK_COMPLETED}, true, 0);
    CHECK(deliver_check(st.d));
}

static inline void end_badly(int i, const struct delivery_failure *f)
{
    struct delivery_failure words = *f;

    words.code = STR("unreachable");
    words.words = STR("no one there");
    delivery_failed(deliver_job_of(i)->delivery, &words);
    CHECK(deliver_check(st.d));
}

static const struct delivery_failure plain;

/* Those in flight end one after the other, until no one waits. */
static inline void let_all_go(void)
{
    for (int i = 0; i < n_order; i++) {
        end_well(order[i]);
        turns(2);
    }
}

static inline void set(struct deliver_settings s)
{
    deliver_set(st.d, &s);
}

#endif
