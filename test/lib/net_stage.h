#ifndef TEST_LIB_NET_STAGE_H
#define TEST_LIB_NET_STAGE_H

/* The stage on which net is tested: a loop under a fake clock, a server on a
 * free port, an owner that writes down what it is told, and clients that are
 * plain sockets of the same process. Nothing sleeps: loopback delivers at
 * once as a rule, and the loop is turned until the expected has happened. A
 * kernel that is short of time or memory delivers later; then there is nothing
 * to do for a while, and the stage waits for what comes. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "net/server/internal.h"
#include "test/t.h"

enum { TURNS = 20000, SEEN_MAX = 64 };

enum { ANSWER, HOLD, STREAM };

struct stage {
    struct clock_fake time;
    struct loop loop;
    struct log log;
    struct net *net;
    struct net_opts opts;
    uint16_t port;

    /* What the owner does with a request. */
    int mode; /* ANSWER, HOLD or STREAM */
    struct http_reply reply;

    /* What it was told. */
    int n_requests, n_gone, n_room, n_done;
    uint64_t ids[SEEN_MAX]; /* of requests, the latest last */
    uint64_t gone_id;
    char said[1024]; /* "GET /a?b [body];" of each request */
    char header[128];
    enum err opened;
};

/* Buffers of sockets grow and shrink with the memory that the machine has, and
 * a kernel that took all it wanted takes more a little later. Where it matters
 * that it takes no more, both ends have buffers of a size that stays, and what
 * may be unsent is far more than those. */
enum { SMALL_BUFFER = 4096, MUCH_UNSENT = 1 << 20 };

static inline struct net_opts test_opts(void)
{
    return (struct net_opts){
        .max_connections = 16,
        .max_request_line_bytes = 256,
        .max_header_bytes = 1024,
        .max_headers = 16,
        .max_body_bytes = 4096,
        .max_unsent_bytes = 65536,
        .max_buffered_bytes = 64 << 20,
        .header_timeout_ms = 1000,
        .body_timeout_ms = 2000,
        .idle_timeout_ms = 5000,
        .reply_timeout_ms = 3000,
        .write_timeout_ms = 4000,
        .ws_max_frame_bytes = 4096,
        .ws_max_message_bytes = 8192,
        .ws_timeout_ms = 9000,
        .ws_close_timeout_ms = 1000,
    };
}

static inline void note(struct stage *s, const struct http_request *rq)
{
    size_t at = strlen(s->said);

    snprintf(s->said + at, sizeof(s->said) - at, "%.*s %.*s%s%.*s [%.*s];",
             STR_ARG(rq->method), STR_ARG(rq->path), rq->query.n ? "?" : "",
             STR_ARG(rq->query), STR_ARG(rq->body));
    snprintf(s->header, sizeof(s->header), "%.*s",
             STR_ARG(http_header(rq, STR("x-test"))));
    CHECK(rq->peer.n > 10);
}

static inline void stage_request(void *ctx, uint64_t id,
                                 const struct http_request *rq)
{
    struct stage *s = ctx;

    note(s, rq);
    s->ids[s->n_requests++ % SEEN_MAX] = id;
    if (s->mode == ANSWER) {
        struct http_reply r = s->reply;

        if (!r.body.p)
            r.body = rq->path;
        net_reply(s->net, id, &r);
    } else if (s->mode == STREAM) {
        s->opened = net_stream_open(s->net, id, &s->reply);
    }
}

static inline void stage_gone(void *ctx, uint64_t id)
{
    struct stage *s = ctx;

    s->n_gone++;
    s->gone_id = id;
}

static inline void stage_room(void *ctx, uint64_t id)
{
    struct stage *s = ctx;

    (void)id;
    s->n_room++;
}

static inline struct str stage_word(void *ctx, enum err e, struct str what,
                                    struct buf *body)
{
    (void)ctx;
    buf_addf(body, "{\"code\":\"%s\",\"what\":\"%.*s\"}", err_row(e)->code,
             STR_ARG(what));
    return STR("application/json");
}

static inline void stage_done(void *ctx)
{
    ((struct stage *)ctx)->n_done++;
}

static inline struct net_handler stage_handler(struct stage *s)
{
    return (struct net_handler){
        .ctx = s,
        .on_request = stage_request,
        .on_gone = stage_gone,
        .on_room = stage_room,
        .word_error = stage_word,
    };
}

/* A loop and a server that does not listen yet. False: a fault hit. */
static inline bool stage_try_init(struct stage *s, struct net_opts opts)
{
    struct net_handler h = stage_handler(s);

    signal(SIGPIPE, SIG_IGN);
    *s = (struct stage){
        .time = {.wall_ms = 784111777000, .mono_ms = 1000},
        .opts = opts,
        .reply = {.status = 200, .content_type = STR("text/plain")},
    };
    if (loop_init(&s->loop, clock_fake(&s->time)) != OK)
        return false;
    log_init(&s->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_JSON, s->loop.clock);
    s->net = net_new(&s->loop, &s->log, &s->opts, &h);
    if (s->net)
        return true;
    loop_fini(&s->loop);
    close(s->log.fd);
    return false;
}

static inline uint16_t stage_port(const struct stage *s)
{
    int64_t port;

    CHECK(str_to_i64(str_of(strrchr(net_url(s->net), ':') + 1), &port) == OK);
    return (uint16_t)port;
}

static inline void stage_init(struct stage *s, struct net_opts opts)
{
    struct why why;

    CHECK(stage_try_init(s, opts));
    CHECK(net_listen(s->net, STR("127.0.0.1:0"), false, &why) == OK);
    s->port = stage_port(s);
}

static inline void turn_once(struct stage *s)
{
    loop_turn(&s->loop);
    CHECK(!s->net || net_check(s->net));
}

static inline void turn(struct stage *s, int n)
{
    while (n-- > 0)
        turn_once(s);
}

static inline void later(struct stage *s, int64_t ms)
{
    s->time.mono_ms += ms;
    s->time.wall_ms += ms;
    turn(s, 3);
}

/* Who takes nothing is cut when write_timeout_ms have passed, and not before. A
 * kernel that looks for room once more may take a few bytes in between, and the
 * waiting starts over; what it took last it took just now. Something is unsent
 * whatever it takes: see MUCH_UNSENT. */
static inline void later_it_is_cut(struct stage *s, const int *n_cut)
{
    int64_t unsent;

    while (*n_cut == 0) {
        unsent = net_stats(s->net).unsent_bytes;
        later(s, s->opts.write_timeout_ms - 1);
        CHECK(*n_cut == 0);
        if (net_stats(s->net).unsent_bytes != unsent)
            continue;
        later(s, 1);
        CHECK(*n_cut == 1 || net_stats(s->net).unsent_bytes != unsent);
    }
}

/* Nothing came of some turns: wait a millisecond at most for the server, or for
 * a client, -1 for none, to have something to do. */
static inline void wait_for_some(struct stage *s, int fd, int t_left)
{
    struct pollfd p[2] = {
        {.fd = uv_backend_fd(&s->loop.uv), .events = POLLIN},
        {.fd = fd, .events = POLLIN},
    };

    if (t_left % 4 == 0 && uv_backend_timeout(&s->loop.uv) != 0)
        poll(p, 2, 1);
}

#define UNTIL(s, condition)                    \
    do {                                       \
        int t_left = TURNS;                    \
        while (!(condition) && t_left-- > 0) { \
            turn_once(s);                      \
            wait_for_some(s, -1, t_left);      \
        }                                      \
        CHECK(condition);                      \
    } while (0)

/* Give everything back. The server was told to stop, or never listened; it
 * may have been freed before. */
static inline void stage_free(struct stage *s)
{
    net_free(s->net);
    loop_fini(&s->loop);
    close(s->log.fd);
}

/* Once the server says that it has stopped, look that nothing is left. */
static inline void stage_await_stop(struct stage *s)
{
    UNTIL(s, s->n_done == 1);
    CHECK(net_stats(s->net).connections == 0);
    stage_free(s);
}

/* Stop, with everything cut off. */
static inline void stage_fini(struct stage *s)
{
    net_stop(s->net, 0, stage_done, s);
    stage_await_stop(s);
}

/* Clients. */

/* A client at 127.0.0.N. */
static inline int dial_from(const struct stage *s, unsigned n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK - 1 + n)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(s->port);
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

static inline int dial_small(const struct stage *s, int rcvbuf_bytes)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(s->port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    CHECK(fd >= 0);
    if (rcvbuf_bytes)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf_bytes,
                   sizeof(rcvbuf_bytes));
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

static inline int dial(const struct stage *s)
{
    return dial_small(s, 0);
}

static inline void say_n(int fd, const char *p, size_t n)
{
    CHECK(send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static inline void say(int fd, const char *text)
{
    say_n(fd, text, strlen(text));
}

/* What a client has heard so far. */
struct heard {
    char text[65536];
    size_t n;
    bool is_eof, is_reset;
};

static inline void hear(int fd, struct heard *h)
{
    while (h->n < sizeof(h->text) - 1) {
        ssize_t n = recv(fd, h->text + h->n, sizeof(h->text) - 1 - h->n, 0);

        if (n <= 0) {
            h->is_eof = h->is_eof || n == 0;
            h->is_reset =
                h->is_reset || (n < 0 && errno != EAGAIN && errno != EINTR);
            break;
        }
        h->n += (size_t)n;
    }
    h->text[h->n] = 0;
}

static inline void listen_to(struct stage *s, int fd, struct heard *h)
{
    turn_once(s);
    hear(fd, h);
}

#define HEAR_UNTIL(s, fd, h, condition)        \
    do {                                       \
        int t_left = TURNS;                    \
        while (!(condition) && t_left-- > 0) { \
            listen_to(s, fd, h);               \
            wait_for_some(s, fd, t_left);      \
        }                                      \
        CHECK(condition);                      \
    } while (0)

static inline bool has(const struct heard *h, const char *text)
{
    return strstr(h->text, text) != NULL;
}

static inline int count(const struct heard *h, const char *text)
{
    int n = 0;

    for (const char *p = h->text; (p = strstr(p, text)); p++)
        n++;
    return n;
}

/* Dial, say, hear until the server closes, hang up. */
static inline void ask(struct stage *s, const char *text, struct heard *h)
{
    int fd = dial(s);

    *h = (struct heard){.n = 0};
    say(fd, text);
    HEAR_UNTIL(s, fd, h, h->is_eof || h->is_reset);
    close(fd);
    turn(s, 3);
}

/* The server's end has a buffer of that size, which stays. */
static inline void keep_sndbuf(const struct conn *c, int bytes)
{
    CHECK(setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0);
}

/* Until the kernel has brought so many bytes to that end. */
static inline void await_arrival(int fd, size_t bytes)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = 0;

    while ((size_t)n < bytes) {
        poll(&p, 1, 1);
        CHECK(ioctl(fd, FIONREAD, &n) == 0);
    }
}

/* Dial and say a request that the owner holds or answers with a stream: the
 * last of s->ids is open. */
static inline int open_with(struct stage *s, int mode, const char *text, int fd)
{
    int before = s->n_requests;

    s->mode = mode;
    say(fd, text);
    UNTIL(s, s->n_requests == before + 1);
    return fd;
}

static inline int open_request(struct stage *s, int mode, const char *text)
{
    return open_with(s, mode, text, dial(s));
}

/* And the kernel takes little of what is sent, at both ends. */
static inline int open_small(struct stage *s, int mode, const char *text)
{
    int fd = open_with(s, mode, text, dial_small(s, SMALL_BUFFER));

    keep_sndbuf(net_find(s->net, s->ids[(s->n_requests - 1) % SEEN_MAX]),
                SMALL_BUFFER);
    return fd;
}

static inline void reply_text(struct stage *s, uint64_t id, const char *text)
{
    net_reply(s->net, id,
              &(struct http_reply){.status = 200, .body = str_of(text)});
}

/* Answer whatever is held. */
static inline void reply_all(struct stage *s)
{
    for (int i = 0; i < SEEN_MAX && i < s->n_requests; i++)
        if (net_find(s->net, s->ids[i]))
            reply_text(s, s->ids[i], "");
    turn_once(s);
}

/* Hear what is there, without what was heard before; returns how much. */
static inline size_t hear_more(struct stage *s, int fd, struct heard *h)
{
    *h = (struct heard){.n = 0};
    listen_to(s, fd, h);
    if (h->n == 0 && !h->is_eof && !h->is_reset)
        wait_for_some(s, fd, 0);
    return h->n;
}

/* Hear until this has come, in one piece or several; returns how much. */
static inline size_t hear_to(struct stage *s, int fd, const char *end)
{
    struct heard h = {.n = 0};
    size_t n = 0, before;

    while (!has(&h, end)) {
        CHECK(!h.is_eof && !h.is_reset);
        before = h.n < strlen(end) ? h.n : strlen(end);
        memmove(h.text, h.text + h.n - before, before);
        h.n = before;
        listen_to(s, fd, &h);
        n += h.n - before;
        if (h.n == before)
            wait_for_some(s, fd, 0);
    }
    return n;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET_CLOSE(path) \
    "GET " path " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

/* After whatever happened before: a good request gets a good answer. */
static inline void check_alive(struct stage *s)
{
    struct heard h;

    s->mode = ANSWER;
    ask(s, GET_CLOSE("/alive"), &h);
    CHECK(has(&h, "HTTP/1.1 200 OK\r\n") && has(&h, "\r\n\r\n/alive"));
}

#endif
