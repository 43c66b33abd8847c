/* The whole tree below a task that does not complete ends with it, in a bounded
 * number of turns. */
#include "test/lib/delegation_stage.h"
#include "walk/internal.h"

static enum task_status now(const struct id *task)
{
    return stored(task, NULL, NULL);
}

TEST(what_comes_to_no_result_takes_its_children_with_it)
{
    static const enum task_status ends[] = {TASK_FAILED, TASK_CANCELLED,
                                            TASK_EXPIRED};
    struct gotten b, c, other;
    struct id root;

    firm_open();
    for (int i = 0; i < 3; i++) {
        root = root_of("a");
        b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
        c = hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
        other = hired((struct wanted){.by = "a", .to = "b"});
        CHECK_INT(firm_end(&root, ends[i], NULL), OK);
        CHECK_INT(now(&root), ends[i]);
        CHECK_INT(now(&b.task), TASK_CANCELLED);
        CHECK_INT(now(&c.task), TASK_CANCELLED);
        CHECK_INT(now(&other.task), TASK_QUEUED); /* as the row says */
        CHECK(firm_told(&b.key) == 1 && firm_told(&c.key) == 1);
    }
    CHECK_INT(delegation_stats(firm_hires()).ended_below_total, 6);
    firm_close();
}

TEST(a_control_that_leaves_children_is_noticed)
{
    struct gotten b;
    struct id root;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    fault_arm_at("hire.leaves_children", 1);
    CHECK_INT(firm_end(&root, TASK_FAILED, NULL), OK);
    CHECK_INT(now(&b.task), TASK_QUEUED);
    firm_close();
}

TEST(time_that_is_over_travels_down)
{
    struct told root;
    struct gotten b, c;

    firm_open();
    root = sent((struct letter){.to = "a", .timeout_ms = 5000});
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root.task_id});
    c = hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    pass_ms(4999);
    CHECK(now(&c.task) == TASK_QUEUED);
    pass_ms(1);
    CHECK_INT(now(&root.task_id), TASK_EXPIRED);
    CHECK(task_is_over(now(&b.task)) && now(&b.task) != TASK_COMPLETED);
    CHECK(task_is_over(now(&c.task)) && now(&c.task) != TASK_COMPLETED);
    firm_close();
}

TEST(a_parent_that_completed_leaves_its_children_running)
{
    struct gotten b;
    struct id root;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    CHECK_INT(now(&b.task), TASK_QUEUED);
    firm_restart();
    CHECK_INT(now(&b.task), TASK_QUEUED);
    pass_ms(0);
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "y"), OK);
    CHECK_INT(firm_told(&b.key), 1);
    firm_close();
}

/* A hundred, in levels of one, four, sixteen and the rest. */

enum { TREE = 100 };

static void grow(struct id tasks[TREE])
{
    static const char *const who[] = {"a", "b", "c", "d"};
    int level[TREE] = {0};

    firm.settings.max_concurrent = 1000;
    firm_set();
    tasks[0] = root_of("a");
    for (int i = 1; i < TREE; i++) {
        int above = (i - 1) / (i < 21 ? 4 : 5);

        if (i >= 21)
            above = 5 + (i - 21) % 16;
        level[i] = level[above] + 1;
        CHECK(level[i] <= 3);
        tasks[i] = hired((struct wanted){.by = who[level[above]],
                                         .to = who[level[i]],
                                         .parent = &tasks[above]})
                       .task;
    }
}

static int n_over(const struct id tasks[TREE])
{
    int n = 0;

    for (int i = 0; i < TREE; i++)
        n += !task_find(walk_tasks(stage.walk), str_of(tasks[i].text));
    return n;
}

/* Turns until it ends; 1000: it did not end. */
static uint64_t turns_until_over(const struct id tasks[TREE])
{
    uint64_t before = loop_turn_number(&stage.loop), n = 0;

    while (n_over(tasks) < TREE && n < 1000) {
        loop_turn(&stage.loop);
        n = loop_turn_number(&stage.loop) - before;
    }
    return n;
}

TEST(a_tree_of_a_hundred_stops_within_a_few_turns)
{
    struct id tasks[TREE];
    uint64_t n;

    firm_open();
    grow(tasks);
    CHECK_INT(tasks_stats(walk_tasks(stage.walk)).by_status[TASK_DISPATCHED] +
                  tasks_stats(walk_tasks(stage.walk)).by_status[TASK_WORKING],
              TREE);
    CHECK_INT(
        walk_cancel(stage.walk, str_of(tasks[0].text), STR("anna"), NULL, NULL),
        OK);
    n = turns_until_over(tasks);
    /* At most DELEGATION_PER_TURN per turn; each of the four levels is stored
     * before the next is looked at. */
    if (n < TREE / DELEGATION_PER_TURN + 1 ||
        n > 2 * 4 + TREE / DELEGATION_PER_TURN + 2)
        T_FAIL("it took %d turns", (int)n);
    for (int i = 0; i < TREE; i++)
        CHECK_INT(now(&tasks[i]), TASK_CANCELLED);
    CHECK_INT(delegation_stats(firm_hires()).open, 0);
    pass_ms(0);
    firm_close();
}

TEST(a_control_of_the_hundred_leaves_some)
{
    struct id tasks[TREE];

    firm_open();
    grow(tasks);
    CHECK_INT(
        walk_cancel(stage.walk, str_of(tasks[0].text), STR("anna"), NULL, NULL),
        OK);
    fault_arm_at("hire.leaves_children", 1);
    CHECK(turns_until_over(tasks) >= 1000);
    firm_close();
}

/* The server stops in the middle, and the next one continues. */
TEST(what_was_not_ended_is_ended_by_the_next_start)
{
    struct id tasks[TREE];

    firm_open();
    grow(tasks);
    CHECK_INT(
        walk_cancel(stage.walk, str_of(tasks[0].text), STR("anna"), NULL, NULL),
        OK);
    fault_arm_at("hire.leaves_children", 1);
    pass_ms(0);
    CHECK_INT(n_over(tasks), 1);
    fault_arm(0);
    firm_restart();
    for (int i = 0; i < 5; i++)
        pass_ms(0);
    for (int i = 0; i < TREE; i++)
        CHECK_INT(now(&tasks[i]), TASK_CANCELLED);
    firm_close();
}

TEST(a_control_that_leaves_orphans_at_a_start_is_noticed)
{
    struct gotten b;
    struct id root;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    fault_arm_at("hire.leaves_children", 1);
    CHECK_INT(firm_end(&root, TASK_FAILED, NULL), OK);
    fault_arm_at("hire.orphans", 1);
    firm_restart();
    pass_ms(0);
    CHECK_INT(now(&b.task), TASK_QUEUED);
    fault_arm(0);
    firm_restart();
    pass_ms(0);
    CHECK_INT(now(&b.task), TASK_CANCELLED);
    firm_close();
}

/* The parent ends while its child is being committed. */
TEST(a_child_that_comes_too_late_goes_too)
{
    for (int is_planted = 0; is_planted < 2; is_planted++) {
        struct gotten b;
        struct id root;

        firm_open();
        root = root_of("a");
        CHECK_INT(
            walk_cancel(stage.walk, str_of(root.text), STR("anna"), NULL, NULL),
            OK);
        CHECK(firm_post((struct wanted){.by = "a", .to = "b", .parent = &root},
                        &b));
        if (is_planted)
            fault_arm_at("hire.late_child", 1);
        pass_ms(0);
        fault_arm(0);
        CHECK(b.is_back && b.err == OK);
        CHECK_INT(now(&b.task), is_planted ? TASK_QUEUED : TASK_CANCELLED);
        firm_close();
        stage_remove();
    }
}

/* Connections. */

TEST(what_was_to_end_with_the_line_does_and_the_rest_goes_on)
{
    struct gotten with, without, below, of_other;

    firm_open();
    with = hired((struct wanted){.by = "a", .to = "b", .ends_with_line = true});
    below = hired((struct wanted){.by = "b", .to = "c", .parent = &with.task});
    without = hired((struct wanted){.by = "a", .to = "b"});
    of_other =
        hired((struct wanted){.by = "c", .to = "b", .ends_with_line = true});
    firm_restart(); /* the option is stored */
    pass_ms(0);
    delegation_agent_gone(firm_hires(), STR("A"));
    pass_ms(0);
    CHECK_INT(now(&with.task), TASK_CANCELLED);
    CHECK_INT(now(&below.task), TASK_CANCELLED);
    CHECK_INT(now(&without.task), TASK_QUEUED);
    CHECK_INT(now(&of_other.task), TASK_QUEUED);
    CHECK_INT(firm_row(&with.key),
              DELEGATION_READY); /* reported when it is back */
    firm_close();
}

/* Attempts. */

TEST(children_of_a_program_end_with_its_attempt)
{
    struct gotten of_prog, of_a;
    struct id prog, a;

    firm_open();
    prog = root_of("prog");
    a = root_of("a");
    of_prog = hired((struct wanted){.by = "prog", .to = "b", .parent = &prog});
    of_a = hired((struct wanted){.by = "a", .to = "b", .parent = &a});
    firm_restart();
    pass_ms(0);
    CHECK_INT(now(&of_prog.task), TASK_CANCELLED);
    CHECK_INT(now(&of_a.task), TASK_QUEUED);
    CHECK(!task_is_over(now(&prog)) && !task_is_over(now(&a)));
    of_prog = hired((struct wanted){.by = "prog", .to = "b", .parent = &prog});
    delegation_attempt_over(firm_hires(), str_of(prog.text));
    pass_ms(0);
    CHECK_INT(now(&of_prog.task), TASK_CANCELLED);
    CHECK(!task_is_over(now(&prog)));
    firm_close();
}

/* As its transport reports that it gave up. */
static void give_up(const struct id *task)
{
    struct delivery_id d = {.task_id = *task, .turn = 1, .attempt = 1};

    deliver_cancel(walk_deliver(stage.walk), str_of(task->text));
    walk_results.deliver.on_retry(stage.walk, &d, 1000, STR("it went"));
    pass_ms(0);
}

TEST(the_walk_says_when_an_attempt_is_over)
{
    struct gotten of_prog, of_a;
    struct id prog, a;

    firm_open();
    prog = root_of("prog");
    a = root_of("a");
    of_prog = hired((struct wanted){.by = "prog", .to = "b", .parent = &prog});
    of_a = hired((struct wanted){.by = "a", .to = "b", .parent = &a});
    give_up(&prog);
    give_up(&a);
    CHECK_INT(now(&of_prog.task), TASK_CANCELLED);
    CHECK_INT(now(&of_a.task), TASK_QUEUED); /* its connection may come back */
    CHECK(!task_is_over(now(&prog)) && !task_is_over(now(&a)));
    firm_close();
}

/* No memory when it should have ended: it ends a second later. */
TEST(what_could_not_be_ended_is_tried_again)
{
    struct gotten b, c;
    struct id root;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    c = hired((struct wanted){.by = "a", .to = "c", .parent = &root});
    CHECK_INT(
        walk_cancel(stage.walk, str_of(root.text), STR("anna"), NULL, NULL),
        OK);
    fault_arm_at("task.change", 1);
    pass_ms(0);
    CHECK(fault_fired());
    CHECK(now(&b.task) == TASK_QUEUED && now(&c.task) == TASK_QUEUED);
    pass_ms(1000);
    CHECK(now(&b.task) == TASK_CANCELLED && now(&c.task) == TASK_CANCELLED);
    firm_close();
}
