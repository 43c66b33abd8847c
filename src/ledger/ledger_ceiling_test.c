/* The ceiling of a message's tree, on the firm's stage: delegations never cost
 * more than the sender of the message was shown. a is free; b, c and d cost
 * PRICE. */
#include "test/lib/control.h"
#include "test/lib/delegation_stage.h"
#include "test/lib/ledger_stage.h"

enum { PRICE = 100, ALLOWANCE = 250, WEALTH = 25000000 };

static void set_allowance(int64_t allowance)
{
    struct walk_opts opts = stage_walk_opts();

    opts.delegation = firm.settings;
    opts.ledger.delegation_allowance = allowance;
    walk_set(stage.walk, &opts);
}

static void set_price(int agent, int64_t price)
{
    struct why why;

    stage.agents[agent].price = (struct price){true, price};
    CHECK_INT(stage_configure(&why), OK);
}

static void open_firm(void)
{
    firm_ground();
    firm.settings.max_concurrent = 100;
    firm.settings.max_per_root = 1000;
    for (int i = 1; i < 4; i++)
        stage.agents[i].price = (struct price){true, PRICE};
    stage_start();
    firm_come();
    set_allowance(ALLOWANCE);
    give("p1", "anna", WEALTH);
}

static void restart(int64_t allowance)
{
    firm_restart();
    set_allowance(allowance);
}

static int64_t paid(void)
{
    return WEALTH - balance("user:anna");
}

static struct gotten given(const char *by, const char *to,
                           const struct id *parent)
{
    return asked((struct wanted){.by = by, .to = to, .parent = parent});
}

/* One after the other, as often as an agent can. */
static void drain(const struct id *root)
{
    for (int i = 0; i < 20; i++) {
        struct gotten g = given("a", i % 2 ? "b" : "c", root);

        if (!g.err)
            CHECK_INT(firm_end(&g.task, TASK_COMPLETED, "x"), OK);
    }
}

static void drain_a_stranger(void)
{
    struct id root;

    open_firm();
    root = root_of("a");
    drain(&root);
    CHECK_INT(paid(), 2 * PRICE);
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    CHECK_INT(paid(), 2 * PRICE);
    money_check();
    firm_close();
}

TEST(a_free_agent_spends_no_more_than_the_allowance)
{
    drain_a_stranger();
}

TEST(control_a_ceiling_that_is_not_checked_is_noticed)
{
    check_control("ledger.no_ceiling", drain_a_stranger);
}

TEST(one_delegation_cannot_take_it_all)
{
    struct id root;
    struct gotten g;

    open_firm();
    set_price(1, WEALTH);
    root = root_of("a");
    g = given("a", "b", &root);
    CHECK_INT(g.err, ERR_CEILING);
    CHECK_INT(g.needed, WEALTH);
    CHECK_STR(str_of(g.why.text),
              "b costs 25.00, and of the 0.00025 that the message this is part "
              "of may cost 0.00 is used; its sender can allow more with "
              "max_cost_micros, here 25000000");
    CHECK_INT(paid(), 0);
    firm_close();
}

/* a -> b -> c -> d: all of it counts for the one message. */
TEST(the_ceiling_is_of_the_tree_at_any_depth)
{
    struct gotten b, c, d;
    struct id root;

    open_firm();
    root = root_of("a");
    b = given("a", "b", &root);
    c = given("b", "c", &b.task);
    d = given("c", "d", &c.task);
    CHECK_INT(b.err || c.err, OK);
    CHECK_INT(d.err, ERR_CEILING);
    CHECK_INT(d.needed, 3 * PRICE);
    /* And for no other message. */
    root = root_of("a");
    CHECK_INT(given("a", "d", &root).err, OK);
    money_check();
    firm_close();
}

TEST(what_is_asked_for_at_once_does_not_race_past_it)
{
    enum { N = 12 };
    struct gotten g[N];
    struct id root;
    int n = 0;

    open_firm();
    root = root_of("a");
    for (int i = 0; i < N; i++)
        CHECK(firm_post((struct wanted){.by = "a",
                                        .to = i % 2 ? "b" : "c",
                                        .parent = &root},
                        &g[i]));
    pass_ms(0);
    for (int i = 0; i < N; i++) {
        CHECK(g[i].is_back && (!g[i].err || g[i].err == ERR_CEILING));
        n += !g[i].err;
    }
    CHECK_INT(n, 2);
    CHECK_INT(paid(), 2 * PRICE);
    firm_close();
}

TEST(what_fails_leaves_its_place_to_others)
{
    struct gotten b, c;
    struct id root;

    open_firm();
    root = root_of("a");
    b = given("a", "b", &root);
    c = given("a", "c", &root);
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    CHECK_INT(firm_end(&b.task, TASK_FAILED, NULL), OK);
    CHECK_INT(given("a", "d", &root).err, OK);
    CHECK_INT(firm_end(&c.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(given("a", "b", &root).err, ERR_CEILING);
    money_check();
    firm_close();
}

/* Neither a restart nor another allowance changes what was shown. */
TEST(the_ceiling_outlives_a_restart_and_a_new_setting)
{
    struct id root;

    open_firm();
    root = root_of("a");
    CHECK_INT(given("a", "b", &root).err, OK);
    restart(WEALTH);
    CHECK_INT(given("a", "c", &root).err, OK);
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    restart(0);
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    CHECK_INT(paid(), 2 * PRICE);
    root = root_of("a");
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    money_check();
    firm_close();
}

TEST(the_sender_may_allow_more_or_less)
{
    struct told t;
    int n = 0;

    open_firm();
    t = sent((struct letter){.to = "a", .has_max_cost = true, .max_cost = 500});
    CHECK_INT(t.ceiling, 500);
    while (!given("a", n % 2 ? "b" : "c", &t.task_id).err)
        n++;
    CHECK_INT(n, 5);
    t = sent((struct letter){.to = "a", .has_max_cost = true});
    CHECK_INT(t.err, OK);
    CHECK_INT(given("a", "b", &t.task_id).err, ERR_CEILING);
    firm_close();
}

TEST(a_price_above_what_it_may_cost_is_refused_before_any_work)
{
    struct told t;

    open_firm();
    t = sent((struct letter){
        .to = "b", .has_max_cost = true, .max_cost = PRICE - 1});
    CHECK_INT(t.err, ERR_CEILING);
    CHECK_INT(t.needed, PRICE);
    CHECK_STR(str_of(t.why.text),
              "b costs 0.0001, and max_cost_micros allows 0.000099: give 100 "
              "or more, or name another agent");
    CHECK_INT(paid(), 0);
    CHECK_INT(firm_rows(&task_table), 0);
    t = sent(
        (struct letter){.to = "b", .has_max_cost = true, .max_cost = PRICE});
    CHECK_INT(t.err, OK);
    CHECK_INT(t.price, PRICE);
    CHECK_INT(t.ceiling, PRICE);
    CHECK_INT(given("b", "c", &t.task_id).err, ERR_CEILING);
    /* Without it: the price and the allowance. */
    t = sent((struct letter){.to = "b"});
    CHECK_INT(t.ceiling, PRICE + ALLOWANCE);
    firm_close();
}

TEST(no_allowance_is_no_delegation_at_others_cost)
{
    struct id root;

    open_firm();
    set_allowance(0);
    root = root_of("a");
    CHECK_INT(given("a", "b", &root).err, ERR_CEILING);
    CHECK_INT(given("a", "e", &root).err, OK);
    root = root_of("b");
    CHECK_INT(given("b", "c", &root).err, ERR_CEILING);
    CHECK_INT(paid(), PRICE);
    firm_close();
}

/* A limit of a delegation covers its own price only. */
TEST(a_delegation_may_have_a_limit_of_its_own)
{
    struct id root;
    struct gotten g;

    open_firm();
    root = root_of("a");
    g = asked((struct wanted){.by = "a",
                              .to = "b",
                              .parent = &root,
                              .has_max_cost = true,
                              .max_cost = PRICE - 1});
    CHECK_INT(g.err, ERR_CEILING);
    CHECK_INT(g.needed, PRICE);
    /* It does not raise the tree's ceiling. */
    set_price(1, ALLOWANCE + 1);
    g = asked((struct wanted){.by = "a",
                              .to = "b",
                              .parent = &root,
                              .has_max_cost = true,
                              .max_cost = WEALTH});
    CHECK_INT(g.err, ERR_CEILING);
    CHECK_INT(g.needed, ALLOWANCE + 1);
    firm_close();
}

/* A person's message begins a tree of its own; an agent's message is part of
 * the work that it is sent for. */
TEST(a_further_turn_is_of_the_tree_that_it_is_done_for)
{
    struct id root;
    struct gotten b;
    struct told t;

    open_firm();
    root = root_of("a");
    b = given("a", "b", &root);
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "x"), OK);
    b = asked((struct wanted){
        .by = "a", .to = "b", .parent = &root, .task_id = b.task.text});
    CHECK_INT(b.err, OK);
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(asked((struct wanted){.by = "a",
                                    .to = "b",
                                    .parent = &root,
                                    .task_id = b.task.text})
                  .err,
              ERR_CEILING);
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    t = sent((struct letter){.is_plain = true, .task_id = root.text});
    CHECK_INT(t.err, OK);
    CHECK_INT(t.ceiling, ALLOWANCE);
    CHECK_INT(given("a", "b", &root).err, OK);
    CHECK_INT(given("a", "c", &root).err, OK);
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    money_check();
    firm_close();
}

/* An agent without a task: a message of its creator or of its user. */
TEST(what_an_agent_begins_itself_has_a_ceiling_too)
{
    struct gotten b;

    open_firm();
    b = given("a", "b", NULL);
    CHECK_INT(b.err, OK);
    CHECK_INT(given("b", "c", &b.task).err, OK);
    CHECK_INT(given("b", "d", &b.task).err, OK);
    CHECK_INT(given("b", "c", &b.task).err, ERR_CEILING);
    firm_close();
}

/* A task older than ceilings. */
TEST(a_tree_of_an_earlier_version_has_the_allowance)
{
    struct gotten b;
    struct tx_op *op;
    struct id root;
    struct tx tx;

    open_firm();
    root = root_of("a");
    b = given("a", "b", &root);
    tx_init(&tx);
    op = tx_amend(&tx, &task_table);
    tx_if(op, TASK_PRIORITY, IS, value_int(PRIORITY_NORMAL));
    tx_set(op, TASK_TREE, value_null());
    tx_set(op, TASK_CEILING_MICROS, value_null());
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
    restart(ALLOWANCE);
    CHECK_INT(given("a", "c", &root).err, OK);
    CHECK_INT(given("b", "d", &b.task).err, OK);
    CHECK_INT(given("a", "d", &root).err, ERR_CEILING);
    /* And it ends normally. */
    CHECK_INT(firm_end(&b.task, TASK_FAILED, NULL), OK);
    CHECK_INT(firm_end(&root, TASK_COMPLETED, "x"), OK);
    money_check();
    firm_close();
}

TEST(the_largest_amounts_do_not_overflow)
{
    struct told t;

    open_firm();
    set_allowance(LEDGER_AMOUNT_MAX);
    set_price(0, PRICE);
    t = sent((struct letter){.to = "a"});
    CHECK_INT(t.ceiling, LEDGER_AMOUNT_MAX + PRICE);
    t = sent((struct letter){
        .to = "a", .has_max_cost = true, .max_cost = LEDGER_AMOUNT_MAX});
    CHECK_INT(t.ceiling, LEDGER_AMOUNT_MAX);
    CHECK_INT(given("a", "b", &t.task_id).err, OK);
    firm_close();
}
