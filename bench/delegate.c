/* bench_delegate SIGNALBOX DATA: what it costs that agents hire agents, beside
 * plain tasks, through the real server. DATA is a folder that is not there yet.
 *
 *     plain       256 tasks are in flight, each from message.send to the
 *                 result at the user. On the disk twice before anybody hears
 *                 of it: the message, and the result
 *     delegation  256 are in flight, each from agent.send_task of an agent to
 *                 its delegation.result, which it acknowledges. On the disk
 *                 three times: also the acknowledgement
 *
 * The same 64 agents do the work of both, in messages of 300 bytes; 64 users
 * and 64 other agents ask. Both take turns, so that whatever disturbs one
 * disturbs the other; the median of the rounds counts. What is shown of the
 * processor is the server's own time, all threads, user and system; the
 * overhead is the difference of the two medians. Nothing is judged. The load
 * is a closed loop on one thread, and takes its share of the same processors.
 */
#include <sys/epoll.h>

#include "bench/talk.h"

enum kind { WORKER, USER, BOSS, N_KINDS };

enum {
    ROUNDS = 5,
    N_EACH = 64,
    N_CONNS = N_KINDS * N_EACH,
    IN_FLIGHT = 256,
    MESSAGE_BYTES = 300,
    IN_BYTES = 256 * 1024,
    ROUND_MS = 3000,
    WAIT_MS = 10000,
};

struct conn {
    int fd, number;
    enum kind kind;
    size_t n; /* bytes in `in` */
    char in[IN_BYTES];
};

static struct {
    struct peer server;
    char token[128];
    int poll;
    long n_done, n_asked;
    int n_open;
    bool is_ending; /* no one asks any more */
    struct conn conns[N_CONNS];
} run;

struct figures {
    double per_s, us; /* processor time of the server for each */
};

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

/* It says what was not asked for. */
static void refuse(const char *p, size_t n)
{
    fprintf(stderr, "bench_delegate: %.*s\n", (int)n, p);
    exit(1);
}

/* The text behind `key`, up to the next quote. */
static const char *behind(const char *p, size_t n, const char *key, int *size)
{
    const char *at = memmem(p, n, key, strlen(key));

    if (!at) {
        fprintf(stderr, "bench_delegate: no %s in %.*s\n", key, (int)n, p);
        exit(1);
    }
    at += strlen(key);
    *size = (int)strcspn(at, "\"");
    return at;
}

static void send_text(struct conn *c, const char *text, size_t n)
{
    char frame[1024];

    peer_send(c->fd, frame, (size_t)(talk_frame(frame, text, n) - frame));
}

/* A text that begins like this, made as long as all are; its last string is
 * open. */
static size_t fill(char text[MESSAGE_BYTES + 1], int n)
{
    memset(text + n, 'x', (size_t)(MESSAGE_BYTES - n));
    memcpy(text + MESSAGE_BYTES - 3, "\"}}", 3);
    return MESSAGE_BYTES;
}

static void ask(struct conn *c)
{
    char text[MESSAGE_BYTES + 1];
    int n =
        snprintf(text, sizeof(text),
                 "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":", ++run.n_asked);
    size_t room = sizeof(text) - (size_t)n;

    if (c->kind == USER)
        n += snprintf(text + n, room,
                      "\"message.send\",\"params\":{\"executor\":{\"name\":"
                      "\"worker-%d\"},\"text\":\"",
                      c->number);
    else
        n += snprintf(text + n, room,
                      "\"agent.send_task\",\"params\":{\"agent_id\":"
                      "\"worker-%d\",\"skill_id\":\"any\",\"message\":\"",
                      c->number);
    run.n_open++;
    send_text(c, text, fill(text, n));
}

/* The worker says that it works, and has its result at once. */
static void work(struct conn *c, const char *p, size_t n)
{
    char frames[2048], text[512], *at = frames;
    int n_id, n_text;
    const char *id = behind(p, n, "\"task_id\":\"", &n_id);

    n_text = snprintf(text, sizeof(text),
                      "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s:1\",\"result\":{"
                      "\"status\":\"working\"}}",
                      n_id, id);
    at = talk_frame(at, text, (size_t)n_text);
    n_text = snprintf(text, sizeof(text),
                      "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":"
                      "\"task.result\",\"params\":{\"task_id\":\"%.*s\","
                      "\"status\":\"completed\",\"text\":\"",
                      ++run.n_asked, n_id, id);
    at = talk_frame(at, text, fill(text, n_text));
    peer_send(c->fd, frames, (size_t)(at - frames));
}

static void ack(struct conn *c, const char *p, size_t n)
{
    char text[256];
    int n_id;
    const char *id = behind(p, n, "\"original_id\":\"", &n_id);

    send_text(c, text,
              (size_t)snprintf(text, sizeof(text),
                               "{\"jsonrpc\":\"2.0\",\"method\":"
                               "\"delegation.ack\",\"params\":{"
                               "\"original_id\":\"%.*s\"}}",
                               n_id, id));
}

static void on_message(struct conn *c, const char *p, size_t n)
{
    if (holds(p, n, "\"error\":{"))
        refuse(p, n);
    if (c->kind == WORKER) {
        if (holds(p, n, "\"task.execute\""))
            work(c, p, n);
        return;
    }
    if (!holds(p, n,
               c->kind == USER ? "\"task.result\"" : "\"delegation.result\""))
        return;
    if (!holds(p, n, "\"completed\""))
        refuse(p, n);
    if (c->kind == BOSS)
        ack(c, p, n);
    run.n_done++;
    run.n_open--;
    if (!run.is_ending)
        ask(c);
}

/* Read once, and hand on each whole message. */
static void conn_read(struct conn *c)
{
    ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    size_t at = 0, used, n;
    const char *message;

    if (got <= 0)
        die("the server hung up");
    c->n += (size_t)got;
    while ((used = talk_read(c->in + at, c->n - at, &message, &n))) {
        at += used;
        if (n > 0)
            on_message(c, message, n);
    }
    memmove(c->in, c->in + at, c->n - at);
    c->n -= at;
}

static void turn(void)
{
    struct epoll_event ready[N_CONNS];
    int n = epoll_wait(run.poll, ready, N_CONNS, WAIT_MS);

    if (n <= 0) {
        fprintf(stderr, "bench_delegate: nothing came for ten seconds\n");
        exit(1);
    }
    for (int i = 0; i < n; i++)
        conn_read(ready[i].data.ptr);
}

/* Its answer is waited for: no one is asked who is not there yet. */
static void register_agent(struct conn *c)
{
    char text[512];
    const char *message;
    size_t n;

    n = (size_t)snprintf(text, sizeof(text),
                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                         "\"agent.register\",\"params\":{\"card\":{\"name\":"
                         "\"%s-%d\",\"description\":\"Is there for a bench\","
                         "\"limits\":{\"in_flight\":1000}}}}",
                         c->kind == WORKER ? "worker" : "boss", c->number);
    send_text(c, text, n);
    while (!talk_read(c->in, c->n, &message, &n)) {
        ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
        if (got <= 0)
            die("not registered");
        c->n += (size_t)got;
    }
    if (!holds(message, n, "\"result\""))
        refuse(message, n);
    c->n = 0;
}

static void open_all(void)
{
    run.poll = epoll_create1(0);
    for (int i = 0; i < N_CONNS; i++) {
        struct conn *c = &run.conns[i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

        c->fd = peer_connect(run.server.port);
        c->number = i % N_EACH;
        c->kind = (enum kind)(i / N_EACH);
        talk_hello(c->fd, &run.server, "/hub", run.token);
        if (c->kind != USER)
            register_agent(c);
        if (epoll_ctl(run.poll, EPOLL_CTL_ADD, c->fd, &e) != 0)
            die("epoll");
    }
}

/* A round of those that this kind asks for. */
static struct figures measure(enum kind kind)
{
    double began, cpu;
    struct figures f;

    run.is_ending = false;
    run.n_done = run.n_open = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        ask(&run.conns[(int)kind * N_EACH + i % N_EACH]);
    while (run.n_done < 4 * IN_FLIGHT) /* caches */
        turn();
    run.n_done = 0;
    cpu = peer_cpu_s(&run.server);
    began = now_s();
    while (now_s() - began < ROUND_MS / 1e3)
        turn();
    began = now_s() - began;
    cpu = peer_cpu_s(&run.server) - cpu;
    f = (struct figures){(double)run.n_done / began,
                         cpu * 1e6 / (double)run.n_done};
    run.is_ending = true; /* and no one leaves with work undone */
    while (run.n_open > 0)
        turn();
    return f;
}

static struct figures show(const char *name, struct figures f[ROUNDS])
{
    double per_s[ROUNDS], us[ROUNDS];

    for (int k = 0; k < ROUNDS; k++) {
        per_s[k] = f[k].per_s;
        us[k] = f[k].us;
    }
    qsort(per_s, ROUNDS, sizeof(per_s[0]), by_value);
    qsort(us, ROUNDS, sizeof(us[0]), by_value);
    printf("%-28s%8.0f a second (%.0f-%.0f), %.1f us each (%.1f-%.1f)\n", name,
           per_s[ROUNDS / 2], per_s[0], per_s[ROUNDS - 1], us[ROUNDS / 2],
           us[0], us[ROUNDS - 1]);
    return (struct figures){per_s[ROUNDS / 2], us[ROUNDS / 2]};
}

/* Its first line has the address and, for a fresh folder, a token. */
static void start(const char *binary, const char *data)
{
    static const char key[] = "\"token\":\"";
    const char *at;

    run.server = peer_run(
        "signalbox",
        (const char *[]){binary, "serve", "--json", "--listen", "127.0.0.1:0",
                         "--data", data, "--set", "log.level=warn", "--set",
                         "rate.perUser=0", "--set", "rate.perAddress=0", NULL});
    at = strstr(run.server.line, key);
    if (!at) {
        fprintf(stderr, "bench_delegate: %s is no fresh folder\n", data);
        exit(1);
    }
    at += sizeof(key) - 1;
    snprintf(run.token, sizeof(run.token), "%.*s", (int)strcspn(at, "\""), at);
}

int main(int argc, char **argv)
{
    struct figures plain[ROUNDS], hired[ROUNDS], p, h;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_delegate SIGNALBOX DATA\n");
        return 2;
    }
    start(argv[1], argv[2]);
    open_all();
    for (int k = 0; k < ROUNDS; k++) {
        plain[k] = measure(USER);
        hired[k] = measure(BOSS);
    }
    printf("durable, %d in flight, %d bytes; processor time of the server, "
           "median of %d (least-most)\n",
           IN_FLIGHT, MESSAGE_BYTES, ROUNDS);
    p = show("plain tasks", plain);
    h = show("two-phase delegations", hired);
    printf("a delegation: %.2f of the rate, %.1f us more of the server's "
           "processor time\n",
           h.per_s / p.per_s, h.us - p.us);
    peer_stop(&run.server);
    return 0;
}
