/* Most text is ASCII, and then nothing but its highest bits is looked at, many
 * bytes at a time. Where it is not, more such characters are likely to follow,
 * so they are taken one after another until there is ASCII again.
 *
 * Between pieces the state says what the next byte has to be: how many are
 * still to come, and from which to which the next may be. */
#include "base/utf8.h"

enum { STEP_BYTES = 32 };

static uint32_t expect(unsigned n_left, unsigned low, unsigned high)
{
    return n_left << 16 | low << 8 | high;
}

/* After the first byte of a character; zero when none begins with it. */
static uint32_t after_first(unsigned char c)
{
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0)
        return expect(1, 0x80, 0xbf);
    if (c < 0xf0)
        return expect(2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf);
    return expect(3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf);
}

static bool next_byte(uint32_t *state, unsigned char c)
{
    unsigned n_left = *state >> 16, low = *state >> 8 & 0xff,
             high = *state & 0xff;

    if (n_left == 0) {
        *state = c < 0x80 ? 0 : after_first(c);
        return c < 0x80 || *state;
    }
    *state = n_left > 1 ? expect(n_left - 1, 0x80, 0xbf) : 0;
    return c >= low && c <= high;
}

bool utf8_check_plain(uint32_t *state, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!next_byte(state, (unsigned char)s.p[i]))
            return false;
    return true;
}

static uint64_t word(const char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    return w;
}

/* Past the ASCII at p, or to the end. */
static const char *ascii_end(const char *p, const char *end)
{
    const uint64_t high_bits = 0x8080808080808080;

    while (end - p >= STEP_BYTES &&
           !((word(p) | word(p + 8) | word(p + 16) | word(p + 24)) & high_bits))
        p += STEP_BYTES;
    while (end - p >= 8 && !(word(p) & high_bits))
        p += 8;
    while (p < end && (signed char)*p >= 0)
        p++;
    return p;
}

bool utf8_check(uint32_t *state, struct str s)
{
    const char *p = s.p ? s.p : "", *end = p + s.n;
    size_t n = 1;

    for (; *state && p < end; p++)
        if (!next_byte(state, (unsigned char)*p))
            return false;
    while (n && p < end) {
        p = ascii_end(p, end);
        while (p < end && (signed char)*p < 0 && (n = utf8_one(p, end)))
            p += n;
    }
    /* What is left is cut off by the end, or wrong. */
    return utf8_check_plain(state, (struct str){p, (size_t)(end - p)});
}

bool utf8_is_valid(struct str s)
{
    uint32_t state = 0;

    return utf8_check(&state, s) && state == 0;
}
