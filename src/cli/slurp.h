#ifndef CLI_SLURP_H
#define CLI_SLURP_H

/* slurp: a file or standard input as a whole. */

#include "base/buf.h"

enum { SLURP_BYTES = 64 * 1024 };

/* Up to `most` bytes; `out` must have room for them and SLURP_BYTES more.
 * ERR_LIMIT: there are more. ERR_IO: errno says why. */
MUST_USE enum err slurp(int fd, struct buf *out, size_t most);

#endif
