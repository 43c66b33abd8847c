/* Results of delegations: in order after the answers, once, also to a slow
 * reader; and whatever fails, nothing is left behind. */
#include "test/lib/control.h"
#include "test/lib/hub_stage.h"

static const struct hub_settings usual = {
    .heartbeat_ms = 90000, .max_open = 64, .max_listening = 16};

enum { MANY = 16, LARGE = 900 * 1000 };

struct trio {
    struct hub_stage s;
    struct hub_client boss, worker;
};

static bool enroll(struct hub_client *c, const char *name)
{
    char text[256];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.register\","
             "\"params\":{\"card\":{\"name\":\"%s\",\"description\":\"x\"}}}",
             name);
    hub_client_send(c, text);
    return hub_client_next(c) && strstr(c->text, "\"result\"");
}

static void trio_init(struct trio *t)
{
    hub_stage_init(&t->s, &usual);
    CHECK(hub_client_open(&t->boss, &t->s));
    CHECK(hub_client_open(&t->worker, &t->s));
    CHECK(enroll(&t->boss, "boss") && enroll(&t->worker, "worker"));
}

static void trio_fini(struct trio *t)
{
    hub_client_close(&t->boss);
    hub_client_close(&t->worker);
    hub_stage_fini(&t->s);
}

#define DELEGATE(id, mode)                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"agent.delegate\","  \
    "\"params\":{\"agentId\":\"worker\",\"task\":\"t\",\"mode\":\"" mode \
    "\"}}"
#define SEND_TASK(id)                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"agent.send_task\"," \
    "\"params\":{\"agent_id\":\"worker\",\"message\":\"m\","             \
    "\"skill_id\":\"s\"}}"

/* The worker's next task; false: the connection is closed, or another message
 * came. */
static bool take_task(struct hub_client *c, char task[ID_BYTES])
{
    const char *text = hub_client_next(c);

    if (!text || !strstr(text, "task.execute"))
        return false;
    snprintf(task, ID_BYTES, "%.31s", strstr(text, "\"task_id\":\"") + 11);
    return true;
}

static void give_result(struct hub_client *c, const char *task, size_t n)
{
    char *text = malloc(n + 256);
    int at;

    CHECK(text);
    at = snprintf(text, 256,
                  "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.result\","
                  "\"params\":{\"task_id\":\"%s\",\"text\":\"",
                  task);
    memset(text + at, 'x', n);
    memcpy(text + (size_t)at + n, "\"}}", 4);
    hub_client_send(c, text);
    free(text);
}

/* A slow reader. */

static void slow_reader(void)
{
    char tasks[MANY][ID_BYTES];
    int n_told[MANY] = {0}, n = 0;
    struct trio t;

    trio_init(&t);
    for (int i = 0; i < MANY; i++) {
        hub_client_send(&t.boss, DELEGATE("3", "async"));
        hub_client_hears(&t.boss, "accepted");
        CHECK(take_task(&t.worker, tasks[i]));
    }
    for (int i = 0; i < MANY; i++) { /* the boss does not read */
        give_result(&t.worker, tasks[i], LARGE);
        hub_client_hears(&t.worker, "recorded");
    }
    for (; n < MANY && hub_client_next(&t.boss); n++) {
        CHECK(strstr(t.boss.text, "delegation.result"));
        for (int i = 0; i < MANY; i++)
            n_told[i] += strstr(t.boss.text, tasks[i]) != NULL;
    }
    for (int i = 0; i < MANY; i++)
        CHECK_INT(n_told[i], 1);
    CHECK(hub_client_is_quiet(&t.boss));
    trio_fini(&t);
}

TEST(who_reads_slowly_is_told_everything_once)
{
    slow_reader();
    check_control("hub.not_told_later", slow_reader);
}

/* In a batch. */

static void answers_first(void)
{
    char first[ID_BYTES], second[ID_BYTES];
    struct trio t;

    trio_init(&t);
    hub_client_send(&t.boss,
                    "[" SEND_TASK("\"a\"") "," DELEGATE("4", "sync") "]");
    CHECK(take_task(&t.worker, first) && take_task(&t.worker, second));
    give_result(&t.worker, first, 1);
    hub_client_hears(&t.worker, "recorded");
    CHECK(hub_client_is_quiet(&t.boss));
    give_result(&t.worker, second, 2);
    hub_client_hears(&t.boss, "[{");
    CHECK(strstr(t.boss.text, "accepted"));
    CHECK(strstr(t.boss.text, "\"response\":\"xx\""));
    hub_client_hears(&t.boss, "\"original_id\":\"a\"");
    CHECK(hub_client_is_quiet(&t.boss));
    trio_fini(&t);
}

TEST(a_result_does_not_overtake_the_answers_of_its_batch)
{
    answers_first();
    check_control("hub.told_before_answered", answers_first);
}

TEST(a_repeat_of_what_is_over_is_answered_and_then_told_again)
{
    char task[ID_BYTES];
    struct trio t;

    trio_init(&t);
    hub_client_send(&t.boss, SEND_TASK("42"));
    hub_client_hears(&t.boss, "accepted");
    CHECK(take_task(&t.worker, task));
    give_result(&t.worker, task, 3);
    hub_client_hears(&t.boss, "\"text\":\"xxx\"");
    for (int i = 0; i < 2; i++) {
        hub_client_send(&t.boss, SEND_TASK("42"));
        hub_client_hears(&t.boss, "accepted");
        CHECK(strstr(t.boss.text, task));
        hub_client_hears(&t.boss, "\"text\":\"xxx\"");
    }
    CHECK(hub_client_is_quiet(&t.boss));
    hub_client_send(&t.boss, "{\"jsonrpc\":\"2.0\",\"id\":42,\"method\":"
                             "\"agent.send_task\",\"params\":{\"agent_id\":"
                             "\"worker\",\"message\":\"other\","
                             "\"skill_id\":\"s\"}}");
    hub_client_hears(&t.boss, "accepted");
    CHECK(!strstr(t.boss.text, task));
    trio_fini(&t);
}

/* Taken over during the wait: the answer goes to the new connection, as a
 * result. */

static void taken_over(void)
{
    char task[ID_BYTES];
    struct hub_client other;
    struct trio t;

    trio_init(&t);
    hub_client_send(&t.boss, DELEGATE("4", "sync"));
    CHECK(take_task(&t.worker, task));
    CHECK(hub_client_open(&other, &t.s));
    CHECK(enroll(&other, "boss"));
    give_result(&t.worker, task, 3); /* the old one is not closed yet */
    hub_client_hears(&other, "\"text\":\"xxx\"");
    hub_client_close(&other);
    trio_fini(&t);
}

TEST(an_answer_that_nobody_is_given_is_told_to_who_took_over)
{
    taken_over();
    check_control("hub.shut_out_and_heard", taken_over);
}

/* At the limit. */

TEST(one_more_than_may_be_open_is_refused_and_one_less_is_not)
{
    char task[ID_BYTES];
    struct trio t;

    trio_init(&t);
    for (int i = 0; i < MANY; i++) {
        hub_client_send(&t.boss, DELEGATE("3", "async"));
        hub_client_hears(&t.boss, "accepted");
        CHECK(take_task(&t.worker, task));
    }
    hub_client_send(&t.boss, SEND_TASK("\"b\""));
    hub_client_hears(&t.boss, "too_many_delegations");
    give_result(&t.worker, task, 1);
    hub_client_hears(&t.worker, "recorded");
    hub_client_hears(&t.boss, "delegation.result");
    hub_client_send(&t.boss, SEND_TASK("\"b\""));
    hub_client_hears(&t.boss, "accepted");
    trio_fini(&t);
}

/* Whatever fails. */

static void do_what_comes(struct hub_client *c)
{
    char task[ID_BYTES];

    for (int i = 0; i < 50 && !c->is_over; i++) {
        hub_client_turn(c, i, false);
        while (hub_client_take(c)) {
            const char *id = strstr(c->text, "\"task_id\":\"");

            if (!strstr(c->text, "task.execute") || !id)
                continue;
            snprintf(task, sizeof(task), "%.31s", id + 11);
            give_result(c, task, 1);
        }
    }
}

/* Two delegations, a third whose requester stopped waiting, and the boss once
 * more. */
static void a_life(struct hub_stage *s)
{
    struct hub_client boss, worker;
    bool is_in = hub_client_open(&boss, s);
    char task[ID_BYTES];

    is_in = hub_client_open(&worker, s) && is_in;
    is_in = is_in && enroll(&boss, "boss") && enroll(&worker, "worker");
    if (is_in && hub_client_ask(&boss, SEND_TASK("\"a\"")) &&
        strstr(boss.text, "accepted") && take_task(&worker, task)) {
        give_result(&worker, task, 1);
        (void)hub_client_next(&worker);
        (void)hub_client_ask(&boss,
                             "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":"
                             "\"delegation.ack\",\"params\":{\"original_id\":"
                             "\"a\"}}");
    }
    if (is_in)
        hub_client_send(
            &boss, "[" DELEGATE("6", "sync") "," DELEGATE("7", "async") "]");
    for (int i = 0; i < 50; i++)
        loop_turn(&s->house.loop);
    hub_client_close(&boss);
    do_what_comes(&worker);
    if (s->house.api.is_ready) {
        if (hub_client_open(&boss, s) && enroll(&boss, "boss"))
            do_what_comes(&boss);
        hub_client_close(&boss);
    }
    hub_client_close(&worker);
    for (int i = 0; i < 50; i++)
        loop_turn(&s->house.loop);
}

/* The usual run takes every thirteenth fault, and each of this module. */
TEST(giving_work_on_the_hub_survives_every_fault)
{
    static const char *const own[] = {"hub.ask"};
    const char *stress = getenv("STRESS");
    long stride = stress && strcmp(stress, "full") == 0 ? 1 : 13, nth = 1;

    while (hub_lives_with_fault(&usual, a_life, NULL, nth))
        nth += stride;
    CHECK(nth > 1);
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        for (nth = 1; hub_lives_with_fault(&usual, a_life, own[i], nth); nth++)
            continue;
}
