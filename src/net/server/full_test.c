/* The memory of all connections together: at the limit nothing happens, one
 * byte beyond it does, and no connection is stuck. Buffers grow by doubling
 * from 64 bytes, so that the tests can count. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

enum { HALF = 2000, HELD = 2048 }; /* HALF bytes of input are held in HELD */

/* A client with HALF bytes of a request here that lacks the last `lacking`. */
static int dial_half(struct stage *s, size_t lacking)
{
    char text[HALF + 1];
    size_t before = s->net->held_bytes;
    int64_t refused = net_stats(s->net).overloaded_total;
    int fd = dial(s);
    int n = snprintf(text, sizeof(text),
                     "POST /half HTTP/1.1\r\nHost: h\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     (size_t)1000);

    /* Again with the length that makes it so; both have four digits. */
    n = snprintf(text, sizeof(text),
                 "POST /half HTTP/1.1\r\nHost: h\r\n"
                 "Content-Length: %zu\r\n\r\n",
                 HALF - (size_t)n + lacking);
    memset(text + n, 'b', sizeof(text) - (size_t)n);
    say_n(fd, text, HALF);
    UNTIL(s, s->net->held_bytes != before ||
                 net_stats(s->net).overloaded_total != refused);
    return fd;
}

static void say_bytes(int fd, size_t n)
{
    static const char b[4096];

    say_n(fd, b, n);
}

TEST(half_requests_up_to_the_limit_of_all_buffers)
{
    for (size_t less = 0; less <= 1; less++) {
        struct stage s;
        struct net_opts opts = test_opts();
        struct heard h = {.n = 0}, first = {.n = 0};
        int a, b;

        opts.max_buffered_bytes = 2 * HELD - less;
        stage_init(&s, opts);
        a = dial_half(&s, HALF);
        CHECK(net_stats(s.net).buffered_bytes == HELD);
        b = dial_half(&s, 10);
        if (less) {
            HEAR_UNTIL(&s, b, &h, h.is_eof || h.is_reset);
            CHECK(has(&h, "503 Service Unavailable") && has(&h, "overloaded"));
            CHECK(has(&h, "Retry-After: 1\r\n") && !h.is_reset);
            CHECK(has(&h, "Connection: close\r\n"));
        } else {
            CHECK(net_stats(s.net).buffered_bytes == 2 * HELD);
            say_bytes(b, 10);
            HEAR_UNTIL(&s, b, &h, has(&h, "\r\n\r\n/half"));
        }
        CHECK(net_stats(s.net).overloaded_total == (int64_t)less);
        CHECK(net_stats(s.net).bad_requests_total == 0);
        CHECK(net_stats(s.net).buffered_bytes == HELD);
        check_alive(&s);    /* came whole: needs no room */
        say_bytes(a, HALF); /* whole, so it may be over */
        HEAR_UNTIL(&s, a, &first, has(&first, "\r\n\r\n/half"));
        CHECK(net_stats(s.net).buffered_bytes == 0);
        close(a);
        close(b);
        stage_fini(&s);
    }
}

TEST(a_half_head_counts_too_and_one_that_comes_whole_does_not)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int a, b, c;

    opts.max_buffered_bytes = HELD;
    stage_init(&s, opts);
    a = dial_half(&s, 10);
    b = dial(&s);
    say(b, "GET /b HT");
    HEAR_UNTIL(&s, b, &h, h.is_eof);
    CHECK(has(&h, "503 Service Unavailable"));
    CHECK(has(&h, "its buffers hold more than http.maxBufferedBytes"));
    close(b);
    c = dial(&s);
    h = (struct heard){.n = 0};
    for (int i = 1; i <= 3; i++) { /* idle and served, as ever */
        say(c, GET("/1") GET("/2") GET("/3"));
        HEAR_UNTIL(&s, c, &h, count(&h, "200 OK") == 3 * i);
    }
    close(c);
    close(a);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    b = dial(&s); /* room again */
    say(b, "GET /b HT");
    turn(&s, 3);
    say(b, "TP/1.1\r\nHost: h\r\n\r\n");
    h = (struct heard){.n = 0};
    HEAR_UNTIL(&s, b, &h, has(&h, "\r\n\r\n/b"));
    close(b);
    stage_fini(&s);
}

TEST(a_client_over_the_limit_is_not_told_to_go_on)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int a, b;

    opts.max_buffered_bytes = HELD;
    stage_init(&s, opts);
    a = dial_half(&s, 10);
    opts.max_buffered_bytes--;
    net_set_opts(s.net, &opts);
    b = dial(&s);
    say(b, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
           "Content-Length: 3\r\n\r\n");
    HEAR_UNTIL(&s, b, &h, h.is_eof);
    CHECK(has(&h, "503 Service Unavailable") && !has(&h, "100 Continue"));
    h = (struct heard){.n = 0};
    say_bytes(a, 1); /* the limit fell: it is half here */
    HEAR_UNTIL(&s, a, &h, h.is_eof);
    CHECK(has(&h, "503 Service Unavailable"));
    close(a);
    close(b);
    stage_fini(&s);
}

TEST(what_is_pipelined_over_the_limit_is_not_begun)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int a, b;

    opts.max_buffered_bytes = HELD;
    stage_init(&s, opts);
    a = dial_half(&s, 10);
    b = open_request(&s, HOLD, GET("/1") GET("/2"));
    say(b, GET("/3"));
    turn(&s, 3);
    CHECK(net_stats(s.net).buffered_bytes == HELD);
    net_reply(s.net, s.ids[0], &s.reply);
    HEAR_UNTIL(&s, b, &h, h.is_eof || h.is_reset);
    CHECK(count(&h, "200 OK") == 1 && has(&h, "Connection: close\r\n"));
    CHECK(!h.is_reset && s.n_requests == 1 && s.n_gone == 0);
    close(a);
    close(b);
    stage_fini(&s);
}

enum { BIG = 8 << 20 }; /* more than the kernel takes */

TEST(a_reply_that_memory_has_no_room_for_is_an_error)
{
    struct stage s;
    struct heard h = {.n = 0};
    char *body = calloc(1, BIG);
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/big"));
    s.reply.body = (struct str){body, BIG};
    fault_arm_at("buf.grow", 1);
    net_reply(s.net, s.ids[0], &s.reply);
    CHECK(fault_fired());
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "HTTP/1.1 503 ") && !has(&h, "200 OK"));
    CHECK(has(&h, "Connection: close\r\n") && s.n_gone == 0);
    close(fd);
    free(body);
    stage_fini(&s);
}

TEST(who_has_not_read_a_reply_gets_no_second_over_the_limit)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    char *body = calloc(1, BIG), last[128] = "";
    size_t n_heard = 0;
    int slow, other;

    opts.max_unsent_bytes = 2 * BIG;
    opts.max_buffered_bytes = 65536;
    stage_init(&s, opts);
    other = dial(&s);
    s.reply.body = (struct str){body, BIG};
    slow = dial_small(&s, 4096);
    say(slow, GET("/big"));
    UNTIL(&s, s.n_requests == 1);
    turn(&s, 3);
    CHECK(net_stats(s.net).buffered_bytes > 65536);
    s.reply.body = (struct str){0};
    h = (struct heard){.n = 0};
    say(other, GET_CLOSE("/alive")); /* who was there is served as ever */
    HEAR_UNTIL(&s, other, &h, has(&h, "\r\n\r\n/alive"));
    close(other);
    say(slow, GET("/second"));
    UNTIL(&s, net_stats(s.net).overloaded_total == 1);
    CHECK(s.n_requests == 2);
    do {
        size_t n = hear_more(&s, slow, &h);

        n_heard += n;
        if (n >= sizeof(last))
            memcpy(last, h.text + n - sizeof(last), sizeof(last));
    } while (!h.is_eof && !h.is_reset);
    CHECK(!h.is_reset && n_heard > BIG && n_heard < BIG + 1000);
    CHECK(memmem(last, sizeof(last), "overloaded", 10) != NULL);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    close(slow);
    free(body);
    stage_fini(&s);
}

TEST(streams_wait_over_the_limit_until_what_they_have_is_taken)
{
    static char piece[16 * 1024];
    struct str p = {piece, sizeof(piece)};
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    const struct conn *c;
    int slow, quick;

    memset(piece, 'p', sizeof(piece));
    opts.max_unsent_bytes = 1 << 20;
    opts.max_buffered_bytes = 65536;
    stage_init(&s, opts);
    slow = open_small(&s, STREAM, GET("/s"));
    quick = open_request(&s, STREAM, GET("/s"));
    turn(&s, 1);
    c = net_find(s.net, s.ids[0]);
    while (net_stream_send(s.net, s.ids[0], p) == OK)
        turn(&s, 2);
    CHECK(net_find(s.net, s.ids[0]) == c && s.n_room == 0);
    CHECK(s.net->held_bytes > 65536 && s.net->held_bytes <= 2 * 65536);
    for (int i = 1; i <= 5; i++) { /* who reads is not made to wait */
        CHECK(net_stream_send(s.net, s.ids[1], STR("quick")) == OK);
        CHECK(net_stream_send(s.net, s.ids[1], STR("not")) == ERR_BUSY);
        h = (struct heard){.n = 0};
        HEAR_UNTIL(&s, quick, &h, has(&h, "quick") && s.n_room >= i);
        CHECK(s.n_room == i);
    }
    while (s.n_room == 5)
        hear_more(&s, slow, &h);
    CHECK(s.n_room == 6 && s.n_gone == 0);
    CHECK(s.net->held_bytes <= 65536 || conn_unsent_bytes(c) == 0);
    CHECK(net_stream_send(s.net, s.ids[0], p) == OK);
    net_stream_end(s.net, s.ids[0]);
    net_stream_end(s.net, s.ids[1]);
    hear_to(&s, slow, "\r\n0\r\n\r\n");
    CHECK(net_stats(s.net).buffered_bytes == 0);
    close(slow);
    close(quick);
    stage_fini(&s);
}

TEST(many_half_bodies_stay_within_the_limit)
{
    struct stage s;
    struct net_opts opts = test_opts();
    int fds[200];

    opts.max_connections = 200;
    opts.max_buffered_bytes = 10 * HELD;
    stage_init(&s, opts);
    for (int i = 0; i < 200; i++) {
        fds[i] = dial_half(&s, 10);
        CHECK(s.net->held_bytes <= opts.max_buffered_bytes);
    }
    turn(&s, 3);
    CHECK(net_stats(s.net).overloaded_total == 190);
    CHECK(s.net->held_bytes == opts.max_buffered_bytes);
    later(&s, opts.body_timeout_ms); /* and they do not stay */
    for (int i = 0; i < 200; i++)
        close(fds[i]);
    UNTIL(&s, net_stats(s.net).connections == 0);
    CHECK(net_stats(s.net).buffered_bytes == 0);
    check_alive(&s);
    stage_fini(&s);
}

static enum net_memory state_of_memory;

static enum net_memory read_state_of_memory(void *ctx)
{
    (void)ctx;
    return state_of_memory;
}

static const char with_body[] =
    "POST /body HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
    "Content-Length: 2\r\n\r\nab";

TEST(while_memory_is_short_only_requests_without_a_body_are_served)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    s.net->on.memory = read_state_of_memory;
    for (state_of_memory = NET_MEMORY_SHORT; state_of_memory <= NET_MEMORY_OUT;
         state_of_memory++) {
        ask(&s, with_body, &h);
        CHECK(has(&h, "503 ") && has(&h, "too little memory left"));
        ask(&s, GET_CLOSE("/plain"), &h);
        CHECK(has(&h, "200 OK"));
    }
    CHECK(s.n_requests == 2 && net_stats(s.net).overloaded_total == 2);
    state_of_memory = NET_MEMORY_OK;
    ask(&s, with_body, &h);
    CHECK(has(&h, "200 OK"));
    stage_fini(&s);
}

TEST(while_memory_is_out_few_connections_come_in)
{
    int fds[MEMORY_OUT_CONNS + 1], fd;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    struct stage s;

    opts.max_connections = 2 * MEMORY_OUT_CONNS;
    opts.max_connections_per_address = 0;
    stage_init(&s, opts);
    s.net->on.memory = read_state_of_memory;
    state_of_memory = NET_MEMORY_OUT;
    for (int i = 0; i <= MEMORY_OUT_CONNS; i++)
        fds[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == MEMORY_OUT_CONNS + 1);
    fd = dial(&s);
    say(fd, GET("/"));
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "503 ") && has(&h, "too little memory left"));
    for (int i = 0; i <= MEMORY_OUT_CONNS; i++)
        close(fds[i]);
    close(fd);
    stage_fini(&s);
}
