/* Each limit at its value and one past it; and the user a delegation is for,
 * whatever the request says. */
#include "base/json.h"
#include "test/lib/control.h"
#include "test/lib/delegation_stage.h"

TEST(an_agent_gives_work_to_another_in_the_name_of_who_it_works_for)
{
    struct id root;
    struct gotten g;
    const struct task *t;

    firm_open();
    root = root_of("a");
    g = hired((struct wanted){
        .by = "a",
        .to = "b",
        .parent = &root,
        .metadata = "{\"user_id\":\"berta\",\"chain\":[],\"depth\":0}"});
    t = task_find(walk_tasks(stage.walk), str_of(g.task.text));
    CHECK(t);
    CHECK_STR(t->by_agent, "a");
    CHECK_STR(t->parent_id, root.text);
    CHECK_STR(t->root_id, root.text);
    CHECK_STR(t->root_user, "anna");
    CHECK_STR(t->chain, "[\"a\"]");
    CHECK_INT(t->depth, 1);
    g = hired((struct wanted){.by = "b", .to = "c", .parent = &g.task});
    t = task_find(walk_tasks(stage.walk), str_of(g.task.text));
    CHECK_STR(t->chain, "[\"a\",\"b\"]");
    CHECK_STR(t->root_id, root.text);
    CHECK_INT(t->depth, 2);
    firm_close();
}

TEST(nobody_speaks_of_work_that_is_not_theirs)
{
    struct id root;

    firm_open();
    root = root_of("a");
    CHECK_INT(asked((struct wanted){.by = "c", .to = "b", .parent = &root}).err,
              ERR_DELEGATION);
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b", .parent = &root}).err,
              ERR_DELEGATION);
    CHECK_INT(firm_rows(&delegation_table), 0);
    CHECK_INT(firm_rows(&tree_table), 0);
    firm_close();
}

TEST(nobody_is_in_a_chain_twice)
{
    struct id root;
    struct gotten b, c;

    firm_open();
    root = root_of("a");
    CHECK_INT(asked((struct wanted){.by = "a", .to = "A", .parent = &root}).err,
              ERR_DELEGATION);
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(
        asked((struct wanted){.by = "b", .to = "a", .parent = &b.task}).err,
        ERR_DELEGATION);
    c = hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    CHECK_INT(
        asked((struct wanted){.by = "c", .to = "A", .parent = &c.task}).err,
        ERR_DELEGATION);
    CHECK_INT(
        asked((struct wanted){.by = "c", .to = "b", .parent = &c.task}).err,
        ERR_DELEGATION);
    hired((struct wanted){.by = "c", .to = "d", .parent = &c.task});
    CHECK_INT(delegation_stats(firm_hires()).refused_total, 4);
    firm_close();
}

TEST(only_whom_the_card_allows)
{
    static const struct str allowed[] = {STR("B")};

    firm_ground();
    stage.agents[0].delegation.is_limited = true;
    stage.agents[0].delegation.allow = (struct strs){allowed, 1};
    stage.agents[1].delegation.is_limited = true; /* and its list is empty */
    stage_start();
    firm_come();
    hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(asked((struct wanted){.by = "a", .to = "c"}).err, ERR_DELEGATION);
    CHECK_INT(asked((struct wanted){.by = "b", .to = "c"}).err, ERR_DELEGATION);
    hired((struct wanted){.by = "c", .to = "d"});
    firm_close();
}

TEST(so_many_of_one_agent_at_a_time)
{
    struct gotten first;

    firm_ground();
    stage.agents[1].delegation.max_concurrent = 1;
    stage_start();
    firm.settings.max_concurrent = 3;
    firm_come();
    first = hired((struct wanted){.by = "a", .to = "b"});
    hired((struct wanted){.by = "A", .to = "b"});
    hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b"}).err,
              ERR_DELEGATIONS);
    hired((struct wanted){.by = "b", .to = "c"}); /* as its card says */
    CHECK_INT(asked((struct wanted){.by = "b", .to = "c"}).err,
              ERR_DELEGATIONS);
    CHECK_INT(firm_end(&first.task, TASK_COMPLETED, "x"), OK);
    hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b"}).err,
              ERR_DELEGATIONS);
    firm_close();
}

TEST(none_at_a_time_is_none)
{
    firm_ground();
    stage.agents[0].delegation.max_concurrent = 0;
    stage_start();
    firm_come();
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b"}).err,
              ERR_DELEGATIONS);
    hired((struct wanted){.by = "b", .to = "c"});
    firm_close();
}

/* Two requests in the same turn both count. */
TEST(what_is_on_its_way_counts)
{
    struct gotten g[3];

    firm_open();
    firm.settings.max_concurrent = 2;
    firm_set();
    for (int i = 0; i < 3; i++)
        CHECK(firm_post((struct wanted){.by = "a", .to = "b"}, &g[i]));
    pass_ms(0);
    CHECK(g[0].err == OK && g[1].err == OK && g[2].err == ERR_DELEGATIONS);
    firm_close();
}

TEST(so_deep_and_no_deeper)
{
    struct gotten g;

    firm_open();
    firm.settings.max_depth = 2;
    firm_set();
    g = hired((struct wanted){.by = "a", .to = "b"});
    g = hired((struct wanted){.by = "b", .to = "c", .parent = &g.task});
    CHECK_INT(
        asked((struct wanted){.by = "c", .to = "d", .parent = &g.task}).err,
        ERR_DELEGATION);
    firm_close();
}

TEST(every_agent_of_the_chain_says_how_deep)
{
    struct gotten g;

    firm_ground();
    stage.agents[0].delegation.max_depth = 1; /* its delegate may not */
    stage.agents[2].delegation.max_depth = 0;
    stage_start();
    firm_come();
    g = hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(
        asked((struct wanted){.by = "b", .to = "d", .parent = &g.task}).err,
        ERR_DELEGATION);
    CHECK_INT(asked((struct wanted){.by = "c", .to = "d"}).err, ERR_DELEGATION);
    g = hired((struct wanted){.by = "d", .to = "b"});
    hired((struct wanted){.by = "b", .to = "e", .parent = &g.task});
    firm_close();
}

TEST(so_many_tasks_under_one_root)
{
    struct id root, other;
    struct gotten g[2], b;

    firm_open();
    firm.settings.max_per_root = 3;
    firm_set();
    root = root_of("a");
    other = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    /* Two at once for the last place: the store decides. */
    for (int i = 0; i < 2; i++)
        CHECK(firm_post((struct wanted){.by = "a", .to = "c", .parent = &root},
                        &g[i]));
    pass_ms(0);
    CHECK(g[0].err == OK && g[1].err == ERR_DELEGATIONS);
    CHECK(strstr(g[1].why.text, "maxPerRoot"));
    /* Finished tasks still count: they were done under this root. */
    CHECK_INT(firm_end(&g[0].task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(asked((struct wanted){.by = "a", .to = "c", .parent = &root}).err,
              ERR_DELEGATIONS);
    hired((struct wanted){.by = "a", .to = "c", .parent = &other});
    firm_restart();
    CHECK_INT(asked((struct wanted){.by = "a", .to = "c", .parent = &root}).err,
              ERR_DELEGATIONS);
    firm_close();
}

TEST(so_many_of_one_agent_are_not_acknowledged)
{
    struct gotten first, none;

    firm_open();
    firm.settings.max_unacked = 2;
    firm_set();
    first = hired((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(firm_end(&first.task, TASK_COMPLETED, "x"), OK);
    none = hired((struct wanted){.by = "a", .to = "b"});
    hired((struct wanted){.by = "a",
                          .to = "b"}); /* one is not acknowledged so far */
    CHECK_INT(firm_end(&none.task, TASK_COMPLETED, "x"), OK);
    none = asked((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(none.err, ERR_DELEGATIONS);
    CHECK(strstr(none.why.text, "delegation.maxUnacked") &&
          strstr(none.why.text, "delegation.ack"));
    hired((struct wanted){.by = "c", .to = "d"}); /* others are not affected */
    firm_restart();
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b"}).err,
              ERR_DELEGATIONS);
    CHECK_INT(firm_had("a", first.key.text), OK);
    hired((struct wanted){.by = "a", .to = "b"});
    firm_close();
}

TEST(so_many_are_kept_of_all)
{
    struct gotten g, none;

    firm_open();
    firm.settings.max_open = 2;
    firm_set();
    g = hired((struct wanted){.by = "a", .to = "b"});
    hired((struct wanted){.by = "b", .to = "c"});
    CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    none = asked((struct wanted){.by = "c", .to = "d"});
    CHECK_INT(none.err, ERR_OVERLOADED);
    CHECK(strstr(none.why.text, "delegation.maxOpen"));
    CHECK_INT(firm_had("a", g.key.text), OK);
    hired((struct wanted){.by = "c", .to = "d"});
    CHECK_INT(asked((struct wanted){.by = "c", .to = "d"}).err, ERR_OVERLOADED);
    firm_close();
}

TEST(no_child_has_more_time_than_its_parent)
{
    struct told root;
    struct gotten g;
    const struct task *t, *above;

    firm_open();
    root = sent((struct letter){.to = "a", .timeout_ms = 10000});
    pass_ms(4000);
    g = hired((struct wanted){
        .by = "a", .to = "b", .parent = &root.task_id, .timeout_ms = 9000});
    t = task_find(walk_tasks(stage.walk), str_of(g.task.text));
    above = task_find(walk_tasks(stage.walk), str_of(root.task_id.text));
    CHECK_INT(t->deadline_ms, above->deadline_ms);
    g = hired((struct wanted){
        .by = "a", .to = "b", .parent = &root.task_id, .timeout_ms = 100});
    t = task_find(walk_tasks(stage.walk), str_of(g.task.text));
    CHECK_INT(t->budget_ms, 100);
    g = hired((struct wanted){.by = "a", .to = "b"});
    t = task_find(walk_tasks(stage.walk), str_of(g.task.text));
    CHECK_INT(t->budget_ms, 180000);
    firm_close();
}

/* The next turn is part of the task its agent is working on now. */
TEST(a_further_turn_has_the_chain_of_who_asks_now)
{
    struct id root, other;
    struct gotten b, again;
    const struct task *t;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "one"), OK);
    other = root_of("c");
    again = hired((struct wanted){.by = "c", .to = "a", .parent = &other});
    again = hired((struct wanted){
        .by = "a", .to = "b", .parent = &again.task, .task_id = b.task.text});
    CHECK_INT(again.turn, 2);
    t = task_find(walk_tasks(stage.walk), str_of(b.task.text));
    CHECK_STR(t->chain, "[\"c\",\"a\"]");
    CHECK_STR(t->root_id, other.text);
    CHECK_INT(t->depth, 2);
    CHECK_INT(
        asked((struct wanted){.by = "b", .to = "c", .parent = &b.task}).err,
        ERR_DELEGATION);
    firm_restart();
    t = task_find(walk_tasks(stage.walk), str_of(b.task.text));
    CHECK_STR(t->chain, "[\"c\",\"a\"]");
    firm_close();
}

TEST(a_further_turn_is_of_the_same_agent_and_for_the_same_user)
{
    struct id root;
    struct told of_berta;
    struct gotten b;

    firm_open();
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "one"), OK);
    CHECK_INT(
        asked((struct wanted){.by = "c", .to = "b", .task_id = b.task.text})
            .err,
        ERR_NOT_FOUND);
    of_berta = sent((struct letter){.from = "berta", .to = "a"});
    CHECK_INT(asked((struct wanted){.by = "a",
                                    .to = "b",
                                    .parent = &of_berta.task_id,
                                    .task_id = b.task.text})
                  .err,
              ERR_NOT_FOUND);
    hired((struct wanted){
        .by = "a", .to = "b", .parent = &root, .task_id = b.task.text});
    firm_close();
}

/* Waiting. */

static enum task_status status_of(const struct gotten *g)
{
    const struct task *t =
        task_find(walk_tasks(stage.walk), str_of(g->task.text));

    return t ? t->status : 0;
}

static bool goes(const struct gotten *g)
{
    return status_of(g) == TASK_DISPATCHED;
}

static bool waits(const struct gotten *g)
{
    return status_of(g) == TASK_QUEUED;
}

/* n delegations of a to b, of which `at_once` are active. */
static void crowd(struct gotten *g, int n, int at_once, int waiting)
{
    firm.settings.max_concurrent = at_once;
    firm.settings.max_waiting = waiting;
    firm_set();
    for (int i = 0; i < n; i++)
        g[i] = hired((struct wanted){.by = "a", .to = "b"});
}

TEST(those_beyond_wait_in_order_up_to_a_bound)
{
    struct gotten g[5], none;
    struct delegation_stats s;

    firm_open();
    crowd(g, 5, 2, 3);
    none = asked((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(none.err, ERR_DELEGATIONS);
    CHECK(strstr(none.why.text, "delegation.maxConcurrent") &&
          strstr(none.why.text, "delegation.maxWaiting"));
    hired((struct wanted){.by = "c", .to = "b"}); /* others are not affected */
    s = delegation_stats(firm_hires());
    CHECK(s.open == 6 && s.waiting == 3 &&
          s.refused_by[DELEGATION_TOO_MANY] == 1);
    for (int i = 0; i < 5; i++)
        CHECK(i < 2 ? goes(&g[i]) : waits(&g[i]));
    CHECK_INT(tasks_of_agent(walk_tasks(stage.walk), STR("b")), 3);
    CHECK(tasks_check(walk_tasks(stage.walk)));

    CHECK_INT(firm_end(&g[1].task, TASK_COMPLETED, "x"), OK);
    CHECK(goes(&g[2]) && waits(&g[3]) && waits(&g[4]));
    CHECK_INT(firm_end(&g[0].task, TASK_FAILED, NULL), OK);
    CHECK(goes(&g[3]) && waits(&g[4]));
    CHECK_INT(tasks_of_agent(walk_tasks(stage.walk), STR("b")), 3);
    CHECK(tasks_check(walk_tasks(stage.walk)));
    CHECK_INT(firm_end(&g[4].task, TASK_CANCELLED, NULL), OK); /* it waited */
    CHECK_INT(delegation_stats(firm_hires()).waiting, 0);
    CHECK_INT(firm_end(&g[2].task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_end(&g[3].task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(delegation_stats(firm_hires()).open, 1);
    firm_close();
}

/* a waits for b and b for a, each with a single place. A delegation below
 * another must not wait, or both would wait until they expire. */
static void ask_crosswise(void)
{
    struct id of_a, of_b;
    struct gotten g[2], none;

    firm_open();
    firm.settings.max_concurrent = 1;
    firm.settings.max_waiting = 3;
    firm_set();
    of_a = root_of("a");
    of_b = root_of("b");
    g[0] = hired((struct wanted){.by = "a", .to = "b", .parent = &of_a});
    g[1] = hired((struct wanted){.by = "b", .to = "a", .parent = &of_b});
    none = asked((struct wanted){.by = "b", .to = "c", .parent = &g[0].task});
    CHECK_INT(none.err, ERR_DELEGATIONS);
    CHECK(strstr(none.why.text, "a delegation inside another does not wait"));
    none = asked((struct wanted){.by = "a", .to = "c", .parent = &g[1].task});
    CHECK_INT(none.err, ERR_DELEGATIONS);
    CHECK_INT(delegation_stats(firm_hires()).waiting, 0);
    none = hired((struct wanted){.by = "a", .to = "c", .parent = &of_a});
    CHECK(waits(&none)); /* the first of a chain may wait */
    firm_close();
}

TEST(what_is_part_of_a_delegation_does_not_wait)
{
    ask_crosswise();
}

TEST(it_would_be_noticed_if_they_waited_in_a_ring)
{
    check_control("hire.rings", ask_crosswise);
}

TEST(what_was_accepted_below_goes_also_where_fewer_may_by_now)
{
    struct id root;
    struct gotten above, own, below;

    firm_open();
    firm.settings.max_concurrent = 2;
    firm_set();
    root = root_of("a");
    above = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    own = hired((struct wanted){.by = "b", .to = "c"});
    below = hired((struct wanted){.by = "b", .to = "c", .parent = &above.task});
    firm.settings.max_concurrent = 1;
    firm_restart();
    pass_ms(0);
    CHECK(goes(&above) && goes(&own) && goes(&below));
    firm_close();
}

TEST(what_is_held_gives_its_place_to_the_next_and_comes_up_again)
{
    struct gotten g[4];
    struct task held;

    firm_open();
    crowd(g, 4, 2, 2);
    held = *task_find(walk_tasks(stage.walk), str_of(g[0].task.text));
    held.status = TASK_HELD;
    delegation_moved(firm_hires(), &held);
    CHECK(delegation_check(firm_hires()));
    pass_ms(0);
    CHECK(goes(&g[2]) && waits(&g[3]));
    held = *task_find(walk_tasks(stage.walk), str_of(g[3].task.text));
    held.status = TASK_ESCALATED;
    delegation_moved(firm_hires(), &held); /* out of the queue */
    CHECK_INT(delegation_stats(firm_hires()).waiting, 0);
    CHECK(delegation_check(firm_hires()));

    CHECK(!delegation_come_up(firm_hires(), &held) &&
          !delegation_come_up(firm_hires(), &held));
    CHECK_INT(delegation_stats(firm_hires()).waiting, 1);
    CHECK_INT(firm_end(&g[1].task, TASK_COMPLETED, "x"), OK);
    CHECK(goes(&g[3]));
    firm_close();
}

TEST(what_one_may_never_do_is_not_waited_for)
{
    static const struct str allowed[] = {STR("b")};
    struct gotten g[2], b;

    firm_ground();
    stage.agents[0].delegation.is_limited = true;
    stage.agents[0].delegation.allow = (struct strs){allowed, 1};
    stage.agents[0].delegation.max_depth = 1;
    stage.agents[2].delegation.max_concurrent = 0;
    stage_start();
    firm_come();
    crowd(g, 2, 1, 1); /* and the limit is reached */
    CHECK_INT(asked((struct wanted){.by = "a", .to = "c"}).err, ERR_DELEGATION);
    b = hired((struct wanted){.by = "b", .to = "d", .parent = NULL});
    CHECK_INT(
        asked((struct wanted){.by = "b", .to = "d", .parent = &g[0].task}).err,
        ERR_DELEGATION);
    CHECK(goes(&b));
    CHECK_INT(asked((struct wanted){.by = "c", .to = "d"}).err,
              ERR_DELEGATIONS);
    firm_close();
}

TEST(after_a_start_those_that_waited_wait_in_the_same_order)
{
    struct gotten g[5];

    firm_ground();
    stage.agents[0].delegation.max_concurrent = 2;
    stage_start();
    firm_come();
    crowd(g, 5, 16, 3);
    firm_restart();
    pass_ms(0);
    CHECK_INT(delegation_stats(firm_hires()).waiting, 3);
    for (int i = 0; i < 5; i++)
        CHECK(i < 2 ? goes(&g[i]) : waits(&g[i]));
    for (int i = 0; i < 5; i++) {
        CHECK(goes(&g[i]));
        CHECK(i + 2 >= 5 || waits(&g[i + 2]));
        CHECK_INT(firm_end(&g[i].task, TASK_COMPLETED, "x"), OK);
        CHECK_INT(firm_told(&g[i].key), 1);
    }
    firm_close();
}

TEST(its_time_runs_while_it_waits)
{
    struct gotten first, second;

    firm_open();
    crowd(&first, 1, 1, 1);
    second = hired(
        (struct wanted){.by = "a", .to = "b", .id = "2", .timeout_ms = 500});
    pass_ms(499);
    CHECK(waits(&second));
    pass_ms(1);
    CHECK_INT(firm_told(&second.key), 1);
    CHECK_INT(firm.heard[0].status, TASK_EXPIRED);
    CHECK(goes(&first));
    CHECK_INT(delegation_stats(firm_hires()).waiting, 0);
    firm_close();
}

/* Very many delegations end with their parent, and none starts meanwhile. */
static void end_many_below(void)
{
    enum { N = 3 * DELEGATION_PER_TURN };
    static struct gotten g[N];
    struct id root;

    firm_open();
    firm.settings.max_concurrent = 2;
    firm.settings.max_waiting = N;
    firm_set();
    root = root_of("a");
    for (int i = 0; i < N; i++)
        g[i] = hired(
            (struct wanted){.by = "a", .to = "b", .parent = &root, .id = NULL});
    CHECK_INT(delegation_stats(firm_hires()).waiting, N - 2);
    CHECK_INT(firm_end(&root, TASK_CANCELLED, NULL), OK);
    for (int i = 0; i < 20; i++)
        pass_ms(0);
    CHECK(!delegation_stats(firm_hires()).open &&
          !delegation_stats(firm_hires()).waiting);
    for (int i = 0; i < N; i++) {
        struct query q;

        query_init(&q, &task_table, 1);
        query_if(&q, TASK_ID, IS, value_text(str_of(g[i].task.text)));
        CHECK_INT(store_look(stage.store, &q), OK);
        CHECK_INT(row_int(q.rows, TASK_STATUS), TASK_CANCELLED);
        CHECK_INT(row_int(q.rows, TASK_ATTEMPT), i < 2);
        query_fini(&q);
    }
    firm_close();
}

TEST(those_that_wait_end_with_their_parent_and_none_of_them_goes)
{
    end_many_below();
}

TEST(it_would_be_noticed_if_one_of_them_went)
{
    check_control("hire.begins_what_ends", end_many_below);
}

TEST(more_may_go_by_the_settings_or_by_the_card)
{
    struct gotten g[4];

    firm_open();
    crowd(g, 4, 1, 3);
    firm.settings.max_concurrent = 2;
    firm_set();
    pass_ms(0);
    CHECK(goes(&g[1]) && waits(&g[2]));
    firm.settings.max_concurrent = 0; /* nothing starts until the limit rises */
    firm_set();
    CHECK_INT(firm_end(&g[0].task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_end(&g[1].task, TASK_COMPLETED, "x"), OK);
    CHECK(waits(&g[2]) && waits(&g[3]));
    firm.settings.max_concurrent = 1000;
    firm_set();
    pass_ms(0);
    CHECK(goes(&g[2]) && goes(&g[3]));
    firm_close();
}
