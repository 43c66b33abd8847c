/* Limits of requests and messages, per connection and per user. */
#include "api/hub/internal.h"
#include "test/lib/hub_stage.h"
#include "wire/wire.h"

static const struct hub_settings usual = {
    .heartbeat_ms = 90000, .max_open = 16, .max_listening = 2};

#define SEND(id)                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"message.send\"," \
    "\"params\":{\"text\":\"hi\",\"executor\":{\"name\":\"never\"},"  \
    "\"listen\":false}}"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define SECOND   1000

/* One per second, with that burst. */
static void limit_users(struct hub_stage *s, int64_t burst)
{
    throttle_set(
        s->house.api.throttle,
        &(struct throttle_limits){.user = {.per_minute = 60, .burst = burst}});
}

/* The messages that come while no time passes. */
static int heard_now(struct hub_client *c)
{
    int n = 0;

    for (int i = 0; i < 50; i++) {
        hub_client_turn(c, i, false);
        while (hub_client_take(c))
            n++;
    }
    return n;
}

TEST(the_users_bucket_is_one_for_http_and_the_hub)
{
    struct hub_stage s;
    struct hub_client u, v;

    hub_stage_init(&s, &usual);
    limit_users(&s, 5);
    CHECK(hub_client_open(&u, &s) &&
          hub_client_open(&v, &s)); /* two connections of one user */
    for (int i = 0; i < 8; i++)
        hub_client_send(&u, SEND("1"));
    CHECK_INT(heard_now(&u), 4); /* three, and one too many */
    CHECK_INT(hub_stats(s.hub).rate_limited_total, 1);
    hub_client_send(&v, SEND("1")); /* one more, which is owed too */
    hub_client_send(&v, SEND("2"));
    CHECK_INT(heard_now(&v), 1);
    house_pass_ms(&s.house, SECOND);
    CHECK_INT(heard_now(&u) + heard_now(&v), 1);
    for (int i = 0; i < 3; i++) /* none is lost or rejected */
        hub_client_hears(&u, "\"status\":\"queued\"");
    hub_client_close(&u);
    hub_client_close(&v);
    hub_stage_fini(&s);
}

TEST(an_agents_work_is_not_the_users_calls)
{
    struct hub_stage s;
    struct hub_client u;

    hub_stage_init(&s, &usual);
    limit_users(&s, 2);
    CHECK(hub_client_open(&u, &s));
    for (int i = 0; i < 20; i++)
        hub_client_send(&u, PING("1"));
    CHECK_INT(heard_now(&u), 20);
    hub_client_send(&u, "{\"jsonrpc\":\"2.0\",\"method\":\"no.such\"}");
    hub_client_send(&u, "{"); /* invalid messages count, too */
    hub_client_send(&u, "7");
    CHECK_INT(heard_now(&u), 1);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(a_batch_counts_as_its_messages)
{
    struct hub_settings slow = usual;
    struct hub_stage s;
    struct hub_client u;

    slow.messages = (struct rate_limit){.per_minute = 60, .burst = 2};
    hub_stage_init(&s, &slow);
    CHECK(hub_client_open(&u, &s));
    hub_client_send(&u, "[" PING("1") "," PING("2") "," PING("3") "," PING(
                            "4") "," PING("5") "]");
    hub_client_send(&u, PING("6"));
    CHECK_INT(heard_now(&u), 1);
    house_pass_ms(&s.house, 2 * SECOND);
    CHECK_INT(heard_now(&u), 0); /* three were too many */
    house_pass_ms(&s.house, SECOND);
    CHECK_INT(heard_now(&u), 1);
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(who_leaves_owes_it_still)
{
    struct hub_stage s;
    struct hub_client u;

    hub_stage_init(&s, &usual);
    limit_users(&s, 1);
    CHECK(hub_client_open(&u, &s));
    hub_client_send(&u, "[" SEND("1") "," SEND("2") "," SEND("3") "]");
    CHECK_INT(heard_now(&u), 1);
    hub_client_close(&u);
    for (int i = 0; i < 3; i++) {
        house_pass_ms(&s.house, SECOND);
        CHECK(!hub_client_open(&u, &s)); /* 429, and time passes */
        hub_client_close(&u);
    }
    house_pass_ms(&s.house, 2 * SECOND);
    CHECK(hub_client_open(&u, &s));
    hub_client_close(&u);
    hub_stage_fini(&s);
}

TEST(a_child_has_so_many_calls_open)
{
    struct hub_settings few = usual;
    struct request *open[2];
    struct wire_batch b;
    struct hub_stage s;
    struct arena a;
    struct peer *p;

    few.max_open = 2;
    hub_stage_init(&s, &few);
    arena_init(&a, 1 << 16);
    CHECK(wire_read(&a,
                    STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent."
                        "search\",\"params\":{\"query\":\"x\"}}"),
                    &b, NULL) == OK);
    hub_on_call(s.hub, 77, STR("echo"), &b.list[0]);
    p = LIST_OF(list_first(&s.hub->children), struct peer, node);
    for (int i = 0; i < 2; i++) /* like those that wait for an embedding */
        CHECK((open[i] = hub_request_new(p, NULL)));
    loop_turn(&s.house.loop);
    hub_on_call(s.hub, 77, STR("echo"), &b.list[0]);
    CHECK_INT(hub_stats(s.hub).errors_total, 1);
    hub_on_call(s.hub, 78, STR("echo"), &b.list[0]); /* another child */
    request_end(open[0]);
    hub_on_call(s.hub, 77, STR("echo"), &b.list[0]);
    CHECK_INT(hub_stats(s.hub).errors_total, 1);
    request_end(open[1]);
    loop_turn(&s.house.loop);
    CHECK(list_is_empty(&s.hub->children) && !s.hub->by_child.n);
    arena_fini(&a);
    hub_stage_fini(&s);
}
