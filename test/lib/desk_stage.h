#ifndef TEST_LIB_DESK_STAGE_H
#define TEST_LIB_DESK_STAGE_H

/* Desks whose agents are echoes that take their time: the tests say themselves
 * what becomes of a delivery. */

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

static inline void open_desks(void)
{
    stage_open();
    n_order = 0;
    st.on_word = note_order;
}

static inline void close_desks(void)
{
    CHECK(deliver_check(st.d));
    stage_close();
}

/* As part of other work, so many agents below it. */
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

static inline struct errand *errand_of(int i)
{
    return map_get(&st.d->errands, str_of(st.tasks[i].task.id.text));
}

static inline bool is_going(int i)
{
    struct errand *e = errand_of(i);

    return e && e->state == ERRAND_GOING;
}

static inline void end_well(int i)
{
    delivery_result(errand_of(i)->delivery,
                    &(struct task_result){.status = TASK_COMPLETED}, true, 0);
    CHECK(deliver_check(st.d));
}

static inline void end_badly(int i, const struct delivery_failure *f)
{
    struct delivery_failure words = *f;

    words.code = STR("unreachable");
    words.words = STR("nobody there");
    delivery_failed(errand_of(i)->delivery, &words);
    CHECK(deliver_check(st.d));
}

static const struct delivery_failure plain;

/* Those in flight end one after the other, until nobody waits. */
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
