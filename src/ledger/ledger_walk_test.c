/* A task's price on its whole walk: reserved, captured or released, each once,
 * with the real store's guards. */
#include "test/lib/control.h"
#include "test/lib/ledger_stage.h"

TEST(the_last_unit_is_enough_and_one_less_is_not)
{
    struct told t;

    money_open();
    give("p1", "anna", ECHO_PRICE - 1);
    t = sent((struct letter){.to = "echo"});
    CHECK_INT(t.err, ERR_FUNDS);
    CHECK_STR(str_of(t.why.text),
              "echo costs 0.0005, and the account user:anna has 0.000499; an "
              "admin can top it up (signalbox ledger topup)");
    CHECK_INT(balance("user:anna"), ECHO_PRICE - 1);
    CHECK_INT(money_rows(&reservation_table), 0);
    give("p2", "anna", 1);
    t = sent((struct letter){.to = "echo"});
    CHECK_INT(t.err, OK);
    pass_ms(10);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("user:anna"), 0);
    CHECK_INT(balance("platform"), ECHO_PRICE);
    CHECK_INT(balance("reserved"), 0);
    CHECK_INT(balance("outside"), -ECHO_PRICE);
    money_check();
    stage_close();
}

TEST(who_never_had_an_account_has_nothing)
{
    struct told t;

    money_open();
    t = sent((struct letter){.from = "bob"});
    CHECK_INT(t.err, ERR_FUNDS);
    CHECK(strstr(t.why.text, "the account user:bob has 0.00;"));
    CHECK_INT(money_rows(&account_table), 0);
    stage_close();
}

static void two_for_the_last_unit(void)
{
    struct told a, b;

    money_open();
    give("p1", "anna", ECHO_PRICE);
    CHECK(post((struct letter){.conversation = "c1"}, &a));
    CHECK(post((struct letter){.conversation = "c2"}, &b));
    pass_ms(0);
    pass_ms(10);
    CHECK(a.is_back && b.is_back);
    CHECK_INT((a.err == OK) + (b.err == OK), 1);
    CHECK_INT((a.err == ERR_FUNDS) + (b.err == ERR_FUNDS), 1);
    CHECK_INT(balance("user:anna"), 0);
    money_check();
    stage_close();
}

TEST(two_who_want_the_last_unit_at_once)
{
    two_for_the_last_unit();
}

TEST(control_two_who_want_the_last_unit_without_a_floor)
{
    check_control("ledger.no_floor", two_for_the_last_unit);
}

/* Each way to end a task, and where its money goes. */
static void ends(void)
{
    struct told done, gone, late;

    money_open();
    give("p1", "anna", 10000);
    done = sent((struct letter){.to = "slow", .conversation = "a"});
    gone = sent((struct letter){.to = "slow", .conversation = "b"});
    late = sent(
        (struct letter){.to = "slow", .conversation = "c", .timeout_ms = 500});
    CHECK_INT(done.err || gone.err || late.err, OK);
    CHECK_INT(balance("reserved"), 3 * SLOW_PRICE);
    CHECK_INT(balance("user:anna"), 10000 - 3 * SLOW_PRICE);
    money_check();
    CHECK_INT(walk_cancel(stage.walk, str_of(gone.task_id.text), STR("anna"),
                          NULL, NULL),
              OK);
    /* A second order finds it over, or comes too late for the guard. */
    (void)!walk_cancel(stage.walk, str_of(gone.task_id.text), STR("anna"), NULL,
                       NULL);
    pass_ms(600);
    CHECK_INT(stored(&gone.task_id, NULL, NULL), TASK_CANCELLED);
    CHECK_INT(stored(&late.task_id, NULL, NULL), TASK_EXPIRED);
    CHECK_INT(balance("reserved"), SLOW_PRICE);
    CHECK_INT(balance("user:anna"), 10000 - SLOW_PRICE);
    pass_ms(600);
    CHECK_INT(stored(&done.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("reserved"), 0);
    CHECK_INT(balance("user:anna"), 10000 - SLOW_PRICE);
    CHECK_INT(balance("platform"), SLOW_PRICE);
    money_check();
    stage_close();
}

TEST(each_end_moves_its_money_once)
{
    ends();
}

TEST(control_captured_twice)
{
    check_control("ledger.capture_twice", ends);
}

TEST(control_released_after_it_was_captured)
{
    check_control("ledger.release_after_capture", ends);
}

TEST(a_repeat_costs_nothing_and_a_further_turn_costs_again)
{
    struct told a, b;

    money_open();
    give("p1", "anna", 3 * ECHO_PRICE);
    a = sent((struct letter){.key = "k"});
    pass_ms(10);
    b = sent((struct letter){.key = "k"});
    CHECK(b.is_repeat && strcmp(a.task_id.text, b.task_id.text) == 0);
    CHECK_INT(balance("user:anna"), 2 * ECHO_PRICE);
    b = sent((struct letter){.task_id = a.task_id.text});
    CHECK_INT(b.err, OK);
    pass_ms(10);
    CHECK_INT(balance("user:anna"), ECHO_PRICE);
    CHECK_INT(balance("platform"), 2 * ECHO_PRICE);
    b = sent((struct letter){.task_id = a.task_id.text});
    CHECK_INT(b.err, OK);
    pass_ms(10);
    b = sent((struct letter){.task_id = a.task_id.text});
    CHECK_INT(b.err, ERR_FUNDS);
    /* A repeated order is recognized even if the balance is too low. */
    b = sent((struct letter){.key = "k"});
    CHECK(!b.err && b.is_repeat);
    money_check();
    CHECK_INT(money_report().n_turns, 3);
    stage_close();
}

TEST(the_price_is_the_one_of_when_it_was_reserved)
{
    struct why why;
    struct told t;

    money_open();
    give("p1", "anna", 1000);
    t = sent((struct letter){.to = "slow"});
    CHECK_INT(t.err, OK);
    stage.agents[1].price.micros = 1000000;
    CHECK_INT(stage_configure(&why), OK);
    stage_restart();
    pass_ms(2000);
    pass_ms(2000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("platform"), SLOW_PRICE);
    CHECK_INT(balance("user:anna"), 1000 - SLOW_PRICE);
    money_check();
    CHECK_INT(sent((struct letter){.to = "slow"}).err, ERR_FUNDS);
    stage_close();
}

/* Books that another program has changed. */
static void forget_reservation(const struct id *task)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_delete(&tx, &reservation_table);
    tx_if(op, RESERVATION_TASK_ID, IS, value_text(str_of(task->text)));
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
}

TEST(a_task_ends_although_its_reservation_is_not_there)
{
    struct ledger_report r;
    struct told a, b;

    money_open();
    give("p1", "anna", 1000);
    a = sent((struct letter){.to = "slow", .conversation = "a"});
    b = sent((struct letter){.to = "slow", .conversation = "b"});
    forget_reservation(&a.task_id);
    r = money_report();
    CHECK_INT(r.n_problems, 1);
    CHECK(strstr(r.problems[0].text, "there is no reservation"));
    pass_ms(1000);
    pass_ms(0);
    CHECK_INT(stored(&a.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(stored(&b.task_id, NULL, NULL), TASK_COMPLETED);
    CHECK_INT(balance("platform"), SLOW_PRICE);
    CHECK_INT(balance("reserved"), SLOW_PRICE);
    CHECK(money_report().n_problems > 0);
    stage_close();
}

TEST(what_costs_nothing_leaves_no_trace)
{
    struct told t;

    money_ground();
    stage.agents[0].price.micros = 0;
    stage_start();
    t = sent((struct letter){.to = "echo"});
    pass_ms(10);
    CHECK_INT(t.err, OK);
    CHECK_INT(money_rows(&entry_table) + money_rows(&reservation_table) +
                  money_rows(&spent_table),
              0);
    money_check();
    stage_close();
}
