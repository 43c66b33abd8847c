#ifndef TEST_LIB_DIAL_STAGE_H
#define TEST_LIB_DIAL_STAGE_H

/* The stage of ws_stage.h with a caller: net dials, mostly itself or a server
 * that the test plays by hand, and what the caller is told is written down
 * beside what the server's owner is. Names are looked up by the test, which
 * answers when and what it likes. */

#include <netdb.h>

#include "test/lib/ws_stage.h"

struct dial_stage {
    struct ws_stage w;    /* the server, whose net dials as well */
    struct ws_stage call; /* what the caller was told; shares its net */
    struct net_dial what;
    uint64_t id;
    struct why why;
    char url[256];

    int raw_fd; /* listens, and is played by hand; -1: none */
    uint16_t raw_port;
};

/* The lookup that is under way; the only one in a test's process. */
static struct {
    uv_getaddrinfo_t *rq;
    uv_getaddrinfo_cb done;
    char name[256], port[16];
    int n_asked;
} asked;

static inline int ask_the_test(uv_loop_t *loop, uv_getaddrinfo_t *rq,
                               uv_getaddrinfo_cb done, const char *node,
                               const char *service,
                               const struct addrinfo *hints)
{
    (void)loop;
    (void)hints;
    CHECK(!asked.rq);
    asked.rq = rq;
    asked.done = done;
    asked.n_asked++;
    snprintf(asked.name, sizeof(asked.name), "%s", node);
    snprintf(asked.port, sizeof(asked.port), "%s", service);
    return 0;
}

/* "127.0.0.2 127.0.0.1": what the name means. */
static inline void answer_name(const char *addresses)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL, **last = &all;
    struct str rest = str_of(addresses);
    uv_getaddrinfo_t *rq = asked.rq;

    CHECK(rq);
    while (rest.n) {
        struct str one = str_cut(&rest, ' ');
        char text[64];

        snprintf(text, sizeof(text), "%.*s", STR_ARG(one));
        CHECK(getaddrinfo(text, asked.port, &hints, last) == 0);
        last = &(*last)->ai_next;
    }
    asked.rq = NULL;
    asked.done(rq, 0, all);
}

static inline void answer_nothing(int status)
{
    uv_getaddrinfo_t *rq = asked.rq;

    CHECK(rq);
    asked.rq = NULL;
    asked.done(rq, status, NULL);
}

static inline void dial_stage_init(struct dial_stage *d, struct net_opts opts)
{
    *d = (struct dial_stage){.raw_fd = -1};
    ws_stage_init(&d->w, opts);
    d->call.s.net = d->w.s.net;
    d->w.s.net->getaddrinfo = ask_the_test;
    d->what.timeout_ms = 10000;
}

static inline void dial_stage_fini(struct dial_stage *d)
{
    if (d->raw_fd >= 0)
        close(d->raw_fd);
    ws_stage_fini(&d->w);
}

static inline enum err try_call(struct dial_stage *d, const char *url)
{
    snprintf(d->url, sizeof(d->url), "%s", url);
    d->what.url = str_of(d->url);
    return net_ws_dial(d->w.s.net, &d->what, &ws_stage_handler, &d->call,
                       &d->id, &d->why);
}

static inline void call_port(struct dial_stage *d, const char *host,
                             uint16_t port)
{
    char url[256];

    snprintf(url, sizeof(url), "ws://%s:%u/ws", host, port);
    CHECK(try_call(d, url) == OK);
}

/* Call the server of the stage, until it is open. */
static inline void call_in(struct dial_stage *d)
{
    call_port(d, "127.0.0.1", d->w.s.port);
    UNTIL(&d->w.s, d->call.n_opens == 1);
}

/* A server played by hand. */

static inline int raw_listen(const char *address, uint16_t port, int backlog)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK(fd >= 0 && inet_pton(AF_INET, address, &a.sin_addr) == 1);
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(listen(fd, backlog) == 0);
    return fd;
}

static inline uint16_t port_of(int fd)
{
    struct sockaddr_in a;
    socklen_t len = sizeof(a);

    CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    return ntohs(a.sin_port);
}

static inline void raw_init(struct dial_stage *d)
{
    d->raw_fd = raw_listen("127.0.0.1", 0, 16);
    d->raw_port = port_of(d->raw_fd);
}

/* Who came in. */
static inline int raw_accept(struct dial_stage *d)
{
    int fd = -1, one = 1;

    for (int i = 0; i < TURNS && fd < 0; i++) {
        turn_once(&d->w.s);
        fd = accept4(d->raw_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            wait_for_some(&d->w.s, d->raw_fd, i);
    }
    CHECK(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* What it asked, whole, and the answer to its key. */
static inline void raw_hear_ask(struct dial_stage *d, int fd, struct heard *h,
                                char accept[WS_ACCEPT_BYTES + 1])
{
    const char *key;

    *h = (struct heard){.n = 0};
    HEAR_UNTIL(&d->w.s, fd, h, has(h, "\r\n\r\n"));
    key = strstr(h->text, "\r\nSec-WebSocket-Key: ");
    CHECK(key && ws_accept_of(key + 21, accept) == OK);
}

/* Come in, hear the question, and agree to it. */
static inline int raw_agree(struct dial_stage *d, const char *behind, size_t n)
{
    struct heard h;
    char accept[WS_ACCEPT_BYTES + 1], text[512];
    int fd = raw_accept(d), len;

    raw_hear_ask(d, fd, &h, accept);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 101 Fine\r\nupgrade: WebSocket\r\n"
                   "connection: keep-alive, upgrade\r\n"
                   "sec-websocket-accept: %s\r\n\r\n",
                   accept);
    memcpy(text + len, behind, n);
    say_n(fd, text, (size_t)len + n);
    return fd;
}

/* Connects that no one answers: the queue of a listener is filled, and the
 * kernel throws away whatever comes after. */
struct black_hole {
    int fd, fillers[8];
};

static inline struct black_hole black_hole(const char *address, uint16_t port)
{
    struct black_hole b = {.fd = raw_listen(address, port, 0)};
    struct sockaddr_in a;
    socklen_t len = sizeof(a);

    CHECK(getsockname(b.fd, (struct sockaddr *)&a, &len) == 0);
    for (int i = 0; i < 8; i++) {
        int r;

        b.fillers[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        r = connect(b.fillers[i], (struct sockaddr *)&a, sizeof(a));
        CHECK(r == 0 || errno == EINPROGRESS);
    }
    return b;
}

static inline void black_hole_close(struct black_hole *b)
{
    for (int i = 0; i < 8; i++)
        close(b->fillers[i]);
    close(b->fd);
}

#endif
