#ifndef CLI_SLURP_H
#define CLI_SLURP_H

/* slurp: read a whole file or standard input. */

#include "base/buf.h"
#include "cli/args.h"

enum { SLURP_BYTES = 64 * 1024 };

/* Read up to `most` bytes; the limit of `out` must be `most` and SLURP_BYTES.
 * ERR_LIMIT: there are more. ERR_IO: errno says why. */
MUST_USE enum err slurp(int fd, struct buf *out, size_t most);

/* The same for the operands, joined with blanks, or standard input if the only
 * one is "-". */
MUST_USE enum err slurp_words(const struct args *a, struct buf *out,
                              size_t most);

#endif
