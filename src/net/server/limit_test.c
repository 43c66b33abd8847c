/* Limits and time-outs: at the limit nothing happens, one beyond it does. */
#include <sys/mman.h>
#include <sys/resource.h>

#include "net/server/internal.h"
#include "test/lib/net_stage.h"

/* "GET /aaa… HTTP/1.1" of so many bytes, with enough to be a request. */
static void line_of(char *out, size_t n)
{
    memset(out, 'a', n);
    memcpy(out, "GET /", 5);
    memcpy(out + n - 9, " HTTP/1.1", 9);
    snprintf(out + n, 64, "\r\nHost: h\r\nConnection: close\r\n\r\n");
}

TEST(request_lines_up_to_the_limit)
{
    struct stage s;
    struct heard h;
    char text[512];

    stage_init(&s, test_opts());
    line_of(text, s.opts.max_request_line_bytes);
    ask(&s, text, &h);
    CHECK(has(&h, "200 OK"));
    line_of(text, s.opts.max_request_line_bytes + 1);
    ask(&s, text, &h);
    CHECK(has(&h, "414 URI Too Long") && has(&h, "uri_too_long"));
    stage_fini(&s);
}

TEST(headers_up_to_the_limit)
{
    static const char head[] = "GET / HTTP/1.1\r\nConnection: close\r\n"
                               "Host: h\r\na:";
    struct stage s;
    struct heard h;
    char text[2048];
    size_t lines = sizeof(head) - 1 - 16, fill;

    stage_init(&s, test_opts());
    fill = s.opts.max_header_bytes - lines - 2;
    memcpy(text, head, sizeof(head) - 1);
    memset(text + sizeof(head) - 1, 'b', fill + 1);
    memcpy(text + sizeof(head) - 1 + fill, "\r\n\r\n", 5);
    ask(&s, text, &h);
    CHECK(has(&h, "200 OK"));
    memcpy(text + sizeof(head) - 1 + fill, "b\r\n\r\n", 6);
    ask(&s, text, &h);
    CHECK(has(&h, "431 Request Header Fields Too Large"));
    stage_fini(&s);
}

TEST(as_many_headers_as_the_limit)
{
    struct stage s;
    struct heard h;

    stage_init(&s, test_opts());
    for (size_t more = 0; more <= 1; more++) {
        char text[1024] = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";

        for (size_t i = 2; i < s.opts.max_headers + more; i++)
            memcpy(text + strlen(text), "a: b\r\n", 7);
        memcpy(text + strlen(text), "\r\n", 3);
        ask(&s, text, &h);
        CHECK(has(&h, more ? "431 Request" : "200 OK"));
    }
    stage_fini(&s);
}

TEST(bodies_up_to_the_limit)
{
    struct stage s;
    struct heard h;
    static char text[8192];

    stage_init(&s, test_opts());
    for (size_t more = 0; more <= 1; more++) {
        size_t n = s.opts.max_body_bytes + more;
        int at = snprintf(text, sizeof(text),
                          "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          n);

        memset(text + at, 'b', n);
        text[(size_t)at + n] = 0;
        ask(&s, text, &h);
        CHECK(has(&h, more ? "413 Content" : "200 OK"));
        at = snprintf(text, sizeof(text),
                      "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                      n);
        memset(text + at, 'b', n);
        memcpy(text + (size_t)at + n, "\r\n0\r\n\r\n", 8);
        ask(&s, text, &h);
        CHECK(has(&h, more ? "413 Content" : "200 OK"));
    }
    stage_fini(&s);
}

/* More than the kernel takes at once. */
static void say_fill(struct stage *s, int fd, char c, size_t n)
{
    static char piece[16384];

    memset(piece, c, sizeof(piece));
    while (n) {
        size_t part = n < sizeof(piece) ? n : sizeof(piece);
        ssize_t sent = send(fd, piece, part, MSG_NOSIGNAL);

        CHECK(sent > 0 || errno == EAGAIN);
        n -= sent > 0 ? (size_t)sent : 0;
        turn(s, 1);
    }
}

TEST(head_body_and_trailers_may_all_be_at_their_limits)
{
    enum { MOST = 300 * 1024 };
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int fd;

    opts.max_header_bytes = opts.max_body_bytes = MOST;
    stage_init(&s, opts);
    s.mode = HOLD;
    fd = dial(&s);
    say(fd, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\na:");
    say_fill(&s, fd, 'a',
             MOST - strlen("Host: h\r\nTransfer-Encoding: "
                           "chunked\r\na:\r\n"));
    say(fd, "\r\n\r\n4b000\r\n");
    say_fill(&s, fd, 'b', MOST);
    say(fd, "\r\n0\r\nt:");
    say_fill(&s, fd, 't', MOST - strlen("t:\r\n"));
    say(fd, "\r\n\r\n");
    UNTIL(&s, s.n_requests == 1);
    net_reply(s.net, s.ids[0], &s.reply);
    HEAR_UNTIL(&s, fd, &h, has(&h, "200 OK"));
    close(fd);
    stage_fini(&s);
}

TEST(a_head_has_a_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, "G");
    UNTIL(&s, net_stats(s.net).buffered_bytes > 0);
    later(&s, s.opts.header_timeout_ms - 1);
    say(fd, "ET / HTTP/1.1\r\n"); /* a byte now and then does not help */
    turn(&s, 3);
    hear(fd, &h);
    CHECK(h.n == 0);
    later(&s, 1);
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "408 Request Timeout") && has(&h, "\"timeout\""));
    CHECK(has(&h, "the headers took longer than http.headerTimeoutMs"));
    CHECK(net_stats(s.net).timeouts_total == 1);
    CHECK(net_stats(s.net).bad_requests_total == 0);
    close(fd);
    check_alive(&s);
    stage_fini(&s);
}

TEST(a_body_has_a_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = dial(&s);
    say(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc");
    UNTIL(&s, net_stats(s.net).buffered_bytes > 0);
    later(&s, s.opts.body_timeout_ms - 1);
    say(fd, "def");
    turn(&s, 3);
    hear(fd, &h);
    CHECK(h.n == 0);
    later(&s, 1);
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "408 Request Timeout"));
    CHECK(has(&h, "the body took longer than http.bodyTimeoutMs"));
    close(fd);
    stage_fini(&s);
}

TEST(an_idle_connection_has_a_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd, mute;

    stage_init(&s, test_opts());
    mute = dial(&s);
    fd = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 2);
    later(&s, s.opts.idle_timeout_ms - 1);
    say(fd, GET("/"));
    HEAR_UNTIL(&s, fd, &h, has(&h, "200 OK"));
    CHECK(net_stats(s.net).connections == 2);
    later(&s, 1); /* the one that never spoke */
    CHECK(net_stats(s.net).connections == 1);
    later(&s, s.opts.idle_timeout_ms - 2);
    CHECK(net_stats(s.net).connections == 1);
    later(&s, 1); /* and the other, counted from its reply */
    CHECK(net_stats(s.net).connections == 0);
    HEAR_UNTIL(&s, fd, &h, h.is_eof || h.is_reset);
    CHECK(h.is_eof && !h.is_reset && count(&h, "HTTP/1.1") == 1);
    CHECK(net_stats(s.net).idle_closed_total == 2);
    CHECK(net_stats(s.net).timeouts_total == 0); /* no client was slow */
    close(fd);
    close(mute);
    stage_fini(&s);
}

TEST(a_reply_has_a_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, HOLD, GET("/held"));
    later(&s, s.opts.reply_timeout_ms - 1);
    CHECK(s.n_gone == 0);
    later(&s, 1);
    CHECK(s.n_gone == 1 && s.gone_id == s.ids[0]);
    net_reply(s.net, s.ids[0], &s.reply); /* too late */
    HEAR_UNTIL(&s, fd, &h, h.is_eof);
    CHECK(has(&h, "504 Gateway Timeout") && has(&h, "no_reply"));
    CHECK(has(&h, "it took longer than http.replyTimeoutMs"));
    CHECK(count(&h, "HTTP/1.1") == 1);
    close(fd);
    stage_fini(&s);
}

TEST(a_stream_that_flows_has_no_time)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fd;

    stage_init(&s, test_opts());
    fd = open_request(&s, STREAM, GET("/s"));
    for (int i = 0; i < 10; i++) {
        later(&s, 3600 * 1000);
        CHECK(net_stream_send(s.net, s.ids[0], STR(":\n\n")) == OK);
    }
    HEAR_UNTIL(&s, fd, &h, count(&h, ":\n\n") == 10);
    CHECK(s.n_gone == 0);
    close(fd);
    stage_fini(&s);
}

TEST(beyond_the_limit_clients_are_turned_away_in_words)
{
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int fds[3], over;

    opts.max_connections = 3;
    stage_init(&s, opts);
    for (int i = 0; i < 3; i++)
        fds[i] = open_request(&s, HOLD, GET("/held"));
    CHECK(net_stats(s.net).connections == 3);
    CHECK(net_stats(s.net).refused_total == 0);
    over = dial(&s);
    say(over, GET("/")); /* unread, and still no reset */
    HEAR_UNTIL(&s, over, &h, h.is_eof || h.is_reset);
    CHECK(has(&h, "503 Service Unavailable") && has(&h, "overloaded"));
    CHECK(has(&h, "as many connections are open as may be"));
    CHECK(has(&h, "Retry-After: 1\r\n") && !h.is_reset);
    CHECK(net_stats(s.net).refused_total == 1 && s.n_requests == 3);
    close(over);
    UNTIL(&s, net_stats(s.net).connections == 3);
    h = (struct heard){.n = 0};
    reply_text(&s, s.ids[1], "fine");
    HEAR_UNTIL(&s, fds[1], &h, has(&h, "200 OK"));
    s.mode = ANSWER;
    reply_all(&s);
    close(fds[0]);
    UNTIL(&s, net_stats(s.net).connections == 2);
    check_alive(&s);
    close(fds[1]);
    close(fds[2]);
    stage_fini(&s);
}

TEST(only_so_many_are_turned_away_at_once)
{
    struct stage s;
    struct net_opts opts = test_opts();
    int fds[AWAY_MAX + 10];

    opts.max_connections = 1;
    stage_init(&s, opts);
    fds[0] = open_request(&s, HOLD, GET("/held"));
    s.mode = ANSWER;
    for (int i = 1; i < AWAY_MAX + 10; i++)
        fds[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).refused_total == AWAY_MAX + 9);
    CHECK(net_stats(s.net).connections == AWAY_MAX + 1);
    reply_all(&s);
    for (int i = 0; i < AWAY_MAX + 10; i++)
        close(fds[i]);
    UNTIL(&s, net_stats(s.net).connections == 0);
    check_alive(&s);
    stage_fini(&s);
}

static void limit_fds(rlim_t n)
{
    struct rlimit r;

    CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = n;
    CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

/* Take every file descriptor that is left but `spare`. */
static int use_up_fds(int *fds, int spare)
{
    int n = 0;

    while (n < 64 && (fds[n] = dup(0)) >= 0)
        n++;
    CHECK(n >= spare && n < 64);
    while (spare--)
        close(fds[--n]);
    return n;
}

TEST(without_file_descriptors_clients_wait_and_are_served_later)
{
    struct stage s;
    struct heard h = {.n = 0};
    int fds[64], n, first, second;

    stage_init(&s, test_opts());
    first = dial(&s);
    say(first, GET("/1"));
    HEAR_UNTIL(&s, first, &h, has(&h, "/1"));
    limit_fds(40);
    n = use_up_fds(fds, 1);
    second = dial(&s); /* takes the last one */
    say(second, GET("/2"));
    turn(&s, 20);
    CHECK(s.n_requests == 1);
    later(&s, 100); /* tried again, in vain */
    later(&s, 100);
    CHECK(s.n_requests == 1);
    say(first, GET("/3")); /* who is in is served meanwhile */
    UNTIL(&s, s.n_requests == 2);
    close(fds[--n]);
    later(&s, 99);
    CHECK(s.n_requests == 2);
    later(&s, 1);
    UNTIL(&s, s.n_requests == 3);
    CHECK(strstr(s.said, "GET /2 [];") != NULL);
    while (n)
        close(fds[--n]);
    close(first);
    close(second);
    stage_fini(&s);
}

/* How often a word stands in the log, which went to a file of its own. */
static int times_logged(const struct stage *s, const char *word)
{
    static char text[65536];
    ssize_t n = pread(s->log.fd, text, sizeof(text) - 1, 0);
    int times = 0;

    CHECK(n >= 0);
    text[n] = 0;
    for (const char *p = text; (p = strstr(p, word)); p++)
        times++;
    return times;
}

TEST(accepting_that_rests_is_told_once)
{
    struct stage s;
    int fds[64], n, first[3], second;

    stage_init(&s, test_opts());
    CHECK(close(s.log.fd) == 0);
    s.log.fd = memfd_create("log", MFD_CLOEXEC);
    for (int i = 0; i < 3; i++)
        first[i] = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 3);
    limit_fds(40);
    for (int episode = 1; episode <= 2; episode++) {
        n = use_up_fds(fds, 1);
        second = dial(&s); /* takes the last one */
        turn(&s, 5);
        for (int i = 0; i < 5; i++)
            later(&s, 100); /* tried again, in vain */
        CHECK(times_logged(&s, "net.accept_rests") == episode);
        CHECK(times_logged(&s, "net.accept_goes_on") == episode - 1);
        while (n)
            close(fds[--n]);
        later(&s, 100);
        CHECK(net_stats(s.net).connections == 4);
        CHECK(times_logged(&s, "net.accept_goes_on") == episode);
        close(second);
        UNTIL(&s, net_stats(s.net).connections == 3);
    }
    CHECK(times_logged(&s, "net.accept_rests") == 2);
    for (int i = 0; i < 3; i++)
        close(first[i]);
    stage_fini(&s);
}

TEST(a_connection_that_closes_makes_room_at_once)
{
    struct stage s;
    int fds[64], n, first, second;

    stage_init(&s, test_opts());
    first = dial(&s);
    UNTIL(&s, net_stats(s.net).connections == 1);
    limit_fds(40);
    n = use_up_fds(fds, 1);
    second = dial(&s);
    say(second, GET("/2"));
    turn(&s, 20);
    CHECK(s.n_requests == 0);
    close(first);
    UNTIL(&s, s.n_requests == 1); /* without waiting for the clock */
    while (n)
        close(fds[--n]);
    close(second);
    stage_fini(&s);
}

/* net_set_opts: a limit holds from the next bytes on. */
TEST(a_body_may_grow_as_far_as_a_limit_that_was_raised_meanwhile)
{
    static char piece[0x4000 + 1];
    struct stage s;
    struct net_opts opts = test_opts();
    struct heard h = {.n = 0};
    int fd;

    memset(piece, 'b', sizeof(piece) - 1);
    stage_init(&s, opts);
    s.mode = HOLD;
    fd = dial(&s);
    say(fd, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            "5\r\nbegun\r\n");
    turn(&s, 3);
    opts.max_body_bytes = 1 << 20;
    net_set_opts(s.net, &opts);
    for (int i = 0; i < 20; i++) {
        say(fd, "4000\r\n");
        say(fd, piece);
        say(fd, "\r\n");
        turn(&s, 3);
    }
    say(fd, "0\r\n\r\n");
    UNTIL(&s, s.n_requests == 1);
    reply_text(&s, s.ids[0], "taken");
    HEAR_UNTIL(&s, fd, &h, has(&h, "taken"));
    close(fd);
    stage_fini(&s);
}
