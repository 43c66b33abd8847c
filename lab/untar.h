#ifndef LAB_UNTAR_H
#define LAB_UNTAR_H

/* untar: reads a tar file from a stream, strictly: ustar with pax headers, as
 * npm writes it, and the output of GNU tar and others for the same files.
 *
 * Nothing is ever written to disk: a file is a name and bytes for the handler.
 * So any name is allowed; folders and links are skipped. Ambiguous input is
 * rejected: invalid numbers, wrong checksums, sparse files, links with a
 * length, bytes after the end. Allocates nothing. Threads: one at a time. */

#include "base/str.h"

enum {
    UNTAR_BLOCK = 512,
    UNTAR_NAME_MAX = 256,      /* a longer name is never wanted */
    UNTAR_MEMBERS_MAX = 10000, /* headers of every kind */
    UNTAR_PAX_MAX = 16 * 1024, /* bytes of one pax header */
};

struct untar_handler {
    /* A file begins. *is_wanted: pass its bytes to on_bytes. An error ends
     * reading, and untar_feed returns it. is_file: false for links, folders and
     * the like, which have no bytes. */
    enum err (*on_member)(void *ctx, struct str name, bool is_file,
                          uint64_t bytes, bool *is_wanted, struct why *why);
    enum err (*on_bytes)(void *ctx, struct str bytes, struct why *why);

    /* A wanted file is complete. */
    enum err (*on_whole)(void *ctx, struct why *why);
};

enum untar_state {
    UNTAR_HEAD, /* a header or the end comes next */
    UNTAR_BODY, /* bytes of a file */
    UNTAR_PAX,  /* bytes of a header that describes the next file */
    UNTAR_SKIP, /* padding of the last block */
    UNTAR_OVER, /* after the end: only zeros */
};

struct untar {
    const struct untar_handler *on;
    void *ctx;
    enum untar_state state;
    bool is_wanted;
    bool is_global;   /* the pax header applies to all files */
    bool is_unnamed;  /* the name of the next file was not kept */
    bool has_size;    /* a pax header gave the size of the next file */
    uint64_t size;    /* that size */
    uint64_t left;    /* bytes left in the body */
    uint32_t padding; /* bytes after it */
    unsigned n_members, n_zero_blocks;
    size_t n_gathered; /* in block or pax */
    size_t n_name;     /* of the next file, from a pax header; zero: none */
    char name[UNTAR_NAME_MAX + 1];
    char block[UNTAR_BLOCK];
    char pax[UNTAR_PAX_MAX];
};

void untar_init(struct untar *u, const struct untar_handler *on, void *ctx);

/* Read more bytes. ERR_BAD_REQUEST: not a tar file, or not one that is
 * accepted. ERR_LIMIT. After an error it must not be called again. */
MUST_USE enum err untar_feed(struct untar *u, struct str bytes,
                             struct why *why);

/* The input has ended. ERR_BAD_REQUEST: too early. */
MUST_USE enum err untar_end(const struct untar *u, struct why *why);

#endif
