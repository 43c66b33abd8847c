/* bench_http SIGNALBOX NODE-SCRIPT: what a GET costs the server, ours against
 * Node.js.
 *
 * Both servers run as children and answer the same bytes to the same load. What
 * is measured is their processor time per request (all threads, user and
 * system), which a busy machine disturbs far less than time on the wall. The
 * two take turns, so that whatever disturbs one disturbs the other; the median
 * of the rounds counts. Exit status 1 unless we need at most a third.
 *
 * A third server shows the floor: it reads and writes the same bytes and does
 * nothing else, so what it needs is the kernel's share. Without pipelining
 * that is nine tenths of what we need, and where the kernel is slow and Node
 * fast the floor alone comes near the goal.
 *
 * The load is a closed loop on one thread: each connection sends its batch of
 * requests in one write and sends the next when all are answered. */
#include <sys/epoll.h>

#include "bench/peer.h"

enum { OURS, NODE, FLOOR, N_PEERS };

enum {
    ROUNDS = 7,
    MAX_CONNS = 1000,
    IN_BYTES = 16 * 1024,
    OUT_BYTES = 8 * 1024,
};

static const double GOAL = 1.0 / 3;

struct load {
    const char *name;
    int n_conns;
    int depth; /* requests in a batch */
    long n_requests;
};

struct conn {
    int fd;
    int n_open; /* of the batch, not yet answered */
    size_t n;
    char in[IN_BYTES];
};

/* The floor's replies: as many as there are ends of heads in the bytes. */
static bool floor_answer(int fd)
{
    static char in[IN_BYTES], out[IN_BYTES];
    static const char reply[] =
        "HTTP/1.1 200 OK\r\nDate: Sun, 15 Nov 2026 04:12:49 GMT\r\n"
        "Content-Type: application/json\r\nContent-Length: 52\r\n"
        "Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n"
        "{\"status\":\"ok\",\"version\":\"0.1.0\",\"uptime_ms\":12345}\n";
    ssize_t got = read(fd, in, sizeof(in));
    const char *at = in;
    size_t n = 0;

    if (got <= 0)
        return false;
    while ((at = memmem(at, (size_t)(in + got - at), "\r\n\r\n", 4))) {
        memcpy(out + n, reply, sizeof(reply) - 1);
        n += sizeof(reply) - 1;
        at += 4;
    }
    return write(fd, out, n) == (ssize_t)n;
}

static void floor_run(int listener, int poll)
{
    struct epoll_event ready[MAX_CONNS], e = {.events = EPOLLIN};

    for (;;) {
        int n = epoll_wait(poll, ready, MAX_CONNS, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener) {
                e.data.fd = accept(listener, NULL, NULL);
                epoll_ctl(poll, EPOLL_CTL_ADD, e.data.fd, &e);
            } else if (!floor_answer(ready[i].data.fd)) {
                close(ready[i].data.fd);
            }
        }
    }
}

static struct peer floor_start(void)
{
    struct peer p = {.name = "floor"};
    int listener = peer_listen(&p.port), poll = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};

    if (epoll_ctl(poll, EPOLL_CTL_ADD, listener, &e) != 0 ||
        (p.pid = fork()) < 0)
        die("the floor");
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        floor_run(listener, poll);
    }
    close(listener);
    close(poll);
    peer_watch(&p);
    return p;
}

static void conn_open(struct conn *c, uint16_t port)
{
    c->fd = peer_connect(port);
    c->n = 0;
}

/* A small batch always fits into the socket's buffer. */
static void conn_send(struct conn *c, const char *batch, size_t n, int depth)
{
    peer_send(c->fd, batch, n);
    c->n_open = depth;
}

/* The length of the reply at the beginning, zero when it is not all there. */
static size_t reply_bytes(const char *in, size_t n)
{
    static const char length[] = "Content-Length: ";
    const char *end = memmem(in, n, "\r\n\r\n", 4);
    const char *at;
    size_t whole;

    if (!end)
        return 0;
    at = memmem(in, (size_t)(end - in), length, sizeof(length) - 1);
    if (!at || memcmp(in, "HTTP/1.1 200 ", 13) != 0) {
        fprintf(stderr, "bench_http: odd reply: %.*s\n", (int)n, in);
        exit(1);
    }
    whole = (size_t)(end + 4 - in) + strtoul(at + sizeof(length) - 1, NULL, 10);
    return whole <= n ? whole : 0;
}

/* Read once and count the replies that are whole. */
static int conn_read(struct conn *c, struct peer *p)
{
    ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    size_t at = 0, whole;
    int n_replies = 0;

    if (got <= 0)
        die("a server hung up");
    c->n += (size_t)got;
    while ((whole = reply_bytes(c->in + at, c->n - at)) != 0) {
        p->reply_bytes = whole;
        at += whole;
        n_replies++;
    }
    memmove(c->in, c->in + at, c->n - at);
    c->n -= at;
    c->n_open -= n_replies;
    return n_replies;
}

/* What a common client sends when it calls an API with a token. */
static size_t batch_of(char *out, uint16_t port, int depth)
{
    size_t n = 0;

    for (int i = 0; i < depth; i++)
        n += (size_t)snprintf(out + n, OUT_BYTES - n,
                              "GET /healthz HTTP/1.1\r\n"
                              "Host: 127.0.0.1:%u\r\n"
                              "User-Agent: python-requests/2.28.1\r\n"
                              "Accept-Encoding: gzip, deflate\r\n"
                              "Accept: */*\r\nConnection: keep-alive\r\n"
                              "Authorization: Bearer %032d\r\n\r\n",
                              port, 0);
    return n;
}

/* Put the load on a server. Microseconds of its time per request. */
static double measure(struct peer *p, const struct load *l, struct conn *conns)
{
    char batch[OUT_BYTES];
    size_t batch_bytes = batch_of(batch, p->port, l->depth);
    struct epoll_event ready[MAX_CONNS];
    int poll = epoll_create1(0);
    long sent = 0, answered = 0;
    double before;

    for (int i = 0; i < l->n_conns; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        conn_open(&conns[i], p->port);
        if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &e) != 0)
            die("epoll");
    }
    before = peer_cpu_s(p);
    for (int i = 0; i < l->n_conns; i++, sent += l->depth)
        conn_send(&conns[i], batch, batch_bytes, l->depth);
    while (answered < sent) {
        int n = epoll_wait(poll, ready, MAX_CONNS, 10000);
        if (n <= 0)
            die("no answer for ten seconds");
        for (int i = 0; i < n; i++) {
            struct conn *c = ready[i].data.ptr;
            answered += conn_read(c, p);
            if (c->n_open == 0 && sent < l->n_requests) {
                conn_send(c, batch, batch_bytes, l->depth);
                sent += l->depth;
            }
        }
    }
    before = peer_cpu_s(p) - before;
    for (int i = 0; i < l->n_conns; i++)
        close(conns[i].fd);
    close(poll);
    return before * 1e6 / (double)answered;
}

/* All in turn, round after round; whether the goal was reached. */
static bool compare(struct peer peers[N_PEERS], const struct load *l,
                    struct conn *conns)
{
    double us[N_PEERS][ROUNDS], ratio, floor_us;

    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < N_PEERS; i++)
            us[i][r] = measure(&peers[i], l, conns);
    printf("%-20s", l->name);
    for (int i = 0; i < N_PEERS; i++) {
        qsort(us[i], ROUNDS, sizeof(us[i][0]), by_value);
        printf("%8.2f (%5.2f-%5.2f)", us[i][ROUNDS / 2], us[i][0],
               us[i][ROUNDS - 1]);
    }
    ratio = us[OURS][ROUNDS / 2] / us[NODE][ROUNDS / 2];
    floor_us = us[FLOOR][ROUNDS / 2];
    printf("%8.2f %12.2f\n", ratio,
           (us[OURS][ROUNDS / 2] - floor_us) /
               (us[NODE][ROUNDS / 2] - floor_us));
    return ratio <= GOAL;
}

int main(int argc, char **argv)
{
    static const struct load loads[] = {
        {"64 connections", 64, 1, 40000},
        {"1000 connections", 1000, 1, 100000},
        {"64 x 16 pipelined", 64, 16, 200000},
    };
    static struct conn conns[MAX_CONNS];
    char data[4096]; /* our data folder, beside the binary */
    struct peer peers[N_PEERS];
    bool reached = true;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_http SIGNALBOX NODE-SCRIPT\n");
        return 2;
    }
    snprintf(data, sizeof(data), "%s-bench-data", argv[1]);
    peers[OURS] = peer_run(
        "signalbox",
        (const char *[]){argv[1], "serve", "--json", "--listen", "127.0.0.1:0",
                         "--data", data, "--set", "log.level=warn", NULL});
    peers[NODE] = peer_run("node", (const char *[]){"node", argv[2], NULL});
    peers[FLOOR] = floor_start();
    for (int i = 0; i < N_PEERS; i++) /* caches, and Node's compiler */
        measure(&peers[i], &loads[0], conns);

    printf("GET /healthz, processor time of the server in us per request, "
           "median of %d (least-most)\n%-20s",
           ROUNDS, "");
    for (int i = 0; i < N_PEERS; i++)
        printf("%8s %13s", peers[i].name, "");
    printf("   ratio  above floor\n");
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        reached &= compare(peers, &loads[i], conns);
    printf("replies of %zu, %zu and %zu bytes; goal: a ratio of at most %.2f, "
           "%s\n",
           peers[OURS].reply_bytes, peers[NODE].reply_bytes,
           peers[FLOOR].reply_bytes, GOAL, reached ? "reached" : "MISSED");
    for (int i = 0; i < N_PEERS; i++)
        peer_stop(&peers[i]);
    return !reached;
}
