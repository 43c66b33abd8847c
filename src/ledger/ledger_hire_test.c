/* Delegations, on the firm's stage: who pays, which budgets count, and which
 * amounts a caller sees. */
#include "test/lib/delegation_stage.h"
#include "test/lib/ledger_stage.h"

static void firm_with_prices(struct ledger_settings s)
{
    struct walk_opts opts;

    firm_ground();
    stage.agents[1].price = stage.agents[2].price = (struct price){true, 100};
    stage_start();
    firm_come();
    opts = stage_walk_opts();
    opts.delegation = firm.settings;
    s.delegation_allowance = 1000000; /* no ceiling is in the way here */
    opts.ledger = s;
    walk_set(stage.walk, &opts);
}

static int64_t root_spent(const struct id *root)
{
    char of[64];
    struct query q;
    int64_t n = 0;

    snprintf(of, sizeof(of), "root:%s", root->text);
    query_init(&q, &spent_table, 1);
    query_if(&q, SPENT_OF, IS, value_text(str_of(of)));
    CHECK_INT(store_look(stage.store, &q), OK);
    if (q.rows)
        n = row_int(q.rows, SPENT_AMOUNT);
    query_fini(&q);
    return n;
}

/* A delegation continues a task of an older root: its price counts for the root
 * that it is done for now, both when reserved and when released. */
TEST(a_further_turn_counts_for_the_root_it_is_done_for)
{
    struct id r1, r2;
    struct gotten b, c;

    firm_with_prices((struct ledger_settings){.per_root = 200});
    give("p1", "anna", 100000);
    r1 = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &r1});
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "x"), OK);
    CHECK_INT(firm_end(&r1, TASK_COMPLETED, "x"), OK);
    r2 = root_of("a");
    c = hired((struct wanted){.by = "a", .to = "c", .parent = &r2});
    CHECK_INT(firm_end(&c.task, TASK_COMPLETED, "x"), OK);
    b = hired((struct wanted){
        .by = "a", .to = "b", .parent = &r2, .task_id = b.task.text});
    CHECK_INT(root_spent(&r1), 100);
    CHECK_INT(root_spent(&r2), 200);
    CHECK_INT(asked((struct wanted){.by = "a", .to = "c", .parent = &r2}).err,
              ERR_BUDGET);
    CHECK_INT(firm_end(&b.task, TASK_FAILED, NULL), OK);
    CHECK_INT(root_spent(&r1), 100);
    CHECK_INT(root_spent(&r2), 100);
    c = hired((struct wanted){.by = "a", .to = "c", .parent = &r2});
    CHECK_INT(
        asked((struct wanted){
                  .by = "a", .to = "b", .parent = &r2, .task_id = b.task.text})
            .err,
        ERR_BUDGET);
    CHECK_INT(firm_end(&c.task, TASK_FAILED, NULL), OK);
    CHECK_INT(root_spent(&r2), 100);
    money_check();
    firm_close();
}

static int64_t spent_of(const char *of)
{
    struct query q;
    int64_t n = 0;

    query_init(&q, &spent_table, 1);
    query_if(&q, SPENT_OF, IS, value_text(str_of(of)));
    CHECK_INT(store_look(stage.store, &q), OK);
    if (q.rows)
        n = row_int(q.rows, SPENT_AMOUNT);
    query_fini(&q);
    return n;
}

static void set_budget(enum budget_kind kind, const char *name, int64_t limit)
{
    struct ledger_budget b = {
        .kind = kind, .period = BUDGET_MONTH, .limit = limit};
    struct why why;
    struct tx tx;

    snprintf(b.name, sizeof(b.name), "%s", name);
    tx_init(&tx);
    CHECK_INT(ledger_budget_put(walk_ledger(stage.walk), &b, &tx, &why), OK);
    money_commit(&tx);
    ledger_budget_settle(walk_ledger(stage.walk), &b, true);
    tx_fini(&tx);
}

/* At any depth the root's user pays, and the priced agent is counted. */
TEST(what_is_delegated_counts_for_the_root_s_user_and_its_agent)
{
    struct gotten b, c;
    struct id root;

    firm_with_prices((struct ledger_settings){0});
    give("p1", "anna", 100000);
    set_budget(BUDGET_USER, "anna", 250);
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    c = hired((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    CHECK_INT(spent_of("month:anna:1970-01"), 200);
    CHECK_INT(spent_of("agent-month:b:1970-01"), 100);
    CHECK_INT(spent_of("agent-month:c:1970-01"), 100);
    CHECK_INT(asked((struct wanted){.by = "a", .to = "b", .parent = &root}).err,
              ERR_BUDGET);
    CHECK_INT(firm_end(&c.task, TASK_FAILED, NULL), OK);
    CHECK_INT(spent_of("month:anna:1970-01"), 100);
    CHECK_INT(spent_of("agent-month:c:1970-01"), 0);
    set_budget(BUDGET_AGENT, "c", 99);
    b = asked((struct wanted){.by = "b", .to = "c", .parent = &b.task});
    CHECK_INT(b.err, ERR_BUDGET);
    CHECK_STR(str_of(b.why.text),
              "c costs 0.0001, and its payer has too little "
              "left of a budget");
    money_check();
    firm_close();
}

/* Continued by its user, it counts for its own root. */
TEST(a_further_turn_by_a_person_is_given_back_where_it_was_taken)
{
    struct id root;
    struct gotten b;
    struct told t;

    firm_with_prices((struct ledger_settings){0});
    give("p1", "anna", 100000);
    root = root_of("a");
    b = hired((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(firm_end(&b.task, TASK_COMPLETED, "x"), OK);
    t = sent((struct letter){.is_plain = true, .task_id = b.task.text});
    CHECK_INT(t.err, OK);
    CHECK_INT(firm_end(&t.task_id, TASK_FAILED, NULL), OK);
    CHECK_INT(root_spent(&root) + root_spent(&b.task), 100);
    CHECK(root_spent(&root) >= 0 && root_spent(&b.task) >= 0);
    money_check();
    firm_close();
}

/* The creator of an agent does not learn the balance of the user it works
 * for. */
TEST(an_agent_is_not_told_what_its_user_has)
{
    struct gotten g;
    struct id root;

    firm_with_prices((struct ledger_settings){0});
    give("p1", "anna", 99);
    root = root_of("a");
    g = asked((struct wanted){.by = "a", .to = "b", .parent = &root});
    CHECK_INT(g.err, ERR_FUNDS);
    CHECK_STR(str_of(g.why.text),
              "b costs 0.0001, and its payer has too little");
    /* Nor in the name of her own agent, if the work is another user's. */
    g = asked(
        (struct wanted){.by = "a", .to = "b", .parent = &root, .user = "bob"});
    CHECK_INT(g.err, ERR_FUNDS);
    CHECK(!strstr(g.why.text, "99") && !strstr(g.why.text, "anna"));
    CHECK(strstr(sent((struct letter){.to = "b"}).why.text,
                 "the account user:anna has 0.000099;"));
    firm_close();
}

TEST(an_agent_is_not_told_what_is_left_of_a_budget)
{
    struct ledger_settings budgets[] = {
        {.per_day = 99}, {.per_conversation = 99}, {.per_root = 99}};

    for (size_t i = 0; i < 3; i++) {
        struct gotten g;
        struct id root;

        firm_with_prices(budgets[i]);
        give("p1", "anna", 1000);
        root = root_of("a");
        g = asked((struct wanted){.by = "a", .to = "b", .parent = &root});
        CHECK_INT(g.err, ERR_BUDGET);
        CHECK_STR(str_of(g.why.text), "b costs 0.0001, and its payer has "
                                      "too little left of a budget");
        CHECK(strstr(sent((struct letter){.to = "b"}).why.text, "99"));
        firm_close();
    }
}
