#ifndef TEST_LIB_LEDGER_STAGE_H
#define TEST_LIB_LEDGER_STAGE_H

/* Money on the stage of the walk: "echo" costs ECHO_PRICE and answers at once,
 * "slow" SLOW_PRICE after a second; both are the house's own. */

#include "test/lib/walk_stage.h"
#include "walk/ledger_audit.h"

enum { ECHO_PRICE = 500, SLOW_PRICE = 300 };

static inline void money_ground(void)
{
    stage_ground();
    stage.agents[0].price = (struct price){true, ECHO_PRICE};
    stage.agents[1].price = (struct price){true, SLOW_PRICE};
}

static inline void money_open(void)
{
    money_ground();
    stage_start();
}

static inline void money_set(struct ledger_settings s)
{
    struct walk_opts opts = stage_walk_opts();

    opts.ledger = s;
    walk_set(stage.walk, &opts);
}

static void money_on_tx(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* Committed, or whatever came of it; tx is there still. */
static inline void money_commit(struct tx *tx)
{
    bool is_done = false;

    store_submit(stage.store, tx, money_on_tx, &is_done);
    for (int i = 0; i < 50 && !is_done; i++)
        loop_turn(&stage.loop);
    CHECK(is_done);
}

static inline enum err money_order(enum entry_kind kind, const char *id,
                                   const char *name, int64_t amount,
                                   struct why *why)
{
    struct ledger_order o = {.kind = kind,
                             .id = str_of(id),
                             .name = str_of(name),
                             .amount = amount,
                             .by = STR("admin"),
                             .at_ms = loop_wall_ms(&stage.loop)};
    enum err e = ledger_order_check(&o, why);
    struct tx tx;

    if (e)
        return e;
    tx_init(&tx);
    ledger_order(&o, &tx);
    money_commit(&tx);
    e = ledger_order_refused(&tx, why);
    tx_fini(&tx);
    return e;
}

static inline void give(const char *id, const char *name, int64_t amount)
{
    struct why why = {""};

    if (money_order(ENTRY_TOPUP, id, name, amount, &why) != OK)
        T_FAIL("%s", why.text);
}

static inline int64_t balance(const char *account)
{
    struct query q;
    int64_t n = 0;

    ledger_balance_query(&q, str_of(account));
    CHECK_INT(store_look(stage.store, &q), OK);
    if (q.rows)
        n = row_int(q.rows, ACCOUNT_BALANCE);
    query_fini(&q);
    return n;
}

static inline size_t money_rows(const struct table *t)
{
    struct query q;
    size_t n;

    query_init(&q, t, 10000);
    CHECK_INT(store_look(stage.store, &q), OK);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

static inline struct ledger_report money_report(void)
{
    struct ledger_report r;

    CHECK_INT(ledger_audit_store(stage.store, &r), OK);
    return r;
}

/* The books are right. */
static inline void money_check(void)
{
    struct ledger_report r = money_report();

    if (r.n_problems)
        T_FAIL("%lld problems: %s; %s", (long long)r.n_problems,
               r.problems[0].text, r.problems[1].text);
}

#endif
