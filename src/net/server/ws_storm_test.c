/* Storms of frames, good ones and bad ones, against a decoder that is as plain
 * as can be: it has all the bytes, takes its time and copies everything. What
 * it reads in them and what the reader reads, whole and in random pieces, must
 * be the same to the last byte. */
#include "base/clock.h"
#include "net/server/ws.h"
#include "test/t.h"

enum { MOST = 8192, TAKEN = 65536 };

static const struct ws_limits limits = {600, 1000};

struct storm {
    struct rand_seeded seed;
    struct rand rand;
    bool is_client;
    const char *rest; /* of a character that the last fragment began */
    uint8_t bytes[MOST];
    size_t n;
};

static unsigned below(struct storm *st, unsigned n)
{
    return (unsigned)(rand_u64(st->rand) % n);
}

/* What came of it: for each event its step, code, kind, length and bytes. */
struct tale {
    uint8_t p[TAKEN];
    size_t n;
};

static void tell(struct tale *t, enum ws_step step, unsigned code,
                 unsigned kind, const void *p, size_t n)
{
    CHECK(t->n + n + 6 <= sizeof(t->p));
    t->p[t->n++] = (uint8_t)step;
    t->p[t->n++] = (uint8_t)(code >> 8);
    t->p[t->n++] = (uint8_t)code;
    t->p[t->n++] = (uint8_t)kind;
    t->p[t->n++] = (uint8_t)(n >> 8);
    t->p[t->n++] = (uint8_t)n;
    if (n)
        memcpy(t->p + t->n, p, n);
    t->n += n;
}

/* The plain decoder. */

/* 1: UTF-8; 0: not; -1: the last character is cut off. */
static int utf8_of(const uint8_t *b, size_t n)
{
    while (n) {
        size_t len = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
        uint32_t low = b[0], high = b[0];

        if ((b[0] >= 0x80 && b[0] < 0xc2) || b[0] > 0xf4)
            return 0;
        for (size_t i = 1; i < len; i++) {
            if (i < n && (b[i] < 0x80 || b[i] > 0xbf))
                return 0;
            low = low << 8 | (i < n ? b[i] : 0x80);
            high = high << 8 | (i < n ? b[i] : 0xbf);
        }
        if (len == 3 &&
            (high < 0xe0a080 || (low >= 0xeda080 && high < 0xee0000)))
            return 0;
        if (len == 4 && (high < 0xf0908080 || low > 0xf48fbfbf))
            return 0;
        if (len > n)
            return -1;
        b += len;
        n -= len;
    }
    return 1;
}

struct frame {
    unsigned first, second;
    size_t n_head; /* with its mask */
    uint64_t n;
    size_t n_here;
    uint8_t payload[MOST];
};

/* Whether there is a whole head; `length_is_here` is known before its mask. */
static bool cut_frame(const uint8_t *b, size_t n, struct frame *f,
                      bool *length_is_here)
{
    size_t n_length;
    uint8_t key[4] = {0};

    *length_is_here = false;
    if (n < 2)
        return false;
    f->first = b[0];
    f->second = b[1];
    f->n = b[1] & 127;
    n_length = f->n == 126 ? 2 : f->n == 127 ? 8 : 0;
    if (n < 2 + n_length)
        return false;
    *length_is_here = true;
    if (n_length)
        f->n = 0;
    for (size_t i = 0; i < n_length; i++)
        f->n = f->n * 256 + b[2 + i];
    f->n_head = 2 + n_length + (b[1] & 128 ? 4 : 0);
    if (n < f->n_head)
        return false;
    if (b[1] & 128)
        memcpy(key, b + 2 + n_length, 4);
    f->n_here = n - f->n_head < f->n ? n - f->n_head : (size_t)f->n;
    for (size_t i = 0; i < f->n_here; i++)
        f->payload[i] = b[f->n_head + i] ^ key[i % 4];
    return true;
}

/* The code with which the first byte is wrong; zero when it is not. */
static unsigned first_is_wrong(unsigned first, bool in_message)
{
    unsigned opcode = first & 15;

    if (first & 0x70)
        return 1002;
    if (opcode == 0)
        return in_message ? 0 : 1002;
    if (opcode == 1 || opcode == 2)
        return in_message ? 1002 : 0;
    return opcode >= 8 && opcode <= 10 && first & 128 ? 0 : 1002;
}

static unsigned length_is_wrong(const struct frame *f, size_t gathered)
{
    unsigned form = f->second & 127;

    if ((form == 126 && f->n < 126) || (form == 127 && f->n < 65536) ||
        f->n > INT64_MAX)
        return 1002;
    if ((f->first & 15) >= 8)
        return 0;
    return f->n > limits.max_frame_bytes ||
                   gathered + f->n > limits.max_message_bytes
               ? 1009
               : 0;
}

static unsigned close_is_wrong(const struct frame *f)
{
    unsigned code = f->payload[0] * 256u + f->payload[1];

    if (f->n == 0)
        return 0;
    if (f->n == 1 || code < 1000 || (code > 1003 && code < 1007) ||
        (code > 1014 && code < 3000) || code > 4999)
        return 1002;
    return utf8_of(f->payload + 2, f->n - 2) == 1 ? 0 : 1007;
}

struct plain {
    uint8_t message[MOST];
    size_t n;
    unsigned kind;
};

/* One frame of data, as much as is here: the code with which it is wrong. */
static unsigned take_data(struct plain *d, const struct frame *f,
                          struct tale *t)
{
    int utf8;

    if (f->first & 15)
        d->kind = f->first & 15;
    memcpy(d->message + d->n, f->payload, f->n_here);
    d->n += f->n_here;
    utf8 = d->kind == WS_TEXT ? utf8_of(d->message, d->n) : 1;
    if (utf8 == 0)
        return 1007;
    if (f->n_here < f->n || !(f->first & 128))
        return 0;
    if (utf8 < 0)
        return 1007;
    tell(t, WS_MESSAGE, 0, d->kind, d->message, d->n);
    d->n = 0;
    d->kind = 0;
    return 0;
}

/* True: the connection is over. */
static bool take_control(const struct frame *f, struct tale *t, unsigned *wrong)
{
    unsigned code = f->n ? f->payload[0] * 256u + f->payload[1] : 1005;

    if ((f->first & 15) != 8) {
        tell(t, (f->first & 15) == 9 ? WS_PING : WS_PONG, 0, 0, f->payload,
             f->n);
        return false;
    }
    *wrong = close_is_wrong(f);
    if (!*wrong)
        tell(t, WS_CLOSE, code, 0, f->payload + 2, f->n ? f->n - 2 : 0);
    return true;
}

static void read_plainly(const struct storm *st, struct tale *t)
{
    static struct plain d;
    static struct frame f;
    unsigned wrong = 0;

    d.n = d.kind = 0;
    for (size_t at = 0; at < st->n && !wrong; at += f.n_head + f.n_here) {
        const uint8_t *b = st->bytes + at;
        bool length_is_here,
            is_head = cut_frame(b, st->n - at, &f, &length_is_here);

        wrong = first_is_wrong(b[0], d.kind != 0);
        if (wrong || st->n - at < 2)
            break;
        if ((b[1] >> 7) == st->is_client ||
            ((b[0] & 15) >= 8 && (b[1] & 127) > 125))
            wrong = 1002;
        else if (length_is_here)
            wrong = length_is_wrong(&f, d.n);
        if (wrong || !is_head)
            break;
        if ((b[0] & 15) < 8)
            wrong = take_data(&d, &f, t);
        else if (f.n_here < f.n || take_control(&f, t, &wrong))
            break;
    }
    if (wrong)
        tell(t, WS_BAD, wrong, 0, NULL, 0);
}

/* The reader, in pieces of up to `most` bytes each. */
static void read_in_pieces(struct storm *st, unsigned most, struct tale *t)
{
    struct ws_parse p = {.is_client = st->is_client};
    struct ws_event e;
    enum ws_step step = WS_MORE;
    char *bytes = NULL;
    size_t n = 0;

    for (size_t at = 0; at < st->n && step == WS_MORE;) {
        size_t part = most ? 1 + below(st, most) : st->n;

        if (part > st->n - at)
            part = st->n - at;
        bytes = realloc(bytes, n + part); /* ends where the bytes end */
        memcpy(bytes + n, st->bytes + at, part);
        n += part;
        at += part;
        for (;;) {
            step = ws_parse(&p, &limits, bytes, &n, &e);
            if (step == WS_MORE || step == WS_BAD)
                break;
            tell(t, step, e.code, e.kind, e.payload.p, e.payload.n);
            if (step == WS_CLOSE)
                break;
            n -= e.used;
            memmove(bytes, bytes + e.used, n);
        }
    }
    if (step == WS_BAD)
        tell(t, WS_BAD, p.code, 0, NULL, 0);
    free(bytes);
}

/* The storm. */

/* Text, now and then broken. A character that does not fit goes on in the next
 * fragment, or gives way when there is none. */
static void put_text(struct storm *st, uint8_t *to, size_t n, bool is_last)
{
    static const char *const pieces[] = {"a", "\xc3\xa9", "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80", "plain text"};
    size_t at = 0;

    while (at < n) {
        const char *p = st->rest ? st->rest : pieces[below(st, 5)];
        size_t len = strlen(p) < n - at ? strlen(p) : n - at;

        if (is_last && len < strlen(p) && !st->rest)
            p = "aaaaaaaaaa";
        memcpy(to + at, p, len);
        at += len;
        st->rest = p[len] ? p + len : NULL;
    }
    if (n && below(st, 80) == 0)
        to[below(st, (unsigned)n)] = (uint8_t)below(st, 256);
}

static void put_frame(struct storm *st, unsigned first, size_t n)
{
    uint8_t payload[1024];
    struct buf out;
    uint8_t key[4];

    put_text(st, payload, n, first & 0x80);
    if ((first & 15) == 8 && n >= 2) {
        payload[0] = 3;
        payload[1] = (uint8_t)(0xe6 + below(st, 12));
    }
    for (int i = 0; i < 4; i++)
        key[i] = (uint8_t)below(st, 256);
    buf_init(&out, 2048);
    ws_write(&out, first & 15, (struct str){(char *)payload, n},
             st->is_client ? NULL : key);
    out.p[0] = (char)first;
    if (st->n + out.n <= MOST) {
        memcpy(st->bytes + st->n, out.p, out.n);
        st->n += out.n;
    }
    buf_fini(&out);
}

static size_t some_size(struct storm *st)
{
    static const size_t sizes[] = {0, 1, 2, 125, 126, 127, 300, 600, 601};

    return below(st, 3) ? below(st, 40) : sizes[below(st, 9)];
}

static void put_control(struct storm *st)
{
    const char *rest = st->rest;
    unsigned kind = below(st, 20);

    st->rest = NULL;
    put_frame(st, kind == 0 ? 0x88 : 0x89 + kind % 2,
              below(st, 4) ? below(st, 20) : 125);
    st->rest = rest;
}

/* A message in fragments, with control frames between them. */
static void put_message(struct storm *st)
{
    unsigned n = below(st, 2) ? 1 : 1 + below(st, 5), kind = 1 + below(st, 2);

    st->rest = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (below(st, 4) == 0)
            put_control(st);
        put_frame(st, (i ? 0 : kind) | (i == n - 1 ? 0x80 : 0),
                  n == 1 ? some_size(st) : below(st, 250));
    }
}

static void make_storm(struct storm *st, uint64_t seed)
{
    st->seed = (struct rand_seeded){.state = seed};
    st->rand = rand_seeded(&st->seed);
    st->is_client = seed & 1;
    st->n = 0;
    for (unsigned n = 1 + below(st, 12); n; n--)
        put_message(st);
    if (below(st, 3) == 0) /* a bit that turns over */
        st->bytes[below(st, below(st, 2) ? (unsigned)st->n : 2)] ^=
            (uint8_t)(1u << below(st, 8));
    if (below(st, 5) == 0) /* cut off */
        st->n = 1 + below(st, (unsigned)st->n);
}

static void same(const struct tale *a, const struct tale *b, uint64_t seed,
                 const char *how)
{
    if (a->n != b->n || memcmp(a->p, b->p, a->n) != 0)
        T_FAIL("storm %" PRIu64 ", %s: %zu and %zu bytes of tale", seed, how,
               a->n, b->n);
}

TEST(storms_are_read_as_the_plain_decoder_reads_them)
{
    static struct storm st;
    static struct tale truth, got;
    unsigned seen[WS_BAD + 1] = {0}, codes[3] = {0};

    for (uint64_t seed = 0; seed < 4000; seed++) {
        make_storm(&st, seed);
        truth.n = got.n = 0;
        read_plainly(&st, &truth);
        read_in_pieces(&st, 0, &got);
        same(&truth, &got, seed, "whole");
        for (unsigned most = 1; most <= 1000; most *= 10) {
            got.n = 0;
            read_in_pieces(&st, most, &got);
            same(&truth, &got, seed, "in pieces");
        }
        for (size_t at = 0; at < truth.n;
             at += 6 + truth.p[at + 4] * 256u + truth.p[at + 5]) {
            unsigned code = truth.p[at + 1] * 256u + truth.p[at + 2];

            seen[truth.p[at]]++;
            if (truth.p[at] == WS_BAD)
                codes[code == 1002 ? 0 : code == 1007 ? 1 : 2]++;
        }
    }
    /* A storm in which something never happens shows nothing about it. */
    for (int step = WS_MESSAGE; step <= WS_BAD; step++)
        CHECK(seen[step] > 100);
    for (int i = 0; i < 3; i++)
        CHECK(codes[i] > 100);
}
