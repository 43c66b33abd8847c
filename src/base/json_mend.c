/* Lone surrogates, which JavaScript writes without hesitation: a string that
 * was cut inside a pair keeps one half, and JSON.stringify escapes it as it is.
 * We reject such a text everywhere; a caller that must not lose the line
 * repairs it first. The replacement has the length of the escape, so nothing
 * moves. */
#include "base/json.h"

#include <string.h>

enum { ESCAPE_BYTES = 6 }; /* \uXXXX */

/* The value of the \uXXXX at p, or -1. */
static int escaped_unit(const char *p, const char *end)
{
    int v = 0;

    if (end - p < ESCAPE_BYTES || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < ESCAPE_BYTES; i++) {
        int d = str_hex_value(p[i]);

        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

static bool is_high_surrogate(int c)
{
    return c >= 0xd800 && c <= 0xdbff;
}

static bool is_low_surrogate(int c)
{
    return c >= 0xdc00 && c <= 0xdfff;
}

size_t json_mend_halves(char *text, size_t n)
{
    char *p = text, *end = text + n;
    size_t n_mended = 0;

    while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
        int c = escaped_unit(p, end);

        if (is_high_surrogate(c) &&
            is_low_surrogate(escaped_unit(p + ESCAPE_BYTES, end))) {
            p += 2 * ESCAPE_BYTES;
        } else if (is_high_surrogate(c) || is_low_surrogate(c)) {
            memcpy(p, "\\ufffd", ESCAPE_BYTES);
            p += ESCAPE_BYTES;
            n_mended++;
        } else {
            p += 2; /* the second one may be a backslash too */
        }
    }
    return n_mended;
}
