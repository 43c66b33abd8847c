/* Many random runs, compared with simple books; the audit, page by page, while
 * everything changes; and every step that can fail. */
#include "test/lib/control.h"
#include "test/lib/ledger_stage.h"

static uint64_t state;

static unsigned dice(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* The simple books: each user's balance, and the tasks in progress. */

enum { USERS = 3, TASKS = 400 };
static const char *const users[USERS] = {"anna", "bob", "carl"};
static int64_t has[USERS], day[USERS];
static int64_t earned, promised, brought;
static int64_t per_day;

struct life {
    struct id id;
    int who;
    int64_t price;
    bool is_open;
} lives[TASKS];
static size_t n_lives;

static void look_who_is_over(void)
{
    for (size_t i = 0; i < n_lives; i++) {
        struct life *l = &lives[i];
        enum task_status s = l->is_open ? stored(&l->id, NULL, NULL) : 0;

        if (!s || !task_is_over(s))
            continue;
        l->is_open = false;
        promised -= l->price;
        if (s == TASK_COMPLETED) {
            earned += l->price;
        } else {
            has[l->who] += l->price;
            day[l->who] -= l->price;
        }
    }
}

static void compare(void)
{
    look_who_is_over();
    for (int i = 0; i < USERS; i++) {
        struct ledger_account a = ledger_user(str_of(users[i]));

        CHECK_INT(balance(a.text), has[i]);
    }
    CHECK_INT(balance("platform"), earned);
    CHECK_INT(balance("reserved"), promised);
    CHECK_INT(balance("outside"), -brought);
    money_check();
}

static void send_one(void)
{
    int who = (int)dice(USERS);
    bool is_slow = dice(2);
    int64_t price = is_slow ? SLOW_PRICE : ECHO_PRICE;
    struct told t;
    enum err want;

    /* A task that is over has released its amount before this message. */
    look_who_is_over();
    want = per_day && day[who] + price > per_day ? ERR_BUDGET
           : has[who] < price                    ? ERR_FUNDS
                                                 : OK;
    t = sent((struct letter){.from = users[who],
                             .to = is_slow ? "slow" : "echo",
                             .timeout_ms = dice(3) ? 60000 : 700});
    CHECK_INT(t.err, want);
    if (t.err)
        return;
    CHECK(n_lives < TASKS);
    lives[n_lives++] = (struct life){t.task_id, who, price, true};
    has[who] -= price;
    day[who] += price;
    promised += price;
}

static void cancel_one(void)
{
    if (n_lives)
        (void)!walk_cancel(stage.walk,
                           str_of(lives[dice((unsigned)n_lives)].id.text),
                           STR("x"), NULL, NULL);
    pass_ms(0);
}

static void move_money(int i)
{
    int who = (int)dice(USERS);
    int64_t amount = 1 + dice(1500);
    bool is_in = dice(3);
    struct why why;
    char id[16];
    enum err e;

    snprintf(id, sizeof(id), "m%d", i);
    look_who_is_over();
    e = money_order(is_in ? ENTRY_TOPUP : ENTRY_REFUND, id, users[who], amount,
                    &why);
    CHECK_INT(e, is_in || has[who] >= amount ? OK : ERR_FUNDS);
    if (e)
        return;
    has[who] += is_in ? amount : -amount;
    brought += is_in ? amount : -amount;
    CHECK_INT(money_order(ENTRY_TOPUP, id, users[who], amount, &why),
              ERR_EXISTS);
}

static void live(void)
{
    money_open();
    per_day = 6000;
    money_set((struct ledger_settings){.per_day = per_day});
    for (int i = 0; i < 250; i++) {
        switch (dice(8)) {
        case 0:
        case 1:
        case 2: send_one(); break;
        case 3: move_money(i); break;
        case 4: cancel_one(); break;
        case 5: pass_ms(dice(900)); break;
        case 6:
            if (dice(10) == 0) {
                stage_restart();
                money_set((struct ledger_settings){.per_day = per_day});
            }
            break;
        default: compare(); break;
        }
    }
    for (int i = 0; i < 4; i++)
        pass_ms(1000);
    compare();
    CHECK(n_lives > 10);
    stage_close();
}

TEST(the_books_are_those_a_child_would_keep)
{
    const char *stress = getenv("STRESS");
    unsigned n = stress && strcmp(stress, "full") == 0 ? 200 : 4;
    size_t n_all = 0;

    for (unsigned seed = 1; seed <= n; seed++) {
        state = seed;
        memset(has, 0, sizeof(has));
        memset(day, 0, sizeof(day));
        earned = promised = brought = 0;
        n_lives = 0;
        live();
        n_all += n_lives;
    }
    CHECK(n_all > (size_t)20 * n);
}

static void live_once(void)
{
    state = 1;
    live();
}

TEST(control_no_floor_is_noticed)
{
    check_control("ledger.no_floor", live_once);
}

TEST(control_captured_twice_is_noticed)
{
    check_control("ledger.capture_twice", live_once);
}

TEST(control_released_after_capture_is_noticed)
{
    check_control("ledger.release_after_capture", live_once);
}

/* Something happens between any two pages, something else each time: the audit
 * never reports a problem. */
static int64_t check_while_things_move(void)
{
    struct ledger_check *c = ledger_audit_new((const uint64_t[2]){1, 2});
    const struct ledger_report *r;
    struct query q;
    int64_t n;

    CHECK(c);
    while (ledger_check_next(c, &q)) {
        CHECK_INT(store_look(stage.store, &q), OK);
        ledger_check_take(c, &q);
        query_fini(&q);
        for (unsigned i = dice(3); i > 0; i--)
            (void)sent((struct letter){
                .from = users[dice(USERS)],
                .to = dice(2) ? "slow" : "echo",
                .task_id = n_lives && dice(3) == 0
                               ? lives[dice((unsigned)n_lives)].id.text
                               : NULL});
        pass_ms(dice(700));
    }
    r = ledger_check_report(c);
    CHECK_INT(r->err, OK);
    if (r->n_problems)
        fprintf(stderr, "%s\n", r->problems[0].text);
    n = r->n_problems;
    ledger_check_free(c);
    return n;
}

TEST(the_check_sees_no_problem_where_things_only_move)
{
    state = 5;
    money_open();
    for (int i = 0; i < USERS; i++) {
        char id[8];

        snprintf(id, sizeof(id), "p%d", i);
        give(id, users[i], 1000000);
    }
    for (int i = 0; i < 20; i++) {
        struct told t = sent((struct letter){.from = users[dice(USERS)]});

        lives[n_lives++].id = t.task_id;
    }
    for (int i = 0; i < 40; i++)
        CHECK_INT(check_while_things_move(), 0);
    stage_close();
}

/* Books that are wrong in one way each: the audit finds each. */

static void spoil_number(const struct table *t, uint8_t key, const char *which,
                         uint8_t column, int64_t delta)
{
    struct tx_op *op;
    struct tx tx;

    tx_init(&tx);
    op = tx_add(&tx, t, column, delta, INT64_MIN);
    tx_if(op, key, IS, value_text(str_of(which)));
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
}

static void check_sees(const char *words)
{
    struct ledger_report r = money_report();

    for (int i = 0; i < LEDGER_PROBLEMS && i < r.n_problems; i++)
        if (strstr(r.problems[i].text, words))
            return;
    T_FAIL("no problem says \"%s\"; %lld others: %s", words,
           (long long)r.n_problems, r.problems[0].text);
}

TEST(every_wrong_book_is_seen)
{
    struct told t, open;
    char of[LEDGER_ACCOUNT_MAX], open_of[LEDGER_ACCOUNT_MAX];

    money_open();
    give("p1", "anna", 10000);
    t = sent((struct letter){.to = "echo"});
    pass_ms(10);
    open = sent((struct letter){.to = "slow"});
    snprintf(of, sizeof(of), "%s:1", t.task_id.text);
    snprintf(open_of, sizeof(open_of), "%s:1", open.task_id.text);
    money_check();
    spoil_number(&account_table, ACCOUNT_NAME, "user:anna", ACCOUNT_BALANCE, 1);
    check_sees("user:anna has 9201, and its entries come to 9200");
    spoil_number(&account_table, ACCOUNT_NAME, "user:anna", ACCOUNT_BALANCE,
                 -1 - 10000);
    check_sees("user:anna is below zero (-800)");
    spoil_number(&account_table, ACCOUNT_NAME, "user:anna", ACCOUNT_BALANCE,
                 10000);
    money_check();
    spoil_number(&reservation_table, RESERVATION_OF, of, RESERVATION_STATE, 1);
    check_sees("is in state 3, by the entries 2");
    spoil_number(&reservation_table, RESERVATION_OF, of, RESERVATION_STATE, -1);
    spoil_number(&reservation_table, RESERVATION_OF, open_of, RESERVATION_PRICE,
                 1);
    check_sees("is of 301, by the entries 300");
    spoil_number(&reservation_table, RESERVATION_OF, open_of, RESERVATION_PRICE,
                 -1);
    spoil_number(&task_table, TASK_ID, t.task_id.text, TASK_STATUS, 1);
    check_sees("must be released, and it is captured");
    spoil_number(&task_table, TASK_ID, t.task_id.text, TASK_STATUS, -1);
    spoil_number(&task_table, TASK_ID, t.task_id.text, TASK_PRICE_MICROS, 1);
    check_sees("costs 501, by the entries 500");
    spoil_number(&task_table, TASK_ID, t.task_id.text, TASK_PRICE_MICROS, -1);
    money_check();
    stage_close();
}

static void add_entry(const char *posting, enum entry_kind kind,
                      const char *account, int64_t amount,
                      const struct id *task)
{
    struct tx_op *op;
    struct tx tx;

    tx_init(&tx);
    op = tx_insert(&tx, &entry_table);
    tx_set(op, ENTRY_POSTING, value_text(str_of(posting)));
    tx_set(op, ENTRY_KIND, value_int(kind));
    tx_set(op, ENTRY_ACCOUNT, value_text(str_of(account)));
    tx_set(op, ENTRY_AMOUNT, value_int(amount));
    if (task)
        tx_set(op, ENTRY_TASK_ID, value_text(str_of(task->text)));
    tx_set(op, ENTRY_TURN, value_int(1));
    money_commit(&tx);
    CHECK_INT(tx.result, TX_COMMITTED);
    tx_fini(&tx);
}

TEST(entries_that_nobody_posted_are_seen)
{
    struct told t;

    money_open();
    give("p1", "anna", 10000);
    t = sent((struct letter){.to = "echo"});
    pass_ms(10);
    add_entry("odd", ENTRY_TOPUP, "user:anna", 5, NULL);
    check_sees("odd: its entries come to 5, not to zero");
    check_sees("all entries come to 5, not to zero");
    add_entry("odd", ENTRY_TOPUP, "outside", -5, NULL);
    add_entry("again", ENTRY_CAPTURE, "reserved", -500, &t.task_id);
    add_entry("again", ENTRY_CAPTURE, "platform", 500, &t.task_id);
    check_sees("again: a turn that was captured already");
    check_sees("reserved is below zero after entry");
    stage_close();
}

/* Every step fails, one after the other. */

static void live_through(void)
{
    struct told t = {0}, u = {0};

    if (post((struct letter){.key = "a"}, &t))
        pass_ms(0);
    if (post((struct letter){.to = "slow", .key = "b"}, &u))
        pass_ms(0);
    if (u.is_back && !u.err)
        (void)!walk_cancel(stage.walk, str_of(u.task_id.text), STR("anna"),
                           NULL, NULL);
    for (int i = 0; i < 4; i++)
        pass_ms(500);
}

TEST(the_books_survive_every_fault)
{
    long nth = 0;
    bool fired;

    money_ground();
    do {
        char command[160];

        stage_start();
        give("p1", "anna", ECHO_PRICE + SLOW_PRICE);
        fault_arm(nth += T_SWEEP_STEP);
        live_through();
        fired = fault_fired();
        fault_arm(0);
        stage_restart();
        money_check();
        for (int i = 0; i < 4; i++)
            pass_ms(1000);
        CHECK_INT(balance("reserved"), 0);
        money_check();
        stage_stop();
        snprintf(command, sizeof(command), "rm -f %s/signalbox.db*",
                 stage.root);
        CHECK(system(command) == 0);
    } while (fired);
    CHECK(nth > 100);
    loop_fini(&stage.loop);
    store_folder_close(&stage.folder);
}

TEST(the_check_survives_every_fault)
{
    long nth = 0;
    bool fired;

    money_open();
    give("p1", "anna", 10000);
    for (int i = 0; i < 3; i++) {
        struct told t = sent((struct letter){.to = "echo"});

        pass_ms(10);
        (void)sent((struct letter){.task_id = t.task_id.text});
        pass_ms(10);
    }
    do {
        struct ledger_report r;
        enum err e;

        fault_arm(++nth);
        e = ledger_audit_store(stage.store, &r);
        fired = fault_fired();
        fault_arm(0);
        CHECK(fired ? e != OK : e == OK && !r.n_problems);
        CHECK_INT(e, r.err);
    } while (fired);
    CHECK(nth > 5);
    stage_close();
}
