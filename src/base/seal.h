#ifndef BASE_SEAL_H
#define BASE_SEAL_H

/* seal: encrypted and authenticated bytes: AES-256-GCM, by OpenSSL. A sealed
 * text names its key, so that a wrong key is not mistaken for damage. Threads:
 * any. */

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
    char id[SEAL_ID_CHARS +
            1]; /* from a hash; identifies the key without revealing it */
};

/* A key from 64 hexadecimal digits, with optional white space around them.
 * ERR_SYNTAX if the text is not that. */
MUST_USE enum err seal_key_read(struct str text, struct seal_key *out);

/* Append the sealed form of `plain` to out, as text without white space.
 * `about` names the owner and must be the same when it is opened. ERR_LIMIT,
 * ERR_INTERNAL (OpenSSL), ERR_NOMEM. */
MUST_USE enum err seal_close(const struct seal_key *k, struct str about,
                             struct str plain, struct buf *out);

/* The reverse. ERR_NOT_ALLOWED: it needs another key, whose id is in *id.
 * ERR_SYNTAX: it was altered, has another owner, or is not a sealed text.
 * ERR_INTERNAL, ERR_NOMEM. */
MUST_USE enum err seal_open(const struct seal_key *k, struct str about,
                            struct str sealed, struct buf *out,
                            char id[SEAL_ID_CHARS + 1]);

#endif
