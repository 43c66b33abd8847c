/* Halves of surrogate pairs, which JavaScript writes without a thought: a text
 * that was cut within a pair keeps one of them, and JSON.stringify escapes it
 * as it stands. We refuse such a text everywhere; who must not lose the line
 * mends it first. An escape stays as long as it was, so nothing moves. */
#include "base/json.h"

#include <string.h>

enum { ESCAPE_BYTES = 6 }; /* \uXXXX */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The \uXXXX at p, or -1. */
static int escaped(const char *p, const char *end)
{
    int v = 0;

    if (end - p < ESCAPE_BYTES || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < ESCAPE_BYTES; i++) {
        int d = digit(p[i]);

        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static bool is_high(int c)
{
    return c >= 0xd800 && c <= 0xdbff;
}

static bool is_low(int c)
{
    return c >= 0xdc00 && c <= 0xdfff;
}

size_t json_mend_halves(char *text, size_t n)
{
    char *p = text, *end = text + n;
    size_t n_mended = 0;

    while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
        int c = escaped(p, end);

        if (is_high(c) && is_low(escaped(p + ESCAPE_BYTES, end))) {
            p += 2 * ESCAPE_BYTES;
        } else if (is_high(c) || is_low(c)) {
            memcpy(p, "\\ufffd", ESCAPE_BYTES);
            p += ESCAPE_BYTES;
            n_mended++;
        } else {
            p += 2; /* of which the second may be a backslash, too */
        }
    }
    return n_mended;
}
