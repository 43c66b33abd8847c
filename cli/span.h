#ifndef CLI_SPAN_H
#define CLI_SPAN_H

/* span: durations as people write and read them: "30d", "90m". */

#include "base/str.h"

/* "45s", "90m", "12h", "30d", "2w": a whole number, one to four digits, and
 * its unit. ERR_SYNTAX for anything else, zero included; *out_ms does not
 * change then. */
MUST_USE enum err span_read(struct str text, int64_t *out_ms);

struct span_text {
    char text[24];
};

/* Rounded down to the largest unit up to days: "0s", "59s", "3m", "1h" for 119
 * minutes, "400d". A negative duration (clocks differ) is "0s". */
struct span_text span_write(int64_t ms);

/* Rounded up: a token created for 7d still has 7d left a moment later. */
struct span_text span_left(int64_t ms);

#endif
