/* Requests, replies and streams over real sockets. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

TEST(a_request_gets_its_reply)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    ask(&s, GET_CLOSE("/hello?a=b"), &h);
    CHECK(strcmp(s.said, "GET /hello?a=b [];") == 0);
    CHECK(strcmp(h.text, "HTTP/1.1 200 OK\r\n"
                         "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                         "Content-Type: text/plain\r\n"
                         "Content-Length: 6\r\n"
                         "Connection: close\r\n"
                         "\r\n/hello") == 0);
    CHECK(net_stats(s.net).connections == 0);
    stage_fini(&s);
}

TEST(a_connection_stays_for_the_next_request)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    for (int i = 1; i <= 5; i++) {
        say(fd, GET("/again"));
        HEAR_UNTIL(&s, fd, &h, count(&h, "/again") == i);
    }
    CHECK(count(&h, "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n") ==
          5);
    CHECK(net_stats(s.net).connections_total == 1);
    CHECK(net_stats(s.net).requests_total == 5);
    close(fd);
    stage_fini(&s);
}

TEST(an_idle_connection_owns_no_buffers)
{
    struct stage s;
    struct heard h = {.n = 0};
    const struct conn *c;
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say_n(fd, GET("/split"), 10);
    UNTIL(&s, net_stats(s.net).buffered_bytes > 0);
    c = s.net->slots[0].c;
    CHECK(c->state == CONN_HEAD && c->in.n == 10);
    say(fd, &GET("/split")[10]);
    HEAR_UNTIL(&s, fd, &h, has(&h, "/split"));
    CHECK(c->state == CONN_IDLE);
    CHECK(!c->in.p && !c->out.p);
    CHECK(sizeof(*c) < 800);
    close(fd);
    stage_fini(&s);
}

TEST(http_1_0_closes_unless_asked)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    ask(&s, "GET /old HTTP/1.0\r\n\r\n", &h);
    CHECK(has(&h, "Connection: close\r\n") && has(&h, "\r\n\r\n/old"));
    fd = dial(&s);
    h = (struct heard){.n = 0};
    say(fd, "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/1"));
    CHECK(has(&h, "Connection: keep-alive\r\n"));
    say(fd, "GET /2 HTTP/1.0\r\n\r\n");
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "\r\n\r\n/2"));
    close(fd);
    stage_fini(&s);
}

TEST(some_replies_have_no_body)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    ask(&s, "HEAD /head HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", &h);
    CHECK(has(&h, "Content-Length: 5\r\n") && !has(&h, "/head"));
    CHECK(strcmp(h.text + h.n - 4, "\r\n\r\n") == 0);
    s.reply.status = 204;
    ask(&s, GET_CLOSE("/gone"), &h);
    CHECK(!has(&h, "Content-Length") && !has(&h, "/gone"));
    s.reply.status = 304;
    ask(&s, GET_CLOSE("/same"), &h);
    CHECK(!has(&h, "Content-Length") && !has(&h, "/same"));
    stage_fini(&s);
}

TEST(replies_to_pipelined_requests_leave_in_order_and_together)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    say(fd, GET("/1") GET("/2") GET("/3") "GET /4 HT");
    await_arrival(s.net->slots[0].c->fd, 3 * strlen(GET("/1")) + 9);
    turn(&s, 1);
    CHECK(s.n_requests == 3);
    await_arrival(fd, 1);
    hear(fd, &h);
    CHECK(count(&h, "200 OK") == 3);
    CHECK(strstr(h.text, "\r\n\r\n/1") < strstr(h.text, "\r\n\r\n/2"));
    CHECK(strstr(h.text, "\r\n\r\n/2") < strstr(h.text, "\r\n\r\n/3"));
    say(fd, "TP/1.1\r\nHost: h\r\n\r\n");
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/4"));
    close(fd);
    stage_fini(&s);
}

TEST(many_requests_at_once_let_others_come_between)
{
    enum { ASKED = 3 * REQUESTS_PER_TURN + 1 };
    static const char one[] = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
    static char text[ASKED * sizeof(one)];
    struct stage s;
    struct heard ha = {.n = 0}, hb = {.n = 0};
    int a, b;

    stage_init(&s, test_opts());
    for (int i = 0; i < ASKED; i++)
        memcpy(text + strlen(text), one, sizeof(one));
    a = dial(&s);
    b = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 2);
    say(a, text);
    await_arrival(s.net->slots[0].c->fd, strlen(text));
    for (int i = 1; i <= 3; i++) {
        say(b, GET("/b"));
        await_arrival(s.net->slots[1].c->fd, strlen(GET("/b")));
        turn(&s, 1);
        await_arrival(b, 1);
        hear(b, &hb);
        CHECK(s.n_requests == i * (REQUESTS_PER_TURN + 1));
        CHECK(count(&hb, "/b") == i);
        await_arrival(a, 1);
        hear(a, &ha); /* what was answered is not held back */
        CHECK(count(&ha, "200 OK") == i * REQUESTS_PER_TURN);
    }
    shutdown(a, SHUT_WR); /* the last one is answered all the same */
    HEAR_UNTIL(&s, a, &ha, ha.is_eof);
    CHECK(count(&ha, "200 OK") == ASKED);
    close(a);
    close(b);
    stage_fini(&s);
}

/* Nothing comes that could wake the loop, which must go on by itself. */
TEST(requests_that_wait_for_their_turn_keep_the_loop_awake)
{
    enum { ASKED = 3 * REQUESTS_PER_TURN };
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    for (int i = 0; i < ASKED; i++)
        say(fd, GET("/"));
    while (s.n_requests < ASKED)
        uv_run(&s.loop.uv, UV_RUN_ONCE);
    HEAR_UNTIL(&s, fd, &h, count(&h, "200 OK") == ASKED);
    close(fd);
    stage_fini(&s);
}

TEST(one_request_is_open_at_a_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/1") GET("/2") GET("/3"));
    turn(&s, 5);
    CHECK(s.n_requests == 1);
    reply_text(&s, s.ids[0], "first");
    CHECK(s.n_requests == 1); /* never from inside a call */
    UNTIL(&s, s.n_requests == 2);
    reply_text(&s, s.ids[1], "second");
    UNTIL(&s, s.n_requests == 3);
    reply_text(&s, s.ids[2], "third");
    HEAR_UNTIL(&s, fd, &h, has(&h, "third"));
    CHECK(strstr(h.text, "first") < strstr(h.text, "second"));
    CHECK(strcmp(s.said, "GET /1 [];GET /2 [];GET /3 [];") == 0);
    close(fd);
    stage_fini(&s);
}

TEST(bodies_come_whole_however_they_were_sent)
{
    static const char *parts[] = {
        "POST /a HTTP/1.1\r\nHost: h\r\nX-Test: one\r\nContent-Le",
        "ngth: 10\r\n\r\n01234",
        "56789POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
        "X-Test: two\r\n\r\n3\r\nabc\r\n2;x",
        "=y\r\nde",
        "\r\n0\r\nTrailer: gone\r\n\r\n",
        GET("/c"),
    };
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        say(fd, parts[i]);
        turn(&s, 3);
        if (i == 2)
            CHECK(strcmp(s.header, "one") == 0);
    }
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/c"));
    CHECK(strcmp(s.said, "POST /a [0123456789];POST /b [abcde];GET /c [];") ==
          0);
    close(fd);
    stage_fini(&s);
}

#define EXPECT(length)                        \
    "POST /e HTTP/1.1\r\nHost: h\r\nExpect: " \
    "100-continue\r\nContent-Length: " length "\r\n\r\n"

TEST(a_client_is_told_to_go_on_with_its_body)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, EXPECT("3"));
    HEAR_UNTIL(&s, fd, &h, h.n > 0);
    CHECK(strcmp(h.text, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    say(fd, "a");
    turn(&s, 3);
    say(fd, "bc");
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/e"));
    CHECK(count(&h, "100 Continue") == 1);
    say(fd, EXPECT("3") "a"); /* does not wait, so is not told */
    turn(&s, 3);
    say(fd, "bc");
    HEAR_UNTIL(&s, fd, &h, count(&h, "\r\n\r\n/e") == 2);
    CHECK(count(&h, "100 Continue") == 1);
    say(fd, EXPECT("4097")); /* too large is said before it is sent */
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(count(&h, "100 Continue") == 1 && has(&h, "413 Content Too Large"));
    CHECK(net_stats(s.net).replies_total[1] == 1);
    close(fd);
    stage_fini(&s);
}

TEST(a_bad_request_is_answered_in_words_and_the_connection_closed)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    ask(&s, GET("/good") "BAD\r\n" GET("/never"), &h);
    CHECK(strcmp(s.said, "GET /good [];") == 0);
    CHECK(has(&h, "\r\n\r\n/good"));
    CHECK(has(&h, "HTTP/1.1 400 Bad Request\r\n"));
    CHECK(has(&h, "Content-Type: application/json\r\n"));
    CHECK(has(&h, "Connection: close\r\n"));
    CHECK(has(&h, "{\"code\":\"bad_request\",\"what\":\"the method is "
                  "not a word and one space\"}"));
    CHECK(h.is_eof && !h.is_reset);
    CHECK(net_stats(s.net).bad_requests_total == 1);
    CHECK(net_stats(s.net).replies_total[4] == 1);
    ask(&s, "HEAD /a HTTP/1.1\r\n\r\n", &h); /* no Host */
    CHECK(has(&h, "400 Bad Request") && !has(&h, "{"));
    check_alive(&s);
    stage_fini(&s);
}

/* A client that sends more than it may still gets to read why. */
TEST(a_refused_client_is_not_reset_while_it_sends)
{
    struct stage s;
    struct heard h = {.n = 0};
    static char body[32768];
    int fd;

    stage_init(&s, test_opts());
    memset(body, 'x', sizeof(body));
    fd = dial(&s);
    say(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999\r\n\r\n");
    say_n(fd, body, sizeof(body));
    turn(&s, 3);
    say_n(fd, body, sizeof(body));
    turn(&s, 3);
    say_n(fd, body, sizeof(body));
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(has(&h, "413 Content Too Large") && !h.is_reset);
    CHECK(net_stats(s.net).connections == 1); /* lingers */
    close(fd);
    UNTIL(&s, net_stats(s.net).connections == 0);
    stage_fini(&s);
}

TEST(lingering_ends_after_its_time_and_its_bytes)
{
    struct stage s;
    struct heard h = {.n = 0};
    static char much[65536];
    size_t sent = 0;
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, "BAD\r\n");
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    later(&s, LINGER_MS - 1);
    CHECK(net_stats(s.net).connections == 1);
    later(&s, 1);
    CHECK(net_stats(s.net).connections == 0);
    close(fd);

    fd = dial(&s);
    say(fd, "BAD\r\n");
    memset(much, 'x', sizeof(much));
    while (sent < LINGER_BYTES + 65536UL) {
        ssize_t n = send(fd, much, sizeof(much), MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno != EAGAIN)
            break;
        turn(&s, 1);
    }
    UNTIL(&s, net_stats(s.net).connections == 0);
    close(fd);
    stage_fini(&s);
}

/* A client that shuts its sending side only says that no request follows. */
TEST(a_half_closed_client_gets_its_replies)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, GET("/1") GET("/2"));
    shutdown(fd, SHUT_WR);
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "\r\n\r\n/1") && has(&h, "\r\n\r\n/2") && !h.is_reset);
    close(fd);

    s.mode = HOLD;
    h = (struct heard){.n = 0};
    s.n_requests = 0;
    fd = dial(&s);
    say(fd, GET("/3") GET("/4"));
    shutdown(fd, SHUT_WR);
    UNTIL(&s, s.n_requests == 1);
    UNTIL(&s, net_is_shut(s.net, s.ids[0])); /* who asks may know */
    turn(&s, 5);
    CHECK(s.n_gone == 0);
    reply_text(&s, s.ids[0], "late 3");
    UNTIL(&s, s.n_requests == 2);
    reply_text(&s, s.ids[1], "late 4");
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "late 3") && has(&h, "late 4") && s.n_gone == 0);
    close(fd);
    UNTIL(&s, net_stats(s.net).connections == 0);
    stage_fini(&s);
}

TEST(a_request_cut_short_is_a_bad_one)
{
    static const char *texts[] = {
        "GET",
        "GET / HTTP/1.1\r\nHo",
        "\r\nG",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
    };
    struct stage s;

    stage_init(&s, test_opts());
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct heard h = {.n = 0};
        int fd = dial(&s);

        say(fd, texts[i]);
        shutdown(fd, SHUT_WR);
        HEAR_UNTIL(&s, fd, &h, h.is_eof);
        CHECK(has(&h, "400 Bad Request") && has(&h, "ends in the middle"));
        close(fd);
    }
    CHECK(s.n_requests == 0);
    stage_fini(&s);
}

/* Some clients send an empty line behind a body; it begins no request. */
TEST(an_empty_line_behind_a_body_begins_nothing)
{
    static const char *ends[] = {"\r", "\r\n"};
    struct stage s;

    stage_init(&s, test_opts());
    for (size_t i = 0; i < 2; i++) {
        struct heard h = {.n = 0};
        int fd = dial(&s);

        say(fd, "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
        say(fd, ends[i]);
        HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/1"));
        later(&s, s.opts.header_timeout_ms + 1);
        CHECK(s.net->slots[0].c->state == CONN_IDLE);
        CHECK(!s.net->slots[0].c->in.p);
        say(fd, &"\r\n"[strlen(ends[i])]);
        turn(&s, 3);
        say(fd, GET("/2"));
        HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n/2"));
        say(fd, ends[i]);
        shutdown(fd, SHUT_WR);
        HEAR_UNTIL(&s, fd, &h, h.is_eof);
        CHECK(count(&h, "HTTP/1.1") == 2 && !h.is_reset);
        close(fd);
        UNTIL(&s, net_stats(s.net).connections == 0);
    }
    CHECK(net_stats(s.net).bad_requests_total == 0);
    stage_fini(&s);
}

TEST(stopping_does_not_wait_for_what_an_empty_line_begins)
{
    struct stage s;
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, "\r\n");
    turn(&s, 3);
    net_stop(s.net, 1000, stage_done, &s);
    UNTIL(&s, s.n_done == 1); /* without a step of the clock */
    stage_free(&s);
    close(fd);
}

TEST(a_client_that_says_nothing_and_leaves_is_forgotten)
{
    struct stage s;
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    close(fd);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).bytes_out_total == 0);
    stage_fini(&s);
}

static void reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

TEST(the_owner_learns_of_a_client_that_left)
{
    struct stage s;
    uint64_t id;
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/held"));
    id = s.ids[0];
    CHECK(!net_is_shut(s.net, id));
    reset(fd);
    UNTIL(&s, s.n_gone == 1);
    CHECK(s.gone_id == id);
    reply_text(&s, id, "to no request");
    CHECK(!net_is_shut(s.net, id));
    CHECK(net_stream_send(s.net, id, STR("x")) == ERR_GONE);
    net_stream_end(s.net, id);
    turn(&s, 3);
    CHECK(s.n_gone == 1 && net_stats(s.net).connections == 0);
    check_alive(&s);
    stage_fini(&s);
}

TEST(an_answered_request_is_nobody)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/1") GET("/2"));
    reply_text(&s, s.ids[0], "once");
    reply_text(&s, s.ids[0], "twice");
    UNTIL(&s, s.n_requests == 2);
    CHECK(s.ids[0] != s.ids[1]);
    reply_text(&s, s.ids[0], "thrice");
    CHECK(net_stream_open(s.net, s.ids[0], &s.reply) == ERR_GONE);
    reply_text(&s, 0, "zero");
    reply_text(&s, UINT64_MAX, "all ones");
    reply_text(&s, s.ids[1] ^ 1, "the neighbour");
    reply_text(&s, s.ids[1], "second");
    HEAR_UNTIL(&s, fd, &h, has(&h, "second"));
    CHECK(count(&h, "200 OK") == 2 && !has(&h, "twice") && !has(&h, "thrice"));
    close(fd);
    stage_fini(&s);
}

TEST(an_old_id_is_nobody_on_a_new_connection_in_its_place)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/1"));
    reset(fd);
    UNTIL(&s, net_stats(s.net).connections == 0);
    fd = dial(&s);
    say(fd, GET("/2"));
    UNTIL(&s, s.n_requests == 2);
    reply_text(&s, s.ids[0], "wrong");
    reply_text(&s, s.ids[1], "right");
    HEAR_UNTIL(&s, fd, &h, has(&h, "right"));
    CHECK(!has(&h, "wrong"));
    close(fd);
    stage_fini(&s);
}

TEST(a_reply_larger_than_the_kernel_takes_arrives_whole)
{
    struct stage s;
    struct heard h;
    size_t n_body = 8 << 20, n_heard = 0;
    char *body = malloc(n_body);
    int fd;

    stage_init(&s, test_opts());
    memset(body, 'z', n_body);
    s.reply.body = (struct str){body, n_body};
    fd = dial_small(&s, 4096);
    say(fd, GET_CLOSE("/big"));
    do {
        n_heard += hear_more(&s, fd, &h);
    } while (!h.is_eof && !h.is_reset);
    CHECK(!h.is_reset && n_heard > n_body && n_heard < n_body + 300);
    CHECK(net_stats(s.net).bytes_out_total == (int64_t)n_heard);
    close(fd);
    free(body);
    stage_fini(&s);
}

TEST(options_may_change_inside_a_request)
{
    struct stage s;
    struct heard h = {.n = 0};
    struct net_opts more;
    char many[2048] = "GET /many HTTP/1.1\r\nHost: h\r\n";
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/1"));
    more = s.opts;
    more.max_headers = 200;
    more.max_header_bytes = 4000;
    net_set_opts(s.net, &more);
    reply_text(&s, s.ids[0], "1");
    for (size_t i = 0, at = strlen(many); i < 199; i++, at += 4)
        memcpy(many + at, "a:\r\n", 5);
    memcpy(many + strlen(many), "\r\n", 3);
    say(fd, many);
    UNTIL(&s, s.n_requests == 2);
    reply_text(&s, s.ids[1], "many");
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\nmany"));
    say(fd, "POST /less HTTP/1.1\r\nHost: h\r\n"
            "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n");
    UNTIL(&s, s.net->slots[0].c->state == CONN_BODY);
    more.max_body_bytes = 4; /* less than is here */
    net_set_opts(s.net, &more);
    say(fd, "3\r\nfgh\r\n");
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "413 Content") && s.n_requests == 2);
    close(fd);
    stage_fini(&s);
}

TEST(what_happens_is_counted)
{
    struct stage s;
    struct heard h;
    struct net_stats st;

    stage_init(&s, test_opts());
    ask(&s, GET_CLOSE("/1"), &h);
    s.reply.status = 503;
    ask(&s, GET_CLOSE("/2"), &h);
    st = net_stats(s.net);
    CHECK(st.connections == 0 && st.connections_total == 2);
    CHECK(st.requests_total == 2 && st.refused_total == 0);
    CHECK(st.replies_total[2] == 1 && st.replies_total[5] == 1);
    CHECK(st.bytes_in_total == 2 * (int64_t)strlen(GET_CLOSE("/1")));
    CHECK(st.bytes_out_total > 200 && st.unsent_bytes == 0);
    CHECK(st.timeouts_total == 0 && st.bad_requests_total == 0);
    stage_fini(&s);
}

/* For every answer, the owner's and net's. */
TEST(headers_of_a_request_go_with_whatever_answers_it)
{
    const struct http_header also[] = {{STR("X-Also"), STR("this")},
                                       {STR("X-Bad"), STR("a\r\nb")},
                                       {STR("Connection"), STR("ours")}};
    struct stage s;
    struct heard h;
    int fd;

    for (int i = 0; i < 4; i++) {
        stage_init(&s, test_opts());
        fd = open_request(&s, HOLD, GET("/x"));
        net_reply_also(s.net, s.ids[0], also, 3);
        CHECK(net_stats(s.net).buffered_bytes > 0);
        h = (struct heard){.n = 0};
        if (i == 1)
            CHECK(net_stream_open(s.net, s.ids[0], &s.reply) == OK);
        else if (i == 2)
            later(&s, s.opts.reply_timeout_ms);
        else
            net_reply(s.net, s.ids[0], &s.reply);
        HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n"));
        CHECK(count(&h, "X-Also: this\r\n") == 1);
        CHECK(!has(&h, "X-Bad") && !has(&h, "ours"));
        if (i == 3) { /* the next request has none */
            s.mode = ANSWER;
            say(fd, GET("/y"));
            HEAR_UNTIL(&s, fd, &h, has(&h, "/y"));
            CHECK(count(&h, "X-Also") == 1);
        }
        close(fd);
        stage_fini(&s);
    }
}

TEST(headers_of_a_request_have_a_limit)
{
    char text[NET_ALSO_BYTES];
    struct http_header also = {STR("X"), {text, NET_ALSO_BYTES - 5}};
    struct stage s;
    struct heard h;
    int fd;

    memset(text, 'a', sizeof(text));
    for (int i = 0; i < 3; i++) {
        stage_init(&s, test_opts());
        fd = open_request(&s, HOLD, GET("/x"));
        if (i == 2)
            fault_arm_at("net.also", 1);
        also.value.n = i == 1 ? NET_ALSO_BYTES - 4 : NET_ALSO_BYTES - 5;
        net_reply_also(s.net, s.ids[0], &also, 1);
        net_reply_also(s.net, s.ids[0] + 1, &also, 1); /* an invalid id */
        net_reply(s.net, s.ids[0], &s.reply);
        h = (struct heard){.n = 0};
        HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n"));
        CHECK(has(&h, "X: aaa") == (i == 0));
        close(fd);
        stage_fini(&s);
    }
}

TEST(a_header_that_would_break_a_reply_is_left_out)
{
    const struct http_header hs[] = {
        {STR("X-Good"), STR("yes")},
        {STR("X-Bad"), STR("a\r\nX-Worse: b")},
    };
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    s.reply.headers = hs;
    s.reply.n_headers = 2;
    ask(&s, GET_CLOSE("/h"), &h);
    CHECK(has(&h, "X-Good: yes\r\n") && !has(&h, "X-Bad"));
    CHECK(!has(&h, "X-Worse") && has(&h, "\r\n\r\n/h"));
    stage_fini(&s);
}
