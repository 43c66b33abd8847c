#ifndef TEST_LIB_WS_READER_H
#define TEST_LIB_WS_READER_H

/* A reader for the tests of frames: what comes of some bytes, in words. Every
 * case is read whole, byte by byte and in every way to cut it in two, from
 * memory that moves each time and ends where the bytes end; all must come out
 * the same. Cases are written as a server sends them, without masks, and read
 * as by a client; then masks are put in, and they are read as by a server. */

#include "net/server/ws.h"
#include "test/t.h"

static const struct ws_limits limits = {
    .max_frame_bytes = 200,
    .max_message_bytes = 300,
};

struct reader {
    struct ws_parse parse;
    const struct ws_limits *limits;
    char *bytes;
    size_t n;
    bool is_over; /* refused or closed */
    char out[1024];
};

static inline void add(struct reader *r, const char *name, struct str s)
{
    size_t at = strlen(r->out);

    if (s.n > 40)
        snprintf(r->out + at, sizeof(r->out) - at, "%s[%.*s*%zu] ", name, 1,
                 s.p, s.n);
    else
        snprintf(r->out + at, sizeof(r->out) - at, "%s[%.*s] ", name,
                 STR_ARG(s));
}

/* "text[hello] ping[] close 1000[bye] " or "1002: words"; a payload of more
 * than 40 bytes is "text[a*41] ". */
static inline void add_event(struct reader *r, enum ws_step step,
                             const struct ws_event *e)
{
    char name[32];

    switch (step) {
    case WS_MESSAGE:
        CHECK(e->kind == WS_TEXT || e->kind == WS_BINARY);
        add(r, e->kind == WS_TEXT ? "text" : "binary", e->payload);
        break;
    case WS_PING: add(r, "ping", e->payload); break;
    case WS_PONG: add(r, "pong", e->payload); break;
    case WS_CLOSE:
        snprintf(name, sizeof(name), "close %d", e->code);
        add(r, name, e->payload);
        break;
    case WS_BAD:
        snprintf(r->out + strlen(r->out), sizeof(r->out) - strlen(r->out),
                 "%d: %s", r->parse.code, r->parse.what);
        break;
    case WS_MORE: break;
    }
}

static inline void feed(struct reader *r, const char *p, size_t n)
{
    char *moved = malloc(r->n + n ? r->n + n : 1);
    struct ws_event e;
    enum ws_step step = WS_MESSAGE;

    if (r->n)
        memcpy(moved, r->bytes, r->n);
    if (n)
        memcpy(moved + r->n, p, n);
    free(r->bytes);
    r->bytes = moved;
    r->n += n;
    while (!r->is_over && step != WS_MORE) {
        step = ws_parse(&r->parse, r->limits, r->bytes, &r->n, &e);
        add_event(r, step, &e);
        r->is_over = step == WS_BAD || step == WS_CLOSE;
        if (step == WS_BAD || step == WS_MORE)
            break;
        CHECK(e.used <= r->n);
        CHECK(e.payload.p >= r->bytes &&
              e.payload.p + e.payload.n <= r->bytes + r->n);
        r->n -= e.used;
        memmove(r->bytes, r->bytes + e.used, r->n);
    }
    /* What waits is a message within its limit and part of a head or of a
     * control frame. */
    CHECK(r->is_over ||
          (r->n - r->parse.message_bytes < WS_HEAD_BYTES + WS_CONTROL_BYTES &&
           r->parse.message_bytes <= r->limits->max_message_bytes));
}

/* Begin again; then what came of it is in r->out, with "..." at the end when
 * more is to come. */
static inline void begin(struct reader *r, bool is_client)
{
    *r = (struct reader){.parse = {.is_client = is_client}, .limits = &limits};
}

static inline void end(struct reader *r)
{
    if (!r->is_over && (r->n || r->parse.kind))
        snprintf(r->out + strlen(r->out), sizeof(r->out) - strlen(r->out),
                 "...");
    free(r->bytes);
    r->bytes = NULL;
}

static inline bool is_as(const struct reader *r, const char *as,
                         const char *how, size_t cut)
{
    if (strcmp(r->out, as) == 0)
        return true;
    fprintf(stderr, "as %s, %s %zu: %s\nwanted: %s\n",
            r->parse.is_client ? "client" : "server", how, cut, r->out, as);
    return false;
}

/* However the bytes are cut. */
static inline bool comes_out(bool is_client, const char *p, size_t n,
                             const char *as)
{
    struct reader r;

    begin(&r, is_client);
    for (size_t i = 0; i < n; i++)
        feed(&r, p + i, 1);
    end(&r);
    if (!is_as(&r, as, "by byte", 0))
        return false;
    for (size_t cut = 0; cut <= n; cut++) {
        begin(&r, is_client);
        feed(&r, p, cut);
        feed(&r, p + cut, n - cut);
        end(&r);
        if (!is_as(&r, as, "cut at", cut))
            return false;
    }
    return true;
}

/* The same frames with masks, into `to`, which has room for 7 n. The mask is
 * another one for each frame. Returns how many bytes they are. */
static inline size_t masked(char *to, const char *p, size_t n)
{
    size_t at = 0, out = 0;
    uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};

    while (at < n) {
        size_t head = n - at < 2                 ? 1
                      : (p[at + 1] & 127) == 126 ? 4
                      : (p[at + 1] & 127) == 127 ? 10
                                                 : 2;
        uint64_t length = head == 2 ? p[at + 1] & 127 : 0;

        for (size_t i = 0; i < head && at < n; i++, at++) {
            length = i < 2 ? length : length << 8 | (uint8_t)p[at];
            to[out++] = (char)(i == 1 ? p[at] | 0x80 : p[at]);
            if (at == n - 1 && i < head - 1)
                return out;
        }
        if (head == 1)
            return out;
        for (size_t i = 0; i < 4; i++)
            to[out++] = (char)(key[i] += 101);
        for (uint64_t i = 0; i < length && at < n; i++)
            to[out++] = (char)((uint8_t)p[at++] ^ key[i & 3]);
    }
    return out;
}

struct row {
    const char *in;
    size_t n;
    const char *as;
};

#define ROW(in, as)            \
    {                          \
        in, sizeof(in) - 1, as \
    }

static inline bool row_holds(const struct row *row)
{
    char *with = malloc(row->n * 7 + 1);
    bool holds = comes_out(true, row->in, row->n, row->as) &&
                 comes_out(false, with, masked(with, row->in, row->n), row->as);

    free(with);
    return holds;
}

static inline void check_rows(const struct row *rows, size_t n)
{
    int n_wrong = 0;

    for (size_t i = 0; i < n; i++)
        n_wrong += !row_holds(&rows[i]);
    CHECK(n_wrong == 0);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

#endif
