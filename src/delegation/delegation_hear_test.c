/* The requester is told the result each time it comes until it acknowledges;
 * and a repeated request is one request. */
#include "test/lib/delegation_stage.h"

static void come(const char *agent)
{
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), str_of(agent));
    pass_ms(0);
    CHECK(delegation_check(firm_hires()));
}

TEST(a_result_is_told_when_it_is_there_and_whenever_who_asked_comes)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    come("a");
    CHECK_INT(firm.n_heard, 0);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    CHECK_INT(firm.n_heard, 1);
    CHECK_STR(str_of(firm.heard[0].text), "done");
    CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    pass_ms(60000);
    CHECK_INT(firm.n_heard, 1); /* only once */
    for (int i = 0; i < 2; i++) {
        come("A");
        CHECK_INT(firm.n_heard, 1);
        CHECK_INT(firm.heard[0].status, TASK_COMPLETED);
        CHECK_STR(str_of(firm.heard[0].text), "done");
    }
    come("b");
    CHECK_INT(firm.n_heard, 0);
    CHECK_INT(firm_had("a", "1"), OK);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD);
    come("a");
    CHECK_INT(firm.n_heard, 0);
    CHECK(!delegation_find(firm_hires(), str_of(g.key.text)));
    firm_close();
}

TEST(a_control_that_tells_nobody_is_noticed)
{
    struct gotten g;

    firm_open();
    fault_arm_at("hire.silent", 1);
    g = hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    CHECK_INT(firm.n_heard, 0);
    fault_arm(0);
    come("a");
    CHECK_INT(firm.n_heard, 1);
    firm_close();
}

TEST(what_failed_was_cancelled_or_is_too_late_is_told_too)
{
    static const enum task_status ends[] = {TASK_FAILED, TASK_CANCELLED,
                                            TASK_EXPIRED};
    struct gotten g;

    firm_open();
    for (int i = 0; i < 3; i++) {
        g = hired((struct wanted){.by = "a", .to = "b"});
        CHECK_INT(firm_end(&g.task, ends[i], NULL), OK);
        CHECK_INT(firm_told(&g.key), 1);
        CHECK_INT(firm.heard[i].status, ends[i]);
    }
    firm_close();
}

TEST(it_is_had_by_whatever_name_and_by_who_asked_only)
{
    struct gotten g[3];
    const char *which[3];

    firm_open();
    for (int i = 0; i < 3; i++)
        g[i] = hired(
            (struct wanted){.by = "a", .to = "b", .id = i == 2 ? "x-3" : NULL});
    which[0] = g[0].key.text;
    which[1] = g[1].task.text;
    which[2] = "x-3";
    for (int i = 0; i < 3; i++) {
        CHECK_INT(firm_had("a", which[i]), ERR_TASK_NOT_OVER);
        CHECK_INT(firm_end(&g[i].task, TASK_COMPLETED, "done"), OK);
        CHECK_INT(firm_had("b", which[i]), ERR_NOT_FOUND);
        CHECK_INT(firm_row(&g[i].key), DELEGATION_READY);
        CHECK_INT(firm_had("a", which[i]), OK);
        CHECK_INT(firm_row(&g[i].key), DELEGATION_HAD);
        CHECK_INT(firm_had("a", which[i]), ERR_NOT_FOUND);
    }
    CHECK_INT(firm_had("a", ""), ERR_NOT_FOUND);
    CHECK_INT(firm_had("nobody", "x-3"), ERR_NOT_FOUND);
    CHECK_INT(delegation_stats(firm_hires()).had_total, 3);
    firm_close();
}

static void on_had_done(void *ctx, enum err e)
{
    CHECK_INT(e, OK);
    (*(int *)ctx)++;
}

TEST(two_who_say_at_once_that_they_have_it)
{
    struct str key;
    struct gotten g;
    int n = 0;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b"});
    key = str_of(g.key.text);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    for (int i = 0; i < 2; i++)
        CHECK_INT(delegation_had(firm_hires(), STR("a"), key, on_had_done, &n),
                  OK);
    CHECK_INT(n, 0);
    pass_ms(0);
    CHECK_INT(n, 2);
    CHECK_INT(delegation_stats(firm_hires()).had_total, 1);
    firm_close();
}

/* The result of a turn is kept although there was another turn since. */
TEST(each_turn_has_a_result_of_its_own)
{
    struct gotten g[2];

    firm_open();
    g[0] = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g[0].task, TASK_COMPLETED, "one"), OK);
    g[1] = hired((struct wanted){
        .by = "a", .to = "b", .id = "2", .task_id = g[0].task.text});
    CHECK_INT(firm_had("a", "2"), ERR_TASK_NOT_OVER);
    come("a"); /* only the first is over */
    CHECK(firm.n_heard == 1 && firm_told(&g[0].key) == 1);
    CHECK_STR(str_of(firm.heard[0].text), "one");
    CHECK_INT(firm_end(&g[1].task, TASK_COMPLETED, "two"), OK);
    for (int i = 0; i < 2; i++) {
        come("a");
        CHECK_INT(firm.n_heard, 2);
        CHECK(firm_told(&g[0].key) == 1 && firm_told(&g[1].key) == 1);
        CHECK_INT(firm.heard[0].turn + firm.heard[1].turn, 3);
        CHECK_STR(str_of(firm.heard[firm.heard[0].turn == 1 ? 0 : 1].text),
                  "one");
        CHECK_STR(str_of(firm.heard[firm.heard[0].turn == 1 ? 1 : 0].text),
                  "two");
        firm_restart();
    }
    CHECK_INT(firm_had("a", g[0].task.text), OK); /* the first of them */
    CHECK_INT(firm_row(&g[0].key), DELEGATION_HAD);
    CHECK_INT(firm_row(&g[1].key), DELEGATION_READY);
    CHECK_INT(firm_had("a", g[0].task.text), OK);
    CHECK_INT(firm_row(&g[1].key), DELEGATION_HAD);
    firm_close();
}

TEST(a_restart_finds_every_state)
{
    struct gotten open, ready, had, late;

    firm_open();
    open = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    ready = hired((struct wanted){.by = "a", .to = "b", .id = "2"});
    had = hired((struct wanted){.by = "a", .to = "b", .id = "3"});
    late = hired((struct wanted){.by = "a", .to = "b", .id = "4"});
    CHECK_INT(firm_end(&late.task, TASK_COMPLETED, "late"), OK);
    pass_ms(firm.settings.keep_ms - 50000);
    /* Its timeout would have passed, so it is requested again. */
    open = hired((struct wanted){.by = "a", .to = "b", .id = "5"});
    ready = hired((struct wanted){.by = "a", .to = "b", .id = "6"});
    had = hired((struct wanted){.by = "a", .to = "b", .id = "7"});
    CHECK_INT(firm_end(&ready.task, TASK_COMPLETED, "done"), OK);
    CHECK_INT(firm_end(&had.task, TASK_COMPLETED, "had"), OK);
    CHECK_INT(firm_had("a", "7"), OK);
    stage_stop();
    stage.now.wall_ms += 50000;
    stage_start();
    firm_come();
    CHECK(delegation_check(firm_hires()));
    CHECK(delegation_find(firm_hires(), str_of(open.key.text))->state ==
          DELEGATION_OPEN);
    CHECK(delegation_find(firm_hires(), str_of(ready.key.text))->state ==
          DELEGATION_READY);
    CHECK(!delegation_find(firm_hires(), str_of(had.key.text)));
    CHECK(!delegation_find(firm_hires(), str_of(late.key.text)));
    come("a");
    CHECK_INT(firm_told(&ready.key), 1);
    CHECK_INT(firm_told(&late.key) + firm_told(&open.key), 0);
    pass_ms(0);
    CHECK_INT(firm_end(&open.task, TASK_COMPLETED, "then"), OK);
    CHECK_INT(firm_told(&open.key), 1);
    CHECK_INT(firm_had("a", "5"), OK);
    firm_close();
}

/* A crash after the report leads to another report. */
TEST(many_results_are_told_in_the_turns_that_it_takes)
{
    struct gotten g[3 * DELEGATION_PER_TURN];
    uint64_t before;

    firm_open();
    firm.settings.max_concurrent = 1000;
    firm_set();
    for (int i = 0; i < 3 * DELEGATION_PER_TURN; i++) {
        g[i] = hired((struct wanted){.by = "a", .to = "b"});
        CHECK_INT(firm_end(&g[i].task, TASK_COMPLETED, "x"), OK);
    }
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), STR("a"));
    before = loop_turn_number(&stage.loop);
    while (firm.n_heard < 3 * DELEGATION_PER_TURN &&
           loop_turn_number(&stage.loop) < before + 1000)
        loop_turn(&stage.loop);
    pass_ms(0);
    for (int i = 0; i < 3 * DELEGATION_PER_TURN; i++)
        CHECK_INT(firm_told(&g[i].key), 1);
    firm_close();
}

TEST(who_goes_before_all_is_told_hears_the_rest_when_they_come_back)
{
    struct gotten g[3];

    firm_open();
    for (int i = 0; i < 3; i++) {
        g[i] = hired((struct wanted){.by = "a", .to = "b"});
        CHECK_INT(firm_end(&g[i].task, TASK_COMPLETED, "x"), OK);
    }
    firm.n_heard = 0;
    delegation_agent_came(firm_hires(), STR("a"));
    delegation_agent_gone(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK(firm.n_heard == 0 && delegation_check(firm_hires()));
    come("a");
    CHECK_INT(firm.n_heard, 3);
    firm_close();
}

static void on_lost(struct tx *tx, void *ctx)
{
    (void)ctx;
    CHECK_INT(tx->result, TX_COMMITTED);
}

TEST(an_end_comes_and_is_kept_though_a_damaged_store_has_lost_its_row)
{
    struct gotten g;
    struct tx_op *op;
    struct tx tx;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "42"});
    tx_init(&tx);
    op = tx_delete(&tx, &delegation_table);
    tx_if(op, DELEGATION_KEY, IS, value_text(str_of(g.key.text)));
    store_submit(stage.store, &tx, on_lost, NULL);
    pass_ms(0);
    tx_fini(&tx);
    CHECK_INT(firm_row(&g.key), 0);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(stored(&g.task, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    firm_restart();
    firm.n_heard = 0;
    come("a");
    CHECK_INT(firm.n_heard, 1);
    CHECK_STR(str_of(firm.heard[0].text), "x");
    firm_close();
}

TEST(a_result_that_could_not_be_read_is_read_again)
{
    struct gotten g[3];

    firm_open();
    for (int i = 0; i < 3; i++) {
        g[i] = hired((struct wanted){.by = "a", .to = "b"});
        CHECK_INT(firm_end(&g[i].task, TASK_COMPLETED, "x"), OK);
    }
    firm_restart(); /* so that they are read from the database */
    fault_arm_at("store.read.io", 1);
    come("a");
    CHECK(fault_fired());
    fault_arm(0);
    pass_ms(999);
    CHECK_INT(firm.n_heard, 0);
    pass_ms(1);
    pass_ms(0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(firm_told(&g[i].key), 1);
    pass_ms(10000);
    CHECK_INT(firm.n_heard, 3);
    firm_close();
}

/* on_ready itself could not use the result. */
TEST(a_result_that_could_not_be_told_comes_again)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b"});
    delegation_not_told(firm_hires(),
                        str_of(g.key.text)); /* it is still open */
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    for (int i = 0; i < 2; i++)
        delegation_not_told(firm_hires(), str_of(g.key.text));
    CHECK(delegation_check(firm_hires()));
    pass_ms(1000);
    CHECK_INT(firm_told(&g.key), 2);
    delegation_not_told(firm_hires(), str_of(g.key.text));
    CHECK_INT(firm_had("a", g.key.text), OK);
    delegation_not_told(firm_hires(), str_of(g.key.text));
    pass_ms(1000);
    CHECK_INT(firm_told(&g.key), 2);
    firm_close();
}

/* Expired. */

TEST(a_result_that_nobody_fetches_goes_in_time)
{
    struct gotten g;

    firm_open();
    firm.settings.keep_ms = 100000;
    firm_set();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    pass_ms(99999);
    CHECK(delegation_find(firm_hires(), str_of(g.key.text)));
    CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    for (int i = 0; i < 3; i++)
        pass_ms(60000); /* tidied once a minute */
    CHECK(!delegation_find(firm_hires(), str_of(g.key.text)));
    CHECK_INT(firm_row(&g.key), 0);
    CHECK_INT(delegation_stats(firm_hires()).expired_total, 1);
    come("a");
    CHECK_INT(firm.n_heard, 0);
    CHECK_INT(firm_had("a", "1"), ERR_NOT_FOUND);
    hired((struct wanted){.by = "a", .to = "b", .id = "1", .text = "other"});
    firm_close();
}

TEST(retention_removes_what_was_had_and_the_count_of_old_roots)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_had("a", "1"), OK);
    pass_ms(60000);
    CHECK(firm_rows(&delegation_table) == 1 && firm_rows(&tree_table) == 1);
    pass_ms(31LL * 24 * 3600 * 1000);
    for (int i = 0; i < 3; i++)
        pass_ms(60000);
    CHECK(firm_rows(&delegation_table) == 0 && firm_rows(&tree_table) == 0);
    firm_close();
}

/* Rows beyond the third are removed, except one with a waiter. */
static void others_come_and_go(void)
{
    struct walk_opts opts = stage_walk_opts();

    opts.delegation = firm.settings;
    opts.retention_rows = 3;
    walk_set(stage.walk, &opts);
    for (int i = 0; i < 10; i++) {
        struct id r = root_of("c");

        CHECK_INT(firm_end(&r, TASK_COMPLETED, "y"), OK);
    }
    pass_ms(70000);
}

TEST(retention_leaves_what_who_asked_has_not_had)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "precious"), OK);
    others_come_and_go();
    come("a");
    CHECK(firm.n_heard == 1 && firm.heard[0].status == TASK_COMPLETED);
    CHECK_STR(str_of(firm.heard[0].text), "precious");
    CHECK_INT(firm_had("a", "1"), OK);
    others_come_and_go();
    CHECK_INT(firm_rows(&task_table), 3);
    firm_close();
}

/* Whatever happened, the requester is told that no result will come. */
TEST(a_result_whose_row_is_gone_is_told_as_a_failure)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "precious"), OK);
    fault_arm_at("hire.eaten", 1);
    others_come_and_go();
    fault_arm(0);
    for (int i = 0; i < 2; i++) {
        come("a");
        CHECK(firm.n_heard == 1 && firm.heard[0].status == TASK_FAILED);
        CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    }
    CHECK_INT(firm_had("a", "1"), OK);
    firm_close();
}

/* Repeated requests. */

TEST(the_same_request_is_answered_as_before_as_long_as_it_is_kept)
{
    struct wanted w = {.by = "a", .to = "b", .id = "1", .text = "one"};
    struct wanted other = {.by = "a", .to = "b", .id = "1", .text = "two"};
    struct wanted of_b = {.by = "b", .to = "c", .id = "1", .text = "one"};
    struct gotten g, again;

    firm_open();
    g = hired(w);
    for (int i = 0; i < 4; i++) {
        again = hired(w);
        CHECK(again.is_repeat);
        CHECK_STR(str_of(again.task.text), g.task.text);
        CHECK_STR(str_of(again.key.text), g.key.text);
        CHECK_INT(asked(other).err, ERR_ID_IN_USE);
        if (i == 0)
            firm_restart();
        if (i == 1)
            CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
        if (i == 2)
            firm_restart();
    }
    CHECK(!hired(of_b).is_repeat);
    CHECK_INT(firm_rows(&delegation_table), 2);
    CHECK_INT(firm_had("a", "1"), OK);
    again = hired(other);
    CHECK(!again.is_repeat && strcmp(again.task.text, g.task.text) != 0);
    firm_close();
}

/* Clients that never acknowledge, and count from one whenever they start. */
TEST(an_id_whose_result_was_told_on_a_line_may_be_used_anew)
{
    struct wanted w = {.by = "a", .to = "b", .id = "1", .text = "one"};
    struct wanted other = {.by = "a", .to = "b", .id = "1", .text = "two"};
    struct gotten g, again;

    firm_open();
    g = hired(w);
    delegation_told(firm_hires(), str_of(g.key.text)); /* too early */
    CHECK_INT(asked(other).err, ERR_ID_IN_USE);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    firm_restart(); /* told before the restart */
    CHECK_INT(asked(other).err, ERR_ID_IN_USE);
    delegation_told(firm_hires(), str_of(g.key.text));
    CHECK(hired(w).is_repeat);
    firm.settings.max_concurrent = 0;
    firm_set();
    CHECK_INT(asked(other).err, ERR_DELEGATIONS); /* so it is still kept */
    CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    firm.settings.max_concurrent = 10;
    firm_set();
    again = hired(other);
    CHECK(!again.is_repeat && strcmp(again.task.text, g.task.text) != 0);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD);
    CHECK_INT(asked(w).err, ERR_ID_IN_USE);
    CHECK_INT(firm_had("a", "1"), ERR_TASK_NOT_OVER);
    CHECK_INT(firm_end(&again.task, TASK_COMPLETED, "y"), OK);
    firm_restart();
    come("a");
    CHECK(firm.n_heard == 1 && firm_told(&again.key) == 1);
    firm_close();
}

/* Acknowledged, but not yet on the disk. */
TEST(an_id_may_be_used_anew_at_once_after_its_result_was_acknowledged)
{
    struct gotten g;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .id = "1"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(delegation_had(firm_hires(), STR("a"), STR("1"), NULL, NULL), OK);
    CHECK(!hired((struct wanted){
                     .by = "a", .to = "c", .id = "1", .text = "other"})
               .is_repeat);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD);
    firm_close();
}

/* A requester that started over was told a result it did not know, and asks
 * again. */
TEST(a_repeat_of_what_is_over_is_told_once_more)
{
    struct wanted w = {.by = "a", .to = "b", .id = "42"};
    struct gotten g;

    firm_open();
    g = hired(w);
    CHECK(hired(w).is_repeat && firm.n_heard == 0);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    come("a");
    for (size_t i = 1; i <= 2; i++) {
        CHECK_INT(firm_told(&g.key), i);
        CHECK(hired(w).is_repeat);
        pass_ms(0);
    }
    CHECK_INT(firm_told(&g.key), 3);
    firm_close();
}

TEST(a_repeat_waits_until_the_first_is_durable)
{
    struct wanted w = {.by = "a", .to = "b", .id = "1", .text = "one"};
    struct wanted other = {.by = "a", .to = "b", .id = "1", .text = "two"};
    struct gotten g[4];

    firm_open();
    for (int i = 0; i < 3; i++)
        CHECK(firm_post(w, &g[i]));
    CHECK(firm_post(other, &g[3]));
    pass_ms(0);
    for (int i = 0; i < 3; i++) {
        CHECK(g[i].is_back && g[i].err == OK && g[i].is_repeat == (i > 0));
        CHECK_STR(str_of(g[i].task.text), g[0].task.text);
    }
    CHECK(g[3].is_back && g[3].err == ERR_ID_IN_USE);
    CHECK(firm_rows(&delegation_table) == 1 && firm_rows(&task_table) == 1);
    firm_close();
}

/* The first was not accepted, so the second takes its place. */
TEST(a_repeat_of_what_was_refused_is_tried_anew)
{
    struct wanted w = {.by = "a", .to = "b", .id = "1"};
    struct gotten g[2];
    struct id root;

    firm_open();
    firm.settings.max_per_root = 1;
    firm_set();
    root = root_of("a");
    hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    w.parent = &root;
    for (int i = 0; i < 2; i++)
        CHECK(firm_post(w, &g[i]));
    pass_ms(0);
    for (int i = 0; i < 2; i++)
        CHECK(g[i].is_back && g[i].err == ERR_DELEGATIONS);
    CHECK(delegation_check(firm_hires()));
    firm.settings.max_per_root = 2;
    firm_set();
    CHECK(!hired(w).is_repeat && hired(w).is_repeat);
    firm_close();
}

TEST(a_control_without_repeats_makes_it_twice)
{
    struct wanted w = {.by = "a", .to = "b", .id = "1", .text = "one"};
    struct gotten g;

    firm_open();
    g = hired(w);
    fault_arm_at("hire.no_repeats", 1);
    CHECK(firm_post(w, &g));
    pass_ms(0);
    fault_arm(0);
    CHECK_INT(firm_rows(&delegation_table), 2);
    stage_close();
}

/* Waiters. */

struct ear {
    struct delegation_waiter w;
    int n;
    enum err err;
    char text[64];
};

static void on_over(struct delegation_waiter *w, enum err e,
                    const struct delegation *d, const struct task *t)
{
    struct ear *ear = LIST_OF(w, struct ear, w);

    CHECK(d);
    ear->n++;
    ear->err = e;
    if (!e)
        snprintf(ear->text, sizeof(ear->text), "%.*s", STR_ARG(t->result.text));
}

static struct ear *ear_new(const struct gotten *g, int64_t wait_ms)
{
    struct ear *e = calloc(1, sizeof(*e));

    e->w.on_over = on_over;
    CHECK_INT(
        delegation_wait(firm_hires(), str_of(g->key.text), wait_ms, &e->w), OK);
    return e;
}

TEST(who_waits_is_given_the_result_and_has_it_then)
{
    struct gotten g;
    struct ear *e[2];

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    e[0] = ear_new(&g, 60000);
    e[1] = ear_new(&g, 60000);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    for (int i = 0; i < 2; i++) {
        CHECK(e[i]->n == 1 && e[i]->err == OK);
        CHECK_STR(str_of(e[i]->text), "done");
    }
    CHECK_INT(firm.n_heard, 0);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD);
    CHECK_INT(delegation_wait(firm_hires(), str_of(g.key.text), 1, &e[0]->w),
              ERR_NOT_FOUND);
    pass_ms(60000);
    CHECK(e[0]->n == 1 && e[1]->n == 1);
    for (int i = 0; i < 2; i++)
        free(e[i]);
    firm_close();
}

TEST(what_nobody_waits_for_any_more_ends)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    e = ear_new(&g, 1000);
    pass_ms(999);
    CHECK_INT(e->n, 0);
    pass_ms(1);
    CHECK(e->n == 1 && e->err == ERR_TIMEOUT);
    CHECK_INT(stored(&g.task, NULL, NULL), TASK_CANCELLED);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD); /* it is not wanted any more */
    CHECK_INT(firm.n_heard, 0);
    free(e);
    firm_close();
}

TEST(what_is_to_go_on_is_told_later)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){
        .by = "a", .to = "b", .mode = DELEGATION_SYNC, .goes_on = true});
    e = ear_new(&g, 1000);
    pass_ms(1000);
    CHECK(e->n == 1 && e->err == ERR_TIMEOUT);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "then"), OK);
    CHECK_INT(firm_told(&g.key), 1);
    CHECK_INT(firm_row(&g.key), DELEGATION_READY);
    free(e);
    firm_close();
}

TEST(who_leaves_hears_nothing_and_is_told_as_anybody)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    e = ear_new(&g, 1000);
    delegation_unwait(firm_hires(), &e->w);
    delegation_unwait(firm_hires(), &e->w);
    pass_ms(2000);
    CHECK_INT(e->n, 0);
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_told(&g.key), 1);
    free(e);
    firm_close();
}

/* A delegation that is over before the wait begins. */
TEST(who_waits_for_what_is_over_is_given_it_too)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    CHECK_INT(firm.n_heard, 1);
    e = ear_new(&g, 1000);
    CHECK(e->n == 0 && delegation_check(firm_hires())); /* from the loop */
    CHECK_INT(firm_had("a", g.key.text), ERR_TASK_NOT_OVER);
    pass_ms(0);
    CHECK(e->n == 1 && e->err == OK);
    CHECK_STR(str_of(e->text), "done");
    CHECK_INT(firm.n_heard, 1);
    CHECK_INT(firm_row(&g.key), DELEGATION_HAD);
    free(e);
    firm_close();
}

TEST(who_waits_is_given_it_though_their_agent_goes_and_reads_fail)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "done"), OK);
    fault_arm_at("store.read.io", 1);
    e = ear_new(&g, 1500);
    delegation_agent_gone(firm_hires(), STR("a"));
    pass_ms(0);
    CHECK(fault_fired() && e->n == 0 && delegation_check(firm_hires()));
    fault_arm(0);
    delegation_agent_gone(firm_hires(), STR("a"));
    pass_ms(1000);
    CHECK(e->n == 1 && e->err == OK);
    free(e);
    firm_close();
}

TEST(a_server_that_stops_leaves_nobody_hanging_on_it)
{
    struct gotten g;
    struct ear *e;

    firm_open();
    g = hired((struct wanted){.by = "a", .to = "b", .mode = DELEGATION_SYNC});
    e = ear_new(&g, 1000);
    stage_stop();
    delegation_unwait(NULL, &e->w);
    CHECK_INT(e->n, 0);
    stage_start();
    firm_come();
    pass_ms(2000);
    CHECK_INT(e->n, 0);
    free(e);
    firm_close();
}
