#ifndef CLI_PRICE_H
#define CLI_PRICE_H

/* price: amounts as people write and read them: "0.0015", for 1500
 * millionths. */

#include "base/amount.h"
#include "base/err.h"
#include "base/str.h"

/* "0.05", "12", up to six digits behind the point. ERR_SYNTAX for anything else
 * and for more than AGENT_PRICE_MAX; *micros is then untouched. */
MUST_USE enum err price_read(struct str text, int64_t *micros);

/* As few digits as it takes; "free" for zero. */
struct price_text price_write(int64_t micros);

/* Money that is moved: as a price, but more than nothing and up to
 * AMOUNT_MAX_UNITS. ERR_SYNTAX with words that say what is wrong with it;
 * *micros is then untouched. */
#define AMOUNT_MAX_UNITS INT64_C(1000000000000)
MUST_USE enum err amount_read(struct str text, int64_t *micros,
                              struct why *why);

#endif
