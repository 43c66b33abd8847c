#ifndef CLI_UNTAR_H
#define CLI_UNTAR_H

/* untar: a tar file as it comes, read strictly: ustar with pax headers, as npm
 * makes it, and what GNU tar and others make of the same files.
 *
 * Nothing is ever written: a file is a name and bytes that its owner asked for.
 * So a name may be anything; folders and links are passed over. What could be
 * read in two ways is refused: numbers that are none, check sums that do not
 * fit, sparse files, lengths of links, bytes behind the end. Allocates nothing.
 * Threads: one at a time. */

#include "base/str.h"

enum {
    UNTAR_BLOCK = 512,
    UNTAR_NAME_MAX = 256,      /* a longer one is nobody's */
    UNTAR_MEMBERS_MAX = 10000, /* headers of every kind */
    UNTAR_PAX_MAX = 16 * 1024, /* bytes of one pax header */
};

struct untar_handler {
    /* A file begins. *is_wanted: its bytes go to on_bytes. An error ends it
     * all, and is what untar_feed returns. is_file: false for links, folders
     * and the like, whose bytes are none. */
    enum err (*on_member)(void *ctx, struct str name, bool is_file,
                          uint64_t bytes, bool *is_wanted, struct why *why);
    enum err (*on_bytes)(void *ctx, struct str bytes, struct why *why);

    /* A file that was wanted is whole. */
    enum err (*on_whole)(void *ctx, struct why *why);
};

enum untar_state {
    UNTAR_HEAD, /* a header comes next, or the end */
    UNTAR_BODY, /* bytes of a file */
    UNTAR_PAX,  /* bytes of a header that tells of the next file */
    UNTAR_SKIP, /* what fills the last block */
    UNTAR_OVER, /* the end was there: zeros only */
};

struct untar {
    const struct untar_handler *on;
    void *ctx;
    enum untar_state state;
    bool is_wanted;
    bool is_global;   /* the pax header: of all files */
    bool is_unnamed;  /* the next file has a name that was not taken */
    bool has_size;    /* a pax header says how long the next file is */
    uint64_t size;    /* that */
    uint64_t left;    /* of the body */
    uint32_t padding; /* behind it */
    unsigned n_members, n_zero_blocks;
    size_t n_gathered; /* in block or pax */
    size_t n_name;     /* of the next file, by a pax header; zero: its own */
    char name[UNTAR_NAME_MAX + 1];
    char block[UNTAR_BLOCK];
    char pax[UNTAR_PAX_MAX];
};

void untar_init(struct untar *u, const struct untar_handler *on, void *ctx);

/* ERR_BAD_REQUEST: this is no tar, or none of ours. ERR_LIMIT. After an error
 * no more is to be fed. */
MUST_USE enum err untar_feed(struct untar *u, struct str bytes,
                             struct why *why);

/* That was all. ERR_BAD_REQUEST: it should not have been. */
MUST_USE enum err untar_end(const struct untar *u, struct why *why);

#endif
