/* WebSockets as they are meant to be: opening, messages, pings, goodbyes. */
#include "net/server/internal.h"
#include "test/lib/ws_stage.h"

TEST(a_handshake_is_answered_and_messages_go_both_ways)
{
    struct ws_stage w;
    struct ws_client c = {.fd = -1};
    struct stage *s = &w.s;

    ws_stage_init(&w, test_opts());
    w.echoes = true;
    c.fd = dial(s);
    say(c.fd, HELLO("/ws"));
    HEAR_UNTIL(s, c.fd, &c.raw, has(&c.raw, "\r\n\r\n"));
    CHECK_STR(str_of(c.raw.text), WELCOME);
    c.raw.n = 0;
    say_text(&c, "hello");
    frame_say(&c, 0x82, STR("\x01\x02"));
    say_text(&c, "");
    WS_UNTIL(&w, &c, c.n_frames == 3);
    CHECK_STR(str_of(c.words), "text[hello] binary[\x01\x02] text[] ");
    CHECK_STR(str_of(w.told), c.words);
    CHECK(net_ws_send(s->net, ws_id(&w), WS_TEXT, STR("unasked")) == OK);
    WS_UNTIL(&w, &c, ws_has(&c, "text[unasked]"));
    CHECK(s->ids[0] == ws_id(&w)); /* it keeps the request's */
    CHECK_INT(net_stats(s->net).websockets, 1);
    CHECK_INT(net_stats(s->net).ws_messages_in_total, 3);
    CHECK_INT(net_stats(s->net).ws_messages_out_total, 4);
    close(c.fd);
    UNTIL(s, w.n_ends == 1);
    CHECK_INT(net_stats(s->net).websockets, 0);
    ws_stage_fini(&w);
}

TEST(a_protocol_that_was_chosen_is_named)
{
    struct ws_stage w;
    struct ws_client c = {.fd = -1};
    struct stage *s = &w.s;

    ws_stage_init(&w, test_opts());
    w.wanted = STR("a2a");
    c.fd = dial(s);
    say(c.fd, HELLO("/ws"));
    HEAR_UNTIL(s, c.fd, &c.raw, has(&c.raw, "\r\n\r\n"));
    CHECK(has(&c.raw, "\r\nSec-WebSocket-Protocol: a2a\r\n\r\n"));
    close(c.fd);
    ws_stage_fini(&w);
}

/* Frames in the same read as the handshake, also when it is answered late or
 * was pipelined behind another request. */
TEST(frames_right_behind_the_handshake_count)
{
    static const struct {
        const char *before;
        bool is_late, is_cut;
    } ways[] = {{"", false, false},
                {"", true, false},
                {"", false, true},
                {GET("/first"), false, false},
                {GET("/first"), true, true}};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct ws_stage w;
        struct ws_client c = {.fd = -1};
        struct buf b;
        size_t first;

        ws_stage_init(&w, test_opts());
        w.echoes = true;
        w.holds = ways[i].is_late;
        c.fd = dial(&w.s);
        buf_init(&b, 8192);
        buf_add_str(&b, str_of(ways[i].before));
        buf_add_str(&b, STR(HELLO("/ws")));
        frame_add(&b, 0x81, STR("one"));
        frame_add(&b, 0x01, STR("tw"));
        first = ways[i].is_cut ? b.n - 6 : b.n; /* inside a frame's head */
        say_n(c.fd, b.p, first);
        UNTIL(&w.s, w.s.n_requests == (ways[i].before[0] ? 2 : 1));
        turn(&w.s, 3);
        say_n(c.fd, b.p + first, b.n - first);
        turn(&w.s, 3);
        UNTIL(&w.s, ways[i].is_late || w.n_messages > 0);
        CHECK_INT(w.n_messages, !ways[i].is_late);
        if (ways[i].is_late)
            ws_let_in(&w, w.s.ids[w.s.n_requests - 1]);
        if (ways[i].before[0]) {
            HEAR_UNTIL(&w.s, c.fd, &c.raw, has(&c.raw, "/first"));
            c.raw.n -= (size_t)(strstr(c.raw.text, "/first") + 6 - c.raw.text);
            memmove(c.raw.text, strstr(c.raw.text, "/first") + 6, c.raw.n + 1);
        }
        ws_await_welcome(&w, &c);
        frame_say(&c, 0x80, STR("o"));
        WS_UNTIL(&w, &c, c.n_frames == 2);
        CHECK_STR(str_of(c.words), "text[one] text[two] ");
        buf_fini(&b);
        ws_hang_up(&w, &c);
        ws_stage_fini(&w);
    }
}

TEST(a_message_may_come_byte_by_byte)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;

    ws_stage_init(&w, test_opts());
    w.echoes = true;
    ws_open(&w, &c);
    buf_init(&b, 8192);
    frame_add(&b, 0x01, STR("frag"));
    frame_add(&b, 0x89, STR("now"));
    frame_add(&b, 0x00, STR(""));
    frame_add(&b, 0x80, STR("ments"));
    frame_add(&b, 0x82, STR("next"));
    for (size_t i = 0; i < b.n; i++) {
        say_n(c.fd, b.p + i, 1);
        ws_listen(&w, &c);
    }
    WS_UNTIL(&w, &c, c.n_frames == 3);
    CHECK_STR(str_of(c.words), "pong[now] text[fragments] binary[next] ");
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0); /* nothing is kept */
    buf_fini(&b);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(what_came_whole_is_handed_over_from_where_it_was_read)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    buf_init(&b, 8192);
    for (int i = 0; i < 10; i++) {
        frame_add(&b, 0x81, STR("no copy"));
        frame_add(&b, 0x8a, STR("nor for a pong"));
    }
    fault_arm_at("mem", 1); /* no memory is needed for any of it */
    say_n(c.fd, b.p, b.n);
    UNTIL(&w.s, w.n_messages == 10);
    CHECK(!fault_fired());
    fault_arm(0);
    buf_fini(&b);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(a_turn_is_one_write)
{
    struct ws_stage w;
    struct ws_client c;
    char some[4096];
    ssize_t n;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    for (int i = 0; i < 50; i++)
        CHECK(net_ws_send(w.s.net, ws_id(&w), WS_TEXT, STR("many")) == OK);
    CHECK(recv(c.fd, some, sizeof(some), 0) < 0); /* not before its end */
    fault_arm_at("net.write", 2);
    turn(&w.s, 1);
    CHECK(!fault_fired());
    fault_arm(0);
    n = recv(c.fd, some, sizeof(some), 0);
    CHECK_INT(n, 50 * 6);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

/* Who sends many at once does not keep the others waiting for all of them. */
TEST(a_turn_takes_some_frames_of_each)
{
    struct ws_stage w;
    struct ws_client c, other;
    struct buf b;
    int most = 0, n_turns = 0;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    ws_open(&w, &other);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 4 * FRAMES_PER_TURN; i++)
        frame_add(&b, 0x81, STR("x"));
    say_n(c.fd, b.p, b.n);
    say_text(&other, "me too");
    while (w.n_messages < 4 * FRAMES_PER_TURN + 1 && n_turns++ < 100) {
        int before = w.n_messages;

        turn_once(&w.s);
        if (w.n_messages - before > most)
            most = w.n_messages - before;
    }
    CHECK_INT(w.n_messages, 4 * FRAMES_PER_TURN + 1);
    CHECK(most <= FRAMES_PER_TURN + 1 && n_turns >= 4);
    CHECK_INT(net_stats(w.s.net).buffered_bytes, 0);
    buf_fini(&b);
    ws_hang_up(&w, &c);
    ws_hang_up(&w, &other);
    ws_stage_fini(&w);
}

/* Goodbyes. */

TEST(a_goodbye_of_the_client_is_answered_with_its_code)
{
    static const struct {
        const char *payload;
        size_t n;
        const char *answer, *told;
    } cases[] = {
        {"\x03\xe8", 2, "close 1000[] ", "end 1000[] "},
        {"\x03\xe8so long", 9, "close 1000[] ", "end 1000[so long] "},
        {"\x0f\xa1mine", 6, "close 4001[] ", "end 4001[mine] "},
        {"", 0, "close 0[] ", "end 1005[] "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ws_stage w;
        struct ws_client c;

        ws_stage_init(&w, test_opts());
        ws_open(&w, &c);
        frame_say(&c, 0x88, (struct str){cases[i].payload, cases[i].n});
        say_text(&c, "after my own goodbye");
        WS_UNTIL(&w, &c, c.raw.is_eof); /* the server closes first */
        CHECK(!c.raw.is_reset);
        CHECK_STR(str_of(c.words), cases[i].answer);
        CHECK_STR(str_of(w.told), cases[i].told);
        CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_PEER], 1);
        CHECK(net_ws_send(w.s.net, ws_id(&w), WS_TEXT, STR("x")) == ERR_GONE);
        close(c.fd);
        UNTIL(&w.s, net_stats(w.s.net).connections == 0);
        ws_stage_fini(&w);
    }
}

TEST(our_goodbye_waits_for_the_clients)
{
    struct ws_stage w;
    struct ws_client c;
    struct net *n;

    ws_stage_init(&w, test_opts());
    n = w.s.net;
    ws_open(&w, &c);
    CHECK(net_ws_send(n, ws_id(&w), WS_TEXT, STR("last")) == OK);
    net_ws_close(n, ws_id(&w), 4000, STR("that was all"));
    CHECK(net_ws_send(n, ws_id(&w), WS_TEXT, STR("x")) == ERR_GONE);
    net_ws_close(n, ws_id(&w), 4001, STR("twice is harmless"));
    net_ws_pause(n, ws_id(&w), true);
    WS_UNTIL(&w, &c, c.n_frames == 2);
    CHECK_STR(str_of(c.words), "text[last] close 4000[that was all] ");
    say_text(&c, "was under way");
    frame_say(&c, 0x89, STR("this too"));
    ws_settle(&w, &c);
    CHECK(w.n_ends == 0 && w.n_messages == 0 && c.n_frames == 2);
    say_close(&c, 4000, "");
    WS_UNTIL(&w, &c, c.raw.is_eof);
    CHECK_STR(str_of(w.told), "end 4000 ours[] ");
    CHECK_INT(net_stats(n).ws_ends_total[NET_WS_OWNER], 1);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(a_goodbye_that_is_not_answered_ends_after_a_while)
{
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    net_ws_close(w.s.net, ws_id(&w), WS_NORMAL, STR(""));
    WS_UNTIL(&w, &c, c.n_frames == 1);
    ws_later(&w, &c, w.s.opts.ws_close_timeout_ms - 1);
    say_text(&c, "talks on"); /* which is no reason to wait longer */
    ws_settle(&w, &c);
    CHECK(w.n_ends == 0);
    ws_later(&w, &c, 1);
    CHECK_STR(str_of(w.told),
              "end 1006 ours[no close came within ws.closeTimeoutMs] ");
    UNTIL(&w.s, net_stats(w.s.net).connections == 0);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(goodbyes_may_cross)
{
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    net_ws_close(w.s.net, ws_id(&w), 4000, STR("ours"));
    say_close(&c, 4001, "mine");
    WS_UNTIL(&w, &c, c.raw.is_eof);
    CHECK_STR(str_of(c.words), "close 4000[ours] ");
    CHECK_STR(str_of(w.told), "end 4001 ours[mine] ");
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(an_owner_may_say_goodbye_from_inside_a_message)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;

    ws_stage_init(&w, test_opts());
    w.closes = w.echoes = true;
    ws_open(&w, &c);
    buf_init(&b, 8192);
    frame_add(&b, 0x81, STR("one"));
    frame_add(&b, 0x81, STR("two"));
    frame_add(&b, 0x88, STR("\x03\xe8"));
    say_n(c.fd, b.p, b.n);
    WS_UNTIL(&w, &c, c.raw.is_eof);
    CHECK_STR(str_of(c.words), "text[one] close 1000[enough] ");
    CHECK_STR(str_of(w.told), "text[one] end 1000 ours[] ");
    buf_fini(&b);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(who_leaves_without_a_word_is_missed)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    say_text(&c, "last");
    close(c.fd);
    UNTIL(&w.s, w.n_ends == 1);
    CHECK_STR(str_of(w.told), "text[last] end 1006[it left without a close] ");
    ws_open(&w, &c);
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(c.fd);
    UNTIL(&w.s, w.n_ends == 2);
    CHECK(!w.end.is_ours && w.end.code == WS_NO_CLOSE);
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_LOST], 2);
    ws_open(&w, &c);
    net_ws_close(w.s.net, ws_id(&w), WS_NORMAL, STR(""));
    turn(&w.s, 2);
    close(c.fd);
    UNTIL(&w.s, w.n_ends == 3);
    CHECK(w.end.is_ours && w.end.code == WS_NO_CLOSE);
    ws_stage_fini(&w);
}

TEST(a_client_that_only_shuts_its_side_has_left)
{
    struct ws_stage w;
    struct ws_client c = {.fd = -1};

    ws_stage_init(&w, test_opts());
    w.holds = true;
    c.fd = dial(&w.s);
    say(c.fd, HELLO("/ws"));
    shutdown(c.fd, SHUT_WR);
    UNTIL(&w.s, w.s.n_requests == 1);
    turn(&w.s, 3);
    ws_let_in(&w, w.s.ids[0]);
    CHECK(w.accepted == OK);
    UNTIL(&w.s, w.n_ends == 1);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(stopping_says_goodbye_and_waits_for_the_answer)
{
    struct ws_stage w;
    struct ws_client polite, rude, silent;

    ws_stage_init(&w, test_opts());
    w.s.net->opts.ws_close_timeout_ms = 100000;
    ws_open(&w, &polite);
    ws_open(&w, &rude);
    ws_open(&w, &silent);
    net_stop(w.s.net, 500, stage_done, &w.s);
    CHECK(w.n_ends == 0); /* never from inside a call */
    WS_UNTIL(&w, &polite, ws_has(&polite, "close 1001[the server is stop"));
    WS_UNTIL(&w, &silent, ws_has(&silent, "close 1001["));
    say_close(&polite, WS_GOING_AWAY, "");
    close(rude.fd);
    WS_UNTIL(&w, &polite, polite.raw.is_eof);
    close(polite.fd);
    turn(&w.s, 5);
    CHECK(w.n_ends == 2 && w.s.n_done == 0);
    later(&w.s, 500);
    CHECK(w.n_ends == 3 && w.end.code == WS_NO_CLOSE && w.end.is_ours);
    UNTIL(&w.s, w.s.n_done == 1);
    stage_free(&w.s);
    close(silent.fd);
}

TEST(a_handshake_while_stopping_is_refused)
{
    struct ws_stage w;
    struct heard h = {.n = 0};
    int fd;

    ws_stage_init(&w, test_opts());
    w.holds = true;
    fd = dial(&w.s);
    say(fd, HELLO("/ws"));
    UNTIL(&w.s, w.s.n_requests == 1);
    net_stop(w.s.net, 1000, stage_done, &w.s);
    ws_let_in(&w, w.s.ids[0]);
    CHECK(w.accepted == ERR_GONE);
    HEAR_UNTIL(&w.s, fd, &h, h.is_eof);
    CHECK(has(&h, "503 ") && has(&h, "\"stopping\""));
    close(fd);
    UNTIL(&w.s, w.s.n_done == 1);
    CHECK(w.s.n_gone == 0 && w.n_ends == 0);
    stage_free(&w.s);
}

TEST(an_id_that_is_nobody_is_ignored)
{
    struct ws_stage w;
    struct ws_client c;
    uint64_t id;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    id = ws_id(&w);
    ws_hang_up(&w, &c);
    CHECK(w.n_ends == 1);
    CHECK(net_ws_send(w.s.net, id, WS_TEXT, STR("x")) == ERR_GONE);
    CHECK(net_ws_send(w.s.net, 0, WS_TEXT, STR("x")) == ERR_GONE);
    net_ws_close(w.s.net, id, WS_NORMAL, STR(""));
    net_ws_pause(w.s.net, id, true);
    ws_let_in(&w, id);
    CHECK(w.accepted == ERR_GONE);
    ws_stage_fini(&w);
}

/* Pings, and silence. */

TEST(a_ping_is_answered_with_its_words)
{
    struct ws_stage w;
    struct ws_client c;
    char long_one[125];

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    frame_say(&c, 0x89, STR("are you there"));
    WS_UNTIL(&w, &c, c.n_frames == 1);
    memset(long_one, 'p', sizeof(long_one));
    frame_say(&c, 0x89, (struct str){long_one, sizeof(long_one)});
    WS_UNTIL(&w, &c, c.n_frames == 2);
    frame_say(&c, 0x8a, STR("unasked, and ignored"));
    ws_settle(&w, &c);
    CHECK_STR(str_of(c.words), "pong[are you there] pong[pp*125] ");
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(of_many_pings_in_a_turn_the_latest_is_answered)
{
    struct ws_stage w;
    struct ws_client c;
    struct buf b;

    ws_stage_init(&w, test_opts());
    w.echoes = true;
    ws_open(&w, &c);
    buf_init(&b, 8192);
    for (int i = 0; i < 20; i++)
        frame_add(&b, 0x89, (struct str){"abcdefghijklmnopqrst" + i, 1});
    frame_add(&b, 0x81, STR("echo"));
    frame_add(&b, 0x89, STR("u"));
    frame_add(&b, 0x89, STR("v"));
    say_n(c.fd, b.p, b.n);
    WS_UNTIL(&w, &c, ws_has(&c, "pong[v]"));
    CHECK_STR(str_of(c.words), "pong[t] text[echo] pong[v] ");
    frame_say(&c, 0x89, STR("w")); /* one that was sent stays as it was */
    WS_UNTIL(&w, &c, ws_has(&c, "pong[w]"));
    buf_fini(&b);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

TEST(who_is_silent_is_pinged_and_then_ended)
{
    struct ws_stage w;
    struct ws_client c;
    int64_t third;

    ws_stage_init(&w, test_opts());
    third = w.s.opts.ws_timeout_ms / 3;
    ws_open(&w, &c);
    ws_later(&w, &c, third - 1);
    CHECK(c.n_frames == 0);
    ws_later(&w, &c, 1);
    WS_UNTIL(&w, &c, c.n_frames == 1);
    CHECK_STR(str_of(c.words), "ping[] ");
    frame_say(&c, 0x8a, STR("")); /* which restarts it */
    await_arrival(conn_of(&w)->fd, 6);
    ws_settle(&w, &c);
    ws_later(&w, &c, third - 1);
    CHECK(c.n_frames == 1);
    ws_later(&w, &c, 1);
    WS_UNTIL(&w, &c, c.n_frames == 2);
    ws_later(&w, &c, 2 * third - 1);
    CHECK(w.n_ends == 0);
    ws_later(&w, &c, 1);
    CHECK_STR(str_of(w.told), "end 1008 ours[nothing came for ws.timeoutMs] ");
    WS_UNTIL(&w, &c, c.raw.is_eof);
    CHECK(ws_has(&c, "close 1008[nothing came"));
    CHECK_INT(net_stats(w.s.net).ws_ends_total[NET_WS_SILENT], 1);
    CHECK_INT(net_stats(w.s.net).ws_pings_total, 2);
    close(c.fd);
    ws_stage_fini(&w);
}

TEST(who_talks_is_not_pinged)
{
    struct ws_stage w;
    struct ws_client c;

    ws_stage_init(&w, test_opts());
    ws_open(&w, &c);
    for (int i = 0; i < 40; i++) {
        ws_later(&w, &c, w.s.opts.ws_timeout_ms / 3 - 1);
        frame_say(&c, 0x81, STR("here"));
        WS_UNTIL(&w, &c, w.n_messages == i + 1);
    }
    CHECK_INT(c.n_frames, 0);
    CHECK_INT(net_stats(w.s.net).ws_pings_total, 0);
    ws_hang_up(&w, &c);
    ws_stage_fini(&w);
}

/* The path's own answer, for a server without a WebSocket there; what is sent
 * behind the request is not read, in the same piece or later. */
static void refuse_an_upgrade(struct stage *s, bool is_late, bool is_stream)
{
    struct heard h = {.n = 0};
    int fd = dial(s);

    s->mode = is_late ? HOLD : is_stream ? STREAM : ANSWER;
    say(fd, HELLO("/nothing") GET_CLOSE("/next"));
    UNTIL(s, s->n_requests > 0);
    if (is_late)
        net_reply(s->net, s->ids[0], &s->reply);
    if (is_stream)
        net_stream_end(s->net, s->ids[0]);
    HEAR_UNTIL(s, fd, &h, h.is_eof);
    CHECK(has(&h, "\r\nConnection: close\r\n"));
    CHECK(count(&h, "HTTP/1.1 404 ") == s->n_requests);
    close(fd);
}

TEST(behind_an_upgrade_that_was_refused_nothing_is_read)
{
    for (int i = 0; i < 3; i++) {
        struct stage s;

        stage_init(&s, test_opts());
        s.reply.status = 404;
        refuse_an_upgrade(&s, i == 1, i == 2);
        CHECK_STR(str_of(s.said), "GET /nothing [];");
        stage_fini(&s);
    }
}

TEST(a_server_that_reads_on_behind_a_refused_upgrade_is_noticed)
{
    struct stage s;

    stage_init(&s, test_opts());
    s.reply.status = 404;
    fault_arm_at("net.upgrade_goes_on", 1);
    refuse_an_upgrade(&s, false, false);
    CHECK_STR(str_of(s.said), "GET /nothing [];GET /next [];");
    stage_fini(&s);
}
