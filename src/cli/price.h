#ifndef CLI_PRICE_H
#define CLI_PRICE_H

/* price: amounts as people write and read them: "0.0015", for 1500
 * millionths. */

#include "base/str.h"

/* "0.05", "12", up to six digits behind the point. ERR_SYNTAX for anything else
 * and for more than AGENT_PRICE_MAX; *micros is then untouched. */
MUST_USE enum err price_read(struct str text, int64_t *micros);

struct price_text {
    char text[32];
};

/* As few digits as it takes; "free" for zero. */
struct price_text price_write(int64_t micros);

#endif
