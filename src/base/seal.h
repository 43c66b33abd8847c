#ifndef BASE_SEAL_H
#define BASE_SEAL_H

/* seal: bytes that nobody reads or changes without a key: AES-256-GCM, by
 * OpenSSL. What is sealed says which key it takes, so that a wrong key is told
 * from damage. Threads: any. */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    SEAL_KEY_BYTES = 32,
    SEAL_ID_CHARS = 8,
    SEAL_PLAIN_MAX = 1024 * 1024,
};

struct seal_key {
    unsigned char bytes[SEAL_KEY_BYTES];
    char id[SEAL_ID_CHARS + 1]; /* of its hash: says which it is, and no more */
};

/* A key from 64 hexadecimal digits; white space around them does not count.
 * ERR_SYNTAX: these are none; ERR_INTERNAL. */
MUST_USE enum err seal_key_read(struct str text, struct seal_key *out);

/* Behind what is in `out`: plain, sealed, as text without white space.
 * `about` must be the same when it is opened: whose it is. ERR_LIMIT,
 * ERR_INTERNAL (OpenSSL), ERR_NOMEM. */
MUST_USE enum err seal_close(const struct seal_key *k, struct str about,
                             struct str plain, struct buf *out);

/* The other way. ERR_NOT_ALLOWED: it takes another key, whose id is in *id;
 * ERR_SYNTAX: it was changed, is another's, or is nothing that was sealed;
 * ERR_INTERNAL, ERR_NOMEM. */
MUST_USE enum err seal_open(const struct seal_key *k, struct str about,
                            struct str sealed, struct buf *out,
                            char id[SEAL_ID_CHARS + 1]);

#endif
