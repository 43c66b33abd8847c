#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

/* digest: SHA-256. Threads: any. */

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { DIGEST_BYTES = 32 };

void digest(struct str bytes, uint8_t out[DIGEST_BYTES]);

#endif
