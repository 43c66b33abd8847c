#ifndef BASE_RFC3339_H
#define BASE_RFC3339_H

/* rfc3339: a time as text, "2025-02-15T09:00:00Z". The reader accepts any
 * offset and any fraction, and also a time without an offset, which counts as
 * UTC, because Python's isoformat() writes that. A leap second counts as the
 * following second. Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { RFC3339_BYTES = 32 };

/* Unix milliseconds, years 1 to 9999. False if it is not a time; *out is then
 * untouched. */
MUST_USE bool rfc3339_read(struct str s, int64_t *out);

/* In UTC, with milliseconds only if they are not zero. A time outside the years
 * 1 to 9999 becomes the nearest one inside. */
struct str rfc3339_write(int64_t ms, char out[RFC3339_BYTES]);

#endif
