#include "api/api.h"

#include "api/calls.h"
#include "store/internal.h"
#include "task/internal.h"
#include "test/lib/server_stage.h"

static char answer[HOUSE_ANSWER_MAX];

/* Open requests. */

TEST(at_the_limit_of_what_may_be_open_the_next_is_refused)
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
    CHECK_INT(h.api.by_id.n, 0);
    CHECK(list_is_empty(&h.api.open) && list_is_empty(&h.api.gone) &&
          list_is_empty(&h.api.dead));
    house_fini(&h);
}

/* Public pages. */

TEST(the_front_names_every_call_there_is)
{
    const struct call_row *row;
    struct house h;

    house_init(&h);
    CHECK_INT(house_ask(&h, "GET /", "", "", answer), 200);
    for (size_t i = 0; (row = call_row(i)); i++) {
        struct str fixed = str_sub(row->path, 0, str_find(row->path, ':', 0));
        char line[128];

        snprintf(line, sizeof(line), "  %-6.*s %.*s%s",
                 STR_ARG((row->who & PUBLIC) ? STR("") : row->method),
                 STR_ARG(fixed), fixed.n == row->path.n ? "\n" : "");
        if (!(row->who & PUBLIC) && !strstr(answer, line))
            T_FAIL("%s is not there", line);
    }
    CHECK(strstr(answer, "\n  POST   /api/tasks/ID/cancel\n"));
    CHECK(strstr(answer, "\n  PATCH  /api/agents/NAME\n"));
    house_fini(&h);
}

/* test/flow/openapi_test.py compares it with the answers that there are. */
TEST(the_document_of_the_api_is_json_and_says_the_same_twice)
{
    static char again[HOUSE_ANSWER_MAX];
    const char *body;
    struct house h;

    house_init(&h);
    CHECK_INT(house_ask(&h, "GET /openapi.json", "", "", answer), 200);
    body = strstr(answer, "\r\n\r\n");
    CHECK(body && json_check(str_of(body + 4), NULL) == OK);
    CHECK(strstr(answer, "\"operationId\":\"tasks_events\""));
    CHECK_INT(house_ask(&h, "GET /openapi.json", "", "", again), 200);
    CHECK(strcmp(body, strstr(again, "\r\n\r\n")) == 0);
    house_fini(&h);
}

/* CORS; test/flow/cors_test.py has the rest of it. */

static bool is_readable_from(struct house *h, const char *origin)
{
    static const struct str ours = STR("https://app.example");
    struct api_settings s = h->api.settings;
    char line[128];

    s.names.origins = &ours;
    s.names.n_origins = 1;
    api_set(&h->api, &s);
    snprintf(line, sizeof(line), "Origin: %s\r\n", origin);
    (void)house_ask(h, "GET /api/agents", line, "", answer);
    CHECK(strstr(answer, "\r\nVary: Origin\r\n"));
    CHECK(!strstr(answer, "Allow-Credentials"));
    snprintf(line, sizeof(line), "\r\nAccess-Control-Allow-Origin: %s\r\n",
             origin);
    return strstr(answer, line);
}

TEST(only_a_page_that_is_listed_may_read)
{
    struct house h;

    house_init(&h);
    CHECK(is_readable_from(&h, "https://app.example"));
    CHECK(!is_readable_from(&h, "https://evil.example"));
    fault_arm_at("calls.any_origin", 1); /* the line above would notice */
    CHECK(is_readable_from(&h, "https://evil.example"));
    house_fini(&h);
}

/* Metrics; test/flow/metrics_closed_test.py has the rest. */
TEST(closed_figures_are_for_who_may_read_them)
{
    struct api_settings closed;
    struct house h;

    house_init(&h);
    closed = h.api.settings;
    closed.figures_need_token = true;
    CHECK_INT(house_ask(&h, "GET /metrics", "", "", answer), 200);
    api_set(&h.api, &closed);
    CHECK_INT(house_ask(&h, "GET /metrics", "", "", answer), 200);
    memset(h.token.text + 4, 'x', 43); /* an unknown token */
    CHECK_INT(house_ask(&h, "GET /metrics", "", "", answer), 401);
    CHECK(!strstr(answer, "signalbox_build_info"));
    fault_arm_at("calls.open_figures", 1); /* the lines above would notice */
    CHECK_INT(house_ask(&h, "GET /metrics", "", "", answer), 200);
    house_fini(&h);
}

/* Endless lists. */

/* Open a server with an endless feed: every cursor has entries after it, so no
 * page ever ends. */
static void open_endless(struct house *h)
{
    static const struct store_sabotage patient = {.read_ms = 1000 * 1000};
    char path[128];
    sqlite3 *sql;

    house_init(h);
    house_close(h);
    snprintf(path, sizeof(path), "%s/%s", h->folder, DB_NAME);
    store_sabotage(&patient);
    h->has_threads = true;
    house_open(h);
    CHECK(sqlite3_open(path, &sql) == SQLITE_OK);
    CHECK(db_exec(sql, "ALTER TABLE feed RENAME TO old; CREATE VIEW feed AS "
                       "WITH RECURSIVE f(n) AS (SELECT -1 UNION ALL "
                       "SELECT n - 1 FROM f) SELECT n AS seq, at_ms, "
                       "type, task_id, conversation_id, agent, requester, "
                       "root_user, data FROM f LEFT JOIN old ON old.seq = n") ==
          SQLITE_OK);
    CHECK(sqlite3_close(sql) == SQLITE_OK);
}

/* Turn the loop, without any time passing, until fd has a reply; returns its
 * status. */
static int status_of(struct house *h, int fd)
{
    ssize_t n;

    do {
        loop_turn(&h->loop);
        n = recv(fd, answer, sizeof(answer) - 1, 0);
    } while (n < 0 && errno == EAGAIN);
    answer[n > 0 ? n : 0] = '\0';
    return n > 12 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static void reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    close(fd);
}

static size_t n_listings(const struct house *h)
{
    size_t n = 0;

    for (struct list_node *l = list_first(&h->api.listings); l;
         l = list_next(&h->api.listings, l))
        n++;
    return n;
}

TEST(a_token_has_eight_lists_at_a_time_and_who_leaves_is_forgotten)
{
    struct house h;
    int fds[9];

    open_endless(&h);
    for (size_t i = 0; i < 9; i++) {
        fds[i] = house_connect(&h);
        house_send(&h, fds[i], "GET /api/feed", "", "");
        while (i < 8 && n_listings(&h) <= i)
            loop_turn(&h.loop);
    }
    CHECK_INT(status_of(&h, fds[8]), 503);
    CHECK(strstr(answer, "\"overloaded\"") && strstr(answer, "eight lists"));
    CHECK_INT(n_listings(&h), 8);
    for (int i = 0; i < 9; i++) /* a half-closed client would get a reply */
        reset(fds[i]);
    /* Also the one that is being read, without end. */
    while (!list_is_empty(&h.api.listings))
        loop_turn(&h.loop);
    fds[0] = house_connect(&h);
    house_send(&h, fds[0], "GET /api/users", "", "");
    CHECK_INT(status_of(&h, fds[0]), 200);
    close(fds[0]);
    house_fini(&h);
}

/* Keys outlive their tasks. */

static const char *const hello =
    "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}";

TEST(a_repeat_whose_task_is_no_longer_kept_is_told_that_it_is_gone)
{
    static const char *const accepts[] = {"Idempotency-Key: k\r\n",
                                          "Idempotency-Key: k\r\n"
                                          "Accept: text/event-stream\r\n"};
    struct house h;

    house_init(&h); /* retention keeps no finished task */
    CHECK_INT(house_ask(&h, "POST /api/messages", accepts[0], hello, answer),
              200);
    house_pass_ms(&h, 60 * 1000);
    CHECK_INT(house_ask(&h, "GET /api/tasks", "", "", answer), 200);
    CHECK(strstr(answer, "\"items\":[]"));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(
            house_ask(&h, "POST /api/messages", accepts[i], hello, answer),
            410);
        CHECK(strstr(answer, "\"code\":\"gone\""));
        CHECK(strstr(answer, "key was used") && strstr(answer, "new key"));
    }
    house_pass_ms(&h, TASK_KEY_MS);
    CHECK_INT(house_ask(&h, "POST /api/messages", accepts[0], hello, answer),
              200);
    house_fini(&h);
}

TEST(a_repeated_turn_whose_task_is_no_longer_kept_is_gone_too)
{
    struct house h;
    char further[128];

    house_init(&h);
    CHECK_INT(house_ask(&h, "POST /api/messages", "", hello, answer), 200);
    snprintf(further, sizeof(further), "{\"text\":\"y\",\"task_id\":\"%.31s\"}",
             strstr(answer, "task_0"));
    CHECK_INT(house_ask(&h, "POST /api/messages", "Idempotency-Key: k\r\n",
                        further, answer),
              200);
    house_pass_ms(&h, 60 * 1000);
    CHECK_INT(house_ask(&h, "POST /api/messages", "Idempotency-Key: k\r\n",
                        further, answer),
              410);
    CHECK_INT(house_ask(&h, "POST /api/messages", "Idempotency-Key: k2\r\n",
                        further, answer),
              404);
    CHECK_INT(house_ask(&h, "POST /api/messages", "", further, answer), 404);
    house_fini(&h);
}

/* A cancellation loses to another end, and when it looks again a further turn
 * has started. The task waits behind another of its conversation. */

struct race {
    struct house *h;
    struct task_change *end;
    struct msg *further;
    bool is_further_accepted;
};

static void on_further(struct msg *m, void *ctx)
{
    CHECK(m->err == OK);
    ((struct race *)ctx)->is_further_accepted = true;
    msg_free(m);
}

/* It has ended: the next turn is requested, and the task leaves memory at the
 * end of a turn of the loop. */
static void on_end_kept(struct tx *tx, void *ctx)
{
    struct race *r = ctx;
    struct tasks *tasks = walk_tasks(r->h->walk);

    CHECK(tx->result == TX_COMMITTED);
    task_changed(tasks, r->end);
    walk_message(r->h->walk, r->further, on_further, r);
    tasks->free_job.run(&tasks->free_job);
    task_change_free(r->end);
}

static void begin_race(struct race *r, struct house *h, struct str task_id)
{
    struct task_result done = {.status = TASK_EXPIRED,
                               .error_code = STR("expired"),
                               .error = STR("late")};
    char header[96];
    struct caller who;
    struct why why;
    enum err e;

    snprintf(header, sizeof(header), "Bearer %s", h->token.text);
    CHECK(access_judge(h->access, str_of(header), h->time.wall_ms, &who,
                       &why) == OK);
    *r = (struct race){.h = h, .further = msg_new(&who, h->time.wall_ms)};
    r->further->call.text = STR("again");
    r->further->call.task_id = task_id;
    r->further->call.priority = PRIORITY_NORMAL;
    r->end = task_change_new(walk_tasks(h->walk), task_id, &done, &e);
    CHECK(r->end);
    store_submit(h->store, &r->end->tx, on_end_kept, r);
}

TEST(a_cancel_that_comes_too_late_leaves_the_next_turn_alone)
{
    static const char *const endless =
        "{\"text\":\"x\",\"executor\":{\"name\":\"never\"},\"wait_ms\":0,"
        "\"conversation_id\":\"c\"}";
    struct house h;
    struct race r;
    const struct task *t;
    char line[96], id[64];
    int fd;

    house_init(&h);
    for (int i = 0; i < 2; i++)
        CHECK_INT(house_ask(&h, "POST /api/messages", "", endless, answer),
                  202);
    snprintf(id, sizeof(id), "%.31s", strstr(answer, "task_0"));
    snprintf(line, sizeof(line), "POST /api/tasks/%s/cancel", id);
    fd = house_connect(&h);
    house_pass_ms(&h, 0); /* connected: both come in one turn */
    house_send(&h, fd, line, "", "");
    begin_race(&r, &h, str_of(id));
    house_reply(&h, fd, answer, sizeof(answer));
    close(fd);
    CHECK(r.is_further_accepted);
    CHECK(strstr(answer, " 409 ") && strstr(answer, "task_is_over"));
    t = task_find(walk_tasks(h.walk), str_of(id));
    CHECK(t && t->turn == 2 && !task_is_over(t->status));
    house_fini(&h);
}

/* A sweep: whichever step fails, the request gets an answer or a closed
 * connection, the server survives, and successful changes are there after the
 * next start. */

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

static void sweep(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        long nth = 1;

        while (ask_with_fault(i, nth))
            nth += T_SWEEP_STEP;
        CHECK(nth > 1);
    }
}

TEST(a_message_survives_every_fault)
{
    sweep(0, 2);
}

TEST(a_stream_survives_every_fault)
{
    sweep(2, 3);
}

TEST(lists_and_changes_survive_every_fault)
{
    sweep(3, N_ASKED);
}

/* A table is complete, or there is an error. */
TEST(a_table_of_decisions_is_whole_whatever_fails)
{
    static const struct {
        const char *line, *has;
    } tables[] = {
        {"GET /api/analytics/agents?format=csv", "\"echo\""},
        {"GET /api/analytics/agents", "\"echo\""},
        {"GET /api/analytics/all", "\"echo\""},
        {"GET /api/analytics/thresholds?format=csv", "\n1.0,0,0,1,0,"},
        {"GET /api/analytics/changes?at=1", "\"items\":[]"},
        {"GET /api/decisions", "\"echo\""},
        {"GET /api/decisions?q=X", "\"echo\""},
    };
    struct house h;

    house_init(&h);
    CHECK_INT(house_ask(&h, "POST /api/messages", "",
                        "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}",
                        answer),
              200);
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        bool has_fired = true;
        long nth = 0;

        while (has_fired) {
            int status;

            fault_arm(++nth);
            status = house_ask(&h, tables[i].line, "", "", answer);
            has_fired = fault_fired();
            fault_arm(0);
            CHECK(has_fired || status == 200);
            if (status == 200 && !strstr(answer, tables[i].has))
                T_FAIL("fault %ld: %s", nth, answer);
        }
        CHECK(nth > 3);
    }
    house_fini(&h);
}
