/* bench_accept SIGNALBOX DATA: acceptances a second over HTTP, from end to
 * end: 1, 16 and 256 connections send messages that do not wait for their
 * result, each the next one when the last was answered. For information: there
 * is no goal here, and the load takes its share of the same processors. DATA
 * is the server's data folder, on the disk that counts. */
#include <sys/epoll.h>

#include "bench/peer.h"

enum { MAX_CONNS = 256, ROUND_MS = 2000, IN_BYTES = 8192, TOKEN_BYTES = 128 };

struct server {
    struct peer peer;
    char token[TOKEN_BYTES];
};

struct conn {
    int fd;
    size_t n;
    char in[IN_BYTES];
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Copy what follows `key` in the line, up to a quote. */
static void take(const char *line, const char *key, char *out, size_t room)
{
    const char *at = strstr(line, key);

    if (!at) {
        fprintf(stderr, "bench_accept: no %s in %s", key, line);
        exit(1);
    }
    at += strlen(key);
    snprintf(out, room, "%.*s", (int)strcspn(at, "\""), at);
}

/* Its first line has the address and, for a fresh folder, a token. */
static struct server start(const char *binary, const char *data)
{
    struct server s = {0};

    s.peer = peer_run(
        "signalbox",
        (const char *[]){
            binary, "serve", "--json", "--listen", "127.0.0.1:0", "--data",
            data, "--set", "log.level=warn", "--set", "rate.perUser=0", "--set",
            "agents.list=[{\"id\":\"echo\",\"url\":\"echo:\"}]", NULL});
    take(s.peer.line, "\"token\":\"", s.token, sizeof(s.token));
    return s;
}

static void conn_open(struct conn *c, const struct server *s)
{
    c->fd = peer_connect(s->peer.port);
    c->n = 0;
}

static void conn_send(struct conn *c, const struct server *s)
{
    static long number;
    char body[512], out[1024];
    int n_body, n;

    n_body = snprintf(body, sizeof(body),
                      "{\"text\":\"please translate the attached letter into "
                      "French, and keep the tone polite\",\"wait_ms\":0,"
                      "\"executor\":{\"name\":\"echo\"},"
                      "\"idempotency_key\":\"bench-%ld\"}",
                      number++);
    n = snprintf(out, sizeof(out),
                 "POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                 "Authorization: Bearer %s\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %d\r\n\r\n%s",
                 s->peer.port, s->token, n_body, body);
    peer_send(c->fd, out, (size_t)n);
}

/* Read once; whether the answer is whole. */
static int conn_read(struct conn *c)
{
    static const char length[] = "Content-Length: ";
    ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    const char *end, *at;
    size_t whole;

    if (got <= 0)
        die("the server hung up");
    c->n += (size_t)got;
    end = memmem(c->in, c->n, "\r\n\r\n", 4);
    if (!end)
        return 0;
    at = memmem(c->in, (size_t)(end - c->in), length, sizeof(length) - 1);
    if (!at || memcmp(c->in, "HTTP/1.1 20", 11) != 0) {
        fprintf(stderr, "bench_accept: odd reply: %.*s\n", (int)c->n, c->in);
        exit(1);
    }
    whole =
        (size_t)(end + 4 - c->in) + strtoul(at + sizeof(length) - 1, NULL, 10);
    if (c->n < whole)
        return 0;
    c->n = 0; /* nothing was pipelined behind it */
    return 1;
}

/* Acceptances a second on so many connections. */
static double measure(const struct server *s, struct conn *conns, int n_conns)
{
    struct epoll_event ready[MAX_CONNS];
    int poll = epoll_create1(0);
    double start, took;
    long n_done = 0;

    for (int i = 0; i < n_conns; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        conn_open(&conns[i], s);
        if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &e) != 0)
            die("epoll");
    }
    start = now_s();
    for (int i = 0; i < n_conns; i++)
        conn_send(&conns[i], s);
    do {
        int n = epoll_wait(poll, ready, MAX_CONNS, 10000);
        if (n <= 0)
            die("no answer for ten seconds");
        for (int i = 0; i < n; i++)
            if (conn_read(ready[i].data.ptr)) {
                n_done++;
                conn_send(ready[i].data.ptr, s);
            }
        took = now_s() - start;
    } while (took < ROUND_MS / 1e3);
    for (int i = 0; i < n_conns; i++)
        close(conns[i].fd);
    close(poll);
    return (double)n_done / took;
}

int main(int argc, char **argv)
{
    static const int loads[] = {1, 16, MAX_CONNS};
    static struct conn conns[MAX_CONNS];
    struct server s;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_accept SIGNALBOX DATA\n");
        return 2;
    }
    s = start(argv[1], argv[2]);
    printf("POST /api/messages, durable acceptances per second over HTTP; "
           "each is also carried, and its result kept\n");
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        printf("%3d connection%-10s%8.0f\n", loads[i], loads[i] == 1 ? "" : "s",
               measure(&s, conns, loads[i]));
    peer_stop(&s.peer);
    return 0;
}
