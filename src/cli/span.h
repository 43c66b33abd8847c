#ifndef CLI_SPAN_H
#define CLI_SPAN_H

/* span: stretches of time as people write and read them: "30d", "90m". */

#include "base/str.h"

/* "45s", "90m", "12h", "30d", "2w": a whole number, one to four digits, and
 * its unit. ERR_SYNTAX for anything else, zero included; *out_ms is then
 * untouched. */
MUST_USE enum err span_read(struct str text, int64_t *out_ms);

struct span_text {
    char text[24];
};

/* The largest unit up to days of which there is a whole one: "0s", "59s",
 * "3m", "1h" for 119 minutes, "400d". What is negative (clocks differ) is
 * "0s". */
struct span_text span_write(int64_t ms);

/* The same rounded up: what was given for 7d has 7d left a moment later. */
struct span_text span_left(int64_t ms);

#endif
