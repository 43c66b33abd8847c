/* Undecoded strings: their escapes, and comparing them without decoding them
 * into memory.
 *
 * The walk has validated all strings here, so nothing can fail. Strings without
 * a backslash need no decoding and take a short path everywhere. */
#include "base/json_internal.h"

#include "base/utf8.h"

static unsigned escape_hex4(const char *p)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)str_hex_value(p[i]);
    return v;
}

/* Decode the escape at *p and advance *p past it. */
static size_t json_unescape(const char **p, char to[4])
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
    c = escape_hex4(at + 1);
    *p += 4;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (escape_hex4(*p + 2) - 0xdc00);
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
            to += json_unescape(&p, to);
    }
    return (size_t)(to - begin);
}

/* The decoded bytes of a raw string, one at a time. */
struct bytes {
    const char *p, *end;
    char ahead[4];
    size_t n_ahead, i_ahead;
};

static struct bytes json_bytes_of(struct str s)
{
    return (struct bytes){.p = s.p, .end = s.p + s.n};
}

/* The next byte, or -1 at the end. */
static int json_next_byte(struct bytes *b)
{
    if (b->i_ahead == b->n_ahead) {
        if (b->p == b->end)
            return -1;
        if (*b->p != '\\')
            return (unsigned char)*b->p++;
        b->n_ahead = json_unescape(&b->p, b->ahead);
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
    x = json_bytes_of(a.s);
    y = json_bytes_of(b.s);
    do {
        c = json_next_byte(&x);
        d = json_next_byte(&y);
    } while (c == d && c >= 0);
    return c - d;
}

bool json_raw_is(struct json_raw raw, struct str decoded)
{
    struct bytes b;

    if (!raw.is_escaped)
        return str_eq(raw.s, decoded);
    b = json_bytes_of(raw.s);
    for (size_t i = 0; i < decoded.n; i++)
        if (json_next_byte(&b) != (unsigned char)decoded.p[i])
            return false;
    return json_next_byte(&b) < 0;
}

uint32_t json_raw_hash(struct json_raw raw)
{
    uint64_t first = 0, last = 0, n = 0;
    struct bytes b = json_bytes_of(raw.s);
    int c;

    while ((c = json_next_byte(&b)) >= 0) {
        if (n < 8)
            first |= (uint64_t)c << (8 * n);
        last = last >> 8 | (uint64_t)c << 56;
        n++;
    }
    return json_hash(first, n < 8 ? 0 : last, n);
}
