/* Agents on connections: results that are awaited, late, from another agent, or
 * repeated, and who is told. */
#include "test/lib/walk_agents.h"
#include "walk/late_result.h"

enum { RECEIPTS = 512 };

static struct {
    uint64_t line[2];
    int n_executed[2]; /* task.execute */
    char last[2][ID_BYTES];
    int n_recorded;
    uint64_t receipt[RECEIPTS];
    enum err as[RECEIPTS];
} hub;

static enum err on_send(void *ctx, struct str message)
{
    int i = *(int *)ctx;
    char text[512];
    const char *at;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(message));
    at = strstr(text, "\"task_id\":\"");
    if (!strstr(text, "task.execute"))
        return OK;
    CHECK(at);
    hub.n_executed[i]++;
    snprintf(hub.last[i], sizeof(hub.last[i]), "%.31s", at + 11);
    return OK;
}

static void on_taken_over(void *ctx)
{
    (void)ctx;
}

static void on_recorded(void *ctx, uint64_t receipt, enum err e)
{
    CHECK(ctx == &hub && hub.n_recorded < RECEIPTS);
    hub.receipt[hub.n_recorded] = receipt;
    hub.as[hub.n_recorded++] = e;
}

static void join_as(int i, const char *name)
{
    static int numbers[2] = {0, 1};
    static const struct line_ops ops = {.send = on_send,
                                        .taken_over = on_taken_over};
    struct agents all = registry_agents(stage.registry);
    const struct agent *a = agent_find(&all, str_of(name));

    CHECK(a && deliver_attach(walk_deliver(stage.walk), a, &ops, &numbers[i],
                              &hub.line[i]) == OK);
}

static void join(int i)
{
    join_as(i, i ? "two" : "one");
}

static void leave(int i)
{
    deliver_detach(walk_deliver(stage.walk), hub.line[i], STR(""));
}

static void open_hub(void)
{
    memset(&hub, 0, sizeof(hub));
    stage_ground();
    stage.agents[0] =
        (struct agent){.name = STR("one"), .url = STR("ws-agent://one")};
    stage.agents[1] =
        (struct agent){.name = STR("two"), .url = STR("ws-agent://two")};
    stage.n_agents = 2;
    stage_start();
    walk_set_hub(stage.walk,
                 &(struct walk_hub){.on_recorded = on_recorded, .ctx = &hub});
    join(0);
    join(1);
}

/* `more` follows the task's id. */
static enum err say_result(int i, const struct id *task, uint64_t receipt,
                           const char *more)
{
    char text[512];
    struct wire_batch batch;
    struct arena arena;
    struct why why;
    enum err e;

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.result\","
             "\"params\":{\"task_id\":\"%s\"%s}}",
             task->text, more);
    arena_init(&arena, 1 << 20);
    CHECK(wire_read(&arena, str_of(text), &batch, &why) == OK && batch.n == 1);
    e = deliver_heard(walk_deliver(stage.walk), hub.line[i], batch.list,
                      receipt, &why);
    arena_fini(&arena);
    return e;
}

#define DONE ",\"status\":\"completed\",\"text\":\"done\""

static enum err recorded(uint64_t receipt)
{
    enum err e = N_ERR;
    int n = 0;

    for (int i = 0; i < hub.n_recorded; i++)
        if (hub.receipt[i] == receipt) {
            e = hub.as[i];
            n++;
        }
    CHECK(n <= 1);
    return e;
}

static int64_t n_late(void)
{
    return walk_stats(stage.walk).tasks.late_total;
}

TEST(a_result_is_answered_once_it_is_on_the_disk)
{
    struct told t;
    char text[64];

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    CHECK(hub.n_executed[0] == 1 && strcmp(hub.last[0], t.task_id.text) == 0);
    CHECK(say_result(0, &t.task_id, 7, DONE) == OK);
    CHECK_INT(recorded(7), N_ERR);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    pass_ms(0);
    CHECK_INT(recorded(7), OK);
    CHECK_INT(stored(&t.task_id, text, NULL), TASK_COMPLETED);
    CHECK(strcmp(text, "done") == 0);
    stage_close();
}

TEST(what_was_done_while_the_agent_was_away_counts)
{
    struct told t;
    int64_t attempt;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    leave(0);
    pass_ms(5000);
    join(0);
    CHECK(say_result(0, &t.task_id, 7, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(7), OK);
    CHECK_INT(stored(&t.task_id, NULL, &attempt), TASK_COMPLETED);
    pass_ms(60000);
    CHECK(!deliver_has(walk_deliver(stage.walk), str_of(t.task_id.text)));
    CHECK_INT(told_in_feed("task.completed", NULL), 1);
    stage_close();
}

TEST(it_is_carried_again_when_the_agent_is_back)
{
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    leave(0);
    pass_ms(5000);
    join(0);
    pass_ms(0);
    CHECK(hub.n_executed[0] == 2 && strcmp(hub.last[0], t.task_id.text) == 0);
    CHECK(say_result(0, &t.task_id, 0, DONE ",\"turn\":1,\"attempt\":1") == OK);
    pass_ms(0);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

TEST(a_second_result_is_counted_told_once_and_ignored)
{
    struct told t;
    char text[64];

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 1, DONE) == OK);
    /* Before the first is durable, and long after. */
    CHECK(say_result(0, &t.task_id, 2, ",\"status\":\"failed\"") == OK);
    pass_ms(0);
    CHECK_INT(recorded(1), OK);
    CHECK_INT(recorded(2), ERR_TASK_IS_OVER);
    for (uint64_t i = 3; i < 6; i++) {
        CHECK(say_result(0, &t.task_id, i, DONE) == OK);
        pass_ms(1000);
        CHECK_INT(recorded(i), ERR_TASK_IS_OVER);
    }
    CHECK_INT(n_late(), 4);
    CHECK_INT(told_in_feed("task.late_result", &t.task_id), 1);
    CHECK_INT(stored(&t.task_id, text, NULL), TASK_COMPLETED);
    CHECK(strcmp(text, "done") == 0);
    stage_close();
}

TEST(nobody_answers_for_anothers_task)
{
    struct id unknown_task = {"task_01j00000000000000000000000"};
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    /* On its way to another agent, and with none. */
    CHECK(say_result(1, &t.task_id, 1, DONE) == OK);
    leave(0);
    CHECK(say_result(1, &t.task_id, 5, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(1), ERR_NOT_FOUND);
    CHECK_INT(recorded(5), ERR_NOT_FOUND);
    join(0);
    pass_ms(5000);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    pass_ms(0);
    CHECK(say_result(1, &t.task_id, 3, DONE) == OK);
    CHECK(say_result(1, &unknown_task, 4, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(3), ERR_NOT_FOUND);
    CHECK_INT(recorded(4), ERR_NOT_FOUND);
    CHECK(n_late() == 0 && told_in_feed("task.late_result", NULL) == 0);
    stage_close();
}

TEST(a_result_without_its_lost_chunks_is_not_taken)
{
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    leave(0);
    pass_ms(5000);
    join(0);
    CHECK(say_result(0, &t.task_id, 1, ",\"status\":\"completed\"") == OK);
    CHECK_INT(recorded(1), ERR_GONE);
    pass_ms(0);
    CHECK_INT(hub.n_executed[0], 2);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_QUEUED);
    stage_close();
}

TEST(a_result_of_an_earlier_turn_is_late)
{
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 1, DONE) == OK);
    pass_ms(0);
    t = sent((struct letter){.task_id = t.task_id.text});
    CHECK_INT(t.err, OK);
    pass_ms(0);
    CHECK_INT(hub.n_executed[0], 2);
    leave(0);
    pass_ms(5000);
    join(0);
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    CHECK(say_result(0, &t.task_id, 3, DONE ",\"turn\":1") == OK);
    CHECK_INT(recorded(2), ERR_TASK_IS_OVER);
    CHECK_INT(recorded(3), ERR_TASK_IS_OVER);
    CHECK(say_result(0, &t.task_id, 4, DONE ",\"turn\":2") == OK);
    pass_ms(0);
    CHECK_INT(recorded(4), OK);
    stage_close();
}

TEST(a_turn_that_nobody_asked_for_is_not_over)
{
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    leave(0);
    join(0);
    CHECK(say_result(0, &t.task_id, 1, DONE ",\"turn\":2") == OK);
    CHECK_INT(recorded(1), ERR_BAD_REQUEST);
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(2), OK);
    CHECK(say_result(0, &t.task_id, 3, DONE ",\"turn\":2") == OK);
    pass_ms(0);
    CHECK_INT(recorded(3), ERR_BAD_REQUEST);
    CHECK(n_late() == 0 && told_in_feed("task.late_result", NULL) == 0);
    stage_close();
}

/* The same agents may answer whether the task is in memory or not. */
TEST(who_shares_a_line_hears_that_it_is_over)
{
    struct told t;

    open_hub();
    stage.agents[2] =
        (struct agent){.name = STR("three"), .url = STR("ws-agent://one")};
    stage.n_agents = 3;
    CHECK(stage_configure(NULL) == OK);
    t = sent((struct letter){.to = "three"});
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 1, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(1), OK);
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    CHECK(say_result(1, &t.task_id, 3, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(2), ERR_TASK_IS_OVER);
    CHECK_INT(recorded(3), ERR_NOT_FOUND);
    stage_close();
}

TEST(whoever_has_the_name_now_hears_nothing_of_what_was_before)
{
    static const char card[] =
        "{\"description\":\"x\",\"url\":\"ws-agent://x\","
        "\"visibility\":\"public\"}";
    struct told t;

    open_hub();
    leave(0);
    leave(1);
    stage_put("anna", "x", card);
    join_as(0, "x");
    t = sent((struct letter){.to = "x"});
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 1, DONE) == OK);
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(2), ERR_TASK_IS_OVER);
    leave(0);
    stage_take_away("anna", "x");
    pass_ms(1000);
    stage_put("bob", "x", card);
    join_as(1, "x");
    CHECK(say_result(1, &t.task_id, 3, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(3), ERR_NOT_FOUND);
    CHECK_INT(n_late(), 1);
    stage_close();
}

TEST(without_memory_the_agent_is_told_to_send_it_again)
{
    struct told t;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    fault_arm_at("task.change", 1);
    CHECK(say_result(0, &t.task_id, 1, DONE) == OK);
    CHECK(fault_fired());
    fault_arm(0);
    CHECK_INT(recorded(1), ERR_NOMEM);
    fault_arm_at("task.change", 1); /* no agent has it now */
    CHECK(say_result(0, &t.task_id, 2, DONE) == OK);
    fault_arm(0);
    CHECK_INT(recorded(2), ERR_NOMEM);
    CHECK(say_result(0, &t.task_id, 3, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(3), OK);
    CHECK_INT(stored(&t.task_id, NULL, NULL), TASK_COMPLETED);
    stage_close();
}

/* Texts are shown to people by programs that cannot check them first. */
TEST(what_an_agent_says_of_its_failure_cannot_steer_a_terminal)
{
    struct told t;
    struct query q;

    open_hub();
    t = sent((struct letter){.to = "one"});
    pass_ms(0);
    CHECK(say_result(0, &t.task_id, 1,
                     ",\"status\":\"failed\",\"error\":{\"code\":"
                     "\"a\\u202eb\",\"message\":"
                     "\"no\\n\\t\\u001b[2J\\u009b\\u202e.\"}") == OK);
    pass_ms(0);
    CHECK_INT(recorded(1), OK);
    query_init(&q, &task_table, 2);
    query_if(&q, TASK_ID, IS, value_text(str_of(t.task_id.text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK(q.n_rows == 1);
    CHECK_STR(row_str(q.rows, TASK_ERROR_CODE), "a?b");
    CHECK_STR(row_str(q.rows, TASK_ERROR), "no\n\t?[2J??.");
    query_fini(&q);
    stage_close();
}

/* Limits. */

static void expect_load(size_t n, size_t n_held)
{
    CHECK_INT(tasks_of_agent(walk_tasks(stage.walk), STR("One")), n);
    CHECK_INT(tasks_held_of_agent(walk_tasks(stage.walk), STR("one")), n_held);
    CHECK(tasks_check(walk_tasks(stage.walk)));
}

/* Beyond the limit a task waits, and is released as soon as there is space. */
TEST(an_agent_has_so_many_unfinished_tasks)
{
    struct told t[3];

    open_hub();
    stage.agents[0].limits.queue = 2;
    CHECK(stage_configure(NULL) == OK);
    for (int i = 0; i < 2; i++) {
        t[i] = sent((struct letter){.to = "one", .key = i ? NULL : "k"});
        CHECK_INT(t[i].err, OK);
    }
    t[2] = sent((struct letter){.to = "ONE"});
    CHECK_INT(t[2].err, OK);
    expect_load(2, 1);
    CHECK_INT(sent((struct letter){.to = "two"}).err, OK);
    t[2] = sent((struct letter){.to = "one", .key = "k"}); /* a repeat */
    CHECK(t[2].err == OK && t[2].is_repeat);
    pass_ms(0);
    CHECK(say_result(0, &t[0].task_id, 1, DONE) == OK);
    pass_ms(0);
    pass_ms(0);
    expect_load(2, 0);
    CHECK_INT(sent((struct letter){.to = "one"}).err, OK);
    stage_restart(); /* accepted tasks count and are never rejected */
    expect_load(2, 1);
    stage_close();
}

/* A finished task of agent i. */
static struct id done_by(int i)
{
    struct told t = sent((struct letter){.to = i ? "two" : "one"});

    pass_ms(0);
    CHECK(say_result(i, &t.task_id, 0, DONE) == OK);
    pass_ms(0);
    return t.task_id;
}

TEST(so_many_strays_are_looked_up_at_once)
{
    enum { HALF = LATE_RESULTS_ASKED_OF_ONE };
    struct id task[2];
    uint64_t receipt = 0;

    open_hub();
    for (int i = 0; i < 2; i++)
        task[i] = done_by(i);
    /* The second still can when the first has asked too often. */
    for (int i = 0; i < 2; i++)
        for (int n = 0; n <= HALF; n++)
            CHECK(say_result(i, &task[i], ++receipt, DONE) == OK);
    CHECK_INT(hub.n_recorded, 2);
    CHECK_INT(recorded(HALF + 1), ERR_BUSY);
    CHECK_INT(recorded(receipt), ERR_BUSY);
    pass_ms(0);
    CHECK_INT(recorded(HALF), ERR_TASK_IS_OVER);
    CHECK_INT(recorded(receipt - 1), ERR_TASK_IS_OVER);
    CHECK_INT(told_in_feed("task.late_result", NULL), 2);
    CHECK(say_result(0, &task[0], ++receipt, DONE) == OK);
    pass_ms(0);
    CHECK_INT(recorded(receipt), ERR_TASK_IS_OVER);
    stage_close();
}

TEST(so_many_late_results_are_told_in_a_minute)
{
    enum { HALF = LATE_RESULTS_TOLD_OF_ONE };
    uint64_t receipt = 0;
    struct id last[2];

    open_hub();
    for (int i = 0; i < 2; i++) {
        for (int n = 0; n <= HALF; n++) {
            last[i] = done_by(i);
            CHECK(say_result(i, &last[i], ++receipt, DONE) == OK);
            pass_ms(0);
            CHECK_INT(recorded(receipt), ERR_TASK_IS_OVER);
        }
        CHECK_INT(told_in_feed("task.late_result", NULL), (i + 1) * HALF);
        CHECK_INT(told_in_feed("task.late_result", &last[i]), 0);
    }
    CHECK_INT(n_late(), 2 * (HALF + 1));
    pass_ms(60000);
    for (int i = 0; i < 2; i++) {
        CHECK(say_result(i, &last[i], ++receipt, DONE) == OK);
        pass_ms(0);
        CHECK_INT(told_in_feed("task.late_result", &last[i]), 1);
    }
    stage_close();
}
