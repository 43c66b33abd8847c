/* bench_hub SIGNALBOX DATA NODE-SCRIPT WS-MODULE: request and reply through
 * the real server, with 64 agents and as many users, in messages of 300 bytes,
 * against a hub of Node.js with `ws` and against nats-server.
 *
 *     relay    64 tasks are going on and their agents stream: an agent's
 *              task.chunk goes to the hub and from there to who asked. Over
 *              NATS the agent publishes to the subject that who asked listens
 *              to. What is measured is the processor time of the server per
 *              chunk (all threads, user and system)
 *     durable  256 tasks are in flight, each from message.send to the result
 *              at who asked. We have it on the disk before anybody hears of
 *              it, twice: the message, and the result. The peers keep nothing
 *
 * All servers run as children and take turns, so that whatever disturbs one
 * disturbs the others; the median of the rounds counts. Exit status 1 unless a
 * relayed chunk costs us at most a third of what it costs Node and not more
 * than nats-server, and there are 10 000 durable tasks a second; the latter is
 * judged only where the disk of DATA syncs within 0.2 ms. nats-server gets one
 * processor, which costs it least.
 *
 * A fourth server shows the floor: it receives from an agent and sends to its
 * user as many bytes as a relay needs and looks at none of them, so what it
 * needs is the kernel's share.
 *
 * The load is a closed loop on one thread, and takes its share of the same
 * processors. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "bench/talk.h"

enum { OURS, NODE, NATS, FLOOR, N_PEERS };

enum {
    ROUNDS = 5,
    N_AGENTS = 64,
    N_CONNS = 2 * N_AGENTS, /* agents first, then users */
    IN_FLIGHT = 256,
    MAX_DEPTH = 16,
    MESSAGE_BYTES = 300,
    BATCH_BYTES = MAX_DEPTH * (MESSAGE_BYTES + 64),
    IN_BYTES = 256 * 1024,
    TASK_ID_BYTES = 64,
    DURABLE_MS = 2000,
    SYNCS = 200,
    FLOOR_OUT = 400, /* of a chunk as we push it */
};

static const double GOAL = 1.0 / 3;
static const double GOAL_TASKS = 10000, GOAL_SYNC_MS = 0.2;

struct conn {
    int fd, number;
    bool is_user;
    size_t n;   /* bytes in `in` */
    int n_came; /* chunks towards the next batch */
    char task_id[TASK_ID_BYTES];
    size_t n_batch;
    char batch[BATCH_BYTES]; /* of an agent's chunks */
    char in[IN_BYTES];
};

struct run {
    struct peer *peer;
    int which, poll;
    const char *token;
    long n_done;
    int n_open;     /* asked, and not answered yet */
    bool is_ending; /* no one asks any more */
    struct conn conns[N_CONNS];
};

/* Called for each message that comes. */
typedef void on_message(struct run *r, struct conn *c, const char *p, size_t n);

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool holds(const char *p, size_t n, const char *part)
{
    return memmem(p, n, part, strlen(part)) != NULL;
}

/* Talking to one of them. */

static void send_text(struct run *r, struct conn *c, const char *text, size_t n)
{
    char frame[1024];

    (void)r;
    peer_send(c->fd, frame, (size_t)(talk_frame(frame, text, n) - frame));
}

/* One message of NATS: "MSG subject sid [reply] bytes\r\npayload\r\n". */
static size_t nats_read(const char *p, size_t n, const char **message,
                        size_t *n_message)
{
    const char *end = memmem(p, n, "\r\n", 2), *at = end;
    size_t size;

    if (!end)
        return 0;
    if (p[0] != 'M') { /* a ping of theirs */
        *n_message = 0;
        *message = p;
        return (size_t)(end - p) + 2;
    }
    while (at[-1] != ' ')
        at--;
    size = strtoul(at, NULL, 10);
    if ((size_t)(end - p) + 2 + size + 2 > n)
        return 0;
    *message = p; /* with its head: the reply subject is there */
    *n_message = (size_t)(end - p) + 2 + size;
    return *n_message + 2;
}

typedef size_t read_one(const char *p, size_t n, const char **message,
                        size_t *n_message);
static read_one floor_read;

/* Read once, and hand on each whole message. */
static void conn_read(struct run *r, struct conn *c, on_message *on)
{
    ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    static read_one *const readers[N_PEERS] = {talk_read, talk_read, nats_read,
                                               floor_read};
    size_t at = 0, used, n;
    const char *message;

    if (got <= 0)
        die("a hub hung up");
    c->n += (size_t)got;
    while ((used = readers[r->which](c->in + at, c->n - at, &message, &n))) {
        at += used;
        if (n > 0)
            on(r, c, message, n);
    }
    memmove(c->in, c->in + at, c->n - at);
    c->n -= at;
}

static void turn(struct run *r, on_message *on)
{
    struct epoll_event ready[N_CONNS];
    int n = epoll_wait(r->poll, ready, N_CONNS, 10000);

    if (n <= 0) {
        fprintf(stderr, "bench_hub: nothing came from %s for ten seconds\n",
                r->peer->name);
        exit(1);
    }
    for (int i = 0; i < n; i++)
        conn_read(r, ready[i].data.ptr, on);
}

static void count_answer(struct run *r, struct conn *c, const char *p, size_t n)
{
    if (holds(p, n, "\"error\"")) {
        fprintf(stderr, "bench_hub: %.*s\n", (int)n, p);
        exit(1);
    }
    (void)c;
    r->n_done++;
}

/* agent-N is on the hub from now on. */
static void register_agent(struct run *r, struct conn *c)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                     "\"agent.register\",\"params\":{\"card\":{\"name\":"
                     "\"agent-%d\",\"description\":\"Answers a bench\","
                     "\"limits\":{\"in_flight\":1000}}}}",
                     c->number);

    send_text(r, c, text, (size_t)n);
}

static void open_all(struct run *r)
{
    r->poll = epoll_create1(0);
    for (int i = 0; i < N_CONNS; i++) {
        struct conn *c = &r->conns[i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        char where[64] = "/hub";

        c->fd = peer_connect(r->peer->port);
        c->number = i % N_AGENTS;
        c->is_user = i >= N_AGENTS;
        c->n = 0;
        if (r->which != OURS)
            snprintf(where, sizeof(where),
                     r->which == NATS ? "%s.%d" : "/%s?name=agent-%d",
                     c->is_user ? "user" : "agent", c->number);
        if (r->which == NATS)
            talk_nats_hello(c->fd, where);
        else if (r->which != FLOOR)
            talk_hello(c->fd, r->peer, where,
                       r->which == OURS ? r->token : NULL);
        if (epoll_ctl(r->poll, EPOLL_CTL_ADD, c->fd, &e) != 0)
            die("epoll");
        if (r->which == OURS && !c->is_user)
            register_agent(r, c);
    }
    r->n_done = 0;
    while (r->which == OURS && r->n_done < N_AGENTS)
        turn(r, count_answer);
}

static void close_all(struct run *r)
{
    for (int i = 0; i < N_CONNS; i++)
        close(r->conns[i].fd);
    close(r->poll);
}

/* A user asks the agent of its own number. 300 bytes, with the frame's. */
static void ask(struct run *r, struct conn *c)
{
    static long number;
    char text[512];
    int n =
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"message.send\","
                 "\"params\":{\"executor\":{\"name\":\"agent-%d\"},\"text\":\"",
                 ++number, c->number);

    memset(text + n, 'x', (size_t)(MESSAGE_BYTES - n));
    memcpy(text + MESSAGE_BYTES - 3, "\"}}", 3);
    r->n_open++;
    if (r->which != NATS) {
        send_text(r, c, text, MESSAGE_BYTES);
        return;
    }
    n = snprintf(text, sizeof(text), "PUB agent.%d user.%d %d\r\n", c->number,
                 c->number, MESSAGE_BYTES);
    memset(text + n, 'x', MESSAGE_BYTES);
    memcpy(text + n + MESSAGE_BYTES, "\r\n", 2);
    peer_send(c->fd, text, (size_t)n + MESSAGE_BYTES + 2);
}

/* The id of the task that a task.execute gives. */
static void take_id(struct conn *c, const char *p, size_t n)
{
    static const char key[] = "\"task_id\":\"";
    const char *at = memmem(p, n, key, sizeof(key) - 1);

    if (!at)
        return;
    at += sizeof(key) - 1;
    snprintf(c->task_id, sizeof(c->task_id), "%.*s", (int)strcspn(at, "\""),
             at);
}

/* A task.chunk or a task.result of 300 bytes. */
static size_t word(const struct conn *c, const char *method, char *out)
{
    static long number;
    bool is_result = strcmp(method, "task.result") == 0;
    int n = snprintf(out, MESSAGE_BYTES + 1,
                     "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",", method);

    if (is_result)
        n += snprintf(out + n, (size_t)(MESSAGE_BYTES + 1 - n), "\"id\":%ld,",
                      ++number);
    n += snprintf(out + n, (size_t)(MESSAGE_BYTES + 1 - n),
                  "\"params\":{\"task_id\":\"%s\",%s\"text\":\"", c->task_id,
                  is_result ? "\"status\":\"completed\"," : "");
    memset(out + n, 'x', (size_t)(MESSAGE_BYTES - n));
    memcpy(out + MESSAGE_BYTES - 3, "\"}}", 3);
    return MESSAGE_BYTES;
}

/* The floor: connections come in the order of open_all, and need no words. */

enum { FRAME_IN = 8 + MESSAGE_BYTES };

static void floor_serve(int listener)
{
    static char in[IN_BYTES];
    static size_t came[N_CONNS];
    static int fds[N_CONNS];
    struct epoll_event ready[N_CONNS],
        e = {.events = EPOLLIN, .data.u32 = N_CONNS};
    int poll = epoll_create1(0);

    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(poll, ready, N_CONNS, -1);
        for (int i = 0; i < n; i++) {
            unsigned k = ready[i].data.u32;
            ssize_t got;

            if (k == N_CONNS) { /* all of a round come together */
                for (unsigned c = 0; c < N_CONNS; c++) {
                    e.data.u32 = c;
                    came[c] = 0;
                    fds[c] = accept(listener, NULL, NULL);
                    epoll_ctl(poll, EPOLL_CTL_ADD, fds[c], &e);
                }
                continue;
            }
            got = recv(fds[k], in, sizeof(in), 0);
            if (got <= 0) {
                close(fds[k]);
                continue;
            }
            came[k] += (size_t)got;
            if (came[k] >= FRAME_IN && k < N_AGENTS &&
                send(fds[N_AGENTS + k], in, came[k] / FRAME_IN * FLOOR_OUT,
                     MSG_NOSIGNAL) < 0)
                exit(1);
            came[k] %= FRAME_IN;
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

/* A frame of its: all have the same length, whatever is in them. */
static size_t floor_read(const char *p, size_t n, const char **message,
                         size_t *n_message)
{
    *message = p;
    *n_message = FLOOR_OUT;
    return n < FLOOR_OUT ? 0 : FLOOR_OUT;
}

/* Relay. */

struct load {
    const char *name;
    int depth; /* chunks in a batch */
    long n_chunks;
};

static void on_given(struct run *r, struct conn *c, const char *p, size_t n)
{
    if (!c->is_user && holds(p, n, "task.execute")) {
        take_id(c, p, n);
        r->n_done++;
    }
}

static bool has_tasks(const struct run *r)
{
    return r->which == OURS || r->which == NODE;
}

/* A task for each agent, and its chunks made ready. */
static void give_tasks(struct run *r, int depth)
{
    char text[MESSAGE_BYTES + 1];

    r->n_done = 0;
    for (int i = N_AGENTS; has_tasks(r) && i < N_CONNS; i++)
        ask(r, &r->conns[i]);
    while (has_tasks(r) && r->n_done < N_AGENTS)
        turn(r, on_given);
    for (int i = 0; i < N_AGENTS; i++) {
        struct conn *c = &r->conns[i];
        char *at = c->batch;
        for (int k = 0; k < depth; k++) {
            size_t n = word(c, "task.chunk", text);
            if (r->which == NATS)
                at += snprintf(at, (size_t)(c->batch + BATCH_BYTES - at),
                               "PUB user.%d %d\r\n%.*s\r\n", i, MESSAGE_BYTES,
                               MESSAGE_BYTES, text);
            else
                at = talk_frame(at, text, n);
        }
        c->n_batch = (size_t)(at - c->batch);
    }
}

static void on_chunk(struct run *r, struct conn *c, const char *p, size_t n)
{
    if (!c->is_user || (has_tasks(r) && !holds(p, n, "\"task.chunk\"")))
        return;
    c->n_came++;
    r->n_done++;
}

static void on_over(struct run *r, struct conn *c, const char *p, size_t n)
{
    r->n_done += c->is_user && holds(p, n, "\"task.result\"");
}

static void end_tasks(struct run *r)
{
    char text[MESSAGE_BYTES + 1];

    r->n_done = 0;
    for (int i = 0; has_tasks(r) && i < N_AGENTS; i++)
        send_text(r, &r->conns[i], text,
                  word(&r->conns[i], "task.result", text));
    while (has_tasks(r) && r->n_done < N_AGENTS)
        turn(r, on_over);
}

/* Microseconds of the server's time per chunk. */
static double relay(struct run *r, const struct load *l)
{
    long sent = 0;
    double cpu;

    open_all(r);
    give_tasks(r, l->depth);
    r->n_done = 0;
    for (int i = 0; i < N_CONNS; i++)
        r->conns[i].n_came = l->depth; /* so that each begins */
    cpu = peer_cpu_s(r->peer);
    do {
        for (int i = 0; i < N_AGENTS && sent < l->n_chunks; i++) {
            struct conn *a = &r->conns[i], *u = &r->conns[N_AGENTS + i];
            if (u->n_came < l->depth)
                continue;
            u->n_came -= l->depth;
            sent += l->depth;
            peer_send(a->fd, a->batch, a->n_batch);
        }
        turn(r, on_chunk);
    } while (r->n_done < sent || sent < l->n_chunks);
    cpu = peer_cpu_s(r->peer) - cpu;
    end_tasks(r);
    close_all(r);
    return cpu * 1e6 / (double)sent;
}

static bool compare(struct run *runs, const struct load *l)
{
    double us[N_PEERS][ROUNDS], to_node, to_nats;

    for (int k = 0; k < ROUNDS; k++)
        for (int i = 0; i < N_PEERS; i++)
            us[i][k] = relay(&runs[i], l);
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

/* Durable. */

/* The agent acknowledges and has its result at once; who hears a result asks
 * again. */
static void on_traffic(struct run *r, struct conn *c, const char *p, size_t n)
{
    char frames[2048], text[512], *at = frames;
    int n_text;

    if (c->is_user) {
        if (r->which != NATS && !holds(p, n, "\"task.result\""))
            return;
        r->n_done++;
        r->n_open--;
        if (!r->is_ending)
            ask(r, c);
        return;
    }
    if (r->which == NATS) {
        n_text = snprintf(text, sizeof(text), "PUB user.%d %d\r\n", c->number,
                          MESSAGE_BYTES);
        memset(text + n_text, 'x', MESSAGE_BYTES);
        memcpy(text + n_text + MESSAGE_BYTES, "\r\n", 2);
        peer_send(c->fd, text, (size_t)n_text + MESSAGE_BYTES + 2);
        return;
    }
    if (!holds(p, n, "task.execute"))
        return;
    take_id(c, p, n);
    n_text = snprintf(text, sizeof(text),
                      "{\"jsonrpc\":\"2.0\",\"id\":\"%s:1\",\"result\":{"
                      "\"status\":\"working\"}}",
                      c->task_id);
    at = talk_frame(at, text, (size_t)n_text);
    at = talk_frame(at, text, word(c, "task.result", text));
    peer_send(c->fd, frames, (size_t)(at - frames));
}

struct figures {
    double per_s, us; /* tasks, and processor time of the server for each */
};

static struct figures durable(struct run *r)
{
    double began, cpu;

    struct figures f;

    open_all(r);
    r->is_ending = false;
    r->n_open = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        ask(r, &r->conns[N_AGENTS + i % N_AGENTS]);
    r->n_done = 0;
    while (r->n_done < 4 * IN_FLIGHT) /* caches */
        turn(r, on_traffic);
    r->n_done = 0;
    cpu = peer_cpu_s(r->peer);
    began = now_s();
    while (now_s() - began < DURABLE_MS / 1e3)
        turn(r, on_traffic);
    began = now_s() - began;
    cpu = peer_cpu_s(r->peer) - cpu;
    f = (struct figures){(double)r->n_done / began,
                         cpu * 1e6 / (double)r->n_done};
    r->is_ending = true; /* and no one leaves with work undone */
    while (r->n_open > 0)
        turn(r, on_traffic);
    close_all(r);
    return f;
}

/* What one write of 4 KB and its sync take there, in milliseconds. */
static double sync_ms(const char *folder)
{
    char path[512], block[4096] = "";
    double ms[SYNCS];
    int fd;

    snprintf(path, sizeof(path), "%s/bench-sync", folder);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        die(path);
    for (int i = 0; i < SYNCS; i++) {
        double began = now_s();
        if (pwrite(fd, block, sizeof(block), (off_t)i * 4096) != 4096 ||
            fdatasync(fd) != 0)
            die("sync");
        ms[i] = (now_s() - began) * 1e3;
    }
    close(fd);
    unlink(path);
    qsort(ms, SYNCS, sizeof(ms[0]), by_value);
    return ms[SYNCS / 2];
}

static bool compare_durable(struct run *runs, const char *folder)
{
    double per_s[N_PEERS][ROUNDS], us[N_PEERS][ROUNDS], sync[ROUNDS];
    bool reached, is_judged;

    for (int k = 0; k < ROUNDS; k++) {
        sync[k] = sync_ms(folder);
        for (int i = 0; i < FLOOR; i++) {
            struct figures f = durable(&runs[i]);
            per_s[i][k] = f.per_s;
            us[i][k] = f.us;
        }
    }
    qsort(sync, ROUNDS, sizeof(sync[0]), by_value);
    printf("\nrequest and reply, %d in flight; only ours are on a disk, which "
           "syncs in %.2f ms (%.2f-%.2f)\n",
           IN_FLIGHT, sync[ROUNDS / 2], sync[0], sync[ROUNDS - 1]);
    for (int i = 0; i < FLOOR; i++) {
        qsort(per_s[i], ROUNDS, sizeof(per_s[i][0]), by_value);
        qsort(us[i], ROUNDS, sizeof(us[i][0]), by_value);
        printf("%-24s%8.0f a second (%.0f-%.0f), %.1f us each\n",
               runs[i].peer->name, per_s[i][ROUNDS / 2], per_s[i][0],
               per_s[i][ROUNDS - 1], us[i][ROUNDS / 2]);
    }
    reached = per_s[OURS][ROUNDS / 2] >= GOAL_TASKS;
    is_judged = sync[ROUNDS / 2] <= GOAL_SYNC_MS;
    printf("goal: %.0f durable tasks a second where a sync takes %.1f ms, %s\n",
           GOAL_TASKS, GOAL_SYNC_MS,
           reached     ? "reached"
           : is_judged ? "MISSED"
                       : "not judged: this disk is slower");
    return reached || !is_judged;
}

/* Its first line has the address and, for a fresh folder, a token. */
static struct peer start(const char *binary, const char *data, char token[128])
{
    static const char key[] = "\"token\":\"";
    struct peer p = peer_run(
        "signalbox",
        (const char *[]){binary, "serve", "--json", "--listen", "127.0.0.1:0",
                         "--data", data, "--set", "log.level=warn", "--set",
                         "rate.perUser=0", "--set", "rate.perAddress=0", NULL});
    const char *at = strstr(p.line, key);

    if (!at) {
        fprintf(stderr, "bench_hub: %s is no fresh folder\n", data);
        exit(1);
    }
    at += sizeof(key) - 1;
    snprintf(token, 128, "%.*s", (int)strcspn(at, "\""), at);
    return p;
}

int main(int argc, char **argv)
{
    static const struct load loads[] = {
        {"relay, 64", 1, 50000},
        {"relay, 64 x 16", 16, 150000},
    };
    static struct run runs[N_PEERS];
    struct peer peers[N_PEERS];
    char token[128];
    bool reached = true;

    if (argc != 5) {
        fprintf(stderr,
                "usage: bench_hub SIGNALBOX DATA NODE-SCRIPT WS-MODULE\n");
        return 2;
    }
    peers[OURS] = start(argv[1], argv[2], token);
    peers[NODE] =
        peer_run("node ws", (const char *[]){"node", argv[3], argv[4], NULL});
    peers[NATS] = talk_nats_run();
    peers[FLOOR] = floor_run();
    for (int i = 0; i < N_PEERS; i++) {
        runs[i].peer = &peers[i];
        runs[i].which = i;
        runs[i].token = token;
        relay(&runs[i], &loads[0]); /* caches, and Node's compiler */
    }
    printf("%d bytes, processor time of the server in us per chunk, median of "
           "%d (least-most)\n%-24s",
           MESSAGE_BYTES, ROUNDS, "");
    for (int i = 0; i < N_PEERS; i++)
        printf("%8s %13s", peers[i].name, "");
    printf(" to node  to nats\n");
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        reached &= compare(runs, &loads[i]);
    printf("goal: at most %.2f of node's and not more than nats-server's, "
           "%s\n",
           GOAL, reached ? "reached" : "MISSED");
    reached &= compare_durable(runs, argv[2]);
    for (int i = 0; i < N_PEERS; i++)
        peer_stop(&peers[i]);
    return !reached;
}
