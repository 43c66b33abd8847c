#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

/* amount: money as people read it. On the wire and in the records it is whole
 * numbers of micro-units, millionths; in words it is units. */

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct price_text {
    char text[32];
};

/* "1.50", "-0.0015", "0.00": at least two digits behind the point, and as many
 * as it takes; any number of 64 bits. */
struct price_text amount_write(int64_t micros);

/* "0.05", "12", up to six digits behind the point. ERR_SYNTAX for anything else
 * and for more than `most`; *micros is then untouched. By digits and not by way
 * of a real: 0.1 is 100000 and not one less. */
MUST_USE enum err amount_digits(struct str text, int64_t most, int64_t *micros);

#endif
