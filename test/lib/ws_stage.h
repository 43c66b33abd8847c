#ifndef TEST_LIB_WS_STAGE_H
#define TEST_LIB_WS_STAGE_H

/* The stage of net_stage.h with WebSockets on it: an owner that takes every
 * handshake and writes down what it is told, and clients that speak frames by
 * hand. What either side heard is told in words, one after the other:
 *
 *     text[hello] binary[..*300] ping[] close 1000[bye] */

#include "test/lib/net_stage.h"

enum { WS_SEEN_MAX = 32, WORDS_BYTES = 8192 };

struct ws_stage {
    struct stage s; /* first: net's handler has it as its ctx */

    /* What the owner does. */
    bool holds;        /* handshakes wait in ids[] for ws_let_in */
    bool echoes;       /* every message, as far as it is taken */
    bool pauses;       /* at every message */
    bool closes;       /* at every message */
    struct str wanted; /* subprotocol */
    struct ws_hello hello;
    enum err accepted;

    /* What it was told, in words, and how often. */
    char told[WORDS_BYTES];
    int n_ws, n_messages, n_rooms, n_ends, n_opens, n_busy;
    size_t n_message_bytes;
    uint64_t ws_ids[WS_SEEN_MAX];
    struct net_ws_end end; /* the latest; its reason is in the words */
    uint64_t end_id;
};

static inline void tell(char *words, const char *name, struct str s)
{
    size_t at = strlen(words);

    if (s.n > 40)
        snprintf(words + at, WORDS_BYTES - at, "%s[%.2s*%zu] ", name, s.p, s.n);
    else
        snprintf(words + at, WORDS_BYTES - at, "%s[%.*s] ", name, STR_ARG(s));
}

static inline void ws_stage_open(void *ctx, uint64_t id, struct str protocol)
{
    struct ws_stage *w = ctx;

    (void)id;
    w->n_opens++;
    tell(w->told, "open", protocol);
}

static inline void ws_stage_message(void *ctx, uint64_t id, enum ws_kind kind,
                                    struct str bytes)
{
    struct ws_stage *w = ctx;

    w->n_messages++;
    w->n_message_bytes += bytes.n;
    tell(w->told, kind == WS_TEXT ? "text" : "binary", bytes);
    if (w->echoes)
        w->n_busy += net_ws_send(w->s.net, id, kind, bytes) == ERR_BUSY ? 1 : 0;
    if (w->pauses)
        net_ws_pause(w->s.net, id, true);
    if (w->closes)
        net_ws_close(w->s.net, id, WS_NORMAL, STR("enough"));
}

static inline void ws_stage_room(void *ctx, uint64_t id)
{
    struct ws_stage *w = ctx;

    (void)id;
    w->n_rooms++;
}

static inline void ws_stage_end(void *ctx, uint64_t id,
                                const struct net_ws_end *end)
{
    struct ws_stage *w = ctx;
    char name[64];

    CHECK(net_find(w->s.net, id) == NULL);
    snprintf(name, sizeof(name), "end %d%s%s%s", end->code,
             end->is_ours ? " ours" : "", end->e ? " " : "",
             end->e ? err_row(end->e)->code : "");
    tell(w->told, name, str_head(end->reason, 40));
    w->n_ends++;
    w->end = *end;
    w->end_id = id;
}

static const struct net_ws_handler ws_stage_handler = {
    .on_open = ws_stage_open,
    .on_message = ws_stage_message,
    .on_room = ws_stage_room,
    .on_end = ws_stage_end,
};

static inline void ws_let_in(struct ws_stage *w, uint64_t id)
{
    w->accepted =
        net_ws_accept(w->s.net, id, &w->hello, w->wanted, &ws_stage_handler, w);
    if (w->accepted == OK)
        w->ws_ids[w->n_ws++ % WS_SEEN_MAX] = id;
}

static inline void ws_stage_request(void *ctx, uint64_t id,
                                    const struct http_request *rq)
{
    struct ws_stage *w = ctx;

    if (!ws_is_asked(rq)) {
        stage_request(ctx, id, rq);
        return;
    }
    if (ws_hello_read(rq, &w->hello, NULL) != OK) {
        CHECK(fault_fired());
        net_reply(w->s.net, id, &(struct http_reply){.status = 500});
        return;
    }
    w->s.ids[w->s.n_requests++ % SEEN_MAX] = id;
    if (!w->holds)
        ws_let_in(w, id);
}

static inline void ws_stage_init(struct ws_stage *w, struct net_opts opts)
{
    *w = (struct ws_stage){.n_ws = 0};
    stage_init(&w->s, opts);
    w->s.net->on.on_request = ws_stage_request;
}

static inline void ws_stage_fini(struct ws_stage *w)
{
    stage_fini(&w->s);
    CHECK_INT(w->n_ends, w->n_ws);
}

/* The latest that was let in. */
static inline uint64_t ws_id(const struct ws_stage *w)
{
    return w->ws_ids[(w->n_ws - 1) % WS_SEEN_MAX];
}

/* The connection of the latest that was let in. */
static inline const struct conn *conn_of(const struct ws_stage *w)
{
    return net_find(w->s.net, ws_id(w));
}

/* Clients. */

#define HELLO(path)                                   \
    "GET " path " HTTP/1.1\r\nHost: h\r\n"            \
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
    "Sec-WebSocket-Version: 13\r\n\r\n"
#define WELCOME                                     \
    "HTTP/1.1 101 Switching Protocols\r\n"          \
    "Upgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

struct ws_client {
    int fd;
    struct heard raw; /* what was not understood yet */
    char words[WORDS_BYTES];
    size_t n_frames;
    size_t n_payload_bytes;
};

/* One frame as a client writes it, with its bits as they are given. */
static inline void frame_add(struct buf *b, int first_byte, struct str payload)
{
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    size_t at = b->n;

    ws_write(b, (uint8_t)(first_byte & 0x0f), payload, mask);
    CHECK(!b->over);
    b->p[at] = (char)first_byte;
}

static inline void frame_say(struct ws_client *c, int first_byte,
                             struct str payload)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    frame_add(&b, first_byte, payload);
    say_n(c->fd, b.p, b.n);
    buf_fini(&b);
}

static inline void say_text(struct ws_client *c, const char *text)
{
    frame_say(c, 0x81, str_of(text));
}

/* A close with a code and words. */
static inline void say_close(struct ws_client *c, uint16_t code,
                             const char *reason)
{
    char p[125] = {(char)(code >> 8), (char)code};
    size_t n = strlen(reason);

    memcpy(p + 2, reason, n);
    frame_say(c, 0x88, (struct str){p, n + 2});
}

/* Put what was heard into words as far as it is whole. A server's frames have
 * no mask; this is a reader of its own. */
static inline void understand(struct ws_client *c)
{
    const unsigned char *p = (const unsigned char *)c->raw.text;
    size_t at = 0;

    for (;;) {
        size_t left = c->raw.n - at, head = 2, n;
        struct str payload;
        char name[32];

        if (left < 2)
            break;
        n = p[at + 1];
        CHECK(n < 128 && (p[at] & 0x70) == 0);
        head += n == 126 ? 2 : n == 127 ? 8 : 0;
        if (left < head)
            break;
        if (n >= 126) {
            n = 0;
            for (size_t i = 2; i < head; i++)
                n = n << 8 | p[at + i];
        }
        if (left < head + n)
            break;
        payload = (struct str){c->raw.text + at + head, n};
        switch (p[at]) {
        case 0x81: tell(c->words, "text", payload); break;
        case 0x82: tell(c->words, "binary", payload); break;
        case 0x89: tell(c->words, "ping", payload); break;
        case 0x8a: tell(c->words, "pong", payload); break;
        case 0x88:
            snprintf(name, sizeof(name), "close %d",
                     n ? (unsigned char)payload.p[0] << 8 |
                             (unsigned char)payload.p[1]
                       : 0);
            tell(c->words, name, str_sub(payload, 2, n));
            break;
        default: T_FAIL("a frame that begins with %02x", p[at]);
        }
        c->n_frames++;
        c->n_payload_bytes += n;
        at += head + n;
    }
    memmove(c->raw.text, c->raw.text + at, c->raw.n - at);
    c->raw.n -= at;
}

static inline void ws_listen(struct ws_stage *w, struct ws_client *c)
{
    turn_once(&w->s);
    hear(c->fd, &c->raw);
    understand(c);
}

#define WS_UNTIL(w, c, condition)                    \
    do {                                             \
        int t_left = TURNS;                          \
        while (!(condition) && t_left-- > 0) {       \
            ws_listen(w, c);                         \
            wait_for_some(&(w)->s, (c)->fd, t_left); \
        }                                            \
        CHECK(condition);                            \
    } while (0)

/* Nothing more comes of it: let a few turns pass. */
static inline void ws_settle(struct ws_stage *w, struct ws_client *c)
{
    for (int i = 0; i < 5; i++)
        ws_listen(w, c);
}

static inline bool ws_has(const struct ws_client *c, const char *words)
{
    return strstr(c->words, words) != NULL;
}

/* Time passes, and the client hears. */
static inline void ws_later(struct ws_stage *w, struct ws_client *c, int64_t ms)
{
    later(&w->s, ms);
    ws_settle(w, c);
}

/* Take the answer to the handshake off what was heard. */
static inline void ws_await_welcome(struct ws_stage *w, struct ws_client *c)
{
    struct stage *s = &w->s;
    char *end;

    HEAR_UNTIL(s, c->fd, &c->raw, has(&c->raw, "\r\n\r\n"));
    CHECK(strncmp(c->raw.text, "HTTP/1.1 101 ", 13) == 0);
    end = strstr(c->raw.text, "\r\n\r\n") + 4;
    c->raw.n -= (size_t)(end - c->raw.text);
    memmove(c->raw.text, end, c->raw.n);
    understand(c);
}

static inline void ws_open_with(struct ws_stage *w, struct ws_client *c, int fd)
{
    *c = (struct ws_client){.fd = fd};
    say(c->fd, HELLO("/ws"));
    ws_await_welcome(w, c);
}

static inline void ws_open(struct ws_stage *w, struct ws_client *c)
{
    ws_open_with(w, c, dial(&w->s));
}

/* The kernel takes little of what is sent to it, at both ends. */
static inline void ws_open_small(struct ws_stage *w, struct ws_client *c)
{
    ws_open_with(w, c, dial_small(&w->s, SMALL_BUFFER));
    keep_sndbuf(conn_of(w), SMALL_BUFFER);
}

/* So many of one byte. */
static inline struct str zeros(size_t n)
{
    static char bytes[1 << 20];

    CHECK(n <= sizeof(bytes));
    memset(bytes, 'z', sizeof(bytes));
    return (struct str){bytes, n};
}

/* Say b from *at on, and again from its beginning, as much as the kernel takes
 * at once. False: it took nothing. */
static inline bool pour(int fd, const struct buf *b, size_t *at)
{
    ssize_t n = send(fd, b->p + *at, b->n - *at, MSG_NOSIGNAL);

    if (n <= 0)
        return false;
    *at = (*at + (size_t)n) % b->n;
    return true;
}

/* Hang up, and wait until the server has noticed. */
static inline void ws_hang_up(struct ws_stage *w, struct ws_client *c)
{
    close(c->fd);
    turn(&w->s, 4);
}

#endif
