/* Whatever fails, no client waits for ever, nothing leaks, and the hub serves
 * the next one. */
#include "test/lib/hub_stage.h"

static const struct hub_settings usual = {
    .heartbeat_ms = 90000, .max_open = 16, .max_listening = 16};

static void a_life(struct hub_stage *s)
{
    struct hub_client a, u;
    bool is_in = hub_client_open(&a, s);
    bool has_work = false;
    char result[256];

    is_in = hub_client_open(&u, s) && is_in;
    if (is_in &&
        hub_client_ask(
            &a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent.register\","
                "\"params\":{\"card\":{\"name\":\"worker\","
                "\"description\":\"x\"}}}") &&
        strstr(a.text, "result"))
        has_work = hub_client_ask(
                       &u, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"message.send\",\"params\":{\"text\":\"hi\","
                           "\"executor\":{\"name\":\"worker\"}}},{\"jsonrpc\":"
                           "\"2.0\",\"id\":2,\"method\":\"agent.search\","
                           "\"params\":{\"query\":\"x\"}}]") &&
                   strstr(u.text, "queued");
    if (has_work && hub_client_next(&a) && strstr(a.text, "task.execute")) {
        snprintf(result, sizeof(result),
                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.result\","
                 "\"params\":{\"task_id\":\"%.31s\",\"text\":\"x\"}}",
                 strstr(a.text, "\"task_id\":\"") + 11);
        (void)hub_client_ask(&a, result);
    }
    hub_client_close(&a);
    hub_client_close(&u);
    for (int i = 0; i < 50; i++)
        loop_turn(&s->house.loop);
}

/* The usual run takes every seventh fault, and each fault of the hub itself.
 * STRESS=full takes every one. */
TEST(a_life_on_the_hub_survives_every_fault)
{
    const char *stress = getenv("STRESS");
    long stride = stress && strcmp(stress, "full") == 0 ? 1 : 7, nth = 1;

    while (hub_lives_with_fault(&usual, a_life, NULL, nth))
        nth += stride;
    CHECK(nth > 50);
}

TEST(every_step_of_its_own_may_fail)
{
    static const char *const steps[] = {"hub.peer", "hub.ask", "hub.hearing"};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (!hub_lives_with_fault(&usual, a_life, steps[i], 1))
            T_FAIL("%s is never met", steps[i]);
}
