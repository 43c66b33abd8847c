#ifndef CLI_PRICE_H
#define CLI_PRICE_H

/* price: amounts as people write and read them: "0.0015" is 1500 micro-units.
 */

#include "base/amount.h"
#include "base/err.h"
#include "base/str.h"

/* "0.05", "12", up to six decimal places. ERR_SYNTAX for anything else and for
 * more than AGENT_PRICE_MAX; *micros does not change then. */
MUST_USE enum err price_read(struct str text, int64_t *micros);

/* The shortest form; "free" for zero. */
struct price_text price_write(int64_t micros);

/* An amount to transfer: like a price, but more than zero and up to
 * AMOUNT_MAX_UNITS. ERR_SYNTAX with an explanation; *micros does not change
 * then. */
#define AMOUNT_MAX_UNITS INT64_C(1000000000000)
MUST_USE enum err price_read_amount(struct str text, int64_t *micros,
                                    struct why *why);

#endif
