/* Streams, and readers that do not keep up. */
#include "net/server/internal.h"
#include "test/lib/net_stage.h"

TEST(a_stream_comes_in_chunks_and_the_connection_stays)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    s.mode = STREAM;
    s.reply.content_type = STR("text/event-stream");
    s.reply.body = STR("begin");
    fd = dial(&s);
    say(fd, GET("/s"));
    UNTIL(&s, s.n_requests == 1);
    CHECK(s.opened == OK);
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n5\r\nbegin\r\n"));
    CHECK(has(&h, "Transfer-Encoding: chunked\r\n"));
    CHECK(has(&h, "Content-Type: text/event-stream\r\n"));
    CHECK(!has(&h, "Content-Length"));
    CHECK(net_stream_send(s.net, s.ids[0], STR("")) == OK);
    CHECK(net_stream_send(s.net, s.ids[0], STR("0123456789abcdef")) == OK);
    CHECK(net_stream_send(s.net, s.ids[0], STR("!")) == OK);
    HEAR_UNTIL(&s, fd, &h, has(&h, "10\r\n0123456789abcdef\r\n1\r\n!\r\n"));
    CHECK(!has(&h, "\r\n0\r\n"));
    net_stream_end(s.net, s.ids[0]);
    CHECK(net_stream_send(s.net, s.ids[0], STR("x")) == ERR_GONE);
    HEAR_UNTIL(&s, fd, &h, has(&h, "1\r\n!\r\n0\r\n\r\n"));
    s.mode = ANSWER;
    s.reply.body = STR("after");
    say(fd, GET("/t"));
    HEAR_UNTIL(&s, fd, &h, has(&h, "after"));
    CHECK(s.n_gone == 0);
    close(fd);
    stage_fini(&s);
}

TEST(requests_behind_a_stream_wait_for_its_end)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, STREAM, GET("/1") GET("/2"));
    turn(&s, 5);
    CHECK(s.n_requests == 1);
    net_stream_end(s.net, s.ids[0]);
    UNTIL(&s, s.n_requests == 2);
    net_stream_end(s.net, s.ids[1]);
    HEAR_UNTIL(&s, fd, &h, count(&h, "\r\n\r\n0\r\n\r\n") == 2);
    close(fd);
    stage_fini(&s);
}

TEST(on_http_1_0_a_stream_ends_with_the_connection)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, STREAM,
                      "GET /s HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(net_stream_send(s.net, s.ids[0], STR("plain")) == OK);
    CHECK(net_stream_send(s.net, s.ids[0], STR(" bytes")) == OK);
    net_stream_end(s.net, s.ids[0]);
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "\r\n\r\nplain bytes") && has(&h, "Connection: close\r\n"));
    CHECK(!has(&h, "chunked"));
    close(fd);
    stage_fini(&s);
}

TEST(a_head_request_gets_the_head_of_a_stream)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    s.mode = STREAM;
    s.reply.body = STR("unseen");
    fd = dial(&s);
    say(fd, "HEAD /s HTTP/1.1\r\nHost: h\r\n\r\n");
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n"));
    CHECK(s.opened == ERR_GONE);
    CHECK(net_stream_send(s.net, s.ids[0], STR("x")) == ERR_GONE);
    net_stream_end(s.net, s.ids[0]);
    CHECK(has(&h, "Transfer-Encoding: chunked") && !has(&h, "unseen"));
    s.mode = ANSWER;
    s.reply.body = STR("next");
    say(fd, GET("/n"));
    HEAR_UNTIL(&s, fd, &h, has(&h, "next"));
    CHECK(s.n_gone == 0);
    close(fd);
    stage_fini(&s);
}

TEST(the_owner_learns_when_a_reader_of_a_stream_has_closed)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    s.mode = STREAM;
    fd = dial(&s);
    say(fd, GET("/s"));
    HEAR_UNTIL(&s, fd, &h, has(&h, "\r\n\r\n"));
    close(fd);
    turn(&s, 5);
    CHECK(s.n_gone == 0);
    /* Its end of sending came; only writing shows that it reads no more. */
    for (int t_left = TURNS; t_left > 0 && s.n_gone == 0; t_left--) {
        enum err e = net_stream_send(s.net, s.ids[0], STR(":\n"));

        CHECK(e == OK);
        turn(&s, 3);
        wait_for_some(&s, -1, t_left);
    }
    CHECK(s.n_gone == 1 && s.gone_id == s.ids[0]);
    CHECK(net_stream_send(s.net, s.ids[0], STR("x")) == ERR_GONE);
    UNTIL(&s, net_stats(s.net).connections == 0);
    stage_fini(&s);
}

enum { PIECE = 16 * 1024 };

/* Send until the stream says it is busy; returns how many bytes it took. */
static size_t fill(struct stage *s, uint64_t id)
{
    static char piece[PIECE];
    size_t taken = 0;
    enum err e;

    memset(piece, 'p', sizeof(piece));
    while ((e = net_stream_send(s->net, id, (struct str){piece, PIECE})) ==
           OK) {
        taken += PIECE;
        turn(s, 2);
        CHECK(net_stats(s->net).unsent_bytes <=
              (int64_t)s->opts.max_unsent_bytes + PIECE + 64);
        CHECK(taken < 64 << 20);
    }
    CHECK(e == ERR_BUSY);
    return taken;
}

TEST(a_slow_reader_makes_the_stream_busy_and_then_has_room)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    size_t taken, heard = 0;
    int fd;

    opts.max_unsent_bytes = MUCH_UNSENT;
    stage_init(&s, opts);
    fd = open_small(&s, STREAM, GET("/s"));
    taken = fill(&s, s.ids[0]);
    CHECK(net_stats(s.net).unsent_bytes > (int64_t)s.opts.max_unsent_bytes);
    CHECK(net_stream_send(s.net, s.ids[0], STR("no")) == ERR_BUSY);
    turn(&s, 10);
    CHECK(s.n_room == 0);
    for (int i = 0; i < 100000 && s.n_room == 0; i++)
        heard += hear_more(&s, fd, &h);
    CHECK(s.n_room == 1);
    CHECK(net_stats(s.net).unsent_bytes <=
          (int64_t)s.opts.max_unsent_bytes / 2);
    net_stream_end(s.net, s.ids[0]);
    heard += hear_to(&s, fd, "\r\n0\r\n\r\n");
    /* Each piece came as "4000\r\n" piece "\r\n"; the busy one never. */
    CHECK(heard > taken + taken / PIECE * 8);
    CHECK(heard < taken + taken / PIECE * 8 + 300);
    CHECK(s.n_room == 1 && s.n_gone == 0);
    close(fd);
    stage_fini(&s);
}

TEST(a_reader_that_takes_nothing_is_cut_off)
{
    struct stage s;
    struct net_opts opts = test_opts();
    int fd;

    opts.max_unsent_bytes = MUCH_UNSENT;
    stage_init(&s, opts);
    fd = open_small(&s, STREAM, GET("/s"));
    fill(&s, s.ids[0]);
    later_it_is_cut(&s, &s.n_gone);
    CHECK(s.gone_id == s.ids[0]);
    CHECK(net_stats(s.net).timeouts_total == 1);
    UNTIL(&s, net_stats(s.net).connections == 0);
    close(fd);
    check_alive(&s);
    stage_fini(&s);
}

TEST(a_reader_that_takes_a_little_stays)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    const struct conn *c;
    size_t before;
    int fd;

    opts.max_unsent_bytes = MUCH_UNSENT;
    stage_init(&s, opts);
    fd = open_small(&s, STREAM, GET("/s"));
    fill(&s, s.ids[0]);
    c = net_find(s.net, s.ids[0]);
    for (int i = 0; i < 4; i++) {
        later(&s, opts.write_timeout_ms - 1);
        CHECK(s.n_gone == 0);
        before = conn_unsent_bytes(c);
        while (conn_unsent_bytes(c) == before) {
            hear_more(&s, fd, &h);
            CHECK(s.n_room == 0 ||
                  conn_unsent_bytes(c) <= opts.max_unsent_bytes / 2);
        }
    }
    later_it_is_cut(&s, &s.n_gone); /* from the last byte it took */
    close(fd);
    stage_fini(&s);
}

/* Take so many bytes, however long the kernel takes to bring them. */
static void take(struct stage *s, int fd, size_t bytes)
{
    char some[1024];

    for (size_t taken = 0; taken < bytes;) {
        ssize_t n = recv(fd, some, sizeof(some), 0);

        CHECK(n > 0 || (n < 0 && errno == EAGAIN));
        taken += n > 0 ? (size_t)n : 0;
        turn(s, 1);
        if (n < 0)
            wait_for_some(s, fd, 0);
    }
}

/* The kernel reports a socket as writable only once a good part of its buffer
 * is free. A slower reader takes bytes all the same. */
TEST(a_reader_that_is_slow_but_steady_stays)
{
    struct stage s;
    struct net_opts opts = test_opts();
    int fd;

    opts.max_unsent_bytes = 8 << 20;
    stage_init(&s, opts);
    fd = open_small(&s, STREAM, GET("/s"));
    keep_sndbuf(net_find(s.net, s.ids[0]), 200 * 1024);
    fill(&s, s.ids[0]);
    for (int i = 0; i < 40; i++) {
        take(&s, fd, 16 * 1024);
        later(&s, opts.write_timeout_ms / 2);
        CHECK(s.n_gone == 0);
    }
    close(fd);
    stage_fini(&s);
}

static struct str refill = {NULL, 0};

static void refill_room(void *ctx, uint64_t id)
{
    struct stage *s = ctx;

    s->n_room++;
    while (net_stream_send(s->net, id, refill) == OK)
        ;
}

/* However fast its reader is: the kernel here takes all that is sent. */
TEST(a_stream_is_given_room_once_in_a_turn)
{
    static char piece[1024];
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    int fd, n_room;

    refill = (struct str){piece, sizeof(piece)};
    opts.max_unsent_bytes = 1024;
    stage_init(&s, opts);
    s.net->on.on_room = refill_room;
    fd = open_request(&s, STREAM, GET("/s"));
    while (net_stream_send(s.net, s.ids[0], refill) == OK)
        ;
    for (int i = 0; i < TURNS && s.n_room < 20; i++) {
        n_room = s.n_room;
        turn(&s, 1);
        CHECK(s.n_room <= n_room + 1);
        hear_more(&s, fd, &h);
    }
    CHECK(s.n_room >= 20);
    close(fd);
    stage_fini(&s);
}

TEST(a_slow_reader_of_a_reply_is_not_idle)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h;
    size_t n_body = 8 << 20, n_heard = 0;
    char *body = calloc(1, n_body);
    int fd;

    opts.idle_timeout_ms = 100;
    opts.write_timeout_ms = 5000;
    stage_init(&s, opts);
    s.reply.body = (struct str){body, n_body};
    fd = dial_small(&s, 4096);
    say(fd, GET("/big"));
    UNTIL(&s, s.n_requests == 1);
    for (int i = 0; i < 10; i++)
        later(&s, opts.idle_timeout_ms);
    CHECK(net_stats(s.net).connections == 1);
    while (n_heard < n_body || net_stats(s.net).unsent_bytes > 0) {
        n_heard += hear_more(&s, fd, &h);
        CHECK(!h.is_eof && !h.is_reset);
    }
    later(&s, opts.idle_timeout_ms); /* now it is */
    UNTIL(&s, net_stats(s.net).connections == 0);
    close(fd);
    free(body);
    stage_fini(&s);
}

/* Say a little more of b, if the kernel takes it. */
static bool say_more(int fd, const struct buf *b, size_t *at)
{
    size_t some = b->n - *at < 4096 ? b->n - *at : 4096;
    ssize_t n = some ? send(fd, b->p + *at, some, MSG_NOSIGNAL) : 0;

    *at += n > 0 ? (size_t)n : 0;
    return n > 0;
}

TEST(who_does_not_read_replies_gets_no_further_ones)
{
    struct stage s;
    struct heard h;
    static char body[2 * 1024];
    struct buf all;
    size_t at = 0;
    int fd, asked = 4000;

    stage_init(&s, test_opts());
    memset(body, 'b', sizeof(body));
    s.reply.body = (struct str){body, sizeof(body)};
    buf_init(&all, 1 << 20);
    for (int i = 1; i < asked; i++)
        buf_add_str(&all, STR(GET("/")));
    fd = open_with(&s, ANSWER, GET("/"), dial_small(&s, SMALL_BUFFER));
    keep_sndbuf(s.net->slots[0].c, SMALL_BUFFER);
    for (int stuck = 0; stuck < 20;) {
        stuck = say_more(fd, &all, &at) ? 0 : stuck + 1;
        turn(&s, 1);
        CHECK(net_stats(s.net).unsent_bytes <
              (int64_t)(UNREAD_BYTES + 2 * sizeof(body)));
        CHECK(s.net->slots[0].c->in.n < PIPELINE_BYTES + READ_BYTES);
    }
    CHECK(s.n_requests < asked);
    /* Once it listens, everything it asked for comes. */
    for (int i = 0; i < 100000 && s.n_requests < asked; i++) {
        say_more(fd, &all, &at);
        hear_more(&s, fd, &h);
    }
    CHECK(s.n_requests == asked);
    buf_fini(&all);
    close(fd);
    stage_fini(&s);
}

TEST(input_behind_an_open_request_is_bounded)
{
    struct stage s;
    const struct conn *c;
    struct buf more;
    size_t sent = 0;
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/1"));
    c = net_find(s.net, s.ids[0]);
    buf_init(&more, 1 << 20);
    for (int i = 0; i < 1 << 20; i++)
        buf_add_char(&more, 'G');
    for (int t_left = TURNS; t_left > 0 && c->is_reading; t_left--) {
        if (!say_more(fd, &more, &sent))
            wait_for_some(&s, -1, t_left);
        turn(&s, 2);
        CHECK(c->in.n < PIPELINE_BYTES + READ_BYTES);
    }
    for (int i = 0; i < 40; i++) { /* the kernel has the rest */
        say_more(fd, &more, &sent);
        turn(&s, 2);
    }
    CHECK(!c->is_reading && c->in.n >= PIPELINE_BYTES);
    CHECK(c->in.n < PIPELINE_BYTES + READ_BYTES);
    buf_fini(&more);
    CHECK(s.n_gone == 0);
    close(fd);
    stage_fini(&s);
}
