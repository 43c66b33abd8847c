/* Coming up and going down. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

TEST(an_address_that_is_none_is_explained)
{
    static const char *bad[] = {
        "",     "8787", ":8787", "example.org:80", "127.0.0.1:99999",
        "[::1", "[x]:1"};
    struct stage s;
    struct why why;

    CHECK(stage_try_init(&s, test_opts()));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(net_listen(s.net, str_of(bad[i]), false, &why) == ERR_USAGE);
        CHECK(strstr(why.text, "is not an address to listen on"));
    }
    CHECK(net_listen(s.net, STR("192.0.2.1:0"), false, &why) == ERR_IO);
    CHECK(strstr(why.text, "this machine has no address 192.0.2.1:0"));
    CHECK(net_url(s.net)[0] == 0);
    stage_free(&s); /* never listened: no stop needed */
}

TEST(an_address_in_use_is_explained)
{
    struct stage s, t;
    struct why why;
    char address[64], wanted[192];

    stage_init(&s, test_opts());
    CHECK(stage_try_init(&t, test_opts()));
    snprintf(address, sizeof(address), "127.0.0.1:%u", s.port);
    CHECK(net_listen(t.net, str_of(address), false, &why) == ERR_BUSY);
    snprintf(wanted, sizeof(wanted),
             "address %s is in use: stop the other program or choose another "
             "port with --listen",
             address);
    CHECK(strcmp(why.text, wanted) == 0);
    CHECK(net_listen(t.net, str_of(address), false, NULL) == ERR_BUSY);
    /* And after that a free one will do. */
    CHECK(net_listen(t.net, STR("127.0.0.1:0"), false, &why) == OK);
    stage_fini(&t);
    stage_fini(&s);
}

/* -1 when this machine has no such address. */
static int dial_v6(uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_port = htons(port),
                             .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        close(fd);
        return -1;
    }
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

TEST(localhost_listens_on_both_families)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    CHECK(stage_try_init(&s, test_opts()));
    CHECK(net_listen(s.net, STR("localhost:0"), false, NULL) == OK);
    CHECK(str_starts(str_of(net_url(s.net)), STR("http://127.0.0.1:")));
    s.port = stage_port(&s);
    check_alive(&s);
    fd = dial_v6(s.port);
    CHECK((fd >= 0) == (s.net->n_listeners == 2));
    if (fd >= 0) {
        say(fd, GET("/six"));
        HEAR_UNTIL(&s, fd, &h, has(&h, "/six"));
        CHECK(str_starts(str_of(s.net->slots[0].c->peer), STR("[::1]:")));
        close(fd);
    }
    stage_fini(&s);
}

/* Another program may have the port of version 6 in version 4: then another
 * one is tried. */
static bool is_everywhere(void)
{
    struct stage s;
    bool is_both;
    enum err e;

    CHECK(stage_try_init(&s, test_opts()));
    e = net_listen(s.net, STR("[::]:0"), false, NULL);
    is_both = e || s.net->n_listeners == 2;
    if (!e) { /* else there is no version 6 on this machine */
        CHECK(str_starts(str_of(net_url(s.net)), STR("http://[::]:")));
        s.port = stage_port(&s);
    }
    if (!e && is_both)
        check_alive(&s); /* by version 4 */
    stage_fini(&s);
    return is_both;
}

TEST(everywhere_is_both_families)
{
    int n = 1;

    while (!is_everywhere())
        CHECK(n++ < 20);
}

TEST(an_address_of_version_6_has_its_url)
{
    struct stage s;
    struct heard h = {.n = 0};
    enum err e;
    int fd;

    CHECK(stage_try_init(&s, test_opts()));
    e = net_listen(s.net, STR("[::1]:0"), false, NULL);
    if (!e) {
        CHECK(str_starts(str_of(net_url(s.net)), STR("http://[::1]:")));
        fd = dial_v6(stage_port(&s));
        say(fd, GET("/six"));
        HEAR_UNTIL(&s, fd, &h, has(&h, "/six"));
        close(fd);
    }
    stage_fini(&s);
}

TEST(several_addresses_may_be_listened_on)
{
    struct stage s;
    char first[80];

    stage_init(&s, test_opts());
    snprintf(first, sizeof(first), "%s", net_url(s.net));
    CHECK(net_listen(s.net, STR("127.0.0.1:0"), false, NULL) == OK);
    CHECK(strcmp(net_url(s.net), first) == 0);
    check_alive(&s);
    stage_fini(&s);
}

TEST(stopping_closes_what_is_idle_and_lets_open_requests_finish)
{
    struct stage s;
    struct heard h = {.n = 0}, hs = {.n = 0}, hi = {.n = 0};
    int idle, open_one, half, stream;

    stage_init(&s, test_opts());
    idle = dial(&s);
    say(idle, GET("/idle"));
    HEAR_UNTIL(&s, idle, &hi, has(&hi, "/idle"));
    open_one = open_request(&s, HOLD, GET("/open") GET("/pipelined"));
    stream = open_request(&s, STREAM, GET("/stream"));
    half = dial(&s);
    say(half, "GET /half HT");
    turn(&s, 3);

    net_stop(s.net, 2500, stage_done, &s);
    HEAR_UNTIL(&s, idle, &hi, hi.is_eof);
    CHECK(s.n_gone == 0 && s.n_done == 0);
    CHECK(net_stats(s.net).connections == 3);

    net_reply(s.net, s.ids[1], &s.reply);
    HEAR_UNTIL(&s, open_one, &h, h.is_eof);
    CHECK(has(&h, "Connection: close\r\n") && count(&h, "HTTP/1.1") == 1);
    CHECK(s.n_requests == 3); /* what was pipelined is not begun */

    s.mode = ANSWER;
    h = (struct heard){.n = 0};
    say(half, "TP/1.1\r\nHost: h\r\n\r\n");
    HEAR_UNTIL(&s, half, &h, h.is_eof);
    CHECK(has(&h, "\r\n\r\n/half") && has(&h, "Connection: close\r\n"));

    net_stream_end(s.net, s.ids[2]);
    HEAR_UNTIL(&s, stream, &hs, hs.is_eof);
    CHECK(has(&hs, "0\r\n\r\n") && s.n_done == 0);
    close(idle);
    close(open_one);
    close(half);
    close(stream);
    UNTIL(&s, s.n_done == 1);
    CHECK(s.n_gone == 0);
    stage_free(&s);
}

TEST(after_the_grace_everything_is_cut)
{
    struct stage s;
    int held, stream, half;

    stage_init(&s, test_opts());
    held = open_request(&s, HOLD, GET("/held"));
    stream = open_request(&s, STREAM, GET("/stream"));
    half = dial(&s);
    say(half, "GET");
    turn(&s, 3);
    net_stop(s.net, 500, stage_done, &s);
    later(&s, 499);
    CHECK(s.n_done == 0 && s.n_gone == 0);
    later(&s, 1);
    UNTIL(&s, s.n_done == 1);
    CHECK(s.n_gone == 2 && net_stats(s.net).connections == 0);
    turn(&s, 5);
    CHECK(s.n_done == 1);
    stage_free(&s);
    close(held);
    close(stream);
    close(half);
}

/* A connection that had its share of a turn has more lying with us. Closing
 * over that would reset it, and with it replies on their way. */
TEST(stopping_between_two_turns_of_a_pipeline_loses_no_reply)
{
    char many[200 * sizeof(GET("/p"))] = "";
    struct stage s;
    struct heard h = {.n = 0};
    int fd, n_answered;

    for (int i = 0; i < 200; i++)
        memcpy(many + strlen(many), GET("/p"), sizeof(GET("/p")));
    stage_init(&s, test_opts());
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    say(fd, many);
    UNTIL(&s, s.n_requests > 0);
    n_answered = s.n_requests;
    CHECK(n_answered < 200);
    say(fd, GET("/late")); /* still with the kernel when we stop */
    net_stop(s.net, 1000, stage_done, &s);
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(h.is_eof && !h.is_reset);
    CHECK(count(&h, "HTTP/1.1 200") == n_answered);
    close(fd);
    stage_await_stop(&s);
}

TEST(stopping_over_a_request_not_yet_read_loses_no_reply)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, ANSWER, GET("/first"));
    turn(&s, 3);
    say(fd, GET("/late"));
    net_stop(s.net, 1000, stage_done, &s);
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(h.is_eof && !h.is_reset && count(&h, "HTTP/1.1 200") == 1);
    close(fd);
    stage_await_stop(&s);
}

/* What is still to be read may be what the client is busy writing. */
TEST(the_last_reply_is_sent_while_input_is_read)
{
    static char body[8 << 20], rest[64 * 1024];
    struct stage s;
    const struct conn *c;
    int fd;

    memset(rest, 'x', sizeof(rest));
    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/h"));
    CHECK(send(fd, rest, sizeof(rest), MSG_NOSIGNAL) > 0);
    c = net_find(s.net, s.ids[0]);
    UNTIL(&s, !c->is_reading);
    net_stop(s.net, 1000, stage_done, &s);
    s.reply.body = (struct str){body, sizeof(body)};
    net_reply(s.net, s.ids[0], &s.reply);
    turn(&s, 3);
    CHECK(c->state == CONN_DRAIN && c->is_blocked && c->is_reading);
    close(fd);
    later(&s, 1000);
    stage_await_stop(&s);
}

TEST(stopping_again_only_shortens_the_grace)
{
    struct stage s;
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/held"));
    net_stop(s.net, 2900, stage_done, &s);
    later(&s, 100);
    net_stop(s.net, 0, NULL, NULL);
    UNTIL(&s, s.n_done == 1);
    CHECK(s.n_gone == 1);
    stage_free(&s);
    close(fd);
}

TEST(nobody_is_taken_while_stopping)
{
    struct stage s;
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), held;

    stage_init(&s, test_opts());
    held = open_request(&s, HOLD, GET("/held"));
    net_stop(s.net, 1000, stage_done, &s);
    turn(&s, 3);
    a.sin_port = htons(s.port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0);
    close(fd);
    close(held);
    stage_fini(&s);
}

TEST(a_server_nobody_came_to_stops)
{
    struct stage s;

    CHECK(stage_try_init(&s, test_opts()));
    stage_fini(&s); /* never listened */
    stage_init(&s, test_opts());
    net_stop(s.net, 1000, stage_done, &s);
    CHECK(s.n_done == 0); /* from the loop only */
    stage_await_stop(&s);
}

static void stop_inside(void *ctx, uint64_t id, const struct http_request *rq)
{
    struct stage *s = ctx;

    s->n_requests++;
    net_reply(s->net, id,
              &(struct http_reply){.status = 200, .body = rq->path});
    net_stop(s->net, 1000, stage_done, s);
    CHECK(str_eq(rq->path, STR("/last"))); /* still there to be read */
}

TEST(stopping_inside_a_request_still_sends_its_reply)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    s.net->on.on_request = stop_inside;
    fd = dial(&s);
    say(fd, GET("/last") GET("/never"));
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "\r\n\r\n/last") && count(&h, "HTTP/1.1") == 1);
    close(fd);
    UNTIL(&s, s.n_done == 1);
    CHECK(s.n_requests == 1);
    stage_free(&s);
}

static void free_inside(void *ctx)
{
    struct stage *s = ctx;

    s->n_done++;
    net_free(s->net);
    s->net = NULL;
}

TEST(the_room_may_be_freed_when_it_says_done)
{
    struct stage s;
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    turn(&s, 3);
    net_stop(s.net, 0, free_inside, &s);
    UNTIL(&s, s.n_done == 1);
    stage_free(&s);
    close(fd);
}
