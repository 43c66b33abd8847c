#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

/* amount: money as text. The wire and the records hold whole micro-units
 * (millionths); texts for people show units. */

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct price_text {
    char text[32];
};

/* "1.50", "-0.0015", "0.00": at least two digits after the point, and more as
 * needed. Takes any 64-bit number. */
struct price_text amount_write(int64_t micros);

/* Read "0.05" or "12", with up to six digits after the point. ERR_SYNTAX for
 * anything else and for more than `most`; *micros is then untouched. It reads
 * digits, not a double: 0.1 is exactly 100000. */
MUST_USE enum err amount_digits(struct str text, int64_t most, int64_t *micros);

#endif
