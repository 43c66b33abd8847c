#ifndef CLI_GUNZIP_H
#define CLI_GUNZIP_H

/* gunzip: a gzip file as it comes, with a limit on what comes out of it.
 *
 * One member and nothing behind it; its check sum and length are looked at.
 * What comes out goes on in pieces, so that a file of any size needs no more
 * than one of them. Threads: one at a time. */

#define ZLIB_CONST /* what it reads is constant */
#include <zlib.h>

#include "base/str.h"

/* An error ends it, and is what gunzip_feed returns. */
typedef enum err gunzip_fn(void *ctx, struct str bytes, struct why *why);

struct gunzip {
    z_stream z;
    gz_header head; /* z points at it */
    gunzip_fn *give;
    void *ctx;
    uint64_t max_bytes, bytes; /* that may come out, and came */
    bool is_whole;
};

/* ERR_NOMEM. Then there is nothing to be freed. g must stay where it is. */
MUST_USE enum err gunzip_init(struct gunzip *g, uint64_t max_bytes,
                              gunzip_fn *give, void *ctx);
void gunzip_fini(struct gunzip *g);

/* ERR_BAD_REQUEST: this is no gzip, or a broken one. ERR_LIMIT: more comes out
 * than may. After an error no more is to be fed. */
MUST_USE enum err gunzip_feed(struct gunzip *g, struct str bytes,
                              struct why *why);

/* That was all. ERR_BAD_REQUEST: it should not have been. */
MUST_USE enum err gunzip_end(const struct gunzip *g, struct why *why);

#endif
