/* Every step that can fail for an external reason fails once: no false result
 * is reported, nothing is lost, and the next start finds a consistent state. */
#include "test/lib/delegation_stage.h"

enum { N_HIRED = 4 };

static struct gotten got[N_HIRED];
static int n_over, n_had_done;

static void on_over(struct delegation_waiter *w, enum err e,
                    const struct delegation *d, const struct task *t)
{
    (void)w;
    CHECK(d && (e == ERR_TIMEOUT || (e == OK && t)));
    n_over++;
}

static void on_had(void *ctx, enum err e)
{
    (void)ctx;
    (void)e;
    n_had_done++;
}

static bool was_accepted(const struct gotten *g)
{
    return g->is_back && g->err == OK;
}

static void try_end(const struct gotten *g, enum task_status status)
{
    struct task_result r = {.status = status, .text = STR("x")};

    if (was_accepted(g) &&
        walk_end(stage.walk, str_of(g->task.text), &r, NULL, NULL) != OK)
        return;
    pass_ms(0);
}

/* A child of a root and its own child, one whose request is repeated, one with
 * a waiter; some end, one is acknowledged. */
static void live(const struct id *root)
{
    struct delegation_waiter w = {.on_over = on_over};
    struct gotten again = {0};
    bool is_waiting = false;
    int n_had = 0;

    memset(got, 0, sizeof(got));
    n_over = n_had_done = 0;
    CHECK(firm_post((struct wanted){.by = "a", .to = "b", .parent = root},
                    &got[0]) ||
          fault_fired());
    pass_ms(0);
    if (was_accepted(&got[0]))
        (void)firm_post(
            (struct wanted){.by = "b", .to = "c", .parent = &got[0].task},
            &got[1]);
    (void)firm_post((struct wanted){.by = "a", .to = "c", .id = "1"}, &got[2]);
    (void)firm_post((struct wanted){.by = "a", .to = "c", .id = "1"}, &again);
    pass_ms(0);
    if (was_accepted(&got[2]) && was_accepted(&again))
        CHECK_STR(str_of(again.task.text), got[2].task.text);
    if (!was_accepted(&got[2]) && was_accepted(&again))
        got[2] = again;
    (void)firm_post(
        (struct wanted){.by = "a", .to = "d", .mode = DELEGATION_SYNC},
        &got[3]);
    pass_ms(0);
    if (was_accepted(&got[3]))
        is_waiting = delegation_wait(firm_hires(), str_of(got[3].key.text),
                                     5000, &w) == OK;
    try_end(&got[3], TASK_COMPLETED);
    try_end(&got[2], TASK_COMPLETED);
    delegation_agent_came(firm_hires(), STR("a"));
    pass_ms(0);
    n_had =
        delegation_had(firm_hires(), STR("a"), STR("1"), on_had, NULL) == OK;
    try_end(&got[0], TASK_FAILED);
    for (int i = 0; i < 8; i++)
        pass_ms(1000); /* retries come */
    CHECK_INT(n_over, is_waiting);
    CHECK_INT(n_had_done, n_had);
    CHECK(delegation_check(firm_hires()) &&
          tasks_check(walk_tasks(stage.walk)));
}

/* The state of each delegation agrees with its task. */
static void check_rows(void)
{
    struct query q;

    query_init(&q, &delegation_table, 1000);
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    {
        struct id task = id_from(row_str(r, DELEGATION_TASK_ID));
        enum task_status s = stored(&task, NULL, NULL);

        CHECK(s != 0);
        CHECK(task_is_over(s) ==
              (row_int(r, DELEGATION_STATE) != DELEGATION_OPEN));
    }
    query_fini(&q);
}

/* Everything that was accepted is still there. */
static void check_kept(void)
{
    for (int i = 0; i < N_HIRED; i++)
        if (was_accepted(&got[i]))
            CHECK(firm_row(&got[i].key) != 0);
}

/* One run with that fault, and one without it after a restart; returns whether
 * the fault was met. */
static bool met(const char *where, long nth)
{
    struct id root;
    bool has_fired;

    firm_open();
    root = root_of("a");
    if (where)
        fault_arm_at(where, nth);
    else
        fault_arm(nth);
    live(&root);
    has_fired = fault_fired();
    fault_arm(0);
    stage_stop();
    stage_start();
    firm_come();
    for (int i = 0; i < 2; i++)
        pass_ms(1000);
    CHECK(delegation_check(firm_hires()));
    check_rows();
    check_kept();
    if (was_accepted(&got[0]) &&
        task_is_over(stored(&got[0].task, NULL, NULL)) &&
        was_accepted(&got[1])) /* its child went with it */
        CHECK(task_is_over(stored(&got[1].task, NULL, NULL)));
    stage_close();
    stage_remove();
    return has_fired;
}

TEST(every_step_of_its_own_may_fail)
{
    long nth = 1;

    while (met("hire.room", nth))
        nth++;
    CHECK(nth > 1);
}

TEST(steps_of_others_may_fail)
{
    long nth = 1;

    while (met(NULL, nth))
        nth += 2 * T_SWEEP_STEP;
    CHECK(nth > 100);
}

/* A start that fails says so, and the next one finds all. */
TEST(every_step_of_a_start_may_fail)
{
    struct gotten open, ready;
    struct why why;
    struct id root;
    bool has_fired;
    long nth = 0;

    firm_open();
    root = root_of("a");
    open = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    ready = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&ready.task, TASK_COMPLETED, "x"), OK);
    stage_stop();
    do {
        enum err e;

        fault_arm(++nth);
        why = (struct why){""};
        e = stage_try_start(&why);
        has_fired = fault_fired();
        fault_arm(0);
        CHECK(has_fired || !e);
        if (!e)
            CHECK(delegation_check(firm_hires()) &&
                  delegation_find(firm_hires(), str_of(open.key.text)) &&
                  delegation_find(firm_hires(), str_of(ready.key.text)));
        stage_stop();
    } while (has_fired);
    CHECK(nth > 20);
    stage_start();
    firm_come();
    CHECK_INT(delegation_stats(firm_hires()).open, 1);
    CHECK_INT(delegation_stats(firm_hires()).ready, 1);
    firm_close();
}
