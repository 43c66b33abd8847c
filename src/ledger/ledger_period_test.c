/* Budgets of users, orgs and agents, by day and month: guarded in the tx that
 * spends, given back, kept over restarts, and warned of once. */
#include "base/rfc3339.h"
#include "test/lib/control.h"
#include "test/lib/ledger_stage.h"
#include "test/lib/walk_agents.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)
#define NOON    INT64_C(1796040000000) /* 2026-11-30 12:00 UTC */

static struct ledger *ledger(void)
{
    return walk_ledger(stage.walk);
}

static void open_books(void)
{
    money_open();
    stage.now.wall_ms = NOON;
    pass_ms(0);
    give("p1", "anna", 1000000);
    give("p2", "bob", 1000000);
}

static struct ledger_budget budget(enum budget_kind kind, const char *name,
                                   enum budget_period period, int64_t limit)
{
    struct ledger_budget b = {.kind = kind,
                              .period = period,
                              .limit = limit,
                              .updated_ms = loop_wall_ms(&stage.loop)};

    snprintf(b.name, sizeof(b.name), "%s", name);
    snprintf(b.by, sizeof(b.by), "admin");
    return b;
}

static enum err put(const struct ledger_budget *b, struct why *why)
{
    struct tx tx;
    enum err e;

    tx_init(&tx);
    e = ledger_budget_put(ledger(), b, &tx, why);
    if (!e) {
        money_commit(&tx);
        ledger_budget_settle(ledger(), b, tx.result == TX_COMMITTED);
        CHECK_INT(tx.result, TX_COMMITTED);
    }
    tx_fini(&tx);
    return e;
}

static void set(enum budget_kind kind, const char *name,
                enum budget_period period, int64_t limit)
{
    struct ledger_budget b = budget(kind, name, period, limit);
    struct why why = {""};

    if (put(&b, &why) != OK)
        T_FAIL("%s", why.text);
}

static void drop(enum budget_kind kind, const char *name,
                 enum budget_period period)
{
    struct ledger_budget b = budget(kind, name, period, 0);
    struct tx tx;

    tx_init(&tx);
    ledger_budget_drop(&b, &tx);
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
    ledger_budget_forget(ledger(), &b);
}

static struct told slow(const char *who)
{
    return sent(
        (struct letter){.from = who, .to = "slow", .timeout_ms = 40 * DAY_MS});
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

static int n_warnings(const char *words)
{
    struct query q;
    int n = 0;

    query_init(&q, &feed_table, 1000);
    query_if(&q, FEED_TYPE, IS, value_text(STR("budget.warning")));
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    {
        struct str data = row_str(r, FEED_DATA);

        n += memmem(data.p, data.n, words, strlen(words)) != NULL;
    }
    query_fini(&q);
    return n;
}

TEST(periods_end_with_the_day_and_the_month_of_utc)
{
    static const struct {
        const char *at, *day, *month;
    } rows[] = {
        {"2026-11-30T12:00:00Z", "2026-12-01T00:00:00Z",
         "2026-12-01T00:00:00Z"},
        {"2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z",
         "2027-01-01T00:00:00Z"},
        {"2028-02-01T00:00:00Z", "2028-02-02T00:00:00Z",
         "2028-03-01T00:00:00Z"},
        {"2027-01-31T00:00:00Z", "2027-02-01T00:00:00Z",
         "2027-02-01T00:00:00Z"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int64_t at, day, month;

        CHECK(rfc3339_read(str_of(rows[i].at), &at) &&
              rfc3339_read(str_of(rows[i].day), &day) &&
              rfc3339_read(str_of(rows[i].month), &month));
        CHECK_INT(budget_period_end(BUDGET_DAY, at), day);
        CHECK_INT(budget_period_end(BUDGET_MONTH, at), month);
    }
}

TEST(a_budget_refuses_and_says_which_how_much_and_until_when)
{
    struct told t;

    open_books();
    set(BUDGET_USER, "anna", BUDGET_DAY, 2 * SLOW_PRICE);
    CHECK_INT(slow("anna").err, OK);
    CHECK_INT(slow("anna").err, OK);
    t = slow("anna");
    CHECK_INT(t.err, ERR_BUDGET);
    CHECK_STR(str_of(t.why.text),
              "slow costs 0.0003, and of the day's budget of the user anna, "
              "which is 0.0006, 0.0006 is used; it resets at "
              "2026-12-01T00:00:00Z");
    CHECK_INT(slow("bob").err, OK);
    drop(BUDGET_USER, "anna", BUDGET_DAY);
    CHECK_INT(slow("anna").err, OK);
    money_check();
    stage_close();
}

TEST(what_an_agent_has_cost_is_told_to_admins_alone)
{
    struct told t;

    open_books();
    set(BUDGET_AGENT, "SLOW", BUDGET_MONTH, SLOW_PRICE);
    CHECK_INT(slow("anna").err, OK);
    CHECK_INT(spent("agent-month:slow:2026-11"), SLOW_PRICE);
    t = slow("bob");
    CHECK_INT(t.err, ERR_BUDGET);
    CHECK_STR(str_of(t.why.text),
              "slow costs 0.0003, and of the month's budget of the agent SLOW "
              "too little is left; it resets at 2026-12-01T00:00:00Z");
    give("p3", "admin", 1000000);
    t = slow("admin");
    CHECK_INT(t.err, ERR_BUDGET);
    CHECK(strstr(t.why.text, "which is 0.0003, 0.0003 is used"));
    CHECK_INT(sent((struct letter){.from = "bob", .to = "echo"}).err, OK);
    stage_close();
}

TEST(one_s_own_budget_is_at_most_the_admin_s_and_the_lower_one_counts)
{
    struct ledger_budget own;
    struct why why = {""};

    open_books();
    set(BUDGET_USER, "anna", BUDGET_MONTH, 2 * SLOW_PRICE);
    own = budget(BUDGET_SELF, "anna", BUDGET_MONTH, 2 * SLOW_PRICE + 1);
    CHECK_INT(put(&own, &why), ERR_NOT_ALLOWED);
    CHECK(strstr(why.text, "an admin has set 0.0006"));
    own.limit = SLOW_PRICE;
    CHECK_INT(put(&own, &why), OK);
    CHECK_INT(slow("anna").err, OK);
    CHECK(strstr(slow("anna").why.text, "that anna set for themselves"));
    /* A lower budget of an admin counts even if it was set later. */
    own.limit = 2 * SLOW_PRICE;
    CHECK_INT(put(&own, &why), OK);
    set(BUDGET_USER, "anna", BUDGET_MONTH, SLOW_PRICE);
    CHECK(strstr(slow("anna").why.text, "of the user anna"));
    stage_close();
}

/* A budget of zero accepts only free messages. */
TEST(a_limit_of_nothing_is_a_limit)
{
    struct ledger_budget b;
    struct why why;

    open_books();
    set(BUDGET_USER, "anna", BUDGET_DAY, 0);
    CHECK_INT(slow("anna").err, ERR_BUDGET);
    b = budget(BUDGET_USER, "anna", BUDGET_DAY, -1);
    CHECK_INT(put(&b, &why), ERR_BAD_REQUEST);
    b = budget(BUDGET_USER, "anna", BUDGET_DAY, LEDGER_AMOUNT_MAX + 1);
    CHECK_INT(put(&b, &why), ERR_BAD_REQUEST);
    b = budget(BUDGET_USER, "", BUDGET_DAY, 1);
    CHECK_INT(put(&b, &why), ERR_BAD_REQUEST);
    stage_close();
}

TEST(what_is_released_comes_back_to_its_own_period)
{
    struct told a;

    open_books();
    set(BUDGET_USER, "anna", BUDGET_MONTH, SLOW_PRICE);
    set(BUDGET_AGENT, "slow", BUDGET_DAY, 2 * SLOW_PRICE);
    a = slow("anna");
    CHECK_INT(a.err, OK);
    CHECK_INT(spent("month:anna:2026-11"), SLOW_PRICE);
    CHECK_INT(slow("anna").err, ERR_BUDGET);
    /* The next month begins during the task. */
    stage.now.wall_ms += 13 * HOUR_MS;
    CHECK_INT(slow("anna").err, OK);
    CHECK_INT(spent("month:anna:2026-12"), SLOW_PRICE);
    cancel(&a);
    CHECK_INT(spent("month:anna:2026-11"), 0);
    CHECK_INT(spent("agent-day:slow:2026-11-30"), 0);
    CHECK_INT(spent("month:anna:2026-12"), SLOW_PRICE);
    CHECK_INT(slow("anna").err, ERR_BUDGET);
    money_check();
    stage_close();
}

TEST(budgets_and_what_is_used_of_them_survive_a_restart)
{
    const struct ledger_budget *b;

    open_books();
    set(BUDGET_USER, "anna", BUDGET_MONTH, 2 * SLOW_PRICE);
    set(BUDGET_ORG, "acme", BUDGET_DAY, 7);
    CHECK_INT(slow("anna").err, OK);
    stage_restart();
    CHECK_INT(ledger_n_budgets(ledger()), 2);
    b = ledger_budget_find(ledger(), BUDGET_ORG, STR("acme"), BUDGET_DAY);
    CHECK(!ledger_budget_find(ledger(), BUDGET_ORG, STR("ACME"), BUDGET_DAY));
    CHECK(b && b->limit == 7);
    CHECK_STR(str_of(b->by), "admin");
    CHECK_INT(slow("anna").err, OK);
    CHECK_INT(slow("anna").err, ERR_BUDGET);
    stage_close();
}

/* Retention keeps the count of a month until the month is over, however old the
 * row is. */
TEST(retention_leaves_a_month_that_goes_on)
{
    struct tx tx;

    open_books();
    CHECK_INT(slow("anna").err, OK);
    tx_init(&tx);
    ledger_prune(&tx, NOON + 11 * HOUR_MS, 100);
    money_commit(&tx);
    tx_fini(&tx);
    CHECK_INT(spent("month:anna:2026-11"), SLOW_PRICE);
    CHECK_INT(spent("agent-month:slow:2026-11"), SLOW_PRICE);
    CHECK_INT(spent("agent-day:slow:2026-11-30"), -1);
    tx_init(&tx);
    ledger_prune(&tx, NOON + 13 * HOUR_MS, 100);
    money_commit(&tx);
    tx_fini(&tx);
    CHECK_INT(spent("month:anna:2026-11"), -1);
    stage_close();
}

TEST(a_budget_warns_once_in_its_period_also_over_a_restart)
{
    open_books();
    set(BUDGET_USER, "anna", BUDGET_DAY, 5 * SLOW_PRICE);
    for (int i = 0; i < 3; i++)
        CHECK_INT(slow("anna").err, OK);
    pass_ms(0);
    CHECK_INT(n_warnings(""), 0);
    CHECK_INT(slow("anna").err, OK); /* 80 % */
    pass_ms(0);
    CHECK_INT(n_warnings("\"used_micros\":1200,\"resets_ms\":1796083200000"),
              1);
    stage_restart();
    CHECK_INT(slow("anna").err, OK);
    pass_ms(0);
    CHECK_INT(n_warnings(""), 1);
    /* The next day, or a changed limit, may warn again. */
    stage.now.wall_ms += DAY_MS;
    for (int i = 0; i < 4; i++)
        CHECK_INT(slow("anna").err, OK);
    pass_ms(0);
    CHECK_INT(n_warnings(""), 2);
    set(BUDGET_USER, "anna", BUDGET_DAY, 6 * SLOW_PRICE);
    CHECK_INT(slow("anna").err, OK);
    pass_ms(0);
    CHECK_INT(n_warnings("\"limit_micros\":1800"), 1);
    stage_close();
}

TEST(there_are_so_many_budgets_and_no_more)
{
    struct ledger_settings none = {0};
    struct ledger *l = ledger_new(&none);
    struct ledger_budget b = {.kind = BUDGET_ORG, .period = BUDGET_DAY};
    struct why why = {""};
    struct tx tx;

    CHECK(l);
    for (int i = 0; i < BUDGETS_MAX; i++) {
        tx_init(&tx);
        snprintf(b.name, sizeof(b.name), "org%d", i * 7919 % BUDGETS_MAX);
        CHECK_INT(ledger_budget_put(l, &b, &tx, &why), OK);
        ledger_budget_settle(l, &b, true);
        tx_fini(&tx);
    }
    CHECK_INT(ledger_n_budgets(l), BUDGETS_MAX);
    tx_init(&tx);
    CHECK_INT(ledger_budget_put(l, &b, &tx, &why), OK); /* it exists already */
    ledger_budget_settle(l, &b, true);
    snprintf(b.name, sizeof(b.name), "one-more");
    CHECK_INT(ledger_budget_put(l, &b, &tx, &why), ERR_LIMIT);
    CHECK(strstr(why.text, "10000 budgets"));
    for (int i = 0; i < BUDGETS_MAX; i++) {
        char name[16];

        snprintf(name, sizeof(name), "org%d", i);
        CHECK(ledger_budget_find(l, BUDGET_ORG, str_of(name), BUDGET_DAY));
    }
    snprintf(b.name, sizeof(b.name), "org5000");
    ledger_budget_forget(l, &b);
    CHECK_INT(ledger_n_budgets(l), BUDGETS_MAX - 1);
    CHECK(!ledger_budget_find(l, BUDGET_ORG, STR("org5000"), BUDGET_DAY));
    CHECK(ledger_budget_find(l, BUDGET_ORG, STR("org5001"), BUDGET_DAY));
    snprintf(b.name, sizeof(b.name), "one-more");
    CHECK_INT(ledger_budget_put(l, &b, &tx, &why), OK);
    tx_fini(&tx);
    ledger_free(l);
}

/* Many at once, with budgets for four of them: all are prepared before the
 * first is committed. */
static void race(void)
{
    struct told told[12];
    int n = 0;

    open_books();
    set(BUDGET_USER, "anna", BUDGET_DAY, 5 * SLOW_PRICE);
    set(BUDGET_AGENT, "slow", BUDGET_MONTH, 4 * SLOW_PRICE);
    memset(told, 0, sizeof(told));
    for (int i = 0; i < 12; i++)
        CHECK(post((struct letter){.from = "anna", .to = "slow"}, &told[i]));
    for (int i = 0; i < 50; i++)
        loop_turn(&stage.loop);
    for (int i = 0; i < 12; i++) {
        CHECK(told[i].is_back);
        n += told[i].err == OK;
    }
    CHECK_INT(n, 4);
    CHECK_INT(spent("agent-month:slow:2026-11"), 4 * SLOW_PRICE);
    stage_close();
}

TEST(many_at_once_cannot_pass_a_budget_together)
{
    race();
}

TEST(control_budgets_that_nobody_checks_are_noticed)
{
    check_control("ledger.no_budgets", race);
}

static void give_back_all(void)
{
    struct told t;

    open_books();
    t = slow("anna");
    cancel(&t);
    CHECK_INT(spent("month:anna:2026-11"), 0);
    stage_close();
}

TEST(control_money_that_is_not_given_back_is_noticed)
{
    check_control("ledger.keep_periods", give_back_all);
}

TEST(the_check_sees_a_budget_below_zero)
{
    struct ledger_report r;
    struct tx_op *op;
    struct tx tx;

    open_books();
    CHECK_INT(slow("anna").err, OK);
    money_check();
    tx_init(&tx);
    op = tx_add(&tx, &spent_table, SPENT_AMOUNT, -SLOW_PRICE - 1, INT64_MIN);
    tx_if(op, SPENT_OF, IS, value_text(STR("month:anna:2026-11")));
    money_commit(&tx);
    tx_fini(&tx);
    r = money_report();
    CHECK_INT(r.n_problems, 1);
    CHECK(strstr(r.problems[0].text, "month:anna:2026-11 counts -1"));
    stage_close();
}
