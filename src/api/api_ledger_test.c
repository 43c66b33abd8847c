/* Money through the whole server. test/flow/ledger_test.py has the answers;
 * here, whichever step fails, there is an answer or a closed connection, the
 * books are right, and a repeat with the same key has moved the money once. */
#include "api/api.h"
#include "test/lib/control.h"
#include "test/lib/server_stage.h"

enum { PAID_IN = 100, PRICE = 10 };

static char answer[HOUSE_ANSWER_MAX];

static const char *const card =
    "{\"name\":\"priced\",\"description\":\"costs money\",\"url\":\"echo:\","
    "\"pricing\":{\"amount_micros\":10}}";

/* The number behind "key": in the last answer. */
static int64_t number(const char *key)
{
    char name[64];
    const char *at;

    snprintf(name, sizeof(name), "\"%s\":", key);
    at = strstr(answer, name);
    if (!at)
        T_FAIL("no %s in %s", key, answer);
    return strtoll(at + strlen(name), NULL, 10);
}

static int64_t figure(struct house *h, const char *key)
{
    CHECK_INT(house_ask(h, "GET /api/ledger/balance", "", "", answer), 200);
    return number(key);
}

static void check_books(struct house *h, const char *fault)
{
    int status = house_ask(h, "GET /api/ledger/check", "", "", answer);

    if (status != 200 || !strstr(answer, "\"is_right\":true"))
        T_FAIL("after a fault at %s: %s", fault, answer);
}

/* An admin who has topped up, and whose agent has earned its price from
 * them. */
static void open_house(struct house *h, char task[ID_BYTES])
{
    const char *at;

    house_init(h);
    CHECK_INT(house_ask(h, "POST /api/ledger/topup", "",
                        "{\"user\":\"admin\",\"amount_micros\":100}", answer),
              201);
    CHECK_INT(house_ask(h, "POST /api/agents", "", card, answer), 201);
    CHECK_INT(house_ask(h, "POST /api/messages", "",
                        "{\"text\":\"x\",\"executor\":{\"name\":\"priced\"}}",
                        answer),
              200);
    at = strstr(answer, "\"task_id\":\"");
    CHECK(at);
    snprintf(task, ID_BYTES, "%.*s", (int)strcspn(at + 11, "\""), at + 11);
    CHECK_INT(figure(h, "balance_micros"), PAID_IN - PRICE);
    CHECK_INT(figure(h, "earned_micros"), PRICE);
}

/* Requests that move money, with the amount per account. */
static const struct {
    const char *path, *body; /* %s: the task */
    int64_t balance, earned;
} moves[] = {
    {"topup", "{\"user\":\"admin\",\"amount_micros\":7,\"note\":\"n\"%.0s}", 7,
     0},
    {"refund", "{\"user\":\"admin\",\"amount_micros\":7%.0s}", -7, 0},
    {"refund", "{\"task_id\":\"%s\"}", PRICE, -PRICE},
    {"payout", "{\"user\":\"admin\",\"amount_micros\":7%.0s}", 0, -7},
};

enum { N_MOVES = sizeof(moves) / sizeof(*moves) };

static const char *const key = "Idempotency-Key: k\r\n";

static void check_moved(struct house *h, size_t i)
{
    CHECK_INT(figure(h, "balance_micros"), PAID_IN - PRICE + moves[i].balance);
    CHECK_INT(figure(h, "earned_micros"), PRICE + moves[i].earned);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void write_move(size_t i, const char *task, char line[64],
                       char body[128])
{
    snprintf(line, 64, "POST /api/ledger/%s", moves[i].path);
    snprintf(body, 128, moves[i].body, task);
}
#pragma GCC diagnostic pop

/* One request with the nth step failing, repeated after the next start. False:
 * there is no such step. */
static bool move_with_fault(size_t i, long nth)
{
    char task[ID_BYTES], line[64], body[128];
    const char *fault;
    struct house h;
    bool has_fired;
    int status;

    open_house(&h, task);
    write_move(i, task, line, body);
    fault_arm(nth);
    status = house_ask(&h, line, key, body, answer);
    has_fired = fault_fired();
    fault = has_fired ? fault_name() : "nothing";
    fault_arm(0);
    if (!has_fired && status != 201)
        T_FAIL("%s: %s", line, answer);
    house_close(&h);
    house_open(&h);
    check_books(&h, fault);
    status = house_ask(&h, line, key, body, answer);
    if (status != 200 && status != 201)
        T_FAIL("%s again after a fault at %s: %s", line, fault, answer);
    check_moved(&h, i);
    check_books(&h, fault);
    house_fini(&h);
    return has_fired;
}

static void sweep_moves(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        long nth = 1;

        while (move_with_fault(i, nth))
            nth += T_SWEEP_STEP;
        CHECK(nth > 1);
    }
}

TEST(what_an_admin_moves_is_moved_once_whatever_fails)
{
    sweep_moves(0, 2);
}

TEST(a_tasks_refund_and_a_payout_are_made_once_whatever_fails)
{
    sweep_moves(2, N_MOVES);
}

static void ask_twice(void)
{
    char task[ID_BYTES], line[64], body[128];

    for (size_t i = 0; i < N_MOVES; i++) {
        struct house h;

        open_house(&h, task);
        write_move(i, task, line, body);
        CHECK_INT(house_ask(&h, line, key, body, answer), 201);
        CHECK(strstr(answer, "\"is_repeat\":false"));
        CHECK_INT(house_ask(&h, line, key, body, answer), 200);
        CHECK(strstr(answer, "\"is_repeat\":true"));
        check_moved(&h, i);
        house_fini(&h);
    }
}

TEST(a_key_is_good_for_one_posting)
{
    ask_twice();
    check_control("calls.key_forgotten", ask_twice);
}

/* Reading. */

static const char *const looks[] = {
    "GET /api/ledger/balance",
    "GET /api/ledger/statement?account=all",
    "GET /api/ledger/statement?format=csv",
    "GET /api/ledger/accounts",
    "GET /api/ledger/check",
};

static bool look_with_fault(size_t i, long nth)
{
    char task[ID_BYTES];
    struct house h;
    bool has_fired;
    int status;

    open_house(&h, task);
    fault_arm(nth);
    status = house_ask(&h, looks[i], "", "", answer);
    has_fired = fault_fired();
    fault_arm(0);
    if (!has_fired && status != 200)
        T_FAIL("%s: %s", looks[i], answer);
    check_books(&h, looks[i]);
    house_fini(&h);
    return has_fired;
}

TEST(looking_at_the_books_survives_every_fault)
{
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
        long nth = 1;

        while (look_with_fault(i, nth))
            nth += T_SWEEP_STEP;
        CHECK(nth > 1);
    }
}
