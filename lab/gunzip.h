#ifndef LAB_GUNZIP_H
#define LAB_GUNZIP_H

/* gunzip: decompresses a gzip file from a stream, with a limit on the output.
 *
 * The file must be one member with nothing after it; its checksum and length
 * are verified. Output is passed on in pieces, so memory does not depend on the
 * size of the file. Threads: one at a time. */

#define ZLIB_CONST /* the input is const */
#include <zlib.h>

#include "base/str.h"

/* Takes a piece of output. An error ends decompression, and gunzip_feed returns
 * it. */
typedef enum err gunzip_fn(void *ctx, struct str bytes, struct why *why);

struct gunzip {
    z_stream z;
    gz_header head; /* z points to it, so the struct must not move */
    gunzip_fn *give;
    void *ctx;
    uint64_t max_bytes, bytes; /* of output: the limit, and so far */
    bool is_whole;
};

/* g must not be moved. ERR_NOMEM: there is nothing to free. */
MUST_USE enum err gunzip_init(struct gunzip *g, uint64_t max_bytes,
                              gunzip_fn *give, void *ctx);
void gunzip_fini(struct gunzip *g);

/* Decompress more bytes. ERR_BAD_REQUEST: not gzip, or damaged. ERR_LIMIT: too
 * much output. After an error it must not be called again. */
MUST_USE enum err gunzip_feed(struct gunzip *g, struct str bytes,
                              struct why *why);

/* The input has ended. ERR_BAD_REQUEST: too early. */
MUST_USE enum err gunzip_end(const struct gunzip *g, struct why *why);

#endif
