/* Budgets: guarded in the tx that spends, and released with it. */
#include "test/lib/ledger_stage.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static void open_with(struct ledger_settings s)
{
    money_open();
    /* 2026-11-16, one hour before the day ends. */
    stage.now.wall_ms =
        INT64_C(1794870000000) - INT64_C(3600000) + INT64_C(3600000);
    pass_ms(0);
    money_set(s);
    give("p1", "anna", 1000000);
    give("p2", "bob", 1000000);
}

static struct told slow(const char *who, const char *conversation)
{
    return sent((struct letter){
        .from = who, .to = "slow", .conversation = conversation});
}

static void cancel(const struct told *t)
{
    CHECK_INT(walk_cancel(stage.walk, str_of(t->task_id.text), STR("anna"),
                          NULL, NULL),
              OK);
    pass_ms(0);
}

static int64_t spent(const char *of)
{
    struct query q;
    int64_t n = -1;

    query_init(&q, &spent_table, 1);
    query_if(&q, SPENT_OF, IS, value_text(str_of(of)));
    CHECK_INT(store_look(stage.store, &q), OK);
    if (q.rows)
        n = row_int(q.rows, SPENT_AMOUNT);
    query_fini(&q);
    return n;
}

TEST(a_day_s_budget_is_a_user_s_and_says_what_is_left)
{
    struct told a, b;

    open_with((struct ledger_settings){.per_day = 2 * SLOW_PRICE + 1});
    a = slow("anna", "a");
    b = slow("anna", "b");
    CHECK_INT(a.err || b.err, OK);
    a = slow("anna", "c");
    CHECK_INT(a.err, ERR_BUDGET);
    CHECK_STR(str_of(a.why.text),
              "slow costs 0.0003, and of the budget of anna for the day "
              "2026-11-16 (UTC), which is 0.000601, 0.000001 is left");
    CHECK_INT(slow("bob", "a").err, OK);
    /* Released: there is room again. */
    cancel(&b);
    CHECK_INT(slow("anna", "d").err, OK);
    CHECK_INT(slow("anna", "e").err, ERR_BUDGET);
    money_check();
    stage_close();
}

TEST(exactly_the_budget_is_within_it)
{
    open_with((struct ledger_settings){.per_day = SLOW_PRICE});
    CHECK_INT(slow("anna", "a").err, OK);
    CHECK_INT(slow("anna", "b").err, ERR_BUDGET);
    stage_close();
    open_with((struct ledger_settings){.per_day = SLOW_PRICE - 1});
    CHECK_INT(slow("anna", "a").err, ERR_BUDGET);
    stage_close();
}

TEST(the_next_day_has_its_own_and_what_is_released_goes_to_its_day)
{
    struct told a;

    open_with((struct ledger_settings){.per_day = SLOW_PRICE});
    a = sent((struct letter){
        .to = "slow", .conversation = "a", .timeout_ms = 2 * DAY_MS});
    CHECK_INT(a.err, OK);
    CHECK_INT(spent("day:anna:2026-11-16"), SLOW_PRICE);
    stage.now.wall_ms += DAY_MS;
    CHECK_INT(slow("anna", "b").err, OK);
    CHECK_INT(spent("day:anna:2026-11-17"), SLOW_PRICE);
    CHECK_INT(walk_cancel(stage.walk, str_of(a.task_id.text), STR("anna"), NULL,
                          NULL),
              OK);
    pass_ms(0);
    CHECK_INT(spent("day:anna:2026-11-16"), 0);
    CHECK_INT(spent("day:anna:2026-11-17"), SLOW_PRICE);
    CHECK_INT(slow("anna", "c").err, ERR_BUDGET);
    money_check();
    stage_close();
}

TEST(a_conversation_s_budget_is_that_conversation_s)
{
    struct told t;

    open_with((struct ledger_settings){.per_conversation = ECHO_PRICE});
    t = sent((struct letter){.conversation = "a"});
    CHECK_INT(t.err, OK);
    pass_ms(10);
    t = sent((struct letter){.conversation = "a"});
    CHECK_INT(t.err, ERR_BUDGET);
    CHECK_STR(str_of(t.why.text),
              "echo costs 0.0005, and of the budget of the conversation a, "
              "which is 0.0005, 0.00 is left");
    CHECK_INT(sent((struct letter){.conversation = "b"}).err, OK);
    CHECK_INT(sent((struct letter){.from = "bob", .conversation = "a"}).err,
              OK);
    stage_close();
}

TEST(a_root_s_budget_counts_its_further_turns)
{
    struct told t, more;

    open_with((struct ledger_settings){.per_root = 2 * ECHO_PRICE});
    t = sent((struct letter){0});
    pass_ms(10);
    CHECK_INT(sent((struct letter){.task_id = t.task_id.text}).err, OK);
    pass_ms(10);
    more = sent((struct letter){.task_id = t.task_id.text});
    CHECK_INT(more.err, ERR_BUDGET);
    CHECK(strstr(more.why.text, "the budget of all that task_"));
    CHECK(strstr(more.why.text, "which is 0.001, 0.00 is left"));
    money_check();
    stage_close();
}

TEST(a_budget_that_is_set_later_counts_what_was_spent_before)
{
    open_with((struct ledger_settings){0});
    CHECK_INT(slow("anna", "a").err, OK);
    money_set((struct ledger_settings){.per_day = 2 * SLOW_PRICE - 1});
    CHECK_INT(slow("anna", "b").err, ERR_BUDGET);
    money_set((struct ledger_settings){.per_day = 2 * SLOW_PRICE});
    CHECK_INT(slow("anna", "b").err, OK);
    stage_close();
}

TEST(old_rows_go_and_a_release_after_that_does_no_harm)
{
    struct told a;
    struct tx tx;

    open_with((struct ledger_settings){.per_day = 10 * SLOW_PRICE});
    a = sent((struct letter){
        .to = "slow", .conversation = "a", .timeout_ms = 2 * DAY_MS});
    CHECK_INT(a.err, OK);
    CHECK_INT(sent((struct letter){.to = "echo"}).err, OK);
    pass_ms(10);
    CHECK_INT(money_rows(&reservation_table), 2);
    tx_init(&tx);
    /* A month's rows stay until it is over. */
    ledger_prune(&tx, loop_wall_ms(&stage.loop) + INT64_C(31) * DAY_MS, 100);
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
    CHECK_INT(money_rows(&spent_table), 0);
    CHECK_INT(money_rows(&reservation_table), 1); /* the open one stays */
    money_check();
    cancel(&a);
    CHECK_INT(stored(&a.task_id, NULL, NULL), TASK_CANCELLED);
    CHECK_INT(spent("day:anna:2026-11-16"), 0);
    money_check();
    stage_close();
}
