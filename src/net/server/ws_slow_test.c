/* WebSockets that do not take what is sent to them, or whose owner does not
 * take what they send; and all of them when the buffers are full. */
#include <linux/sockios.h>

#include "net/server/internal.h"
#include "test/lib/ws_stage.h"

static struct net_opts much_unsent(void)
{
    struct net_opts opts = test_opts();

    opts.max_unsent_bytes = MUCH_UNSENT;
    return opts;
}

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

    ws_stage_init(&w, much_unsent());
    ws_open_small(&w, &c);
    taken = fill(&w, ws_id(&w));
    CHECK(net_ws_send(w.s.net, ws_id(&w), WS_TEXT, STR("no")) == ERR_BUSY);
    turn(&w.s, 10);
    CHECK(w.n_rooms == 0);
    WS_UNTIL(&w, &c, w.n_rooms > 0);
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

    ws_stage_init(&w, much_unsent());
    ws_open_small(&w, &c);
    fill(&w, ws_id(&w));
    later_it_is_cut(&w.s, &w.n_ends);
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
    ws_open_small(&w, &c);
    buf_init(&b, 1 << 20);
    frame_add(&b, 0x82, zeros(4096));
    for (int stuck = 0; stuck < 50 || conn_of(&w)->is_reading;) {
        stuck = pour(c.fd, &b, &at) ? 0 : stuck + 1;
        n_said += stuck == 0 && at == 0;
        turn(&w.s, 1);
        CHECK(n_said < 100000);
        CHECK(conn_unsent_bytes(conn_of(&w)) <= 16384 + 4096 + WS_HEAD_BYTES);
        CHECK(conn_of(&w)->in.n <= READ_BYTES + 8192 + 200);
    }
    CHECK((size_t)w.n_messages < n_said && w.n_busy == 0);
    CHECK(!conn_of(&w)->is_reading);
    for (int i = 0; i < 200000 && c.n_frames < n_said; i++) {
        ws_listen(&w, &c);
        wait_for_some(&w.s, c.fd, i);
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
    int64_t n_read;
    size_t sent = 0;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    net_ws_pause(w.s.net, ws_id(&w), true);
    turn(&w.s, 2);
    n_read = net_stats(w.s.net).bytes_in_total;
    for (int stuck = 0; stuck < 20 && sent < 4 * READ_BYTES;) {
        ssize_t n = send(c.fd, zeros(4096).p, 4096, MSG_NOSIGNAL);

        stuck = n > 0 ? 0 : stuck + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn(&w.s, 1);
    }
    await_arrival(conn_of(&w)->fd, 1);
    turn(&w.s, 2);
    CHECK_INT(net_stats(w.s.net).bytes_in_total, n_read);
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0);
    close(c.fd);
    ws_stage_fini(&w);
}

/* A reader that wakes up between what was read and what is written, and takes
 * all that the kernel has: then there is room for a little, always. */
struct waker {
    struct timer timer;
    struct ws_client *c;
    int server_fd;
};

static void wake(struct timer *t)
{
    struct waker *w = LIST_OF(t, struct waker, timer);
    struct pollfd p = {.fd = w->c->fd, .events = POLLIN};
    int left = 1;

    while (left > 0) {
        poll(&p, 1, 1);
        hear(w->c->fd, &w->c->raw);
        understand(w->c);
        CHECK(ioctl(w->server_fd, SIOCOUTQ, &left) == 0);
    }
}

static void do_nothing(struct loop_job *job)
{
    (void)job;
}

/* A pong is not taken back once it has left, also when it left without an end
 * of a turn: the timer sent it, and the loop was busy with others. What lies
 * in its place by then is something else. */
TEST(a_pong_that_has_left_is_not_taken_back)
{
    enum { JOBS = 4096 }; /* of a turn */
    static struct loop_job others[JOBS];
    struct ws_stage w;
    struct ws_client c;
    struct waker waker = {.timer = {.fire = wake}, .c = &c};
    struct conn *at;

    ws_stage_init(&w, test_opts());
    ws_open_small(&w, &c);
    at = net_find(w.s.net, ws_id(&w));
    waker.server_fd = at->fd;
    while (!at->is_blocked) {
        CHECK(net_ws_send(w.s.net, ws_id(&w), WS_BINARY, zeros(1000)) == OK);
        turn(&w.s, 4);
    }
    /* The kernel does not tell of room, whatever it has. */
    uv_poll_start(&at->poll, UV_READABLE, at->poll.poll_cb);
    CHECK(net_ws_send(w.s.net, ws_id(&w), WS_BINARY, zeros(1000)) == OK);
    /* Its own timer may have been set for less; then it is set again. */
    later(&w.s, w.s.opts.write_timeout_ms - 2);
    loop_timer_set(&w.s.loop, &waker.timer, 1);
    turn(&w.s, 1);
    for (int i = 0; i < JOBS; i++) {
        others[i].run = do_nothing;
        loop_at_end(&w.s.loop, &others[i]);
    }
    frame_say(&c, 0x89, STR("first"));
    await_arrival(at->fd, 6 + 5);
    w.s.time.mono_ms += 2;
    turn(&w.s, 1);
    CHECK_INT(conn_unsent_bytes(at), 0);
    CHECK_INT(at->ws.pong_bytes, 2 + 5);
    CHECK(net_ws_send(w.s.net, ws_id(&w), WS_BINARY,
                      zeros(at->ws.pong_at + at->ws.pong_bytes - 4)) == OK);
    CHECK(at->out.n == at->ws.pong_at + at->ws.pong_bytes);
    frame_say(&c, 0x89, STR("second"));
    await_arrival(at->fd, 6 + 6);
    WS_UNTIL(&w, &c,
             ws_has(&c, "pong[first] binary[") &&
                 ws_has(&c, "] pong[second] "));
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

/* All buffers are full. */

/* Others hold more than may be held: a slow reader does. */
static void fill_up(struct ws_stage *w, struct ws_client *slow)
{
    struct net_opts opts = w->s.opts;

    ws_open_small(w, slow);
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

    ws_stage_init(&w, much_unsent());
    w.echoes = true;
    ws_open(&w, &early);
    frame_say(&early, 0x01, STR("begun before"));
    UNTIL(&w.s, net_stats(w.s.net).buffered_bytes > 0);
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

/* Each frame may be a write then, so one read is not taken to its end whatever
 * is in it. */
TEST(while_all_buffers_are_full_a_turn_takes_so_many_frames)
{
    struct ws_stage w;
    struct ws_client slow, many, more;
    struct buf b;

    ws_stage_init(&w, much_unsent());
    ws_open(&w, &many);
    ws_open(&w, &more);
    fill_up(&w, &slow);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < FRAMES_WHEN_FULL; i++)
        frame_add(&b, 0x82, STR(""));
    say_n(many.fd, b.p, b.n);
    await_arrival(net_find(w.s.net, w.ws_ids[0])->fd, b.n);
    turn(&w.s, 1);
    CHECK_INT(w.n_messages, FRAMES_WHEN_FULL);
    ws_settle(&w, &many);
    CHECK_INT(w.n_ends, 0);
    frame_add(&b, 0x82, STR(""));
    say_n(more.fd, b.p, b.n);
    await_arrival(net_find(w.s.net, w.ws_ids[1])->fd, b.n);
    turn(&w.s, 1);
    CHECK_INT(w.n_messages, 2 * FRAMES_WHEN_FULL);
    WS_UNTIL(&w, &more, more.raw.is_eof);
    CHECK(ws_has(&more, "close 1013["));
    CHECK_INT(w.n_messages, 2 * FRAMES_WHEN_FULL);
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_OVERLOADED], 1);
    buf_fini(&b);
    close(many.fd);
    close(more.fd);
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

    ws_stage_init(&w, much_unsent());
    fd = dial(&w.s); /* before: newcomers are refused while all is full */
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
