/* Rate limits, alone and through the whole server, with a controlled clock. */
#include "api/api.h"

#include "test/lib/server_stage.h"

static char answer[HOUSE_ANSWER_MAX];
static const uint64_t seed[2] = {1, 2};

/* The throttle alone. */

struct at {
    uint8_t addr[16];
};

static struct at v4(uint8_t last)
{
    return (struct at){{[10] = 0xff, [11] = 0xff, 192, 0, 2, last}};
}

/* 2001:db8:0:NET::HOST */
static struct at v6(uint8_t net, uint8_t host)
{
    return (struct at){{0x20, 0x01, 0x0d, 0xb8, [7] = net, [15] = host}};
}

static int64_t call_from(struct throttle *t, struct at at, const char *name,
                         int64_t now_ms)
{
    struct caller c = {.role = ROLE_USER};

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    return throttle_caller(t, at.addr, &c, now_ms);
}

static int64_t call(struct throttle *t, const char *name, int64_t now_ms)
{
    return call_from(t, v4(1), name, now_ms);
}

static struct throttle *small(void)
{
    static const struct throttle_limits limits = {
        .user = {.per_minute = 60, .burst = 5},
        .address = {.per_minute = 120, .burst = 10},
        .failures = {.per_minute = 60, .burst = 3},
    };
    struct throttle *t = throttle_new(seed);

    CHECK(t);
    throttle_set(t, &limits);
    return t;
}

TEST(a_user_has_one_bucket)
{
    struct throttle *t = small();

    for (int i = 0; i < 5; i++)
        CHECK_INT(call(t, "anna", 0), 0);
    CHECK_INT(call(t, "anna", 0), 1000);
    CHECK_INT(call(t, "bert", 0), 0);
    CHECK_INT(call(t, "anna", 1000), 0);
    CHECK_INT(throttle_total(t, THROTTLE_USER), 1);
    throttle_free(t);
}

TEST(an_address_has_one_bucket_and_a_64_of_v6_too)
{
    struct throttle *t = small();

    for (int i = 0; i < 10; i++) {
        CHECK_INT(throttle_request(t, v4(1).addr, 0), 0);
        CHECK_INT(throttle_request(t, v6(1, (uint8_t)i).addr, 0), 0);
    }
    CHECK_INT(throttle_request(t, v4(1).addr, 0), 500);
    CHECK_INT(throttle_request(t, v6(1, 99).addr, 0), 500);
    CHECK_INT(throttle_request(t, v4(2).addr, 0), 0);
    CHECK_INT(throttle_request(t, v6(2, 1).addr, 0), 0);
    CHECK_INT(throttle_total(t, THROTTLE_ADDRESS), 2);
    throttle_free(t);
}

TEST(who_is_over_their_own_limit_uses_up_nobody_elses)
{
    struct throttle *t = small();

    for (int i = 0; i < 100; i++) { /* 5 pass */
        CHECK_INT(throttle_request(t, v4(1).addr, 0), 0);
        (void)!call_from(t, v4(1), "anna", 0);
    }
    for (int i = 0; i < 5; i++) {
        CHECK_INT(throttle_request(t, v4(1).addr, 0), 0);
        CHECK_INT(call_from(t, v4(1), "bert", 0), 0);
    }
    CHECK_INT(throttle_request(t, v4(1).addr, 0), 500);
    throttle_free(t);
}

static bool others_may_call(struct throttle *t)
{
    for (int i = 0; i < 100; i++)
        (void)call(t, "anna", 0);
    return call(t, "bert", 0) == 0;
}

static bool others_may_come(struct throttle *t)
{
    for (int i = 0; i < 100; i++) {
        (void)!throttle_request(t, v4(1).addr, 0);
        (void)!throttle_bad_token(t, v4(1).addr, 0);
    }
    return throttle_request(t, v4(2).addr, 0) == 0 &&
           throttle_bad_token(t, v4(2).addr, 0) == 0;
}

TEST(what_one_does_is_not_held_against_another)
{
    struct throttle *t = small();

    CHECK(others_may_call(t) && others_may_come(t));
    throttle_free(t);
}

TEST(the_test_above_would_notice_limits_that_are_everybodys)
{
    struct throttle *t = small();

    fault_arm_at("throttle.one_user", 1);
    CHECK(!others_may_call(t));
    fault_arm_at("throttle.one_address", 1);
    CHECK(!others_may_come(t));
    throttle_free(t);
}

TEST(who_is_exempt_has_no_limit_but_the_users)
{
    struct guard_range ranges[2] = {{.prefix = 120}, {.prefix = 64}};
    struct throttle_limits limits = {.user = {.per_minute = 60, .burst = 5},
                                     .address = {.per_minute = 60, .burst = 1},
                                     .failures = {.per_minute = 60, .burst = 1},
                                     .exempt = ranges,
                                     .n_exempt = 2};
    struct throttle *t = throttle_new(seed);

    memcpy(ranges[0].addr, v4(0).addr, 16);
    memcpy(ranges[1].addr, v6(7, 0).addr, 16);
    throttle_set(t, &limits);
    for (int i = 0; i < 50; i++) {
        CHECK_INT(throttle_request(t, v4((uint8_t)i).addr, 0), 0);
        CHECK_INT(throttle_request(t, v6(7, (uint8_t)i).addr, 0), 0);
        CHECK_INT(throttle_bad_token(t, v4(1).addr, 0), 0);
    }
    for (int i = 0; i < 5; i++)
        CHECK_INT(call(t, "anna", 0), 0);
    CHECK_INT(call(t, "anna", 0), 1000);
    CHECK_INT(throttle_request(t, v6(8, 1).addr, 0), 0);
    CHECK_INT(throttle_request(t, v6(8, 2).addr, 0), 1000);
    throttle_free(t);
}

TEST(all_of_v6_being_exempt_is_nothing_to_v4)
{
    struct guard_range all;
    struct throttle_limits limits = {.address = {.per_minute = 60, .burst = 1},
                                     .failures = {.per_minute = 60, .burst = 1},
                                     .exempt = &all,
                                     .n_exempt = 1};
    struct throttle *t = throttle_new(seed);

    CHECK(guard_range_read(STR("[::]/0"), &all, NULL) == OK);
    throttle_set(t, &limits);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(throttle_request(t, v6(1, 1).addr, 0), 0);
        CHECK_INT(throttle_bad_token(t, v6(1, 1).addr, 0), 0);
        CHECK_INT(throttle_request(t, v4(1).addr, 0), i * 1000);
        CHECK_INT(throttle_bad_token(t, v4(1).addr, 0), i * 1000);
    }
    throttle_free(t);
}

TEST(no_limits_are_no_limits)
{
    static const struct throttle_limits none;
    struct throttle *t = throttle_new(seed);

    throttle_set(t, &none);
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(throttle_request(t, v4(1).addr, 0), 0);
        CHECK_INT(throttle_bad_token(t, v4(1).addr, 0), 0);
        CHECK_INT(call(t, "anna", 0), 0);
    }
    throttle_free(t);
}

/* An attacker tries twenty tokens a second for an hour, while 3000 users work,
 * all unseen before, as after a restart: the number of rejected calls of the
 * users. */
static int64_t refused_at_work(int64_t *n_answered)
{
    enum { USERS = 3000, HOUR_MS = 3600 * 1000 };
    struct throttle *t = small();
    int64_t n_refused = 0;
    char name[16];

    *n_answered = 0;
    for (int64_t now_ms = 0, i = 0; now_ms < HOUR_MS; now_ms += 50, i++) {
        *n_answered += throttle_bad_token(t, v4(1).addr, now_ms) == 0;
        snprintf(name, sizeof(name), "u%d", (int)(i % USERS));
        n_refused += call(t, name, now_ms) > 0;
    }
    throttle_free(t);
    return n_refused;
}

TEST(guessing_is_slow_and_shuts_out_nobody)
{
    int64_t n_answered;

    CHECK_INT(refused_at_work(&n_answered), 0);
    CHECK_INT(n_answered, 3 + 3599); /* the burst, and one every second */
}

TEST(the_test_above_would_notice_who_is_shut_out)
{
    int64_t n_answered;

    fault_arm_at("throttle.one_user", 1);
    CHECK(refused_at_work(&n_answered) > 0);
}

TEST(bad_tokens_are_counted_where_they_come_from)
{
    struct throttle *t = small();

    for (int i = 0; i < 3; i++)
        CHECK_INT(throttle_bad_token(t, v4(1).addr, 0), 0);
    CHECK_INT(throttle_bad_token(t, v4(1).addr, 0), 1000);
    CHECK_INT(throttle_bad_token(t, v4(2).addr, 0), 0);
    CHECK_INT(throttle_total(t, THROTTLE_FAILURES), 1);
    CHECK_INT(throttle_bad_token(t, v4(1).addr, 1000), 0);
    throttle_free(t);
}

/* Through the server. */

static void set_limits(struct house *h, struct throttle_limits limits)
{
    api_set(&h->api, &(struct api_settings){.heartbeat_ms = 15000,
                                            .reply_timeout_ms = 100000,
                                            .max_open = 64,
                                            .limits = limits});
}

/* Create a user and a token. */
static struct access_token make_user(struct house *h, const char *name)
{
    struct access_token token = {""};
    char body[64];
    const char *at;

    snprintf(body, sizeof(body), "{\"name\":\"%s\",\"role\":\"user\"}", name);
    CHECK_INT(house_ask(h, "POST /api/users", "", body, answer), 201);
    snprintf(body, sizeof(body), "{\"user\":\"%s\"}", name);
    CHECK_INT(house_ask(h, "POST /api/tokens", "", body, answer), 201);
    at = strstr(answer, "sbx_");
    CHECK(at);
    snprintf(token.text, sizeof(token.text), "%.*s", ACCESS_TOKEN_CHARS, at);
    return token;
}

static int ask_as(struct house *h, const struct access_token *token,
                  const char *line)
{
    struct access_token admin = h->token;
    int status;

    h->token = *token;
    status = house_ask(h, line, "", "", answer);
    h->token = admin;
    return status;
}

/* Anna calls until she is rejected; then another user calls. */
static bool another_is_served(struct house *h)
{
    struct access_token anna = make_user(h, "anna"), bert = make_user(h, "ber");
    int n = 0;

    set_limits(
        h, (struct throttle_limits){.user = {.per_minute = 60, .burst = 5}});
    while (ask_as(h, &anna, "GET /api/me") == 200 && n < 100)
        n++;
    CHECK_INT(n, 5);
    CHECK(strstr(answer, "429 Too Many Requests"));
    return ask_as(h, &bert, "GET /api/me") == 200;
}

TEST(a_user_over_the_limit_is_told_when_to_come_back)
{
    struct access_token anna;
    struct house h;

    house_init(&h);
    anna = make_user(&h, "anna");
    set_limits(
        &h, (struct throttle_limits){.user = {.per_minute = 24, .burst = 2}});
    for (int i = 0; i < 2; i++)
        CHECK_INT(ask_as(&h, &anna, "GET /api/nothing"), 404);
    for (int i = 0; i < 2; i++) /* no row, no user: nothing was taken */
        CHECK_INT(ask_as(&h, &anna, "GET /api/me"), 200);
    CHECK_INT(ask_as(&h, &anna, "GET /api/me"), 429);
    CHECK(strstr(answer, "Retry-After: 3\r\n"));
    CHECK(strstr(answer, "\"code\":\"rate_limited\""));
    CHECK(strstr(answer, "\"limit\":\"user\",\"retry_after_ms\":2500"));
    CHECK(strstr(answer, "rate.perUser; try again in 3 s"));
    house_pass_ms(&h, 2499);
    CHECK_INT(ask_as(&h, &anna, "GET /api/me"), 429);
    CHECK(strstr(answer, "Retry-After: 1\r\n"));
    house_pass_ms(&h, 1);
    CHECK_INT(ask_as(&h, &anna, "GET /api/me"), 200);
    house_fini(&h);
}

TEST(one_over_the_limit_does_not_stand_in_the_way_of_another)
{
    struct house h;

    house_init(&h);
    CHECK(another_is_served(&h));
    house_fini(&h);
}

TEST(the_test_above_would_notice_one_bucket_for_all)
{
    struct house h;

    house_init(&h);
    fault_arm_at("throttle.one_user", 1);
    CHECK(!another_is_served(&h));
    fault_arm(0);
    house_fini(&h);
}

TEST(admins_have_a_limit_too)
{
    struct house h;

    house_init(&h);
    set_limits(
        &h, (struct throttle_limits){.user = {.per_minute = 60, .burst = 1}});
    CHECK_INT(house_ask(&h, "GET /api/me", "", "", answer), 200);
    CHECK_INT(house_ask(&h, "GET /api/users", "", "", answer), 429);
    house_fini(&h);
}

TEST(what_was_refused_was_not_done)
{
    struct house h;

    house_init(&h);
    set_limits(
        &h, (struct throttle_limits){.user = {.per_minute = 60, .burst = 1}});
    CHECK_INT(house_ask(&h, "GET /api/me", "", "", answer), 200);
    CHECK_INT(house_ask(&h, "POST /api/messages", "",
                        "{\"text\":\"x\",\"executor\":{\"name\":\"echo\"}}",
                        answer),
              429);
    CHECK_INT(house_ask(&h, "POST /api/users", "",
                        "{\"name\":\"x\",\"role\":\"user\"}", answer),
              429);
    CHECK_INT(h.api.by_id.n, 0);
    CHECK_INT(tasks_stats(walk_tasks(h.walk)).accepted_total, 0);
    CHECK_INT(access_stats(h.access).users, 1);
    house_fini(&h);
}

TEST(an_address_is_counted_before_anything_is_looked_at)
{
    static const char *const lines[] = {"GET /api/me", "GET /metrics", "GET /",
                                        "GET /nothing", "PUT /api/me"};
    struct access_token bad = {"sbx_no"};
    struct house h;

    house_init(&h);
    set_limits(&h, (struct throttle_limits){
                       .address = {.per_minute = 60, .burst = 1}});
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        house_pass_ms(&h, 1000);
        CHECK(ask_as(&h, &h.token, lines[i]) != 429); /* used the one */
        CHECK_INT(ask_as(&h, &h.token, lines[i]), 429);
        CHECK(strstr(answer, "\"limit\":\"address\""));
        CHECK_INT(ask_as(&h, &bad, "GET /api/me"), 429);
    }
    CHECK_INT(access_stats(h.access).refused_total, 0);
    CHECK_INT(throttle_total(h.api.throttle, THROTTLE_ADDRESS), 10);
    for (int i = 0; i < 100; i++) { /* health checks are always answered */
        CHECK_INT(ask_as(&h, &h.token, "GET /healthz"), 200);
        CHECK_INT(ask_as(&h, &h.token, "GET /readyz"), 200);
    }
    house_fini(&h);
}

TEST(a_good_token_is_taken_however_many_bad_ones_come)
{
    struct access_token bad = {"sbx_no"}, none = {""}, anna;
    struct house h;

    house_init(&h);
    anna = make_user(&h, "anna");
    set_limits(&h, (struct throttle_limits){
                       .failures = {.per_minute = 60, .burst = 3}});
    for (int i = 0; i < 3; i++)
        CHECK_INT(ask_as(&h, &bad, "GET /api/me"), 401);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(ask_as(&h, &bad, "GET /api/me"), 429);
        CHECK(strstr(answer, "\"limit\":\"failures\""));
        CHECK_INT(ask_as(&h, &anna, "GET /api/me"), 200); /* unseen so far */
    }
    house_pass_ms(&h, 1000);
    CHECK_INT(ask_as(&h, &bad, "GET /api/me"), 401);
    CHECK_INT(ask_as(&h, &none, "GET /api/me"), 429);
    house_fini(&h);
}

TEST(whoever_shows_no_token_has_not_guessed)
{
    static const char text[] =
        "GET /api/me HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct house h;

    house_init(&h);
    set_limits(&h, (struct throttle_limits){
                       .failures = {.per_minute = 60, .burst = 1}});
    for (int i = 0; i < 10; i++) {
        int fd = house_connect(&h);

        CHECK(send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) > 0);
        house_reply(&h, fd, answer, sizeof(answer));
        CHECK(strstr(answer, "401 Unauthorized"));
        close(fd);
    }
    CHECK_INT(house_ask(&h, "GET /api/me", "", "", answer), 200);
    house_fini(&h);
}

TEST(the_metrics_say_how_many_were_refused)
{
    struct house h;

    house_init(&h);
    set_limits(
        &h, (struct throttle_limits){.user = {.per_minute = 60, .burst = 1}});
    CHECK_INT(house_ask(&h, "GET /api/me", "", "", answer), 200);
    CHECK_INT(house_ask(&h, "GET /api/me", "", "", answer), 429);
    CHECK_INT(house_ask(&h, "GET /metrics", "", "", answer), 200);
    CHECK(strstr(answer, "signalbox_rate_limited_total{limit=\"user\"} 1\n"));
    CHECK(
        strstr(answer, "signalbox_rate_limited_total{limit=\"address\"} 0\n"));
    CHECK(strstr(answer, "signalbox_http_turned_away_total{limit=\"buffers\"} "
                         "0\n"));
    house_fini(&h);
}

/* Held connections. */

static struct caller holder(const char *name, enum role role)
{
    struct caller c = {.role = role,
                       .scopes = role == ROLE_ADMIN ? SCOPE_ALL : SCOPE_SEND};

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    return c;
}

enum { PLACES = 160 };

struct holders {
    struct throttle *t;
    struct throttle_share *held[2 * PLACES];
    size_t n;
};

static struct holders holders_new(void)
{
    struct holders h = {.t = throttle_new(seed)};

    CHECK(h.t);
    throttle_set(h.t, &(struct throttle_limits){.max_held = PLACES});
    return h;
}

static int hold_all(struct holders *h, const char *name, enum role role)
{
    struct caller c = holder(name, role);
    struct throttle_share *p;
    int n = 0;

    while (h->n < 2 * PLACES && (p = throttle_hold(h->t, &c))) {
        h->held[h->n++] = p;
        n++;
    }
    return n;
}

static void holders_free(struct holders *h)
{
    while (h->n)
        throttle_release(h->t, h->held[--h->n]);
    throttle_free(h->t);
}

/* Ten of 160 are reserved for admins; n + 1 <= 2 * (150 - others - n). */
TEST(two_users_who_hold_all_they_can_leave_places_for_others)
{
    struct holders h = holders_new();

    CHECK_INT(hold_all(&h, "mallory", ROLE_USER), 100);
    CHECK_INT(hold_all(&h, "oscar", ROLE_USER), 34);
    CHECK_INT(hold_all(&h, "mallory", ROLE_USER), 0);
    for (int i = 0; i < 5; i++) {
        char name[16];
        struct caller c;

        snprintf(name, sizeof(name), "user%d", i);
        c = holder(name, ROLE_USER);
        h.held[h.n] = throttle_hold(h.t, &c);
        CHECK(h.held[h.n++]);
    }
    CHECK(throttle_total(h.t, THROTTLE_HELD) > 0);
    CHECK(hold_all(&h, "root", ROLE_ADMIN) >= 10);
    CHECK_INT(h.n, PLACES);
    CHECK_INT(hold_all(&h, "root", ROLE_ADMIN), 0);
    holders_free(&h);
}

TEST(the_test_above_would_notice_places_without_a_limit)
{
    struct holders h = holders_new();

    fault_arm_at("throttle.no_places", 1);
    CHECK_INT(hold_all(&h, "mallory", ROLE_USER), 2 * PLACES);
    holders_free(&h);
}

TEST(what_is_released_can_be_held_again)
{
    struct holders h = holders_new();

    CHECK_INT(hold_all(&h, "anna", ROLE_USER), 100);
    throttle_release(h.t, h.held[--h.n]);
    CHECK_INT(hold_all(&h, "anna", ROLE_USER), 1);
    throttle_release(h.t, NULL);
    throttle_set(h.t, &(struct throttle_limits){.max_held = 0});
    CHECK_INT(hold_all(&h, "anna", ROLE_USER), 2 * PLACES - 100);
    holders_free(&h);
}
