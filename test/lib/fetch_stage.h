#ifndef TEST_LIB_FETCH_STAGE_H
#define TEST_LIB_FETCH_STAGE_H

/* The stage on which fetch is tested: a loop, a fetch, an owner that writes
 * down what it is told, and servers that are plain sockets of the same
 * process and say whatever bytes they are told to. The clock goes on by
 * itself, since libcurl reads the real one, and jumps where a deadline is to
 * pass; deadlines are so long that nothing else reaches them. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fault.h"
#include "net/client/fetch.h"
#include "test/t.h"

enum { PEERS_MAX = 4, PEER_CONNS = 64, ASKED_MAX = 64, TURNS_MAX = 20000 };

/* One connection to a server. */
struct guest {
    int fd;
    struct buf heard;    /* what is no whole request yet */
    size_t n_asked;      /* requests */
    bool is_eof;         /* it has closed */
    const char *to_send; /* what the kernel did not take yet */
    size_t n_to_send;
};

/* A server. It answers every request with `reply` unless that is NULL; then
 * the test does it. */
struct peer {
    int fd;
    uint16_t port;
    struct guest guests[PEER_CONNS];
    int n_guests; /* that ever came */
    int n_asked;
    struct buf asked; /* every request, whole */
    const char *reply;
    const char *first_reply; /* to the first request instead. NULL: none */
    bool closes;             /* after the reply */
    bool is_deaf;            /* does not read */
    bool is_gone;
};

/* What the owner was told of one request. */
struct told {
    uint64_t id;
    int n_heads, n_events, n_bytes_calls, n_done;
    enum err e;
    int status;
    char url[512];
    struct buf body;   /* of on_bytes, or of on_done */
    struct buf events; /* "id|type|data;" */
    char why[512];
    char header[256]; /* X-Test */
    char refused[64]; /* for the operator */
    size_t n_headers;
    struct stage *stage;

    /* What the owner does when it is told something. */
    bool cancels_at_head, cancels_at_bytes, cancels_at_event;
    bool pauses_at_bytes, pauses_at_event, starts_at_done, cancels_at_done;
    struct told *other;
    const struct fetch_request *next;
    const struct fetch_handler *next_handler;
};

struct stage {
    int64_t real_ms;  /* when the last turn began, on the real clock */
    int64_t mono_ms;  /* the stage's own, which goes no faster than its turns */
    int64_t ahead_ms; /* of that one */
    struct loop loop;
    struct log log;
    struct fetch *fetch;
    struct fetch_opts opts;
    struct guard_range allow[4];
    struct peer peers[PEERS_MAX];
    int n_peers;
    int n_stopped;
};

/* The clock goes on by itself, since libcurl has one of its own. What passes
 * between two turns counts for little: on a machine with much to do this
 * process may be left out for seconds, in which nothing could happen here. */
enum { TURN_MS_MAX = 2 };

static inline int64_t stage_wall(void *ctx)
{
    (void)ctx;
    return 784111777000;
}

static inline int64_t stage_mono(void *ctx)
{
    struct stage *s = ctx;

    return s->mono_ms + s->ahead_ms;
}

static inline void stage_tick(struct stage *s)
{
    struct clock real = clock_system();
    int64_t now_ms = real.mono_ms(real.ctx), passed_ms = now_ms - s->real_ms;

    s->mono_ms += passed_ms < TURN_MS_MAX ? passed_ms : TURN_MS_MAX;
    s->real_ms = now_ms;
}

/* A buf that does not grow in a small test: what breaks on purpose is to be
 * fetch, and not the stage. */
static inline void buf_init_roomy(struct buf *b, size_t limit)
{
    enum { ROOMY_BYTES = 1 << 16 };

    buf_init(b, limit);
    b->p = malloc(ROOMY_BYTES);
    CHECK(b->p);
    b->cap = ROOMY_BYTES;
}

/* Servers. */

static inline int listen_at(struct sockaddr *sa, socklen_t len, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    0),
        one = 1;

    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    CHECK(bind(fd, sa, len) == 0 && listen(fd, 64) == 0);
    len = sizeof(a);
    CHECK(getsockname(fd, &a.any, &len) == 0);
    *port = ntohs(sa->sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
    return fd;
}

static inline struct peer *peer_open(struct stage *s, const char *reply)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct peer *p = &s->peers[s->n_peers++];

    CHECK(s->n_peers <= PEERS_MAX);
    *p = (struct peer){.reply = reply};
    p->fd = listen_at((struct sockaddr *)&a, sizeof(a), &p->port);
    buf_init_roomy(&p->asked, 16 << 20);
    return p;
}

static inline void guest_push(struct guest *g)
{
    while (g->n_to_send) {
        ssize_t n = send(g->fd, g->to_send, g->n_to_send, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        g->to_send += n;
        g->n_to_send -= (size_t)n;
    }
}

/* Borrows text until it was sent. */
static inline void guest_say(struct guest *g, const char *text, size_t n)
{
    CHECK(!g->n_to_send);
    g->to_send = text;
    g->n_to_send = n;
    guest_push(g);
}

static inline void guest_hang_up(struct guest *g)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->n_to_send = 0;
}

/* So that the other side hears of a reset, not of an end. */
static inline void guest_reset(struct guest *g)
{
    struct linger l = {1, 0};

    setsockopt(g->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    guest_hang_up(g);
}

/* The bytes of the first whole request; zero when there is none. */
static inline size_t request_bytes(const struct buf *b)
{
    const char *end = b->n ? memmem(b->p, b->n, "\r\n\r\n", 4) : NULL, *length;
    size_t n;

    if (!end)
        return 0;
    n = (size_t)(end - b->p) + 4;
    length = memmem(b->p, n, "Content-Length: ", 16);
    if (length)
        n += strtoul(length + 16, NULL, 10);
    return n <= b->n ? n : 0;
}

static inline void guest_step(struct peer *p, struct guest *g)
{
    char bytes[65536];
    ssize_t n = 1;
    const char *reply;
    size_t whole;

    if (g->fd < 0)
        return;
    guest_push(g);
    while (!p->is_deaf && n > 0) {
        n = recv(g->fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            buf_add(&g->heard, bytes, (size_t)n);
        else if (n == 0 || errno != EAGAIN)
            g->is_eof = true;
    }
    while ((whole = request_bytes(&g->heard))) {
        buf_add(&p->asked, g->heard.p, whole);
        buf_drop(&g->heard, whole);
        p->n_asked++;
        g->n_asked++;
        reply = p->first_reply && p->n_asked == 1 ? p->first_reply : p->reply;
        if (reply)
            guest_say(g, reply, strlen(reply));
        if (reply && p->closes)
            guest_hang_up(g);
        if (g->fd < 0)
            return;
    }
}

static inline void peer_step(struct peer *p)
{
    int fd = p->is_gone
                 ? -1
                 : accept4(p->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int one = 1;

    if (fd >= 0) {
        CHECK(p->n_guests < PEER_CONNS);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        p->guests[p->n_guests] = (struct guest){.fd = fd};
        buf_init_roomy(&p->guests[p->n_guests++].heard, 64 << 20);
    }
    for (int i = 0; i < p->n_guests; i++)
        guest_step(p, &p->guests[i]);
}

static inline bool peer_heard(const struct peer *p, const char *text)
{
    return p->asked.n &&
           memmem(p->asked.p, p->asked.n, text, strlen(text)) != NULL;
}

static inline struct guest *last_guest(struct peer *p)
{
    CHECK(p->n_guests > 0);
    return &p->guests[p->n_guests - 1];
}

static inline void peer_say(struct peer *p, const char *text)
{
    guest_say(last_guest(p), text, strlen(text));
}

static inline void peer_close(struct peer *p)
{
    for (int i = 0; i < p->n_guests; i++) {
        guest_hang_up(&p->guests[i]);
        buf_fini(&p->guests[i].heard);
    }
    buf_fini(&p->asked);
    if (!p->is_gone)
        close(p->fd);
}

/* No one listens there any more. */
static inline void peer_leave(struct peer *p)
{
    close(p->fd);
    p->is_gone = true;
}

/* The owner. */

static inline void note_answer(struct told *t, const struct fetch_answer *a)
{
    t->status = a->status;
    t->n_headers = a->n_headers;
    snprintf(t->url, sizeof(t->url), "%.*s", STR_ARG(a->url));
    snprintf(t->refused, sizeof(t->refused), "%.*s", STR_ARG(a->refused));
    for (size_t i = 0; i < a->n_headers; i++)
        if (str_eq_nocase(a->headers[i].name, STR("x-test")))
            snprintf(t->header, sizeof(t->header), "%.*s",
                     STR_ARG(a->headers[i].value));
}

static inline void told_head(void *ctx, uint64_t id,
                             const struct fetch_answer *a)
{
    struct told *t = ctx;

    CHECK(t->id == id && !t->n_done && !t->n_heads);
    t->n_heads++;
    note_answer(t, a);
    if (t->cancels_at_head)
        fetch_cancel(t->stage->fetch, id);
}

static inline void told_bytes(void *ctx, uint64_t id, struct str bytes)
{
    struct told *t = ctx;

    CHECK(t->id == id && !t->n_done && bytes.n);
    t->n_bytes_calls++;
    buf_add_str(&t->body, bytes);
    if (t->cancels_at_bytes)
        fetch_cancel(t->stage->fetch, id);
    if (t->pauses_at_bytes)
        fetch_pause(t->stage->fetch, id, true);
}

static inline void told_event(void *ctx, uint64_t id, const struct sse_event *e)
{
    struct told *t = ctx;

    CHECK(t->id == id && !t->n_done);
    t->n_events++;
    buf_addf(&t->events, "%.*s|%.*s|%.*s;", STR_ARG(e->id), STR_ARG(e->type),
             STR_ARG(e->data));
    if (t->cancels_at_event)
        fetch_cancel(t->stage->fetch, id);
    if (t->pauses_at_event)
        fetch_pause(t->stage->fetch, id, true);
}

static inline void told_done(void *ctx, uint64_t id, enum err e,
                             const struct fetch_answer *a,
                             const struct why *why)
{
    struct told *t = ctx;

    CHECK(t->id == id && !t->n_done);
    t->n_done++;
    t->e = e;
    note_answer(t, a);
    buf_add_str(&t->body, a->body);
    snprintf(t->why, sizeof(t->why), "%s", why->text);
    CHECK(!e == !why->text[0]);
    if (t->cancels_at_done)
        fetch_cancel(t->stage->fetch, t->other->id);
    if (t->starts_at_done)
        CHECK(fetch_start(t->stage->fetch, t->next, t->next_handler, t->other,
                          &t->other->id, NULL) == OK);
}

static const struct fetch_handler whole = {.on_head = told_head,
                                           .on_done = told_done};
static const struct fetch_handler as_bytes = {
    .on_head = told_head, .on_bytes = told_bytes, .on_done = told_done};
static const struct fetch_handler as_events = {.on_head = told_head,
                                               .on_bytes = told_bytes,
                                               .on_event = told_event,
                                               .on_done = told_done};

static inline struct told *told_new(struct stage *s)
{
    struct told *t = calloc(1, sizeof(*t));

    CHECK(t);
    t->stage = s;
    buf_init_roomy(&t->body, 64 << 20);
    buf_init_roomy(&t->events, 64 << 20);
    return t;
}

static inline void told_free(struct told *t)
{
    buf_fini(&t->body);
    buf_fini(&t->events);
    free(t);
}

/* The stage. */

static inline void turn_once(struct stage *s)
{
    stage_tick(s);
    loop_turn(&s->loop);
    for (int i = 0; i < s->n_peers; i++)
        peer_step(&s->peers[i]);
}

static inline void turn(struct stage *s, int n)
{
    while (n-- > 0)
        turn_once(s);
}

/* The loop has nothing to do: wait for the world, a millisecond at most, since
 * libcurl's timers and the servers have something, perhaps. */
static inline void wait_a_little(struct stage *s)
{
    struct pollfd p = {.fd = uv_backend_fd(&s->loop.uv), .events = POLLIN};

    poll(&p, 1, 1);
}

#define UNTIL(s, condition)                      \
    do {                                         \
        int t_left = TURNS_MAX;                  \
        while (!(condition) && t_left-- > 0) {   \
            turn_once(s);                        \
            if (!(condition) && t_left % 4 == 0) \
                wait_a_little(s);                \
        }                                        \
        CHECK(condition);                        \
    } while (0)

static inline void later(struct stage *s, int64_t ms)
{
    s->ahead_ms += ms;
    turn(s, 4);
}

static inline struct fetch_opts test_opts(void)
{
    return (struct fetch_opts){
        .max_open = 16,
        .max_per_host = 8,
        .max_kept = 8,
        .connect_timeout_ms = 100 * 1000,
        .max_header_bytes = 4096,
    };
}

/* False: a fault hit. */
static inline bool stage_try_init(struct stage *s, struct fetch_opts opts)
{
    struct clock clock = {
        .wall_ms = stage_wall, .mono_ms = stage_mono, .ctx = s};
    struct why why;

    signal(SIGPIPE, SIG_IGN);
    s->opts = opts;
    s->mono_ms = 1000 * 1000;
    if (loop_init(&s->loop, clock) != OK)
        return false;
    log_init(&s->log, memfd_create("log", MFD_CLOEXEC), LOG_DEBUG, LOG_JSON,
             clock);
    s->fetch = fetch_new(&s->loop, &s->log, &s->opts, &why);
    if (s->fetch)
        return true;
    loop_fini(&s->loop);
    close(s->log.fd);
    return false;
}

/* Its guard lets everything on loopback through. */
static inline struct stage *stage_new(struct fetch_opts opts)
{
    struct stage *s = calloc(1, sizeof(*s));

    CHECK(s);
    CHECK(guard_range_read(STR("127.0.0.0/8"), &s->allow[0], NULL) == OK);
    if (!opts.guard.n_allow)
        opts.guard = (struct guard){s->allow, 1};
    CHECK(stage_try_init(s, opts));
    return s;
}

/* From now on its guard lets through what text says, or nothing but what is
 * public (NULL). */
static inline void stage_allow(struct stage *s, const char *text)
{
    struct fetch_opts opts = s->opts;
    struct why why = {""};

    if (text && guard_range_read(str_of(text), &s->allow[0], &why) != OK)
        T_FAIL("%s", why.text);
    opts.guard = (struct guard){s->allow, text != NULL};
    CHECK(fetch_set(s->fetch, &opts, &why) == OK);
    s->opts = opts;
}

static inline void stage_stopped(void *ctx)
{
    ((struct stage *)ctx)->n_stopped++;
}

static inline void stage_free(struct stage *s)
{
    fetch_stop(s->fetch, stage_stopped, s);
    UNTIL(s, s->n_stopped == 1);
    CHECK(fetch_stats(s->fetch).open == 0);
    fetch_free(s->fetch);
    for (int i = 0; i < s->n_peers; i++)
        peer_close(&s->peers[i]);
    loop_fini(&s->loop);
    close(s->log.fd);
    free(s);
}

/* Requests. */

static inline const char *url_at(const struct peer *p, const char *path)
{
    static char text[8][256];
    static int at;
    char *out = text[at++ % 8];

    snprintf(out, sizeof(text[0]), "http://127.0.0.1:%d%s", p->port, path);
    return out;
}

static inline struct fetch_request request_to(const char *url)
{
    return (struct fetch_request){
        .method = STR("GET"),
        .url = str_of(url),
        .timeout_ms = 1000 * 1000,
        .max_body_bytes = 1 << 20,
        .max_event_bytes = 1 << 16,
    };
}

static inline struct told *start(struct stage *s, struct fetch_request rq,
                                 const struct fetch_handler *h)
{
    struct told *t = told_new(s);
    struct why why = {""};
    enum err e = fetch_start(s->fetch, &rq, h, t, &t->id, &why);

    if (e)
        T_FAIL("not begun: %s", why.text);
    CHECK(!t->n_done);
    return t;
}

static inline struct told *ask(struct stage *s, struct fetch_request rq)
{
    struct told *t = start(s, rq, &whole);

    UNTIL(s, t->n_done);
    return t;
}

static inline struct told *get(struct stage *s, const struct peer *p,
                               const char *path)
{
    return ask(s, request_to(url_at(p, path)));
}

#define FINE "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Test: yes\r\n\r\nfine"

/* After whatever happened before: a good request gets a good answer. */
static inline void check_alive(struct stage *s)
{
    struct peer *p = peer_open(s, FINE);
    struct told *t = get(s, p, "/alive");

    CHECK(t->e == OK && t->status == 200);
    CHECK_STR(buf_str(&t->body), "fine");
    told_free(t);
}

#endif
