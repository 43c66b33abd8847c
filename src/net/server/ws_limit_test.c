/* WebSockets against limits: what is too large, too much or wrong,
 * and what an idle one costs. */
#include <malloc.h>
#include <sys/resource.h>

#include "net/server/internal.h"
#include "test/lib/ws_stage.h"

enum { PONG_BYTES = 131 }; /* of 125, with its head */

/* A bad frame: the client reads a close with its code, then the end; however
 * much it still sends. */
static void check_refused(const char *bytes, size_t n, uint16_t code)
{
    struct ws_stage w;
    struct ws_client c;
    char words[32];

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    say_n(c.fd, bytes, n);
    turn(&w.s, 2);
    send(c.fd, bytes, n, MSG_NOSIGNAL); /* it goes on, before it reads */
    WS_UNTIL(&w, &c, c.raw.is_eof || c.raw.is_reset);
    CHECK(!c.raw.is_reset);
    snprintf(words, sizeof(words), "close %d[", code);
    CHECK(ws_has(&c, words));
    CHECK(w.n_ends == 1 && w.end.is_ours && w.end.code == code);
    CHECK_INT(w.n_messages, 0);
    close(c.fd);
    UNTIL(&w.s, net_stats(w.s.net).connections == 0);
    ws_stage_fini(&w);
}

TEST(a_bad_frame_ends_with_the_code_that_says_it)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint16_t code;
    } cases[] = {
#define BAD(text, code) {text, sizeof(text) - 1, code}
        BAD("\x81\x05hello", 1002),              /* not masked */
        BAD("\xc1\x80mask", 1002),               /* a reserved bit */
        BAD("\x83\x80mask", 1002),               /* a reserved opcode */
        BAD("\x80\x80mask", 1002),               /* continues nothing */
        BAD("\x09\x80mask", 1002),               /* a ping in fragments */
        BAD("\x89\xfe\x00\x7emask", 1002),       /* a ping of 126 bytes */
        BAD("\x81\xfe\x00\x01mask?", 1002),      /* longer than need be */
        BAD("\x88\x81maskm", 1002),              /* half a close code */
        BAD("\x88\x82mask\x6e\x8c", 1002),       /* 1005 */
        BAD("\x81\x81\0\0\0\0\xff", 1007),       /* no UTF-8 */
        BAD("\x01\x82\0\0\0\0\xc3(", 1007),      /* before its message ends */
        BAD("\x82\xff\x80\0\0\0\0\0\0\0", 1002), /* 2^63 */
        BAD("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff", 1009),
        BAD("\x82\xff\0\0\0\1\0\0\0\0mask", 1009), /* 2^32 */
        BAD("\x82\xfe\x10\x01mask", 1009),         /* 4097: one too many */
        BAD("GET / HTTP/1.1\r\n\r\n", 1002),
#undef BAD
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_refused(cases[i].bytes, cases[i].n, cases[i].code);
}

TEST(frames_and_messages_may_be_as_large_as_the_limits)
{
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    w.echoes = true;
    ws_open(&w, &c);
    frame_say(&c, 0x82, zeros(4096));
    frame_say(&c, 0x02, zeros(4096));
    frame_say(&c, 0x80, zeros(4096));
    WS_UNTIL(&w, &c, c.n_frames == 2);
    CHECK_STR(str_of(c.words), "binary[zz*4096] binary[zz*8192] ");
    frame_say(&c, 0x02, zeros(4096));
    frame_say(&c, 0x00, zeros(4096));
    frame_say(&c, 0x00, zeros(0));
    UNTIL(&w.s, conn_of(&w)->in.n == 8192);
    frame_say(&c, 0x80, zeros(1));
    WS_UNTIL(&w, &c, c.raw.is_eof);
    CHECK(ws_has(&c, "close 1009[") && w.end.code == WS_TOO_LARGE);
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_LIMIT], 1);
    close(c.fd);
    ws_stage_fini(&w);
}

/* A limit that is raised in the middle of a message holds from there on. */
TEST(limits_may_change_while_a_message_comes)
{
    struct ws_stage w;
    struct ws_client c;
    struct net_opts opts = test_opts();

    ws_stage_init(&w, opts);
    ws_open(&w, &c);
    frame_say(&c, 0x02, zeros(4096));
    turn(&w.s, 3);
    opts.ws_max_frame_bytes = opts.ws_max_message_bytes = 1 << 20;
    net_set_opts(w.s.net, &opts);
    for (int i = 0; i < 5; i++) {
        frame_say(&c, 0x00, zeros(100000));
        turn(&w.s, 10);
    }
    frame_say(&c, 0x80, zeros(0));
    UNTIL(&w.s, w.n_messages == 1);
    CHECK_INT(w.n_message_bytes, 504096);
    frame_say(&c, 0x02, zeros(100000));
    turn(&w.s, 10);
    net_set_opts(w.s.net, &w.s.opts); /* and less again */
    frame_say(&c, 0x80, zeros(1));
    UNTIL(&w.s, w.n_ends == 1);
    CHECK(w.end.code == WS_TOO_LARGE);
    close(c.fd);
    ws_stage_fini(&w);
}

/* One that is lowered leaves alone what was let through, also a frame of which
 * nothing but its head is here. */
TEST(a_frame_that_was_begun_stays_accepted)
{
    struct ws_stage w;
    struct ws_client c;
    struct net_opts opts = test_opts();
    struct buf b;
    size_t at = 14; /* its head */

    opts.ws_max_frame_bytes = opts.ws_max_message_bytes = 1 << 20;
    ws_stage_init(&w, opts);
    ws_open(&w, &c);
    buf_init(&b, 1 << 20);
    frame_add(&b, 0x82, zeros(500000));
    say_n(c.fd, b.p, at);
    turn(&w.s, 3);
    opts.ws_max_frame_bytes = opts.ws_max_message_bytes = 4096;
    net_set_opts(w.s.net, &opts);
    while (at < b.n) {
        ssize_t n = send(c.fd, b.p + at, b.n - at, MSG_NOSIGNAL);

        at += n > 0 ? (size_t)n : 0;
        turn(&w.s, 1);
        CHECK_INT(w.n_ends, 0);
    }
    UNTIL(&w.s, w.n_messages == 1);
    CHECK_INT(w.n_message_bytes, 500000);
    frame_say(&c, 0x82, zeros(4097)); /* and the next one counts from zero */
    UNTIL(&w.s, w.n_ends == 1);
    CHECK(w.end.code == WS_TOO_LARGE);
    buf_fini(&b);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(fragments_do_not_go_on_for_ever)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;
    size_t most = 0;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    frame_say(&c, 0x01, STR("begun"));
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 1000; i++)
        frame_add(&b, 0x00, STR(""));
    for (int i = 0; i < WS_FRAGMENTS_MAX / 1000 + 2 && w.n_ends == 0; i++) {
        send(c.fd, b.p, b.n, MSG_NOSIGNAL);
        turn(&w.s, 2);
        if (w.n_ends == 0 && conn_of(&w)->in.cap > most)
            most = conn_of(&w)->in.cap;
    }
    CHECK(w.n_ends == 1 && w.end.code == WS_TOO_LARGE);
    CHECK(most <= READ_BYTES);
    buf_fini(&b);
    close(c.fd);
    ws_stage_fini(&w);
}

/* More pings, and what they may cost at any time. */
static void flood(struct ws_stage *w, struct ws_client *c, const struct buf *b,
                  size_t *at)
{
    pour(c->fd, b, at);
    turn(&w->s, 1);
    CHECK(conn_unsent_bytes(conn_of(w)) <=
          w->s.opts.max_unsent_bytes + PONG_BYTES);
    CHECK(conn_of(w)->in.n <= READ_BYTES);
}

/* A client floods us with pings and reads no answer. Only our own end is small.
 * If the client's were too, small frames would overfill it, and its kernel
 * would refuse what comes beyond its window with the acknowledgements in it:
 * then either side waits for timers that double up to two minutes, and no ping
 * comes that could stop the reading. */
TEST(a_ping_flood_is_bounded)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;
    struct net_opts opts = test_opts();
    int t_left = TURNS;
    size_t at = 0;

    opts.max_unsent_bytes = 4096;
    ws_stage_init(&w, opts);
    ws_open(&w, &c);
    keep_sndbuf(conn_of(&w), SMALL_BUFFER);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 400; i++)
        frame_add(&b, 0x89, zeros(125));
    while (conn_of(&w)->is_reading && t_left-- > 0) {
        flood(&w, &c, &b, &at);
        wait_for_some(&w.s, -1, t_left);
    }
    CHECK(!conn_of(&w)->is_reading);
    for (int i = 0; i < 200; i++)
        flood(&w, &c, &b, &at);
    CHECK_INT(w.n_ends, 0);
    buf_fini(&b);
    close(c.fd);
    ws_stage_fini(&w);
}

/* What an idle one costs. */

enum { IDLE_CONNS = 1000, IDLE_BYTES_MAX = 1536 };

TEST(an_idle_one_owns_no_buffer_and_costs_little)
{
    struct rlimit files = {4096, 4096};
    struct ws_stage w;
    struct net_opts opts = test_opts();
    static struct ws_client c;
    static int fds[IDLE_CONNS];
    size_t before, after;

    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 4096) {
        files.rlim_cur = 4096;
        CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    }
    opts.max_connections = IDLE_CONNS + 1;
    ws_stage_init(&w, opts);
    before = mallinfo2().uordblks;
    for (int i = 0; i < IDLE_CONNS; i++) {
        ws_open(&w, &c);
        frame_say(&c, 0x01, STR("it has spoken "));
        frame_say(&c, 0x80, STR("before"));
        ws_listen(&w, &c);
        fds[i] = c.fd;
    }
    UNTIL(&w.s, w.n_messages == IDLE_CONNS);
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0);
    CHECK_INT(net_stats(w.s.net).websockets, IDLE_CONNS);
    after = mallinfo2().uordblks; /* zero with a sanitizer's own malloc */
    fprintf(stderr, "an idle WebSocket: %zu bytes, %zu of them struct conn\n",
            (after - before) / IDLE_CONNS, sizeof(struct conn));
    CHECK(after - before <= (size_t)IDLE_CONNS * IDLE_BYTES_MAX);
    for (int i = 0; i < IDLE_CONNS; i++)
        close(fds[i]);
    UNTIL(&w.s, w.n_ends == IDLE_CONNS);
    ws_stage_fini(&w);
}
