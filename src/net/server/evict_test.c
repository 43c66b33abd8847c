/* All connections are taken: a silent one makes room, a busy one stays, and
 * health checks get an answer. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

enum { MOST = 4 };

static void open_with_four(struct stage *s)
{
    struct net_opts opts = test_opts();

    opts.max_connections = MOST;
    stage_init(s, opts);
}

static void close_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

static void dial_silent(struct stage *s, int *fds, int n)
{
    int64_t before = net_stats(s->net).connections_total;

    for (int i = 0; i < n; i++) {
        fds[i] = dial(s);
        UNTIL(s, net_stats(s->net).connections_total == before + i + 1);
    }
}

static bool is_closed(int fd)
{
    struct heard h = {.n = 0};

    hear(fd, &h);
    return h.is_eof || h.is_reset;
}

/* The status that a new client gets. */
static int status_of(struct stage *s, const char *request)
{
    struct heard h = {.n = 0};
    int fd = dial(s), status = 0;

    say(fd, request);
    HEAR_UNTIL(s, fd, &h, h.is_eof || h.is_reset || has(&h, "\r\n\r\n"));
    sscanf(h.text, "HTTP/1.1 %d", &status);
    close(fd);
    return status;
}

/* Silent ones beyond the limit, and then one that asks. */
static int status_beside_silent(void)
{
    struct stage s;
    int fds[3 * MOST], status;

    open_with_four(&s);
    for (int i = 0; i < 3 * MOST; i++)
        fds[i] = dial(&s);
    UNTIL(&s,
          net_stats(s.net).connections_total + net_stats(s.net).refused_total ==
              3 * MOST);
    status = status_of(&s, GET_CLOSE("/hello"));
    close_all(fds, 3 * MOST);
    stage_fini(&s);
    return status;
}

TEST(connections_that_say_nothing_keep_nobody_out)
{
    CHECK_INT(status_beside_silent(), 200);
}

TEST(the_test_above_would_notice_that_they_stay)
{
    fault_arm_at("net.no_eviction", 1);
    CHECK_INT(status_beside_silent(), 503);
}

TEST(at_the_limit_nobody_goes_and_one_beyond_it_the_oldest)
{
    struct stage s;
    int fds[MOST + 1];

    open_with_four(&s);
    dial_silent(&s, fds, MOST);
    CHECK_INT(net_stats(s.net).evicted_total, 0);
    dial_silent(&s, fds + MOST, 1);
    CHECK_INT(net_stats(s.net).evicted_total, 1);
    CHECK_INT(net_stats(s.net).refused_total, 0);
    UNTIL(&s, is_closed(fds[0]));
    for (int i = 1; i <= MOST; i++)
        CHECK(!is_closed(fds[i]));
    UNTIL(&s, net_stats(s.net).connections == MOST);
    close_all(fds, MOST + 1);
    stage_fini(&s);
}

/* Of which a whole request never came, however much of one did. */
TEST(half_a_request_does_not_keep_a_place)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fds[MOST];

    open_with_four(&s);
    dial_silent(&s, fds, MOST);
    say(fds[0], "GET /half HT");
    say(fds[1], "POST /half HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
    say(fds[2], GET("/whole"));
    HEAR_UNTIL(&s, fds[2], &h, has(&h, "\r\n\r\n/whole"));
    say(fds[2], "GET /half HT"); /* the next one: it was not silent before */
    turn(&s, 5);
    CHECK_INT(status_of(&s, GET_CLOSE("/1")), 200);
    UNTIL(&s, is_closed(fds[0]));
    UNTIL(&s, net_stats(s.net).connections == MOST - 1);
    s.mode = HOLD;
    dial_silent(&s, fds, 1);
    say(fds[0], GET("/held"));
    UNTIL(&s, s.n_requests == 3);
    s.mode = ANSWER;
    CHECK_INT(status_of(&s, GET_CLOSE("/2")), 200);
    UNTIL(&s, is_closed(fds[1]));
    CHECK(!is_closed(fds[0]) && !is_closed(fds[2]));
    close_all(fds, MOST);
    stage_fini(&s);
}

TEST(after_the_silent_ones_those_go_that_are_idle_for_longest)
{
    struct stage s;
    int fds[MOST];

    open_with_four(&s);
    dial_silent(&s, fds, MOST);
    for (int i = 0; i < 3; i++) { /* the third first, then the first */
        static const int order[] = {2, 0, 1};
        struct heard h = {.n = 0};

        say(fds[order[i]], GET("/x"));
        HEAR_UNTIL(&s, fds[order[i]], &h, has(&h, "\r\n\r\n/x"));
    }
    CHECK_INT(status_of(&s, GET_CLOSE("/1")), 200);
    UNTIL(&s, is_closed(fds[3]));
    UNTIL(&s, net_stats(s.net).connections == MOST - 1);
    dial_silent(&s, fds + 3, 1);
    s.mode = HOLD;
    say(fds[3], GET("/held"));
    UNTIL(&s, s.n_requests == 5);
    s.mode = ANSWER;
    CHECK_INT(status_of(&s, GET_CLOSE("/2")), 200);
    UNTIL(&s, is_closed(fds[2]));
    CHECK(!is_closed(fds[0]) && !is_closed(fds[1]) && !is_closed(fds[3]));
    close_all(fds, MOST);
    stage_fini(&s);
}

/* MOST connections with a request that is not answered. */
static void hold_all(struct stage *s, int *fds)
{
    s->mode = HOLD;
    dial_silent(s, fds, MOST);
    for (int i = 0; i < MOST; i++)
        say(fds[i], GET("/held"));
    UNTIL(s, s->n_requests == MOST);
    s->mode = ANSWER;
}

TEST(who_is_at_work_stays)
{
    struct stage s;
    int fds[MOST];

    open_with_four(&s);
    hold_all(&s, fds);
    CHECK_INT(status_of(&s, GET_CLOSE("/x")), 503);
    CHECK_INT(net_stats(s.net).evicted_total, 0);
    CHECK_INT(net_stats(s.net).refused_total, 1);
    CHECK_INT(s.n_gone, 0);
    close_all(fds, MOST);
    stage_fini(&s);
}

static bool is_health(void *ctx, const struct http_request *rq)
{
    (void)ctx;
    return str_eq(rq->path, STR("/healthz"));
}

TEST(health_checks_have_an_answer_where_all_are_at_work)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fds[MOST], fd;

    open_with_four(&s);
    s.net->on.is_vital = is_health;
    hold_all(&s, fds);
    for (int i = 0; i < 100; i++)
        CHECK_INT(status_of(&s, GET("/healthz")), 200);
    CHECK_INT(net_stats(s.net).refused_total, 0);
    CHECK_INT(status_of(&s, GET("/x")), 503);
    CHECK_INT(net_stats(s.net).refused_total, 1);
    CHECK_INT(net_stats(s.net).refused_by_total[NET_NO_CONNECTION], 1);
    /* One request, and no body. */
    fd = dial(&s);
    say(fd, GET("/healthz") GET("/healthz"));
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(count(&h, "HTTP/1.1 ") == 1 && has(&h, "Connection: close\r\n"));
    close(fd);
    CHECK_INT(status_of(&s, "POST /healthz HTTP/1.1\r\nHost: h\r\n"
                            "Content-Length: 5\r\n\r\n"),
              503);
    close_all(fds, MOST);
    stage_fini(&s);
}

TEST(silent_guests_make_room_for_the_next_and_are_told)
{
    enum { MANY = 3 * AWAY_MAX };
    struct stage s;
    int fds[MOST], guests[MANY];

    open_with_four(&s);
    s.net->on.is_vital = is_health;
    hold_all(&s, fds);
    for (int i = 0; i < MANY; i++) {
        guests[i] = dial(&s);
        turn(&s, 2);
        CHECK(s.net->n_away <= AWAY_MAX && s.net->n_guests <= GUESTS_MAX);
    }
    UNTIL(&s, s.net->n_guests == GUESTS_MAX);
    CHECK_INT(status_of(&s, GET("/healthz")), 200);
    later(&s, s.opts.header_timeout_ms);
    for (int i = 0; i < MANY; i++) {
        struct heard h = {.n = 0};

        HEAR_UNTIL(&s, guests[i], &h, h.is_eof || h.is_reset);
        CHECK(has(&h, "503 Service Unavailable") && !h.is_reset);
    }
    CHECK_INT(net_stats(s.net).refused_total, MANY);
    close_all(guests, MANY);
    close_all(fds, MOST);
    stage_fini(&s);
}

/* An address that has all it may have cannot use up what others have. */
TEST(nobody_goes_for_somebody_who_is_turned_away)
{
    struct net_opts opts = test_opts();
    struct stage s;
    int fds[MOST], more;

    opts.max_connections = MOST;
    opts.max_connections_per_address = 2;
    stage_init(&s, opts);
    for (int i = 0; i < MOST; i++)
        fds[i] = dial_from(&s, 2 + (unsigned)i / 2);
    UNTIL(&s, net_stats(s.net).connections == MOST);
    more = dial_from(&s, 2);
    UNTIL(&s, net_stats(s.net).refused_total == 1);
    CHECK_INT(net_stats(s.net).refused_by_total[NET_NO_ADDRESS], 1);
    CHECK_INT(net_stats(s.net).evicted_total, 0);
    close(more);
    close_all(fds, MOST);
    stage_fini(&s);
}

/* Those that came in one turn with all of their requests are all answered. */
TEST(who_has_spoken_before_it_is_taken_is_not_closed)
{
    struct stage s;
    int fds[MOST + 1], n_served = 0;

    open_with_four(&s);
    for (int i = 0; i <= MOST; i++) {
        fds[i] = dial(&s);
        say(fds[i], GET_CLOSE("/x"));
    }
    for (int i = 0; i <= MOST; i++) {
        struct heard h = {.n = 0};

        HEAR_UNTIL(&s, fds[i], &h, h.is_eof || h.is_reset);
        n_served += has(&h, "200 OK");
        CHECK(has(&h, "200 OK") || has(&h, "503 "));
    }
    CHECK(n_served >= MOST);
    CHECK_INT(net_stats(s.net).evicted_total, 0);
    close_all(fds, MOST + 1);
    stage_fini(&s);
}
