#ifndef CRASH_RECORD_H
#define CRASH_RECORD_H

/* The log that recorder.c writes and images.c reads: what a program did to the
 * files of one folder, and what it told others, in the order it happened.
 *
 * A record is this head, then a name (or two) or bytes, `n_bytes` of them and
 * zeros up to the next multiple of eight. */

#include <stdint.h>

enum record_kind {
    RECORD_OPEN = 1, /* bytes: a name in the folder; file: what it is */
    RECORD_WRITE,    /* bytes at `at` */
    RECORD_TRUNCATE, /* to `at` bytes; longer is filled with zeros */
    RECORD_SYNC,     /* is over; `at` records came while it ran */
    RECORD_UNLINK,   /* bytes: the name */
    RECORD_RENAME,   /* bytes: old name, NUL, new name */
    RECORD_SAID,     /* bytes that are about to leave the process */
};

enum { RECORD_FOLDER = 0 }; /* as a file: the folder itself */

struct record {
    uint32_t kind;
    uint32_t n_bytes;
    uint64_t file; /* its inode number */
    uint64_t at;
};

#endif
