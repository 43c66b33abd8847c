/* Orders of an admin: each once by its id, never below zero, and at its
 * limits. */
#include "test/lib/control.h"
#include "test/lib/ledger_stage.h"
#include "test/lib/walk_agents.h"

static enum err order(enum entry_kind kind, const char *id, const char *name,
                      int64_t amount)
{
    struct why why;

    return money_order(kind, id, name, amount, &why);
}

TEST(the_same_topup_is_one_topup)
{
    struct ledger_order o = {
        .kind = ENTRY_TOPUP, .name = STR("anna"), .amount = 100};
    struct query q;

    money_open();
    give("p1", "anna", 100);
    CHECK_INT(order(ENTRY_TOPUP, "p1", "anna", 100), ERR_EXISTS);
    CHECK_INT(order(ENTRY_TOPUP, "p1", "anna", 7), ERR_EXISTS);
    CHECK_INT(order(ENTRY_TOPUP, "p1", "bob", 100), ERR_EXISTS);
    CHECK_INT(balance("user:anna"), 100);
    CHECK_INT(balance("user:bob"), 0);
    ledger_posting_query(&q, STR("p1"));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    CHECK(ledger_is_same(&o, q.rows));
    o.amount = 7;
    CHECK(!ledger_is_same(&o, q.rows));
    o.amount = 100;
    o.name = STR("bob");
    CHECK(!ledger_is_same(&o, q.rows));
    o.name = STR("anna");
    o.kind = ENTRY_REFUND;
    CHECK(!ledger_is_same(&o, q.rows));
    query_fini(&q);
    money_check();
    stage_close();
}

TEST(a_refund_takes_what_there_is_and_no_more)
{
    struct why why;

    money_open();
    give("p1", "anna", 100);
    CHECK_INT(money_order(ENTRY_REFUND, "r1", "anna", 101, &why), ERR_FUNDS);
    CHECK_STR(str_of(why.text), "user:anna has less than 0.000101");
    /* The id of a rejected order can be used again. */
    CHECK_INT(order(ENTRY_REFUND, "r1", "anna", 100), OK);
    CHECK_INT(balance("user:anna"), 0);
    CHECK_INT(balance("outside"), 0);
    CHECK_INT(order(ENTRY_REFUND, "r2", "anna", 1), ERR_FUNDS);
    CHECK_INT(order(ENTRY_PAYOUT, "r3", "anna", 1), ERR_FUNDS);
    CHECK_INT(order(ENTRY_REFUND, "r1", "anna", 100), ERR_EXISTS);
    money_check();
    stage_close();
}

TEST(amounts_have_limits)
{
    static const int64_t bad[] = {0, -1, INT64_MIN, LEDGER_AMOUNT_MAX + 1,
                                  INT64_MAX};

    money_open();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_INT(order(ENTRY_TOPUP, "p", "anna", bad[i]), ERR_BAD_REQUEST);
    CHECK_INT(order(ENTRY_TOPUP, "p", "anna", LEDGER_AMOUNT_MAX), OK);
    for (int i = 0; i < 8; i++) {
        char id[8];

        snprintf(id, sizeof(id), "q%d", i);
        CHECK_INT(order(ENTRY_TOPUP, id, "anna", LEDGER_AMOUNT_MAX), OK);
    }
    /* Nine times that is nearly the maximum of 64 bits. */
    CHECK_INT(order(ENTRY_TOPUP, "r", "anna", LEDGER_AMOUNT_MAX), ERR_LIMIT);
    CHECK_INT(order(ENTRY_TOPUP, "r", "bob", LEDGER_AMOUNT_MAX), ERR_LIMIT);
    CHECK(balance("user:anna") == 9 * LEDGER_AMOUNT_MAX);
    CHECK_INT(balance("user:bob"), 0);
    money_check();
    stage_close();
}

TEST(ids_names_and_notes_have_limits)
{
    char id[LEDGER_ID_MAX + 2], note[LEDGER_NOTE_MAX + 2];
    struct ledger_order o = {
        .kind = ENTRY_TOPUP, .name = STR("anna"), .amount = 1, .id = STR("a")};
    struct why why;

    memset(id, 'x', sizeof(id));
    memset(note, 'x', sizeof(note));
    CHECK_INT(ledger_order_check(&o, &why), OK);
    o.id = (struct str){id, LEDGER_ID_MAX};
    o.note = (struct str){note, LEDGER_NOTE_MAX};
    CHECK_INT(ledger_order_check(&o, &why), OK);
    o.note.n++;
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    o.note = STR("\xff");
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    o.note.n = 0;
    o.id.n++;
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    o.id.n = 0;
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    /* Never the id of a task's posting. */
    o.id = STR("task_x:1:capture");
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    o.id = (struct str){"a\0b", 3};
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
    o.id = STR("A-z_0.9");
    CHECK_INT(ledger_order_check(&o, &why), OK);
    o.name.n = 0;
    CHECK_INT(ledger_order_check(&o, &why), ERR_BAD_REQUEST);
}

static struct ledger_refunded refunded;

static enum err refund_part(const struct id *task, int64_t turn, int64_t part)
{
    struct ledger_order o = {.by = STR("admin"), .at_ms = 1, .amount = part};
    struct why why = {""};
    struct query q;
    struct tx tx;
    enum err e;

    ledger_turn_query(&q, str_of(task->text), turn);
    CHECK_INT(store_look(stage.store, &q), OK);
    tx_init(&tx);
    e = ledger_refund_turn(&o, &q, &tx, &refunded, &why);
    if (!e) {
        money_commit(&tx);
        e = ledger_order_refused(&tx, &why);
    }
    query_fini(&q);
    tx_fini(&tx);
    return e;
}

static enum err refund_turn(const struct id *task, int64_t turn)
{
    enum err e = refund_part(task, turn, 0);

    if (!e)
        CHECK_INT(refunded.amount, ECHO_PRICE);
    return e;
}

/* zoe's agent has earned a charge, of which the platform keeps a tenth; she is
 * paid out, and then the charge is refunded. */

static struct told charged(void)
{
    struct told t;

    money_open();
    stage_put("zoe", "hers",
              "{\"description\":\"d\",\"visibility\":\"public\",\"url\":\"echo:"
              "\",\"pricing\":{\"amount_micros\":500}}");
    money_set((struct ledger_settings){.fee_ppm = 100000});
    give("p1", "anna", 3 * ECHO_PRICE);
    t = sent((struct letter){.to = "hers"});
    pass_ms(10);
    CHECK_INT(balance("creator:zoe"), 450);
    CHECK_INT(order(ENTRY_PAYOUT, "out", "zoe", 450), OK);
    return t;
}

TEST(a_paid_out_charge_is_refunded_and_the_creator_owes_it)
{
    struct told t = charged();

    CHECK_INT(refund_turn(&t.task_id, 1), OK);
    CHECK_INT(refunded.from_creator, 450);
    CHECK_STR(str_of(refunded.creator.text), "creator:zoe");
    CHECK_INT(balance("user:anna"), 3 * ECHO_PRICE);
    CHECK_INT(balance("creator:zoe"), -450);
    CHECK_INT(balance("platform"), 0);
    CHECK_INT(money_report().owed, 450);
    money_check();
    /* Nothing is paid out below zero; earnings fill the debt first. */
    CHECK_INT(order(ENTRY_PAYOUT, "o2", "zoe", 1), ERR_FUNDS);
    for (int i = 0; i < 2; i++) {
        (void)sent((struct letter){.to = "hers"});
        pass_ms(10);
    }
    CHECK_INT(balance("creator:zoe"), 450);
    CHECK_INT(money_report().owed, 0);
    CHECK_INT(order(ENTRY_PAYOUT, "o2", "zoe", 451), ERR_FUNDS);
    CHECK_INT(order(ENTRY_PAYOUT, "o2", "zoe", 450), OK);
    CHECK_INT(refund_turn(&t.task_id, 1), ERR_EXISTS);
    money_check();
    stage_close();
}

TEST(earnings_smaller_than_the_debt_are_booked)
{
    struct told first = charged(), second;

    second = sent((struct letter){.to = "hers"});
    pass_ms(10);
    CHECK_INT(order(ENTRY_PAYOUT, "out2", "zoe", 450), OK);
    CHECK_INT(refund_turn(&first.task_id, 1), OK);
    CHECK_INT(refund_turn(&second.task_id, 1), OK);
    CHECK_INT(balance("creator:zoe"), -900);
    (void)sent((struct letter){.to = "hers"});
    pass_ms(10);
    CHECK_INT(balance("creator:zoe"), -450);
    CHECK_INT(balance("reserved"), 0);
    CHECK_INT(money_report().owed, 450);
    money_check();
    stage_close();
}

TEST(a_part_of_a_charge_goes_back_once_and_never_more_than_it)
{
    struct told t = charged();

    CHECK_INT(refund_part(&t.task_id, 1, ECHO_PRICE + 1), ERR_BAD_REQUEST);
    CHECK_INT(refund_part(&t.task_id, 1, 101), OK);
    CHECK_INT(refunded.amount, 101);
    CHECK_INT(refunded.from_creator, 91); /* 50 * 101 / 500, rounded down */
    CHECK_INT(balance("user:anna"), 2 * ECHO_PRICE + 101);
    CHECK_INT(balance("creator:zoe"), -91);
    CHECK_INT(balance("platform"), 40);
    CHECK_INT(refund_part(&t.task_id, 1, 1), ERR_EXISTS);
    CHECK_INT(refund_turn(&t.task_id, 1), ERR_EXISTS);
    CHECK_INT(balance("user:anna"), 2 * ECHO_PRICE + 101);
    money_check();
    stage_close();
}

static void refund_too_much(void)
{
    struct told t = charged();

    (void)refund_part(&t.task_id, 1, ECHO_PRICE + 1);
    money_check();
    stage_close();
}

static void refund_again(void)
{
    struct told t = charged();

    (void)refund_turn(&t.task_id, 1);
    (void)refund_part(&t.task_id, 1, 1);
    money_check();
    stage_close();
}

TEST(control_a_refund_above_the_charge_is_noticed)
{
    check_control("ledger.refund_above", refund_too_much);
}

TEST(control_a_second_refund_is_noticed)
{
    check_control("ledger.refund_twice", refund_again);
}

static int64_t became(const char *posting)
{
    int64_t state = -1;
    struct query q;

    query_init(&q, &entry_table, 100);
    CHECK_INT(store_look(stage.store, &q), OK);
    QUERY_EACH(r, &q)
    {
        if (str_eq(row_str(r, ENTRY_POSTING), str_of(posting)))
            state = row_int(r, ENTRY_BECAME);
    }
    query_fini(&q);
    return state;
}

TEST(a_reserve_says_what_became_of_it)
{
    struct told t = charged(), slow = sent((struct letter){.to = "slow"});
    char of[LEDGER_ACCOUNT_MAX];

    snprintf(of, sizeof(of), "%s:1:reserve", t.task_id.text);
    CHECK_STR(reservation_state_name(became(of)), "charged");
    snprintf(of, sizeof(of), "%s:1:reserve", slow.task_id.text);
    CHECK_STR(reservation_state_name(became(of)), "reserved");
    CHECK_INT(walk_cancel(stage.walk, str_of(slow.task_id.text), STR("anna"),
                          NULL, NULL),
              OK);
    pass_ms(0);
    CHECK_STR(reservation_state_name(became(of)), "released");
    CHECK_INT(became("out"), 0);
    CHECK_INT(reservation_state_name(0).n, 0);
    stage_close();
}

TEST(a_turn_s_price_goes_back_once)
{
    struct told t, running;

    money_open();
    give("p1", "anna", 2 * ECHO_PRICE + SLOW_PRICE);
    t = sent((struct letter){.to = "echo"});
    pass_ms(10);
    CHECK_INT(sent((struct letter){.task_id = t.task_id.text}).err, OK);
    pass_ms(10);
    running = sent((struct letter){.to = "slow"});
    CHECK_INT(balance("user:anna"), 0);
    CHECK_INT(refund_turn(&running.task_id, 1), ERR_NOT_FOUND);
    CHECK_INT(refund_turn(&t.task_id, 3), ERR_NOT_FOUND);
    CHECK_INT(refund_turn(&t.task_id, 2), OK);
    CHECK_INT(balance("user:anna"), ECHO_PRICE);
    CHECK_INT(balance("platform"), ECHO_PRICE);
    CHECK_INT(refund_turn(&t.task_id, 2), ERR_EXISTS);
    CHECK_INT(refund_turn(&t.task_id, 1), OK);
    CHECK_INT(balance("platform"), 0);
    CHECK_INT(balance("user:anna"), 2 * ECHO_PRICE);
    money_check();
    stage_close();
}

TEST(a_statement_goes_page_by_page_either_way)
{
    struct ledger_span span = {.account = STR("user:anna"), .limit = 2};
    int64_t seen[5];
    struct query q;
    size_t n = 0;

    money_open();
    for (int i = 0; i < 5; i++) {
        char id[8];

        snprintf(id, sizeof(id), "p%d", i);
        give(id, "anna", i + 1);
        id[0] = 'b';
        give(id, "bob", 100);
    }
    do {
        ledger_statement_query(&q, &span);
        CHECK_INT(store_look(stage.store, &q), OK);
        QUERY_EACH(r, &q)
        {
            struct ledger_entry e;

            ledger_entry_from(&e, r);
            CHECK_STR(e.account, "user:anna");
            CHECK_STR(e.by, "admin");
            CHECK_INT(e.kind, ENTRY_TOPUP);
            CHECK(n < 5);
            seen[n++] = e.amount;
            span.cursor = e.seq;
        }
        query_fini(&q);
    } while (q.has_more);
    CHECK_INT(n, 5);
    for (int i = 0; i < 5; i++)
        CHECK_INT(seen[i], 5 - i);
    span = (struct ledger_span){.limit = 100, .is_oldest_first = true};
    ledger_statement_query(&q, &span);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 20);
    CHECK_INT(row_int(q.rows, ENTRY_AMOUNT), 1);
    query_fini(&q);
    span.until_ms = 1;
    ledger_statement_query(&q, &span);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 0);
    query_fini(&q);
    stage_close();
}
