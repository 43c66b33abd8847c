/* Dialling: every way it can end, and what a dialled WebSocket does as the
 * client that it is. */
#include <sched.h>

#include "net/server/internal.h"
#include "test/lib/dial_stage.h"
#include "test/lib/tls_stage.h"

TEST(a_dialled_one_is_open_and_messages_go_both_ways)
{
    struct dial_stage d;
    struct net *n;

    dial_stage_init(&d, test_opts());
    n = d.w.s.net;
    d.w.echoes = true;
    d.w.wanted = d.what.protocol = STR("a2a");
    call_in(&d);
    CHECK(net_ws_send(n, d.id, WS_TEXT, STR("hello")) == OK);
    CHECK(net_ws_send(n, d.id, WS_BINARY, STR("")) == OK);
    UNTIL(&d.w.s, d.call.n_messages == 2);
    CHECK(net_ws_send(n, ws_id(&d.w), WS_TEXT, STR("unasked")) == OK);
    UNTIL(&d.w.s, d.call.n_messages == 3);
    net_ws_close(n, d.id, 4000, STR("bye"));
    UNTIL(&d.w.s, d.call.n_ends == 1);
    CHECK_STR(str_of(d.call.told),
              "open[a2a] text[hello] binary[] text[unasked] end 4000 ours[] ");
    CHECK_STR(str_of(d.w.told), "text[hello] binary[] end 4000[bye] ");
    UNTIL(&d.w.s, net_stats(n).connections == 0);
    CHECK_INT(net_stats(n).dials_total, 1);
    CHECK_INT(net_stats(n).dials_failed_total, 0);
    CHECK_INT(net_stats(n).dialling, 0);
    CHECK_INT(net_stats(n).websockets, 0);
    CHECK_INT(net_stats(n).websockets_total, 2);
    dial_stage_fini(&d);
}

TEST(on_open_never_comes_from_inside_the_call_and_may_send_at_once)
{
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    call_port(&d, "127.0.0.1", d.w.s.port);
    CHECK(d.call.n_opens == 0 && net_find(d.w.s.net, d.id));
    CHECK(net_ws_send(d.w.s.net, d.id, WS_TEXT, STR("x")) == ERR_GONE);
    UNTIL(&d.w.s, d.call.n_opens == 1);
    net_ws_close(d.w.s.net, ws_id(&d.w), WS_NORMAL, STR("by the server"));
    UNTIL(&d.w.s, d.call.n_ends == 1 && d.w.n_ends == 1);
    CHECK_STR(str_of(d.call.told), "open[] end 1000[by the server] ");
    CHECK_STR(str_of(d.w.told), "end 1000 ours[] ");
    dial_stage_fini(&d);
}

TEST(the_question_is_what_a_server_wants_to_hear)
{
    const struct http_header token = {STR("Authorization"), STR("Bearer 1")};
    struct dial_stage d;
    struct heard h;
    char accept[WS_ACCEPT_BYTES + 1], host[64], url[96];
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    d.what.headers = &token;
    d.what.n_headers = 1;
    d.what.protocol = STR("a2a");
    snprintf(url, sizeof(url), "ws://127.0.0.1:%u/p/q?r=s#t", d.raw_port);
    CHECK(try_call(&d, url) == OK);
    memset(d.url, '?', sizeof(d.url) - 1); /* it was copied */
    fd = raw_accept(&d);
    raw_hear_ask(&d, fd, &h, accept);
    snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%u\r\n", d.raw_port);
    CHECK(has(&h, "GET /p/q?r=s HTTP/1.1\r\n") && has(&h, host));
    CHECK(has(&h, "\r\nAuthorization: Bearer 1\r\n"));
    CHECK(has(&h, "\r\nSec-WebSocket-Protocol: a2a\r\n"));
    CHECK(has(&h, "\r\nSec-WebSocket-Version: 13\r\n"));
    net_ws_close(d.w.s.net, d.id, WS_NORMAL, STR(""));
    UNTIL(&d.w.s, d.call.n_ends == 1);
    close(fd);
    dial_stage_fini(&d);
}

TEST(every_frame_has_a_mask_of_its_own)
{
    enum { FRAMES = 2 * MASK_POOL_BYTES / 4 };
    struct dial_stage d;
    struct heard h = {.n = 0};
    int fd, n_same = 0;
    unsigned char last[4] = {0};

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_agree(&d, "", 0);
    UNTIL(&d.w.s, d.call.n_opens == 1);
    for (int i = 0; i < FRAMES; i++)
        CHECK(net_ws_send(d.w.s.net, d.id, WS_TEXT, STR("x")) == OK);
    HEAR_UNTIL(&d.w.s, fd, &h, h.n == FRAMES * 7);
    for (int i = 0; i < FRAMES; i++) {
        const unsigned char *p = (unsigned char *)h.text + 7 * i;

        CHECK(p[0] == 0x81 && p[1] == 0x81 && (p[6] ^ p[2]) == 'x');
        n_same += memcmp(last, p + 2, 4) == 0;
        memcpy(last, p + 2, 4);
    }
    CHECK(n_same < 3); /* a chance of one in four billions, each */
    close(fd);
    UNTIL(&d.w.s, d.call.n_ends == 1);
    CHECK(d.call.end.code == WS_NO_CLOSE);
    dial_stage_fini(&d);
}

TEST(frames_right_behind_the_answer_count)
{
    static const char frames[] = "\x81\x02hi\x89\x01p\x82";
    struct dial_stage d;
    struct heard h = {.n = 0};
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_agree(&d, frames, sizeof(frames) - 1);
    UNTIL(&d.w.s, d.call.n_messages == 1);
    HEAR_UNTIL(&d.w.s, fd, &h, h.n == 7); /* the pong, masked */
    say_n(fd, "\x01y", 2);
    UNTIL(&d.w.s, d.call.n_messages == 2);
    CHECK_STR(str_of(d.call.told), "open[] text[hi] binary[y] ");
    close(fd);
    dial_stage_fini(&d);
}

TEST(a_server_that_masks_is_refused)
{
    struct dial_stage d;
    struct heard h = {.n = 0};
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_agree(&d, "\x81\x81mask?", 7);
    UNTIL(&d.w.s, d.call.n_ends == 1);
    CHECK(d.call.end.is_ours && d.call.end.code == WS_PROTOCOL_ERROR);
    HEAR_UNTIL(&d.w.s, fd, &h, h.n > 6 && (unsigned char)h.text[0] == 0x88);
    close(fd);
    dial_stage_fini(&d);
}

/* The server closes first, and has until ws_close_timeout_ms to do so. */
TEST(after_goodbye_the_caller_waits_for_the_server_to_close)
{
    for (int does = 0; does < 2; does++) {
        struct dial_stage d;
        struct heard h = {.n = 0};
        int fd;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        call_port(&d, "127.0.0.1", d.raw_port);
        fd = raw_agree(&d, "\x88\x02\x03\xe8", 4);
        UNTIL(&d.w.s, d.call.n_ends == 1);
        CHECK_STR(str_of(d.call.told), "open[] end 1000[] ");
        HEAR_UNTIL(&d.w.s, fd, &h, h.n == 8);
        turn(&d.w.s, 5);
        hear(fd, &h);
        CHECK(!h.is_eof && net_stats(d.w.s.net).connections == 1);
        if (does)
            shutdown(fd, SHUT_WR);
        else
            later(&d.w.s, d.w.s.opts.ws_close_timeout_ms);
        UNTIL(&d.w.s, net_stats(d.w.s.net).connections == 0);
        close(fd);
        dial_stage_fini(&d);
    }
}

TEST(a_silent_server_is_pinged_and_ended)
{
    struct dial_stage d;
    struct heard h = {.n = 0};
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_agree(&d, "", 0);
    UNTIL(&d.w.s, d.call.n_opens == 1);
    later(&d.w.s, 3000);
    HEAR_UNTIL(&d.w.s, fd, &h, h.n == 6);
    CHECK((unsigned char)h.text[0] == 0x89);
    later(&d.w.s, 6000);
    CHECK(d.call.n_ends == 1 && d.call.end.code == WS_POLICY);
    close(fd);
    dial_stage_fini(&d);
}

/* What is wrong before anything is begun. */

TEST(a_dial_that_cannot_be_begun_is_an_error)
{
    const struct http_header bad = {STR("X"), STR("a\r\nHost: b")};
    const struct http_header ours = {STR("Upgrade"), STR("h2c")};
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    CHECK(try_call(&d, "http://127.0.0.1/") == ERR_SYNTAX);
    CHECK(try_call(&d, "ws://") == ERR_SYNTAX);
    CHECK(try_call(&d, "ws://user@h/") == ERR_SYNTAX);
    CHECK(try_call(&d, "ws://0x7f.1/") == ERR_SYNTAX);
    CHECK(d.why.text[0]);
    d.what.headers = &bad;
    d.what.n_headers = 1;
    CHECK(try_call(&d, "ws://127.0.0.1/") == ERR_USAGE);
    d.what.headers = &ours;
    CHECK(try_call(&d, "ws://127.0.0.1/") == ERR_USAGE);
    d.what.n_headers = 0;
    d.what.protocol = STR("a b");
    CHECK(try_call(&d, "ws://127.0.0.1/") == ERR_USAGE);
    turn(&d.w.s, 5);
    CHECK(d.call.n_ends == 0 && net_stats(d.w.s.net).dials_total == 0);
    dial_stage_fini(&d);
}

TEST(as_many_are_dialled_as_may_be)
{
    struct dial_stage d;
    struct net_opts opts = test_opts();

    opts.max_connections = 2;
    dial_stage_init(&d, opts);
    call_port(&d, "127.0.0.1", d.w.s.port);
    call_port(&d, "127.0.0.1", d.w.s.port);
    CHECK(try_call(&d, "ws://127.0.0.1/") == ERR_LIMIT);
    UNTIL(&d.w.s, d.call.n_opens == 2); /* who calls does not count as called */
    dial_stage_fini(&d);
    CHECK(d.call.n_ends == 2);
}

/* Names and addresses. */

static void check_end(struct dial_stage *d, const char *words)
{
    UNTIL(&d->w.s, d->call.n_ends == 1);
    if (strncmp(d->call.told, words, strlen(words)) != 0)
        T_FAIL("it ended as %s and not as %s", d->call.told, words);
    CHECK(net_find(d->w.s.net, d->id) == NULL);
    UNTIL(&d->w.s, net_stats(d->w.s.net).connections == 0);
    CHECK_INT(net_stats(d->w.s.net).dials_failed_total, 1);
    CHECK_INT(net_stats(d->w.s.net).dialling, 0);
}

TEST(a_name_that_is_not_known)
{
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    call_port(&d, "no.such.example", 80);
    UNTIL(&d.w.s, asked.rq);
    CHECK_STR(str_of(asked.name), "no.such.example");
    answer_nothing(UV_EAI_NONAME);
    check_end(&d,
              "end 1006 unreachable[the name no.such.example was not found");
    dial_stage_fini(&d);
}

TEST(a_name_without_an_address)
{
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    call_port(&d, "empty.example", 80);
    UNTIL(&d.w.s, asked.rq);
    answer_name("");
    check_end(&d, "end 1006 unreachable[the name empty.example was not found");
    dial_stage_fini(&d);
}

TEST(nobody_listens_there)
{
    struct dial_stage d;
    int fd = raw_listen("127.0.0.1", 0, 1);
    uint16_t port = port_of(fd);

    close(fd);
    dial_stage_init(&d, test_opts());
    call_port(&d, "127.0.0.1", port);
    check_end(&d, "end 1006 unreachable[cannot connect to 127.0.0.1");
    dial_stage_fini(&d);
}

TEST(the_second_address_is_tried)
{
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    call_port(&d, "two.example", d.w.s.port);
    UNTIL(&d.w.s, asked.rq);
    answer_name("127.0.0.2 127.0.0.3 127.0.0.1");
    UNTIL(&d.w.s, d.call.n_opens == 1);
    dial_stage_fini(&d);
}

/* The first one swallows what is sent to it; it has its share of the time. */
TEST(the_second_address_has_time_left)
{
    struct dial_stage d;
    struct black_hole hole;

    dial_stage_init(&d, test_opts());
    hole = black_hole("127.0.0.2", d.w.s.port);
    d.what.timeout_ms = 4000;
    call_port(&d, "two.example", d.w.s.port);
    UNTIL(&d.w.s, asked.rq);
    answer_name("127.0.0.2 127.0.0.1");
    turn(&d.w.s, 10);
    later(&d.w.s, 1999);
    CHECK(d.call.n_opens == 0);
    later(&d.w.s, 1);
    UNTIL(&d.w.s, d.call.n_opens == 1);
    black_hole_close(&hole);
    dial_stage_fini(&d);
}

/* For once through libuv and the system, where that knows the name: a bare
 * one has no /etc/hosts. */
TEST(localhost_is_found)
{
    struct addrinfo *found = NULL;
    struct dial_stage d;

    if (getaddrinfo("localhost", NULL, NULL, &found) != 0)
        return;
    freeaddrinfo(found);
    dial_stage_init(&d, test_opts());
    d.w.s.net->getaddrinfo = uv_getaddrinfo;
    call_port(&d, "localhost", d.w.s.port);
    while (d.call.n_opens == 0 && d.call.n_ends == 0) {
        turn_once(&d.w.s);
        sched_yield();
    }
    CHECK(d.call.n_opens == 1);
    dial_stage_fini(&d);
}

/* The guard. */

TEST(the_guard_keeps_a_dial_from_leading_inward)
{
    static const struct guard public_only = {NULL, 0};
    struct dial_stage d;
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    d.what.guard = &public_only;
    call_port(&d, "127.0.0.1", d.raw_port);
    check_end(&d, "end 1006 address_not_allowed[127.0.0.1 is 127.0.0.1:");
    CHECK(strstr(d.call.told, "address_not_allowed"));
    fd = accept4(d.raw_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd < 0 && errno == EAGAIN); /* no connection came */
    d.what.guard = NULL;              /* the control: without it one does */
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_accept(&d);
    close(fd);
    dial_stage_fini(&d);
}

TEST(the_guard_judges_what_a_name_means)
{
    static const struct guard public_only = {NULL, 0};
    struct dial_stage d;
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    d.what.guard = &public_only;
    call_port(&d, "public.example", d.raw_port);
    UNTIL(&d.w.s, asked.rq);
    answer_name("127.0.0.1 ::ffff:127.0.0.1 10.0.0.1 169.254.169.254");
    check_end(&d, "end 1006 address_not_allowed[public.example is ");
    fd = accept4(d.raw_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd < 0 && errno == EAGAIN);
    dial_stage_fini(&d);
}

TEST(the_guard_leaves_out_one_address_and_the_next_is_tried)
{
    struct guard_range range;
    struct guard guard = {&range, 1};
    struct dial_stage d;

    CHECK(guard_range_read(STR("127.0.0.1"), &range, NULL) == OK);
    dial_stage_init(&d, test_opts());
    d.what.guard = &guard;
    call_port(&d, "both.example", d.w.s.port);
    UNTIL(&d.w.s, asked.rq);
    answer_name("127.0.0.2 127.0.0.1");
    UNTIL(&d.w.s, d.call.n_opens == 1);
    dial_stage_fini(&d);
}

/* Answers. */

#define OPENING \
    "HTTP/1.1 101 Fine\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

TEST(a_bad_answer_is_refused_in_words)
{
    /* ACCEPT stands for the right answer to the key. */
    static const struct {
        const char *answer, *words;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", "127.0.0.1 answered 200 instead"},
        {"HTTP/1.1 401 No\r\n\r\n", "127.0.0.1 answered 401 instead"},
        {"HTTP/1.1 301 There\r\nLocation: ws://x/\r\n\r\n",
         "127.0.0.1 answered 301, which leads"},
        {"HTTP/1.1 307 There\r\nLocation: /x\r\n\r\n",
         "127.0.0.1 answered 307, which leads"},
        {"SSH-2.0-hello\r\n\r\n", "127.0.0.1 does not speak WebSocket"},
        {"HTTP/1.0 101 Fine\r\n\r\n", "127.0.0.1 does not speak WebSocket"},
        {OPENING "\r\n", "127.0.0.1 does not speak WebSocket"},
        {OPENING "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
         "127.0.0.1 does not speak WebSocket"},
        {OPENING "Sec-WebSocket-Accept: ACCEPT\r\n"
                 "Sec-WebSocket-Protocol: unasked\r\n\r\n",
         "127.0.0.1 does not speak WebSocket"},
        {OPENING "Sec-WebSocket-Accept: ACCEPT\r\n"
                 "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
         "127.0.0.1 does not speak WebSocket"},
        {OPENING "Sec-WebSocket-Accept: ACCEPT\n\n",
         "127.0.0.1 does not speak WebSocket"},
        {"HTTP/1.1 101 Fine\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Accept: ACCEPT\r\n\r\n",
         "127.0.0.1 does not speak WebSocket"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dial_stage d;
        struct heard h;
        char accept[WS_ACCEPT_BYTES + 1], text[1024], words[128], *at;
        int fd;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        call_port(&d, "127.0.0.1", d.raw_port);
        fd = raw_accept(&d);
        raw_hear_ask(&d, fd, &h, accept);
        snprintf(text, sizeof(text), "%s", cases[i].answer);
        at = strstr(text, "ACCEPT");
        if (at) {
            memmove(at + 28, at + 6, strlen(at + 6) + 1);
            memcpy(at, accept, 28);
        }
        say(fd, text);
        snprintf(words, sizeof(words), "end 1006 bad_request[%s",
                 cases[i].words);
        check_end(&d, words);
        close(fd);
        dial_stage_fini(&d);
    }
}

TEST(a_server_that_hangs_up_instead_of_an_answer)
{
    for (int hard = 0; hard < 2; hard++) {
        const struct linger now = {.l_onoff = hard, .l_linger = 0};
        struct dial_stage d;
        int fd;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        call_port(&d, "127.0.0.1", d.raw_port);
        fd = raw_accept(&d);
        turn(&d.w.s, 3);
        say(fd, "HTTP/1.1 101 Fi");
        turn(&d.w.s, 3);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        if (hard)
            close(fd);
        else
            shutdown(fd, SHUT_WR);
        check_end(&d, hard ? "end 1006 unreachable[the connection was lost"
                           : "end 1006 bad_request[127.0.0.1 hung up");
        if (!hard)
            close(fd);
        dial_stage_fini(&d);
    }
}

TEST(an_answer_without_an_end_is_refused)
{
    struct dial_stage d;
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_accept(&d);
    say(fd, "HTTP/1.1 101 Fine\r\n");
    for (int i = 0; i < 1000 && d.call.n_ends == 0; i++) {
        send(fd, "X: y\r\n", 6, MSG_NOSIGNAL);
        turn(&d.w.s, 1);
        CHECK(net_stats(d.w.s.net).buffered_bytes < 64 * 1024);
    }
    check_end(&d, "end 1006 bad_request[127.0.0.1 does not speak WebSocket");
    close(fd);
    dial_stage_fini(&d);
}

/* Too slow. */

TEST(a_name_that_takes_too_long)
{
    struct dial_stage d;

    dial_stage_init(&d, test_opts());
    call_port(&d, "slow.example", 80);
    UNTIL(&d.w.s, asked.rq);
    later(&d.w.s, d.what.timeout_ms - 1);
    CHECK(d.call.n_ends == 0);
    later(&d.w.s, 1);
    check_end(&d, "end 1006 timeout[the name slow.example was not found with");
    answer_name("127.0.0.1"); /* to a dial that has gone */
    turn(&d.w.s, 5);
    CHECK(d.call.n_ends == 1 && d.w.n_ws == 0);
    dial_stage_fini(&d);
}

TEST(a_connection_that_takes_too_long)
{
    struct dial_stage d;
    struct black_hole hole = black_hole("127.0.0.1", 0);

    dial_stage_init(&d, test_opts());
    call_port(&d, "127.0.0.1", port_of(hole.fd));
    turn(&d.w.s, 10);
    later(&d.w.s, d.what.timeout_ms - 1);
    CHECK(d.call.n_ends == 0);
    later(&d.w.s, 1);
    check_end(&d, "end 1006 timeout[127.0.0.1 (127.0.0.1:");
    black_hole_close(&hole);
    dial_stage_fini(&d);
}

TEST(an_answer_that_takes_too_long)
{
    struct dial_stage d;
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    call_port(&d, "127.0.0.1", d.raw_port);
    fd = raw_accept(&d);
    say(fd, "HTTP/1.1 101 Fine\r\nX: ");
    for (int i = 0; i < 9; i++) { /* it trickles, which buys no time */
        say(fd, "y");
        later(&d.w.s, d.what.timeout_ms / 10);
    }
    CHECK(d.call.n_ends == 0);
    later(&d.w.s, d.what.timeout_ms / 10);
    check_end(&d, "end 1006 timeout[127.0.0.1 did not answer within 10000 ms");
    close(fd);
    dial_stage_fini(&d);
}

TEST(a_tls_handshake_that_takes_too_long)
{
    struct dial_stage d;
    char url[64];
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    snprintf(url, sizeof(url), "wss://127.0.0.1:%u/", d.raw_port);
    CHECK(try_call(&d, url) == OK);
    fd = raw_accept(&d);
    turn(&d.w.s, 5);
    later(&d.w.s, d.what.timeout_ms - 1);
    CHECK(d.call.n_ends == 0);
    later(&d.w.s, 1);
    check_end(&d, "end 1006 timeout[");
    close(fd);
    dial_stage_fini(&d);
}

/* Giving up, and stopping, at every stage. */

enum stop_at { AT_START, AT_NAME, AT_CONNECT, AT_TLS, AT_ASK, N_STOP_AT };

static void come_to(struct dial_stage *d, enum stop_at at, int *fd,
                    const struct black_hole *hole)
{
    char url[128];

    snprintf(url, sizeof(url), "%s://%s:%u/", at == AT_TLS ? "wss" : "ws",
             at == AT_NAME ? "a.example" : "127.0.0.1",
             at == AT_CONNECT ? port_of(hole->fd) : d->raw_port);
    CHECK(try_call(d, url) == OK);
    if (at == AT_START)
        return;
    if (at == AT_NAME)
        UNTIL(&d->w.s, asked.rq);
    if (at == AT_TLS || at == AT_ASK)
        *fd = raw_accept(d);
    turn(&d->w.s, 5);
}

TEST(a_dial_may_be_given_up_at_any_time)
{
    for (int at = 0; at < N_STOP_AT; at++) {
        struct dial_stage d;
        struct black_hole hole = black_hole("127.0.0.1", 0);
        int fd = -1;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        come_to(&d, (enum stop_at)at, &fd, &hole);
        net_ws_close(d.w.s.net, d.id, WS_NORMAL, STR(""));
        net_ws_close(d.w.s.net, d.id, WS_NORMAL, STR("twice is harmless"));
        CHECK(d.call.n_ends == 0); /* never from inside a call */
        check_end(&d, "end 1006 ours gone[it was given up] ");
        if (at == AT_NAME)
            answer_name("127.0.0.1");
        turn(&d.w.s, 5);
        CHECK(d.call.n_ends == 1 && d.call.n_opens == 0);
        if (fd >= 0)
            close(fd);
        black_hole_close(&hole);
        dial_stage_fini(&d);
    }
}

TEST(stopping_gives_up_what_is_being_dialled)
{
    for (int at = 0; at < N_STOP_AT; at++) {
        struct dial_stage d;
        struct black_hole hole = black_hole("127.0.0.1", 0);
        int fd = -1;

        dial_stage_init(&d, test_opts());
        raw_init(&d);
        come_to(&d, (enum stop_at)at, &fd, &hole);
        net_stop(d.w.s.net, 1000, stage_done, &d.w.s);
        CHECK(d.call.n_ends == 0);
        check_end(&d, "end 1006 ours stopping[the server is stopping] ");
        CHECK(try_call(&d, "ws://127.0.0.1/") == ERR_STOPPING);
        if (at == AT_NAME) { /* which cannot be called back */
            turn(&d.w.s, 5);
            CHECK(d.w.s.n_done == 0);
            answer_name("127.0.0.1");
        }
        UNTIL(&d.w.s, d.w.s.n_done == 1);
        stage_free(&d.w.s);
        if (fd >= 0)
            close(fd);
        close(d.raw_fd);
        black_hole_close(&hole);
    }
}

/* TLS. */

TEST(wss_leads_through_tls)
{
    struct dial_stage d;
    struct tls_folder f;
    struct why why;
    char url[128];

    dial_stage_init(&d, test_opts());
    folder_init(&f);
    folder_put(&f, 0, &d.w.s, (struct cert_wish){.san = NULL});
    CHECK(net_set_certs(d.w.s.net, f.files, 1, &why) == OK);
    CHECK(net_listen(d.w.s.net, STR("127.0.0.1:0"), true, &why) == OK);
    d.w.echoes = true;
    snprintf(url, sizeof(url), "wss%s/ws", net_tls_url(d.w.s.net) + 5);
    d.what.ca_file = f.cert[0];
    CHECK(try_call(&d, url) == OK);
    UNTIL(&d.w.s, d.call.n_opens == 1);
    CHECK(net_ws_send(d.w.s.net, d.id, WS_BINARY,
                      (struct str){(char *)&d, 4096}) == OK);
    UNTIL(&d.w.s, d.call.n_messages == 1);
    net_ws_close(d.w.s.net, d.id, WS_NORMAL, STR(""));
    UNTIL(&d.w.s, d.call.n_ends == 1);
    CHECK(d.call.end.code == WS_NORMAL);
    UNTIL(&d.w.s, net_stats(d.w.s.net).connections == 0);
    d.call = (struct ws_stage){.s = {.net = d.w.s.net}};
    d.what.ca_file = NULL; /* without it the certificate is not trusted */
    CHECK(try_call(&d, url) == OK);
    check_end(&d, "end 1006 unreachable[");
    folder_fini(&f);
    dial_stage_fini(&d);
}

/* The message of a handshake belongs to its own dial; a dial that was cut
 * otherwise has another. */
TEST(a_handshake_of_another_is_not_why)
{
    struct dial_stage d;
    char url[128];
    int fd;

    dial_stage_init(&d, test_opts());
    raw_init(&d);
    snprintf(url, sizeof(url), "wss://127.0.0.1:%u/ws", d.w.s.port);
    CHECK(try_call(&d, url) == OK);
    check_end(&d, "end 1006 unreachable[the TLS handshake failed");
    d.call.told[0] = 0;
    snprintf(url, sizeof(url), "wss://127.0.0.1:%u/ws", d.raw_port);
    CHECK(try_call(&d, url) == OK);
    fd = raw_accept(&d);
    turn(&d.w.s, 3);
    conn_cut(net_find(d.w.s.net, d.id));
    CHECK_STR(str_of(d.call.told),
              "end 1006 unreachable[the connection was lost] ");
    close(fd);
    dial_stage_fini(&d);
}

TEST(a_plain_server_is_no_tls)
{
    struct dial_stage d;
    char url[128];

    dial_stage_init(&d, test_opts());
    snprintf(url, sizeof(url), "wss://127.0.0.1:%u/ws", d.w.s.port);
    CHECK(try_call(&d, url) == OK);
    check_end(&d, "end 1006 unreachable[");
    dial_stage_fini(&d);
}
