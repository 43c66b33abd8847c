#ifndef BASE_UTF8_H
#define BASE_UTF8_H

/* utf8: validates UTF-8 (no overlong forms, no surrogates, nothing beyond
 * U+10FFFF), and decodes and encodes characters. Threads: any; no state. */

#include "base/str.h"

static inline bool utf8_is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The length of the character at text, or zero if it is invalid or truncated.
 * Table 3-7 of the Unicode standard: the second byte reveals overlong forms,
 * surrogates and numbers beyond U+10FFFF. */
static inline size_t utf8_one(const char *text, const char *end)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = (size_t)(end - text);
    unsigned low = 0x80, high = 0xbf;

    if (n == 0 || p[0] < 0x80)
        return n ? 1 : 0;
    if (p[0] < 0xe0)
        return p[0] >= 0xc2 && n > 1 && utf8_is_tail(p[1]) ? 2 : 0;
    if (p[0] < 0xf0) {
        low = p[0] == 0xe0 ? 0xa0 : low;
        high = p[0] == 0xed ? 0x9f : high;
        return n > 2 && p[1] >= low && p[1] <= high && utf8_is_tail(p[2]) ? 3
                                                                          : 0;
    }
    low = p[0] == 0xf0 ? 0x90 : low;
    high = p[0] == 0xf4 ? 0x8f : high;
    return p[0] <= 0xf4 && n > 3 && p[1] >= low && p[1] <= high &&
                   utf8_is_tail(p[2]) && utf8_is_tail(p[3])
               ? 4
               : 0;
}

/* The code point of the n bytes for which utf8_one returned n. */
static inline uint32_t utf8_decode(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;

    if (n == 2)
        return (p[0] & 0x1fU) << 6 | (p[1] & 0x3fU);
    if (n == 3)
        return (p[0] & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
    if (n == 4)
        return (p[0] & 7U) << 18 | (p[1] & 0x3fU) << 12 | (p[2] & 0x3fU) << 6 |
               (p[3] & 0x3fU);
    return p[0];
}

/* Write the bytes of a character, at most UTF8_MAX. Returns how many. */
enum { UTF8_MAX = 4 };
static inline size_t utf8_encode(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Check bytes that arrive in chunks, cut anywhere. *state is zero at the
 * beginning and whenever a character has just ended. False as soon as a byte is
 * invalid; the state is then useless. */
MUST_USE bool utf8_check(uint32_t *state, struct str s);

/* The same byte by byte; tests compare the two. */
MUST_USE bool utf8_check_plain(uint32_t *state, struct str s);

/* Whether all of s is UTF-8. */
bool utf8_is_valid(struct str s);

#endif
