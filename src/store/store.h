#ifndef STORE_STORE_H
#define STORE_STORE_H

/* store: what must outlive the process.
 *
 * So far its ground: the data folder, made if it is missing and locked by one
 * server at a time. The lock is the kernel's, so it goes with the process
 * however that ends, and a file left behind locks nobody out.
 * Threads: the loop's. */

#include "base/str.h"

struct store_folder {
    char *path;
    int lock_fd;
    bool is_shared; /* others on this machine may write to it */
};

/* Make the folder if only its last part is missing (mode 0700), and lock it.
 * On error nothing is held and why says what to do:
 * ERR_NOT_FOUND   the folder above it is missing
 * ERR_NOT_ALLOWED no permission, or a read-only file system
 * ERR_BAD_CONFIG  there is something by that name, but no folder
 * ERR_BUSY        another server has it; why names its process
 * ERR_NO_SPACE, ERR_IO, ERR_NOMEM */
MUST_USE enum err store_folder_open(struct store_folder *f, struct str path,
                                    struct why *why);
void store_folder_close(struct store_folder *f);

/* What store_folder_open would say, without making or changing anything. */
MUST_USE enum err store_folder_look(struct str path, struct why *why);

/* Whether a server has ever used the folder as its own. */
bool store_folder_is_ours(struct str path);

#endif
