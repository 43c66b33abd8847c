/* WebSockets against limits: what is too large, too much, too slow or wrong,
 * and what an idle one costs. */
#include <malloc.h>
#include <sys/resource.h>

#include "net/internal.h"
#include "test/lib/ws_stage.h"

/* The connection of the latest that was let in. */
static const struct conn *conn_of(const struct ws_stage *w)
{
    return net_find(w->s.net, ws_id(w));
}

static struct str zeros(size_t n)
{
    static char bytes[1 << 20];

    CHECK(n <= sizeof(bytes));
    memset(bytes, 'z', sizeof(bytes));
    return (struct str){bytes, n};
}

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
    turn(&w.s, 3);
    CHECK(conn_of(&w)->in.n == 8192);
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

/* Say b from *at on, and again from its beginning, as much as the kernel takes
 * at once. False: it took nothing. */
static bool pour(int fd, const struct buf *b, size_t *at)
{
    ssize_t n = send(fd, b->p + *at, b->n - *at, MSG_NOSIGNAL);

    if (n <= 0)
        return false;
    *at = (*at + (size_t)n) % b->n;
    return true;
}

/* Who floods us with pings and reads no answer. */
TEST(a_ping_flood_is_bounded)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;
    struct net_opts opts = test_opts();
    size_t at = 0;

    opts.max_unsent_bytes = 4096;
    ws_stage_init(&w, opts);
    ws_open_small(&w, &c, 4096);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 400; i++)
        frame_add(&b, 0x89, zeros(125));
    for (int stuck = 0; stuck < 200;) {
        stuck = pour(c.fd, &b, &at) ? 0 : stuck + 1;
        turn(&w.s, 1);
        CHECK(conn_unsent_bytes(conn_of(&w)) <= opts.max_unsent_bytes + 131);
        CHECK(conn_of(&w)->in.n <= READ_BYTES);
    }
    CHECK(!conn_of(&w)->is_reading && w.n_ends == 0);
    buf_fini(&b);
    close(c.fd);
    ws_stage_fini(&w);
}

/* Readers. */

/* Send until it is busy; returns how many messages it took. */
static int fill(struct ws_stage *w, uint64_t id)
{
    int n = 0;
    enum err e;

    while ((e = net_ws_send(w->s.net, id, WS_BINARY, zeros(16384))) == OK) {
        n++;
        turn(&w->s, 2);
        CHECK(net_stats(w->s.net).unsent_bytes <=
              (int64_t)w->s.opts.max_unsent_bytes + 16384 + WS_HEAD_BYTES);
        CHECK(n < 4000);
    }
    CHECK(e == ERR_BUSY);
    return n;
}

TEST(a_slow_reader_is_busy_and_then_has_room)
{
    struct ws_stage w;
    struct ws_client c;
    int taken;

    ws_stage_init(&w, test_opts());
    ws_open_small(&w, &c, 4096);
    taken = fill(&w, ws_id(&w));
    CHECK(net_ws_send(w.s.net, ws_id(&w), WS_TEXT, STR("no")) == ERR_BUSY);
    turn(&w.s, 10);
    CHECK(w.n_rooms == 0);
    for (int i = 0; i < 100000 && w.n_rooms == 0; i++)
        ws_listen(&w, &c);
    CHECK(w.n_rooms == 1);
    CHECK(net_stats(w.s.net).unsent_bytes <=
          (int64_t)w.s.opts.max_unsent_bytes / 2);
    WS_UNTIL(&w, &c, c.n_frames == (size_t)taken);
    CHECK(c.n_payload_bytes == (size_t)taken * 16384);
    CHECK(w.n_rooms == 1 && w.n_ends == 0);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(who_takes_nothing_is_cut_off)
{
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    ws_open_small(&w, &c, 4096);
    fill(&w, ws_id(&w));
    later(&w.s, w.s.opts.write_timeout_ms - 1);
    CHECK(w.n_ends == 0);
    later(&w.s, 1);
    CHECK_STR(str_of(w.told),
              "end 1006 ours[it took nothing for http.writeTimeoutMs] ");
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_SLOW], 1);
    close(c.fd);
    check_alive(&w.s);
    ws_stage_fini(&w);
}

/* Its echoes pile up here as far as the mark, and what it says after that in
 * the kernel; all of it comes once it reads. */
TEST(who_does_not_read_is_not_read_from)
{
    struct ws_stage w;
    struct ws_client c;
    struct net_opts opts = test_opts();
    struct buf b;
    size_t at = 0, n_said = 0;

    opts.max_unsent_bytes = 16384;
    ws_stage_init(&w, opts);
    w.echoes = true;
    ws_open_small(&w, &c, 4096);
    buf_init(&b, 1 << 20);
    frame_add(&b, 0x82, zeros(4096));
    for (int stuck = 0; stuck < 50;) {
        stuck = pour(c.fd, &b, &at) ? 0 : stuck + 1;
        n_said += stuck == 0 && at == 0;
        turn(&w.s, 1);
        CHECK(conn_unsent_bytes(conn_of(&w)) <= 16384 + 4096 + WS_HEAD_BYTES);
        CHECK(conn_of(&w)->in.n <= READ_BYTES + 8192 + 200);
    }
    CHECK((size_t)w.n_messages < n_said && w.n_busy == 0);
    CHECK(!conn_of(&w)->is_reading);
    for (int i = 0; i < 200000 && c.n_frames < n_said; i++) {
        ws_listen(&w, &c);
        if (at) /* the rest of the last one */
            pour(c.fd, &b, &at);
    }
    CHECK(c.n_frames >= n_said && w.n_busy == 0 && w.n_ends == 0);
    buf_fini(&b);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(a_paused_one_is_left_alone_and_goes_on_where_it_was)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;
    uint64_t id;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    id = ws_id(&w);
    w.pauses = true;
    buf_init(&b, 8192);
    frame_add(&b, 0x81, STR("one"));
    frame_add(&b, 0x81, STR("two"));
    frame_add(&b, 0x81, STR("three"));
    say_n(c.fd, b.p, b.n);
    UNTIL(&w.s, w.n_messages == 1);
    ws_settle(&w, &c);
    CHECK_INT(w.n_messages, 1); /* none behind the call, though it was read */
    net_ws_pause(w.s.net, id, true); /* twice, then */
    net_ws_pause(w.s.net, id, false);
    ws_settle(&w, &c);
    CHECK_INT(w.n_messages, 1);
    net_ws_pause(w.s.net, id, false);
    ws_settle(&w, &c);
    CHECK_INT(w.n_messages, 2); /* which paused it again */
    /* However long that takes: the silence is ours. */
    for (int i = 0; i < 10; i++)
        ws_later(&w, &c, w.s.opts.ws_timeout_ms);
    CHECK(w.n_ends == 0 && ws_has(&c, "ping[]"));
    w.pauses = false;
    net_ws_pause(w.s.net, id, false);
    ws_settle(&w, &c);
    CHECK_STR(str_of(w.told), "text[one] text[two] text[three] ");
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0);
    buf_fini(&b);
    ws_hang_up(&w, &c);
    CHECK(w.n_ends == 1);
    ws_stage_fini(&w);
}

TEST(what_a_paused_one_sends_stays_in_the_kernel)
{
    struct ws_stage w;
    struct ws_client c;
    size_t sent = 0;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    net_ws_pause(w.s.net, ws_id(&w), true);
    turn(&w.s, 2);
    for (int stuck = 0; stuck < 20;) {
        ssize_t n = send(c.fd, zeros(4096).p, 4096, MSG_NOSIGNAL);

        stuck = n > 0 ? 0 : stuck + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn(&w.s, 1);
    }
    CHECK(sent > READ_BYTES);
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0);
    close(c.fd);
    ws_stage_fini(&w);
}

/* All buffers are full. */

/* Others hold more than may be held: a slow reader does. */
static void fill_up(struct ws_stage *w, struct ws_client *slow)
{
    struct net_opts opts = w->s.opts;

    ws_open_small(w, slow, 4096);
    fill(w, ws_id(w));
    opts.max_buffered_bytes = 1024;
    net_set_opts(w->s.net, &opts);
    CHECK(net_is_full(w->s.net));
}

TEST(while_all_buffers_are_full_half_messages_are_refused)
{
    struct ws_stage w;
    struct ws_client slow, half, whole, early;
    struct buf b;

    ws_stage_init(&w, test_opts());
    w.echoes = true;
    ws_open(&w, &early);
    frame_say(&early, 0x01, STR("begun before"));
    turn(&w.s, 3);
    ws_open(&w, &half);
    ws_open(&w, &whole);
    fill_up(&w, &slow);
    buf_init(&b, 8192); /* who reads is served as ever, also many at once */
    for (int i = 0; i < FRAMES_PER_TURN + 20; i++)
        frame_add(&b, 0x81, STR("whole"));
    say_n(whole.fd, b.p, b.n);
    WS_UNTIL(&w, &whole, whole.n_frames == FRAMES_PER_TURN + 20);
    frame_say(&half, 0x01, STR("hal"));
    WS_UNTIL(&w, &half, half.raw.is_eof);
    CHECK(ws_has(&half, "close 1013["));
    frame_say(&early, 0x00, STR(", goes on"));
    WS_UNTIL(&w, &early, early.raw.is_eof);
    CHECK(ws_has(&early, "close 1013["));
    CHECK_INT(net_stats(w.s.net).overloaded_total, 2);
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_OVERLOADED], 2);
    CHECK(net_ws_send(w.s.net, ws_id(&w), WS_TEXT, STR("x")) == ERR_BUSY);
    buf_fini(&b);
    close(half.fd);
    close(early.fd);
    close(whole.fd);
    close(slow.fd);
    ws_stage_fini(&w);
}

/* What came behind it was forgotten, so it cannot become a WebSocket. */
TEST(a_late_answer_to_a_handshake_whose_frames_were_forgotten_is_a_refusal)
{
    struct ws_stage w;
    struct ws_client slow;
    struct heard h = {.n = 0};
    struct buf b;
    int fd;

    ws_stage_init(&w, test_opts());
    fd = dial(&w.s); /* before: nobody new comes in while all is full */
    UNTIL(&w.s, net_stats(w.s.net).connections == 1);
    fill_up(&w, &slow);
    w.holds = true;
    buf_init(&b, 8192);
    buf_add_str(&b, STR(HELLO("/ws")));
    frame_add(&b, 0x81, STR("lost"));
    say_n(fd, b.p, b.n);
    UNTIL(&w.s, w.s.n_requests == 1 + 1);
    ws_let_in(&w, w.s.ids[1]);
    CHECK(w.accepted == ERR_GONE);
    HEAR_UNTIL(&w.s, fd, &h, h.is_eof);
    CHECK(has(&h, "503 "));
    buf_fini(&b);
    close(fd);
    close(slow.fd);
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
