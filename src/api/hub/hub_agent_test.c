/* A connection becomes one agent, and only while its token is valid. */
#include "test/lib/hub_stage.h"

static const struct hub_settings usual = {.heartbeat_ms = 90000,
                                          .max_message_bytes = 1 << 20,
                                          .max_open = 16,
                                          .max_listening = 2};

#define REGISTER(id, name)                                              \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"agent.register\"," \
    "\"params\":{\"card\":{\"name\":\"" name "\",\"description\":\"x\"}}}"

static int count(const char *text, const char *words)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, words)); p++)
        n++;
    return n;
}

TEST(two_names_in_one_breath_are_one_agent)
{
    struct hub_stage s;
    struct hub_client a;
    int n_created = 0, n_refused = 0;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s));
    hub_client_send(&a, REGISTER("1", "first"));
    hub_client_send(&a, REGISTER("2", "second"));
    hub_client_send(&a, REGISTER("3", "first")); /* the same agent */
    for (int i = 0; i < 3; i++) {
        CHECK(hub_client_next(&a));
        n_created += count(a.text, "\"agent\":\"first\"");
        n_refused +=
            count(a.text, "already belongs to the agent \\\"first\\\"");
    }
    CHECK_INT(n_created, 2);
    CHECK_INT(n_refused, 1);
    CHECK_INT(hub_stats(s.hub).agents, 1);
    hub_client_close(&a);
    hub_stage_fini(&s);
}

TEST(two_names_in_one_batch_are_one_agent)
{
    struct hub_stage s;
    struct hub_client a;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s));
    hub_client_send(&a, "[" REGISTER("1", "first") "," REGISTER(
                            "2", "second") "," REGISTER("3", "echo") "]");
    CHECK(hub_client_next(&a));
    CHECK_INT(count(a.text, "\"created\""), 1);
    CHECK_INT(count(a.text, "already belongs to the agent \\\"first\\\""), 2);
    hub_client_close(&a);
    hub_stage_fini(&s);
}

TEST(a_name_that_came_to_nothing_leaves_room_for_another)
{
    struct hub_stage s;
    struct hub_client a;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s));
    hub_client_send(&a, REGISTER("1", "no such name!"));
    hub_client_hears(&a, "error");
    hub_client_send(&a, REGISTER("2", "other"));
    hub_client_hears(&a, "\"max_message_bytes\":1048576,\"card\":\"created\"");
    hub_client_close(&a);
    hub_stage_fini(&s);
}

static void on_written(struct tx *tx, void *ctx)
{
    (void)tx;
    *(bool *)ctx = true;
}

/* Revoked durably; access_settle puts it in force. */
static void revoke_token(struct hub_stage *s, struct access_change *c)
{
    struct house *h = &s->house;
    char header[sizeof(h->token.text) + 8];
    struct caller caller;
    bool is_done = false;
    struct why why;

    snprintf(header, sizeof(header), "Bearer %s", h->token.text);
    CHECK_INT(
        access_judge(h->access, str_of(header), h->time.wall_ms, &caller, &why),
        OK);
    access_change_init(c);
    CHECK_INT(access_token_revoke(h->access, c, str_of(caller.token_id.text),
                                  &caller, h->time.wall_ms, &why),
              OK);
    store_submit(h->store, &c->tx, on_written, &is_done);
    while (!is_done)
        loop_turn(&h->loop);
}

/* The sweep comes at the end of the turn in which the card is submitted, before
 * the store has it. */
TEST(who_is_shut_out_while_its_card_is_written_gets_no_line)
{
    struct access_change c;
    struct hub_stage s;
    struct hub_client a;
    struct why why;

    hub_stage_init(&s, &usual);
    CHECK(hub_client_open(&a, &s));
    revoke_token(&s, &c);
    hub_client_send(&a, REGISTER("1", "worker"));
    CHECK_INT(access_settle(s.house.access, &c, &why), OK);
    access_change_fini(&c);
    for (int i = 0; i < 50; i++) {
        loop_turn(&s.house.loop);
        CHECK_INT(hub_stats(s.hub).agents, 0);
    }
    CHECK(!hub_client_next(&a)); /* no answer either */
    CHECK_INT(a.code, 1008);
    CHECK(registry_agents(s.house.registry).n > 0);
    hub_client_close(&a);
    hub_stage_fini(&s);
}
