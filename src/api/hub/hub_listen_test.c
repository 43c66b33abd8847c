/* Listening to a task: each event once, all of them, and no more. */
#include "test/lib/hub_stage.h"

static const struct hub_settings usual = {
    .heartbeat_ms = 90000, .max_open = 16, .max_listening = 2};

#define REGISTER                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.register\"," \
    "\"params\":{\"card\":{\"name\":\"worker\",\"description\":\"x\"}}}"

struct both {
    struct hub_stage s;
    struct hub_client a, u;
};

static void both_init(struct both *b)
{
    hub_stage_init(&b->s, &usual);
    CHECK(hub_client_open(&b->a, &b->s) && hub_client_open(&b->u, &b->s));
    hub_client_send(&b->a, REGISTER);
    hub_client_hears(&b->a, "created");
}

static void both_fini(struct both *b)
{
    hub_client_close(&b->a);
    hub_client_close(&b->u);
    hub_stage_fini(&b->s);
}

static void send_task(struct hub_client *u, const char *listen)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"message.send\","
             "\"params\":{\"text\":\"hi\",\"executor\":{\"name\":\"worker\"},"
             "\"listen\":%s}}",
             listen);
    hub_client_send(u, text);
}

/* The task that the agent is given. */
static void take_task(struct hub_client *a, char task[ID_BYTES])
{
    hub_client_hears(a, "task.execute");
    snprintf(task, ID_BYTES, "%.*s", 31,
             strstr(a->text, "\"task_id\":\"") + 11);
}

static void say(struct hub_client *c, const char *id, const char *method,
                const char *task, const char *more)
{
    size_t size = strlen(more) + 256;
    char *text = malloc(size);

    CHECK(text);
    snprintf(text, size,
             "{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":{"
             "\"task_id\":\"%s\"%s}}",
             id, method, task, more);
    hub_client_send(c, text);
    free(text);
}

#define ID "\"id\":9,"

TEST(to_listen_twice_is_to_hear_it_once)
{
    char task[ID_BYTES];
    struct both b;

    both_init(&b);
    send_task(&b.u, "\"result\"");
    hub_client_hears(&b.u, "queued");
    take_task(&b.a, task);
    for (int i = 0; i < 5; i++) { /* more than hub.maxListening */
        say(&b.u, ID, "task.listen", task, ",\"listen\":\"result\"");
        hub_client_hears(&b.u, "\"turn\":1");
    }
    say(&b.a, ID, "task.result", task, ",\"text\":\"done\"");
    hub_client_hears(&b.u, "task.result");
    CHECK(hub_client_is_quiet(&b.u));
    both_fini(&b);
}

TEST(to_listen_no_more_is_to_hear_no_more)
{
    char task[ID_BYTES];
    struct both b;

    both_init(&b);
    send_task(&b.u, "\"result\"");
    hub_client_hears(&b.u, "queued");
    take_task(&b.a, task);
    say(&b.u, ID, "task.listen", task, ",\"listen\":false");
    hub_client_hears(&b.u, "\"turn\":1");
    say(&b.a, ID, "task.result", task, ",\"text\":\"done\"");
    hub_client_hears(&b.a, "recorded");
    say(&b.u, ID, "task.listen", task, ",\"listen\":false");
    hub_client_hears(&b.u, "\"status\":\"completed\"");
    CHECK(hub_client_is_quiet(&b.u));
    both_fini(&b);
}

TEST(who_cannot_be_told_is_sent_away_behind_the_answer)
{
    char task[ID_BYTES];
    struct both b;

    both_init(&b);
    send_task(&b.u, "false");
    hub_client_hears(&b.u, "queued");
    take_task(&b.a, task);
    fault_arm_at("hub.hearing", 1);
    say(&b.u, ID, "task.listen", task, "");
    hub_client_hears(&b.u, "\"turn\":1");
    CHECK(!hub_client_next(&b.u));
    CHECK(fault_fired());
    CHECK_INT(b.u.code, 1013);
    both_fini(&b);
}

TEST(nor_is_a_batch_left_without_its_answer)
{
    struct both b;

    both_init(&b);
    fault_arm_at("hub.hearing", 1);
    hub_client_send(&b.u, "[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"message."
                          "send\",\"params\":{\"text\":\"hi\",\"executor\":{"
                          "\"name\":\"worker\"}}}]");
    hub_client_hears(&b.u, "[{");
    CHECK(!hub_client_next(&b.u));
    CHECK_INT(b.u.code, 1013);
    both_fini(&b);
}

/* Chunks of a task that u listens to but does not read, until it is stuck. */
static void flood(struct both *b, const char *task)
{
    char *more = malloc(60064);

    CHECK(more);
    snprintf(more, 64, ",\"text\":\"");
    memset(more + 9, 'x', 60000);
    snprintf(more + 60009, 8, "\"");
    for (int i = 0; i < 200; i++) {
        say(&b->a, "", "task.chunk", task, more);
        for (int k = 0; k < 4; k++)
            loop_turn(&b->s.house.loop);
    }
    free(more);
}

TEST(a_result_that_waited_for_room_has_no_gap_before_it)
{
    char loud[ID_BYTES], calm[ID_BYTES];
    struct both b;

    both_init(&b);
    send_task(&b.u, "true");
    hub_client_hears(&b.u, "\"result\":");
    take_task(&b.a, calm);
    send_task(&b.u, "true");
    take_task(&b.a, loud);
    while (!strstr(hub_client_next(&b.u), loud) ||
           !strstr(b.u.text, "dispatched"))
        continue; /* everything of the quiet task */
    flood(&b, loud);
    say(&b.a, ID, "task.result", calm, ",\"text\":\"done\"");
    hub_client_hears(&b.a, "recorded");
    say(&b.a, ID, "task.result", loud, ",\"text\":\"done\"");
    hub_client_hears(&b.a, "recorded");
    for (int n = 0; n < 2;) {
        CHECK(hub_client_next(&b.u));
        if (strstr(b.u.text, calm))
            CHECK(!strstr(b.u.text, "task.gap"));
        n += strstr(b.u.text, "\"method\":\"task.result\"") != NULL;
    }
    both_fini(&b);
}
