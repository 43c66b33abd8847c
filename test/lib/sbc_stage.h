#ifndef SBC_STAGE_H
#define SBC_STAGE_H

/* The C client and a hub of a few lines, in one process that turns both by
 * hand: what the client says is heard here word by word, and the hub says what
 * the test has in mind. The hub's side uses nothing of base/, so that faults
 * are the client's alone. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include "client/c/internal.h"
#include "test/t.h"

enum {
    STAGE_TURNS = 2000,
    STAGE_OP_NONE = 0,
    STAGE_IN_BYTES = 4 * 1024 * 1024,
};

struct stage {
    struct sbc *s;
    int listener, fd;
    enum sbc_err last; /* of the last turn */
    size_t n;          /* bytes in `in` */
    char *in;
    char heard[64 * 1024]; /* the last message, with a NUL */
    char head[4096];       /* the request of the handshake */
    int n_ran;
    char ran[256]; /* ids of the tasks that ran, each with a space */
};

static inline char *stage_url(struct stage *st)
{
    static char url[64];
    struct sockaddr_in a;
    socklen_t n = sizeof(a);

    CHECK(getsockname(st->listener, (struct sockaddr *)&a, &n) == 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(a.sin_port));
    return url;
}

static inline struct stage *stage_new(void)
{
    struct stage *st = calloc(1, sizeof(*st));
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    CHECK(st != NULL);
    st->in = malloc(STAGE_IN_BYTES);
    st->fd = -1;
    st->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(bind(st->listener, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(listen(st->listener, 8) == 0);
    return st;
}

static inline void stage_hang_up(struct stage *st)
{
    if (st->fd >= 0)
        close(st->fd);
    st->fd = -1;
    st->n = 0;
}

static inline void stage_free(struct stage *st)
{
    stage_hang_up(st);
    sbc_close(st->s);
    close(st->listener);
    free(st->in);
    free(st);
}

static inline void stage_turn(struct stage *st)
{
    if (st->s->link.state == LINK_DOWN)
        st->s->link.at_ms = 0; /* no pause */
    st->last = sbc_turn(st->s, 1);
}

/* Read what there is; false when the client has hung up. */
static inline bool stage_read(struct stage *st)
{
    ssize_t n =
        recv(st->fd, st->in + st->n, STAGE_IN_BYTES - st->n, MSG_DONTWAIT);

    if (n > 0)
        st->n += (size_t)n;
    return n != 0;
}

static inline void stage_drop(struct stage *st, size_t n)
{
    memmove(st->in, st->in + n, st->n - n);
    st->n -= n;
}

static inline void stage_bytes(struct stage *st, const void *p, size_t n)
{
    CHECK(send(st->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static inline void stage_key(const char *head, char out[64])
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const char *at = strstr(head, "Sec-WebSocket-Key: ");
    unsigned char hash[EVP_MAX_MD_SIZE];
    char text[128];

    CHECK(at != NULL);
    snprintf(text, sizeof(text), "%.24s%s", at + 19, salt);
    CHECK(EVP_Digest(text, strlen(text), hash, NULL, EVP_sha1(), NULL) == 1);
    EVP_EncodeBlock((unsigned char *)out, hash, 20);
}

/* Take the next connection and its request; the answer is the caller's. */
static inline bool stage_accept(struct stage *st)
{
    char *end = NULL;
    int one = 1;

    stage_hang_up(st);
    for (int i = 0; i < STAGE_TURNS && !end; i++) {
        stage_turn(st);
        if (st->fd < 0 && (st->fd = accept(st->listener, NULL, NULL)) >= 0)
            setsockopt(st->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (st->fd >= 0 && !stage_read(st))
            stage_hang_up(st);
        end = memmem(st->in, st->n, "\r\n\r\n", 4);
    }
    if (!end)
        return false;
    snprintf(st->head, sizeof(st->head), "%.*s", (int)(end - st->in), st->in);
    stage_drop(st, (size_t)(end - st->in) + 4);
    return true;
}

static inline bool stage_agree(struct stage *st)
{
    char key[64], text[512];

    if (!stage_accept(st))
        return false;
    stage_key(st->head, key);
    snprintf(text, sizeof(text),
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
             "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
             "Sec-WebSocket-Protocol: signalbox\r\n\r\n",
             key);
    stage_bytes(st, text, strlen(text));
    return true;
}

static inline void stage_frame(struct stage *st, int opcode, const void *p,
                               size_t n)
{
    unsigned char head[4] = {(unsigned char)(0x80 | opcode), (unsigned char)n};

    CHECK(n < 65536);
    if (n > 125) {
        head[1] = 126;
        head[2] = (unsigned char)(n >> 8);
        head[3] = (unsigned char)n;
    }
    stage_bytes(st, head, n > 125 ? 4 : 2);
    if (n)
        stage_bytes(st, p, n);
}

__attribute__((format(printf, 2, 3))) static inline void
stage_say(struct stage *st, const char *fmt, ...)
{
    static char text[65536];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    stage_frame(st, 1, text, strlen(text));
}

/* A whole frame, unmasked into `heard`; its opcode, or STAGE_OP_NONE. */
static inline int stage_take_frame(struct stage *st)
{
    unsigned char *p = (unsigned char *)st->in;
    size_t head = 6, n, shown;

    if (st->n < 8)
        return st->n >= 6 && (p[1] & 127) == 0
                   ? (st->heard[0] = '\0', stage_drop(st, 6), p[0] & 15)
                   : STAGE_OP_NONE;
    CHECK(p[1] & 0x80); /* a client masks */
    n = p[1] & 127;
    if (n == 126) {
        n = (size_t)p[2] << 8 | p[3];
        head = 8;
    } else if (n == 127) {
        n = 0;
        for (int i = 2; i < 10; i++)
            n = n << 8 | p[i];
        head = 14;
    }
    if (st->n < head + n)
        return STAGE_OP_NONE;
    shown = n < sizeof(st->heard) ? n : sizeof(st->heard) - 1;
    for (size_t i = 0; i < shown; i++)
        st->heard[i] = (char)(p[head + i] ^ p[head - 4 + i % 4]);
    st->heard[shown] = '\0';
    n += head;
    head = p[0] & 15;
    stage_drop(st, n);
    return (int)head;
}

/* Turn until the client has said something; the opcode. */
static inline int stage_hear(struct stage *st)
{
    for (int i = 0; i < STAGE_TURNS; i++) {
        int opcode = stage_take_frame(st);

        if (opcode != STAGE_OP_NONE)
            return opcode;
        stage_turn(st);
        if (!stage_read(st))
            return STAGE_OP_NONE;
    }
    return STAGE_OP_NONE;
}

/* The next thing said must hold this. */
#define HEAR(st, part)                                             \
    do {                                                           \
        if (stage_hear(st) != 1 || !strstr((st)->heard, part))     \
            T_FAIL("heard \"%s\", not \"%s\"", (st)->heard, part); \
    } while (0)

/* The number of the call that was heard. */
static inline long stage_id(const struct stage *st)
{
    const char *at = strstr(st->heard, "\"id\":");

    return at ? strtol(at + 5, NULL, 10) : 0;
}

static inline void stage_ran(struct stage *st, const struct sbc_task *t)
{
    size_t n = strlen(st->ran);

    st->n_ran++;
    snprintf(st->ran + n, sizeof(st->ran) - n, "%s ", t->id);
}

/* Connect and register, as far as the client is one that does. */
static inline bool stage_join(struct stage *st)
{
    if (!stage_agree(st) || stage_hear(st) != 1 ||
        !strstr(st->heard, "\"agent.register\""))
        return false;
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"agent\":\"a\","
              "\"heartbeat_s\":90}}",
              stage_id(st));
    return true;
}

static inline struct stage *stage_agent(sbc_handler *on_task)
{
    struct stage *st = stage_new();

    st->s = sbc_open(stage_url(st), "secret");
    CHECK(st->s != NULL);
    CHECK_INT(sbc_register(st->s, "{\"name\":\"a\"}", on_task, st), SBC_OK);
    CHECK(stage_join(st));
    return st;
}

static inline void stage_execute(struct stage *st, const char *id, int attempt)
{
    stage_say(st,
              "{\"jsonrpc\":\"2.0\",\"id\":\"%s:%d\",\"method\":"
              "\"task.execute\",\"params\":{\"task_id\":\"%s\",\"turn\":1,"
              "\"attempt\":%d,\"message\":\"hi \\u00e9\",\"skill_id\":null,"
              "\"session_id\":\"c-1\",\"deadline_ms\":17,\"metadata\":"
              "{\"requester\":\"anna\",\"depth\":0}}}",
              id, attempt, id, attempt);
}

#endif
