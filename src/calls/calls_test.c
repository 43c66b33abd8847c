#include "calls/calls.h"

#include "test/lib/house_stage.h"

static char answer[HOUSE_ANSWER_MAX];

/* What is open. */

TEST(at_the_limit_of_what_may_be_open_the_next_is_refused)
{
    struct house h;
    int first;

    house_init(&h);
    calls_set(&h.calls, &(struct calls_settings){.heartbeat_ms = 15000,
                                                 .reply_timeout_ms = 100000,
                                                 .max_open = 1});
    first = house_connect(&h);
    house_send(&h, first, "GET /api/feed", "Accept: text/event-stream\r\n", "");
    while (!h.calls.n_by_kind[3])
        loop_turn(&h.loop);
    CHECK_INT(house_ask(&h, "GET /api/tasks", "", "", answer), 503);
    CHECK(strstr(answer, "Retry-After: "));
    CHECK_INT(house_ask(&h, "GET /api/agents", "", "", answer), 200);
    close(first);
    house_fini(&h);
}

TEST(nothing_is_left_open_of_what_was_answered)
{
    struct house h;

    house_init(&h);
    CHECK_INT(house_ask(&h, "POST /api/messages", "",
                        "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}",
                        answer),
              200);
    CHECK_INT(house_ask(&h, "GET /api/tasks", "", "", answer), 200);
    loop_turn(&h.loop);
    CHECK_INT(h.calls.by_id.n, 0);
    CHECK(list_is_empty(&h.calls.open) && list_is_empty(&h.calls.gone) &&
          list_is_empty(&h.calls.dead));
    house_fini(&h);
}

/* A sweep: whatever single step fails, the request gets an answer or sees its
 * connection closed, the house stands, and what was answered with success is
 * there when it is opened again. */

static const struct {
    const char *line, *headers, *body;
    int status;
} asked[] = {
    {"POST /api/messages", "Idempotency-Key: k\r\n",
     "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}", 200},
    {"POST /api/messages", "",
     "{\"text\":\"x\",\"executor\":{\"name\":\"never\"},\"wait_ms\":2000}",
     202},
    {"POST /api/messages", "Accept: text/event-stream\r\n",
     "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}", 200},
    {"GET /api/tasks?limit=2", "", "", 200},
    {"GET /api/feed", "", "", 200},
    {"POST /api/users", "", "{\"name\":\"anna\",\"role\":\"user\"}", 201},
    {"POST /api/tokens", "", "{\"label\":\"x\"}", 201},
    {"GET /api/tokens", "", "", 200},
    {"GET /metrics", "", "", 200},
};

enum { N_ASKED = sizeof(asked) / sizeof(*asked) };

static void copy_id(char out[64], const char *prefix)
{
    const char *at = strstr(answer, prefix);

    out[0] = '\0';
    if (at)
        snprintf(out, 64, "GET /api/tasks/%.31s", at);
}

/* One request with the nth step failing. False: there is no such step. */
static bool ask_with_fault(size_t i, long nth)
{
    struct house h;
    char line[64];
    bool has_fired;
    int status;

    house_init(&h);
    fault_arm(nth);
    status =
        house_ask(&h, asked[i].line, asked[i].headers, asked[i].body, answer);
    has_fired = fault_fired();
    if (!has_fired && status != asked[i].status)
        T_FAIL("%s: %s", asked[i].line, answer);
    copy_id(line, "task_0");
    fault_arm(0);
    if ((status == 200 || status == 202) && line[0]) {
        house_close(&h);
        house_open(&h);
        CHECK_INT(house_ask(&h, line, "", "", answer), 200);
    }
    house_fini(&h);
    return has_fired;
}

TEST(a_request_survives_every_fault)
{
    for (size_t i = 0; i < N_ASKED; i++) {
        long nth = 1;

        while (ask_with_fault(i, nth))
            nth++;
        CHECK(nth > 1);
    }
}
