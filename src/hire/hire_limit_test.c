/* Each limit at its limit and one past it; on whose behalf it is, whatever the
 * words say. */
#include "base/json.h"
#include "test/lib/hire_stage.h"

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
    CHECK_INT(hire_stats(firm_hires()).refused_total, 4);
    firm_close();
}

TEST(only_whom_the_card_allows)
{
    static const struct str allowed[] = {STR("B")};

    firm_ground();
    stage.agents[0].delegation.is_limited = true;
    stage.agents[0].delegation.allow = (struct strs){allowed, 1};
    stage.agents[1].delegation.is_limited = true; /* and nobody */
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

/* Of two that are asked in the same turn both count. */
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
    /* What is over counts on: it was done under this root. */
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
    hired((struct wanted){.by = "a", .to = "b"}); /* one is unacked so far */
    CHECK_INT(firm_end(&none.task, TASK_COMPLETED, "x"), OK);
    none = asked((struct wanted){.by = "a", .to = "b"});
    CHECK_INT(none.err, ERR_DELEGATIONS);
    CHECK(strstr(none.why.text, "delegation.maxUnacked") &&
          strstr(none.why.text, "delegation.ack"));
    hired((struct wanted){.by = "c", .to = "d"}); /* nobody else minds */
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

/* The next turn is part of what its agent works on now. */
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
