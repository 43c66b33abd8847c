/* Agents, grants and searches through the whole server.
 * test/flow/agents_test.py has the answers; here, whichever step fails, there
 * is an answer or a closed connection, and memory, index and store agree. */
#include "api/api.h"
#include "test/lib/server_stage.h"

static char answer[HOUSE_ANSWER_MAX];

static const char *const card =
    "{\"name\":\"baker\",\"description\":\"bakes bread\",\"skills\":[{\"id\":"
    "\"cakes\",\"name\":\"Cakes\",\"description\":\"sweet things\"}]}";

static const struct {
    const char *line, *headers, *body;
    int status;
} asked[] = {
    {"POST /api/agents", "",
     "{\"name\":\"cook\",\"description\":\"cooks dinner\"}", 201},
    {"PATCH /api/agents/baker", "If-Match: \"2\"\r\n", "{\"title\":\"Baker\"}",
     200},
    {"DELETE /api/agents/baker", "", "", 204},
    {"POST /api/grants", "", "{\"agent\":\"baker\",\"org\":\"acme\"}", 201},
    {"GET /api/agents/nobody", "", "", 404},
    {"GET /api/agents?tag=x", "", "", 200},
    {"GET /api/agents?q=BAK&brief=true", "", "", 200},
    {"GET /api/agents/baker/figures", "", "", 200},
    {"GET /api/fleet?names=baker,nobody", "", "", 200},
    {"GET /api/agents/search?q=bread&explain=true", "", "", 200},
    {"POST /api/agents", "", "{\"name\":\"-\",\"colour\":1}", 400},
    {"GET /api/commands", "", "", 200},
    {"GET /api/commands?format=telegram", "", "", 200},
    {"GET /api/tools", "", "", 200},
    {"GET /api/tools?format=anthropic", "", "", 200},
    {"GET /api/tools?format=other", "", "", 400},
};

enum { N_ASKED = sizeof(asked) / sizeof(*asked), N_CHANGES = 4 };

static void check_registry(struct house *h, const char *fault)
{
    struct why why = {""};

    if (registry_check(h->registry, &why) != OK)
        T_FAIL("after a fault at %s: %s", fault, why.text);
}

/* An answered change is there after the next start; without an answer the state
 * is the old or the new one. */
static void check_kept(struct house *h, size_t i, int status)
{
    int seen;

    house_close(h);
    house_open(h);
    check_registry(h, "a start");
    seen =
        house_ask(h, i == 0 ? "GET /api/agents/cook" : "GET /api/agents/baker",
                  "", "", answer);
    if (status)
        CHECK_INT(seen, status == 204 ? 404 : 200);
}

/* One request with the nth step failing. False: there is no such step. */
static bool ask_with_fault(size_t i, long nth)
{
    struct house h;
    const char *fault;
    bool has_fired;
    int status;

    house_init(&h);
    CHECK_INT(house_ask(&h, "POST /api/agents", "", card, answer), 201);
    fault_arm(nth);
    status =
        house_ask(&h, asked[i].line, asked[i].headers, asked[i].body, answer);
    has_fired = fault_fired();
    fault = has_fired ? fault_name() : "nothing";
    fault_arm(0);
    if (!has_fired && status != asked[i].status)
        T_FAIL("%s: %s", asked[i].line, answer);
    /* A failed store may have kept a change without an answer; the next start
     * shows it. */
    if (!strstr(answer, "outcome_unknown"))
        check_registry(&h, fault);
    else
        status = 0;
    if (i < N_CHANGES && status < 300)
        check_kept(&h, i, status);
    house_fini(&h);
    return has_fired;
}

static void sweep(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        long nth = 1;

        while (ask_with_fault(i, nth))
            nth += T_SWEEP_STEP;
        CHECK(nth > 1);
    }
}

TEST(registering_survives_every_fault)
{
    sweep(0, 2);
}

TEST(removing_and_granting_survive_every_fault)
{
    sweep(2, N_CHANGES);
}

TEST(looking_and_searching_survive_every_fault)
{
    sweep(N_CHANGES, N_ASKED);
}

/* Limits. */

TEST(what_is_open_counts_for_changes_and_searches_too)
{
    struct house h;
    int first;

    house_init(&h);
    api_set(&h.api, &(struct api_settings){.heartbeat_ms = 15000,
                                           .reply_timeout_ms = 100000,
                                           .max_open = 1});
    first = house_connect(&h);
    house_send(&h, first, "GET /api/feed", "Accept: text/event-stream\r\n", "");
    while (!h.api.n_by_kind[3])
        loop_turn(&h.loop);
    CHECK_INT(house_ask(&h, "POST /api/agents", "", card, answer), 503);
    CHECK_INT(house_ask(&h, "GET /api/agents/search?q=x", "", "", answer), 503);
    CHECK_INT(house_ask(&h, "GET /api/agents/echo", "", "", answer), 200);
    close(first);
    check_registry(&h, "nothing");
    house_fini(&h);
}

/* A client that does not wait for the answer has registered all the same. */
TEST(who_leaves_while_it_is_written_has_registered)
{
    struct house h;
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    int64_t before;
    int fd;

    house_init(&h);
    before = registry_stats(h.registry).changes_total;
    fd = house_connect(&h);
    house_send(&h, fd, "POST /api/agents", "", card);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    while (registry_stats(h.registry).changes_total == before)
        loop_turn(&h.loop);
    close(fd);
    house_pass_ms(&h, 0);
    CHECK_INT(house_ask(&h, "GET /api/agents/baker", "", "", answer), 200);
    CHECK(strstr(answer, "\r\nETag: \"2\"\r\n"));
    CHECK_INT(h.api.by_id.n, 0);
    check_registry(&h, "nothing");
    house_fini(&h);
}
