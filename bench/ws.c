/* bench_ws HUB NODE-SCRIPT WS-MODULE: what a message of 300 bytes costs a hub,
 * ours against Node.js with `ws` and against nats-server.
 *
 *     echo      what a connection sends comes back to it
 *     forward   what a connection sends names its partner and goes there
 *
 * All of them run as children under the same load. What is measured is their
 * processor time per message (all threads, user and system). They take turns,
 * so that whatever disturbs one disturbs the others; the median of the rounds
 * counts. Exit status 1 unless we need at most a third of Node's and not more
 * than nats-server's. The latter gets one processor, which costs it least.
 *
 * A fourth server shows the floor: it reads and writes as many bytes as an
 * echo needs and looks at none of them, so what it needs is the kernel's share.
 * Without pipelining that is nearly all of what we need.
 *
 * The load is a closed loop on one thread: a connection that has got a batch
 * of messages sends the next one. A message through NATS is published to a
 * subject that one connection has subscribed to: its own, or its partner's. */
#include <sys/epoll.h>

#include "bench/talk.h"

enum { OURS, NODE, NATS, FLOOR, N_PEERS };

enum {
    ROUNDS = 5,
    MAX_CONNS = 1000,
    MAX_DEPTH = 16,
    MESSAGE_BYTES = 300,
    HEAD_BYTES = 64, /* of a frame, or of a PUB or MSG line */
    BATCH_BYTES = MAX_DEPTH * (MESSAGE_BYTES + HEAD_BYTES),
    IN_BYTES = 64 * 1024,
};

static const double GOAL = 1.0 / 3;

struct load {
    const char *name;
    bool is_forward;
    int n_conns;
    int depth; /* messages in a batch */
    long n_messages;
};

struct conn {
    int fd;
    size_t frame_bytes; /* of each message that comes */
    size_t got;         /* bytes towards the next batch */
    size_t batch_bytes;
    char batch[BATCH_BYTES];
};

/* A call as one agent would send it to another. */
static void write_message(char out[MESSAGE_BYTES], int to)
{
    int n = snprintf(
        out, MESSAGE_BYTES,
        "{\"jsonrpc\":\"2.0\",\"id\":17,\"method\":\"agent.send_task\","
        "\"params\":{\"agent_id\":\"agent-%d\",\"skill_id\":\"letters\","
        "\"session_id\":\"c-20261115-0042\",\"message\":\"",
        to);

    memset(out + n, 'x', (size_t)(MESSAGE_BYTES - n));
    memcpy(out + MESSAGE_BYTES - 3, "\"}}", 3);
}

static void ws_open(struct conn *c, const struct peer *p, const struct load *l,
                    int i)
{
    char message[MESSAGE_BYTES], path[64] = "/echo", *at = c->batch;

    if (l->is_forward)
        snprintf(path, sizeof(path), "/hub?name=agent-%d", i);
    talk_hello(c->fd, p, path, NULL);
    write_message(message, i ^ 1);
    for (int k = 0; k < l->depth; k++)
        at = talk_frame(at, message, MESSAGE_BYTES);
    c->batch_bytes = (size_t)(at - c->batch);
    c->frame_bytes = 4 + MESSAGE_BYTES;
}

/* NATS: connection i listens to the subject "agent.i". */

static void nats_open(struct conn *c, const struct load *l, int i)
{
    char subject[32], message[MESSAGE_BYTES], *at = c->batch;
    int to = l->is_forward ? i ^ 1 : i;

    snprintf(subject, sizeof(subject), "agent.%d", i);
    talk_nats_hello(c->fd, subject);
    write_message(message, to);
    for (int k = 0; k < l->depth; k++)
        at += snprintf(at, (size_t)(c->batch + BATCH_BYTES - at),
                       "PUB agent.%d %d\r\n%.*s\r\n", to, MESSAGE_BYTES,
                       MESSAGE_BYTES, message);
    c->batch_bytes = (size_t)(at - c->batch);
    c->frame_bytes =
        (size_t)snprintf(NULL, 0, "MSG agent.%d 1 %d\r\n", i, MESSAGE_BYTES) +
        MESSAGE_BYTES + 2;
}

/* The floor. */

enum { FRAME_IN = 8 + MESSAGE_BYTES, FRAME_OUT = 4 + MESSAGE_BYTES };

/* As many frames back as came; the first bytes are the handshake. */
static bool floor_answer(int fd, size_t *came)
{
    static const char hello[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    static char in[IN_BYTES], out[IN_BYTES];
    ssize_t got = recv(fd, in, sizeof(in), 0);
    size_t n;

    if (got <= 0)
        return false;
    if (*came == SIZE_MAX) {
        *came = 0;
        return send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL) > 0;
    }
    *came += (size_t)got;
    n = *came / FRAME_IN;
    *came -= n * FRAME_IN;
    return n == 0 || send(fd, out, n * FRAME_OUT, MSG_NOSIGNAL) > 0;
}

static void floor_serve(int listener)
{
    static size_t came[MAX_CONNS + 64]; /* by descriptor */
    struct epoll_event ready[MAX_CONNS],
        e = {.events = EPOLLIN, .data.fd = listener};
    int poll = epoll_create1(0);

    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(poll, ready, MAX_CONNS, -1);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                e.data.fd = accept(listener, NULL, NULL);
                came[e.data.fd] = SIZE_MAX;
                epoll_ctl(poll, EPOLL_CTL_ADD, e.data.fd, &e);
            } else if (!floor_answer(fd, &came[fd])) {
                close(fd);
            }
        }
    }
}

static struct peer floor_run(void)
{
    struct peer p = {.name = "floor"};
    int listener = peer_listen(&p.port);

    p.pid = fork();
    if (p.pid < 0)
        die("the floor");
    if (p.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        floor_serve(listener);
    }
    close(listener);
    peer_watch(&p);
    return p;
}

/* Read once; how many whole batches that completes. */
static int conn_read(struct conn *c, int depth)
{
    static char in[IN_BYTES];
    ssize_t got = recv(c->fd, in, sizeof(in), 0);
    int n = 0;

    if (got <= 0)
        die("a hub hung up");
    c->got += (size_t)got;
    while (c->got >= c->frame_bytes * (size_t)depth) {
        c->got -= c->frame_bytes * (size_t)depth;
        n++;
    }
    return n;
}

static void open_all(struct conn *conns, int which, const struct peer *p,
                     const struct load *l, int poll)
{
    for (int i = 0; i < l->n_conns; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};

        conns[i].fd = peer_connect(p->port);
        conns[i].got = 0;
        if (which == NATS)
            nats_open(&conns[i], l, i);
        else
            ws_open(&conns[i], p, l, i);
        if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &e) != 0)
            die("epoll");
    }
}

/* Put the load on a hub. Microseconds of its time per message. */
static double measure(struct peer *p, int which, const struct load *l,
                      struct conn *conns)
{
    struct epoll_event ready[MAX_CONNS];
    int poll = epoll_create1(0);
    long sent = 0, came = 0;
    double before;

    open_all(conns, which, p, l, poll);
    before = peer_cpu_s(p);
    for (int i = 0; i < l->n_conns; i++, sent += l->depth)
        peer_send(conns[i].fd, conns[i].batch, conns[i].batch_bytes);
    while (came < sent) {
        int n = epoll_wait(poll, ready, MAX_CONNS, 10000);
        if (n <= 0)
            die("nothing came for ten seconds");
        for (int i = 0; i < n; i++) {
            struct conn *c = ready[i].data.ptr;
            for (int k = conn_read(c, l->depth); k > 0; k--) {
                came += l->depth;
                if (sent < l->n_messages) {
                    peer_send(c->fd, c->batch, c->batch_bytes);
                    sent += l->depth;
                }
            }
        }
    }
    before = peer_cpu_s(p) - before;
    for (int i = 0; i < l->n_conns; i++)
        close(conns[i].fd);
    close(poll);
    return before * 1e6 / (double)came;
}

/* All in turn, round after round; whether the goals were reached. */
static bool compare(struct peer peers[N_PEERS], const struct load *l,
                    struct conn *conns)
{
    double us[N_PEERS][ROUNDS], to_node, to_nats;

    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < N_PEERS; i++)
            us[i][r] = measure(&peers[i], i, l, conns);
    printf("%-24s", l->name);
    for (int i = 0; i < N_PEERS; i++) {
        qsort(us[i], ROUNDS, sizeof(us[i][0]), by_value);
        printf("%8.2f (%5.2f-%5.2f)", us[i][ROUNDS / 2], us[i][0],
               us[i][ROUNDS - 1]);
    }
    to_node = us[OURS][ROUNDS / 2] / us[NODE][ROUNDS / 2];
    to_nats = us[OURS][ROUNDS / 2] / us[NATS][ROUNDS / 2];
    printf("%9.2f %8.2f\n", to_node, to_nats);
    fflush(stdout);
    return to_node <= GOAL && to_nats <= 1;
}

int main(int argc, char **argv)
{
    static const struct load loads[] = {
        {"echo, 64", false, 64, 1, 60000},
        {"echo, 1000", false, 1000, 1, 60000},
        {"echo, 64 x 16", false, 64, 16, 200000},
        {"echo, 1000 x 16", false, 1000, 16, 200000},
        {"forward, 64", true, 64, 1, 60000},
        {"forward, 1000", true, 1000, 1, 60000},
        {"forward, 64 x 16", true, 64, 16, 200000},
        {"forward, 1000 x 16", true, 1000, 16, 200000},
    };
    static struct conn conns[MAX_CONNS];
    struct peer peers[N_PEERS];
    bool reached = true;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_ws HUB NODE-SCRIPT WS-MODULE\n");
        return 2;
    }
    peers[OURS] =
        peer_run("signalbox", (const char *[]){argv[1], "serve", "--listen",
                                               "127.0.0.1:0", NULL});
    peers[NODE] =
        peer_run("node ws", (const char *[]){"node", argv[2], argv[3], NULL});
    peers[NATS] = talk_nats_run();
    peers[FLOOR] = floor_run();
    for (int i = 0; i < N_PEERS; i++) /* caches, and Node's compiler */
        measure(&peers[i], i, &loads[0], conns);

    printf("%d bytes, processor time of the hub in us per message, median of "
           "%d (least-most)\n%-24s",
           MESSAGE_BYTES, ROUNDS, "");
    for (int i = 0; i < N_PEERS; i++)
        printf("%8s %13s", peers[i].name, "");
    printf(" to node  to nats\n");
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        reached &= compare(peers, &loads[i], conns);
    printf("goal: at most %.2f of node's and not more than nats-server's, "
           "%s\n",
           GOAL, reached ? "reached" : "MISSED");
    for (int i = 0; i < N_PEERS; i++)
        peer_stop(&peers[i]);
    return !reached;
}
