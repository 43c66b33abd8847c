/* Strings as they stand in a text: their escapes, and comparing them without
 * writing them down.
 *
 * Everything here is given strings that the walk has found valid, so there is
 * nothing left to refuse. Strings without a backslash are what
 * they stand for and take the short way everywhere. */
#include "base/json_internal.h"

#include "base/utf8.h"

static unsigned hex4(const char *p)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];

        v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* Decode the escape at *p, which moves behind it. */
static size_t unescape(const char **p, char to[4])
{
    const char *at = *p + 1;
    unsigned c;

    *p += 2;
    switch (*at) {
    case 'b': to[0] = '\b'; return 1;
    case 'f': to[0] = '\f'; return 1;
    case 'n': to[0] = '\n'; return 1;
    case 'r': to[0] = '\r'; return 1;
    case 't': to[0] = '\t'; return 1;
    case 'u': break;
    default: to[0] = *at; return 1;
    }
    c = hex4(at + 1);
    *p += 4;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex4(*p + 2) - 0xdc00);
        *p += 6;
    }
    return utf8_encode(to, c);
}

size_t json_decode(char *to, struct str raw)
{
    const char *p = raw.p, *end = raw.p + raw.n;
    char *begin = to;

    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((slash ? slash : end) - p);

        memcpy(to, p, n);
        to += n;
        p += n;
        if (slash)
            to += unescape(&p, to);
    }
    return (size_t)(to - begin);
}

/* The bytes a raw string stands for, one at a time. */
struct bytes {
    const char *p, *end;
    char ahead[4];
    size_t n_ahead, i_ahead;
};

static struct bytes bytes_of(struct str s)
{
    return (struct bytes){.p = s.p, .end = s.p + s.n};
}

/* The next byte, or -1 behind the last. */
static int next_byte(struct bytes *b)
{
    if (b->i_ahead == b->n_ahead) {
        if (b->p == b->end)
            return -1;
        if (*b->p != '\\')
            return (unsigned char)*b->p++;
        b->n_ahead = unescape(&b->p, b->ahead);
        b->i_ahead = 0;
    }
    return (unsigned char)b->ahead[b->i_ahead++];
}

int json_raw_cmp(struct json_raw a, struct json_raw b)
{
    struct bytes x, y;
    int c, d;

    if (!a.is_escaped && !b.is_escaped)
        return str_cmp(a.s, b.s);
    x = bytes_of(a.s);
    y = bytes_of(b.s);
    do {
        c = next_byte(&x);
        d = next_byte(&y);
    } while (c == d && c >= 0);
    return c - d;
}

bool json_raw_is(struct json_raw raw, struct str decoded)
{
    struct bytes b;

    if (!raw.is_escaped)
        return str_eq(raw.s, decoded);
    b = bytes_of(raw.s);
    for (size_t i = 0; i < decoded.n; i++)
        if (next_byte(&b) != (unsigned char)decoded.p[i])
            return false;
    return next_byte(&b) < 0;
}

uint32_t json_raw_hash(struct json_raw raw)
{
    uint64_t first = 0, last = 0, n = 0;
    struct bytes b = bytes_of(raw.s);
    int c;

    while ((c = next_byte(&b)) >= 0) {
        if (n < 8)
            first |= (uint64_t)c << (8 * n);
        last = last >> 8 | (uint64_t)c << 56;
        n++;
    }
    return json_hash(first, n < 8 ? 0 : last, n);
}
