/* Whole units and millionths are written one behind the other, so that nothing
 * is rounded on the way. */
#include "base/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MICROS = 1000000, DIGITS = 6, LEAST = 2 };

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
