#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

/* amount: money as people read it. On the wire and in the records it is whole
 * numbers of micro-units, millionths; in words it is units. */

#include <stdint.h>

struct price_text {
    char text[32];
};

/* "1.50", "-0.0015", "0.00": at least two digits behind the point, and as many
 * as it takes; any number of 64 bits. */
struct price_text amount_write(int64_t micros);

#endif
