/* Most text is ASCII, so many bytes at a time are tested for their high bit
 * only. After a character that is not ASCII more are likely to follow, so they
 * are decoded one by one until ASCII resumes.
 *
 * Between chunks the state describes the next byte: how many are still to come,
 * and the range of the next one. */
#include "base/utf8.h"

enum { STEP_BYTES = 32 };

static uint32_t utf8_expect(unsigned n_left, unsigned low, unsigned high)
{
    return n_left << 16 | low << 8 | high;
}

/* The state after the first byte of a character; zero if no character begins
 * with it. */
static uint32_t after_first(unsigned char c)
{
    if (c < 0xc2 || c > 0xf4)
        return 0;
    if (c < 0xe0)
        return utf8_expect(1, 0x80, 0xbf);
    if (c < 0xf0)
        return utf8_expect(2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf);
    return utf8_expect(3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf);
}

static bool utf8_next_byte(uint32_t *state, unsigned char c)
{
    unsigned n_left = *state >> 16, low = *state >> 8 & 0xff,
             high = *state & 0xff;

    if (n_left == 0) {
        *state = c < 0x80 ? 0 : after_first(c);
        return c < 0x80 || *state;
    }
    *state = n_left > 1 ? utf8_expect(n_left - 1, 0x80, 0xbf) : 0;
    return c >= low && c <= high;
}

bool utf8_check_plain(uint32_t *state, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!utf8_next_byte(state, (unsigned char)s.p[i]))
            return false;
    return true;
}

static uint64_t utf8_load_word(const char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    return w;
}

/* The end of the ASCII at p. */
static const char *ascii_end(const char *p, const char *end)
{
    const uint64_t high_bits = 0x8080808080808080;

    while (end - p >= STEP_BYTES &&
           !((utf8_load_word(p) | utf8_load_word(p + 8) |
              utf8_load_word(p + 16) | utf8_load_word(p + 24)) &
             high_bits))
        p += STEP_BYTES;
    while (end - p >= 8 && !(utf8_load_word(p) & high_bits))
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
        if (!utf8_next_byte(state, (unsigned char)*p))
            return false;
    while (n && p < end) {
        p = ascii_end(p, end);
        while (p < end && (signed char)*p < 0 && (n = utf8_one(p, end)))
            p += n;
    }
    /* The rest is truncated or invalid. */
    return utf8_check_plain(state, (struct str){p, (size_t)(end - p)});
}

bool utf8_is_valid(struct str s)
{
    uint32_t state = 0;

    return utf8_check(&state, s) && state == 0;
}
