/* Units and millionths are written separately, so nothing is rounded. */
#include "base/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MICROS = 1000000, DIGITS = 6, LEAST = 2, WHOLE_MAX = 13 };

/* The most negative number has no positive counterpart. */
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

enum err amount_digits(struct str text, int64_t most, int64_t *micros)
{
    struct str rest = text, whole = str_cut(&rest, '.');
    bool has_point = whole.n < text.n;
    char digits[32];
    int64_t v;

    if (!str_is_digits(whole) || whole.n > WHOLE_MAX || rest.n > DIGITS ||
        (has_point && !str_is_digits(rest)))
        return ERR_SYNTAX;
    snprintf(digits, sizeof(digits), "%.*s%.*s%.*s", STR_ARG(whole),
             STR_ARG(rest), (int)(DIGITS - rest.n), "000000");
    if (str_to_i64(str_of(digits), &v) || v > most)
        return ERR_SYNTAX;
    *micros = v;
    return OK;
}
