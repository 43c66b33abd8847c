/* Whole units and millionths are written one behind the other, so that nothing
 * is rounded on the way. */
#include "base/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MICROS = 1000000, DIGITS = 6, LEAST = 2, WHOLE_MAX = 13 };

/* The largest one below zero has no twin above it. */
struct price_text amount_write(int64_t micros)
{
    struct price_text out;
    uint64_t v = micros < 0 ? -(uint64_t)micros : (uint64_t)micros;
    char *last;

    snprintf(out.text, sizeof(out.text), "%s%" PRIu64 ".%06" PRIu64,
             micros < 0 ? "-" : "", v / MICROS, v % MICROS);
    last = strchr(out.text, '.') + DIGITS;
    for (int n = DIGITS; n > LEAST && *last == '0'; n--)
        *last-- = '\0';
    return out;
}

/* A byte of zero as well as a sign would end the reading before its time. */
static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

enum err amount_digits(struct str text, int64_t most, int64_t *micros)
{
    struct str rest = text, whole = str_cut(&rest, '.');
    bool has_point = whole.n < text.n;
    char digits[32];
    int64_t v;

    if (!is_digits(whole) || whole.n > WHOLE_MAX || rest.n > DIGITS ||
        (has_point && !is_digits(rest)))
        return ERR_SYNTAX;
    snprintf(digits, sizeof(digits), "%.*s%.*s%.*s", STR_ARG(whole),
             STR_ARG(rest), (int)(DIGITS - rest.n), "000000");
    if (str_to_i64(str_of(digits), &v) || v > most)
        return ERR_SYNTAX;
    *micros = v;
    return OK;
}
