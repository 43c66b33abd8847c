#ifndef BASE_RFC3339_H
#define BASE_RFC3339_H

/* rfc3339: a moment as text, "2025-02-15T09:00:00Z". Reading takes any offset
 * and any fraction, and, since it is what Python's isoformat() gives, a time
 * without an offset, which counts as UTC. Leap seconds count as the second
 * after. Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { RFC3339_BYTES = 32 };

/* Unix milliseconds, years 1 to 9999. False: it is none; *out is untouched. */
MUST_USE bool rfc3339_read(struct str s, int64_t *out);

/* To the second, in UTC; milliseconds only where there are some. Beyond the
 * years 1 to 9999 the nearest moment within. */
struct str rfc3339_write(int64_t ms, char out[RFC3339_BYTES]);

#endif
