/* The hub in a whole server, with clients on real sockets: limits and time,
 * which the flow tests cannot control. */
#include "api/calls.h"
#include "test/lib/hub_stage.h"
#include "wire/wire.h"

static const struct hub_settings usual = {
    .heartbeat_ms = 90000, .max_open = 4, .max_listening = 2};

#define REGISTER(id, name)                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"agent.register\"," \
    "\"params\":{\"card\":{\"name\":\"" name "\",\"description\":\"x\"}}}"
#define SEND(id, more)                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"message.send\"," \
    "\"params\":{\"text\":\"hi\",\"executor\":{\"name\":\"worker\"}" more "}}"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"

static void says(struct hub_client *c, const char *words)
{
    const char *text = hub_client_next(c);

    if (!text || !strstr(text, words))
        T_FAIL("\"%s\" does not say \"%s\"", text ? text : "(over)", words);
}

/* The first "task_id" in the last message. */
static void copy_task(const struct hub_client *c, char out[ID_BYTES])
{
    const char *p = strstr(c->text, "\"task_id\":\"");

    CHECK(p);
    snprintf(out, ID_BYTES, "%.*s", 31, p + 11);
}

static void send_of(struct hub_client *c, const char *method, const char *task,
                    const char *more)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"%s\",\"params\":{"
             "\"task_id\":\"%s\"%s}}",
             method, task, more);
    hub_client_send(c, text);
}

TEST(the_table_says_who_may_do_what)
{
    const struct method_row *m;
    size_t n = 0;

    for (; (m = method_row(n)); n++) {
        CHECK(m->name.n > 0 && m->name.n <= WIRE_METHOD_MAX);
        CHECK((m->flags & FOR_AGENTS) || m->scope ||
              str_eq(m->name, STR("ping")));
    }
    CHECK(n > 10);
}

TEST(an_agent_is_registered_given_work_and_believed)
{
    struct hub_stage s;
    struct hub_client a, u;
    char task[ID_BYTES];

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s) && hub_client_open(&u, &s));
    hub_client_send(&a, REGISTER("\"x\"", "worker"));
    says(&a, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"agent\":\"worker"
             "\",\"url\":\"ws-agent://worker\",\"heartbeat_s\":90,");
    CHECK_INT(hub_stats(s.hub).agents, 1);
    hub_client_send(&u, SEND("1", ",\"listen\":\"result\""));
    says(&u, "\"status\":\"queued\"");
    says(&a, "task.execute");
    copy_task(&a, task);
    send_of(&a, "task.chunk", task, ",\"text\":\"he\"");
    says(&a, "\"result\":{}");
    send_of(&a, "task.chunk", task, ",\"text\":\"llo\"");
    says(&a, "\"result\":{}");
    send_of(&a, "task.result", task, "");
    says(&a, "{\"recorded\":true}");
    says(&u, "\"method\":\"task.result\"");
    CHECK(strstr(u.text, "\"text\":\"hello\""));
    CHECK(hub_client_is_quiet(&u));
    hub_client_close(&a);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(a_line_is_there_only_once_its_card_is_kept)
{
    struct hub_stage s;
    struct hub_client a;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s));
    hub_client_send(&a, REGISTER("1", "worker"));
    fault_arm_at("store.sync", 1);
    if (hub_client_next(&a)) /* otherwise the server was closed first */
        CHECK(strstr(a.text, "outcome_unknown"));
    CHECK(fault_fired());
    CHECK_INT(hub_stats(s.hub).agents, 0);
    hub_client_close(&a);
    hub_stage_fini(&s);
}

TEST(answers_to_a_batch_come_as_one_and_notes_behind_them)
{
    struct hub_stage s;
    struct hub_client a, u;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s) && hub_client_open(&u, &s));
    hub_client_send(&a, REGISTER("1", "worker"));
    says(&a, "created");
    hub_client_send(&u,
                    "[" SEND("1", "") "," PING("2") ",7," PING("\"3\"") "]");
    says(&u, "[{\"jsonrpc\":\"2.0\",\"id\":2,");
    CHECK(strstr(u.text, "\"id\":1,") && strstr(u.text, "\"id\":\"3\"") &&
          strstr(u.text, "-32600"));
    says(&u, "\"status\":\"queued\"");
    says(&u, "\"status\":\"dispatched\"");
    hub_client_send(&u, "[{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}]");
    CHECK(hub_client_is_quiet(&u));
    hub_client_close(&a);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(requests_beyond_the_limit_are_refused_and_none_is_forgotten)
{
    struct hub_stage s;
    struct hub_client u;
    int n_refused = 0;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&u, &s));
    hub_client_send(&u, "[" SEND("1", "") "," SEND("2", "") "," SEND(
                            "3", "") "," SEND("4", "") "," SEND("5", "") "]");
    says(&u, "[");
    for (const char *p = u.text; (p = strstr(p, "hub.maxOpen")); p++)
        n_refused++;
    CHECK_INT(n_refused, 1);
    for (int i = 0; i < 10; i++) /* all are accepted, one after the other */
        hub_client_send(&u, PING("7"));
    for (int i = 0; i < 10; i++)
        says(&u, "at_ms");
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(it_hears_of_so_many_tasks)
{
    struct hub_stage s;
    struct hub_client a, u;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s) && hub_client_open(&u, &s));
    hub_client_send(&a, REGISTER("1", "worker"));
    says(&a, "created");
    for (int i = 0; i < 2; i++) {
        hub_client_send(&u, SEND("1", ",\"listen\":\"result\""));
        says(&u, "queued");
    }
    hub_client_send(&u, SEND("1", ""));
    says(&u, "hub.maxListening");
    hub_client_send(&u, SEND("1", ",\"listen\":false"));
    says(&u, "queued");
    hub_client_close(&a);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(who_speaks_too_often_is_slowed_down_and_loses_nothing)
{
    struct hub_settings slow = usual;
    struct hub_stage s;
    struct hub_client u;

    slow.messages = (struct rate_limit){.per_minute = 60, .burst = 2};
    hub_stage_init(&s, &slow);
    CHECK(hub_client_open(&u, &s));
    for (int i = 0; i < 6; i++)
        hub_client_send(&u, PING("1"));
    for (int i = 0; i < 3; i++) /* two, and one too many */
        says(&u, "at_ms");
    CHECK(hub_client_is_quiet(&u));
    CHECK(hub_stats(s.hub).rate_limited_total > 0);
    for (int i = 0; i < 3; i++) /* time passes meanwhile */
        says(&u, "at_ms");
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(another_connection_takes_over)
{
    struct hub_stage s;
    struct hub_client a, b, u;
    char task[ID_BYTES];

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s) && hub_client_open(&b, &s) &&
          hub_client_open(&u, &s));
    hub_client_send(&a, REGISTER("1", "worker"));
    says(&a, "created");
    hub_client_send(&u, SEND("1", ",\"listen\":false"));
    says(&a, "\"attempt\":1");
    copy_task(&a, task);
    hub_client_send(&b, REGISTER("1", "worker"));
    says(&b, "unchanged");
    CHECK(!hub_client_next(&a));
    CHECK_INT(a.code, 4001);
    CHECK_INT(hub_stats(s.hub).agents, 1);
    says(&b, "\"attempt\":2");
    CHECK(strstr(b.text, task));
    send_of(&b, "task.result", task, ",\"text\":\"done\"");
    says(&b, "{\"recorded\":true}");
    hub_client_close(&a);
    hub_client_close(&b);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(a_slow_reader_is_bounded_and_gets_the_result_whole)
{
    struct hub_stage s;
    struct hub_client a, u;
    char task[ID_BYTES], *chunk = malloc(70000);
    bool has_gap = false, has_result = false;
    int64_t most = 0;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s) && hub_client_open(&u, &s));
    hub_client_send(&a, REGISTER("1", "worker"));
    says(&a, "created");
    hub_client_send(&u, SEND("1", ""));
    says(&u, "queued");
    says(&a, "task.execute");
    copy_task(&a, task);
    memset(chunk, 'x', 60000);
    chunk[60000] = '\0';
    for (int i = 0; i < 200; i++) { /* 12 MB, which u does not read */
        char *text = malloc(70000);

        snprintf(text, 70000,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\",\"params\":{"
                 "\"task_id\":\"%s\",\"text\":\"%s\"}}",
                 task, chunk);
        hub_client_send(&a, text);
        free(text);
        for (int k = 0; k < 4; k++)
            loop_turn(&s.house.loop);
        if (net_stats(s.house.net).buffered_bytes > most)
            most = net_stats(s.house.net).buffered_bytes;
    }
    send_of(&a, "task.result", task, ",\"text\":\"the end\"");
    says(&a, "{\"recorded\":true}");
    CHECK(most < 4 << 20);
    while (!has_result) {
        if (!hub_client_next(&u))
            T_FAIL("it is over: %d", u.code);
        has_gap |= strstr(u.text, "task.gap") != NULL;
        has_result = strstr(u.text, "task.result") != NULL;
    }
    CHECK(has_gap && strstr(u.text, "the end"));
    free(chunk);
    hub_client_close(&a);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(nothing_new_is_begun_once_it_stops)
{
    struct hub_stage s;
    struct hub_client u;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&u, &s));
    hub_stop(s.hub);
    hub_client_send(&u, REGISTER("1", "worker"));
    says(&u, "\"stopping\"");
    hub_client_send(&u, PING("1"));
    says(&u, "at_ms");
    hub_client_close(&u);
    CHECK(!hub_client_open(&u, &s));
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(a_child_asks_the_same_table)
{
    struct wire_batch b;
    struct hub_stage s;
    struct arena a;

    hub_stage_init(&s, &usual);
    arena_init(&a, 1 << 16);
    CHECK(wire_read(
              &a,
              STR("[" PING("1") "," SEND("2", "") "," REGISTER("3", "x") "]"),
              &b, NULL) == OK);
    for (size_t i = 0; i < b.n;
         i++) /* a connection that is gone gets nothing */
        hub_on_call(s.hub, 77, STR("echo"), &b.list[i]);
    loop_turn(&s.house.loop);
    CHECK_INT(hub_stats(s.hub).messages_total, 3);
    CHECK_INT(hub_stats(s.hub).errors_total, 2);
    arena_fini(&a);
    hub_stage_fini(&s);
}
