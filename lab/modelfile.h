#ifndef LAB_MODELFILE_H
#define LAB_MODELFILE_H

/* modelfile: the folder of installed models, DATA/models, and writing a file
 * there completely or not at all.
 *
 * A server may be running. It keeps the file that it has mapped, so a new file
 * replaces the old one in one step. Every change locks the folder. Threads:
 * one.
 */

#include <signal.h>

#include "base/str.h"

enum { MODELFILE_PATH_MAX = 4096 };

struct modelfile {
    char folder[MODELFILE_PATH_MAX]; /* "DATA/models" */
    char path[MODELFILE_PATH_MAX];   /* of the model's file */
    int fd;                          /* of the folder; -1: not locked */
    bool is_locked;                  /* false: the file system has no locks */
    bool made_data, made_folder;     /* created here */
    bool has_written;
    bool has_signals; /* blocked */
    sigset_t signals; /* the mask before */
};

/* Set the paths of the model's file, which need not exist. `name` is
 * "minilm.sbm". ERR_LIMIT: the path is too long. */
MUST_USE enum err modelfile_find(struct modelfile *m, struct str data,
                                 const char *name, struct why *why);

/* Check that the file could be written, without writing. ERR_NOT_ALLOWED,
 * ERR_NOT_FOUND, ERR_IO. */
MUST_USE enum err modelfile_look(const struct modelfile *m, struct why *why);

/* Lock the folder, and block signals that would end the process. With may_make
 * the folder is created. Incomplete files of killed processes are removed. On a
 * file system without locks it is not locked, and nothing is removed.
 * ERR_NOT_FOUND: there is no folder; ERR_BUSY: another process has it;
 * ERR_NOT_ALLOWED, ERR_NO_SPACE, ERR_IO. */
MUST_USE enum err modelfile_hold(struct modelfile *m, bool may_make,
                                 struct why *why);

/* Checks a file before it gets its name. */
typedef enum err modelfile_check(void *ctx, const char *path, struct why *why);

/* Write the file, readable by all users. On error the old file is unchanged,
 * and no other file is left. Exception: if the folder cannot be synced (ERR_IO,
 * and why says so), the new file is in place, but a power cut may bring back
 * the old one. */
MUST_USE enum err modelfile_write(struct modelfile *m, struct str bytes,
                                  modelfile_check *check, void *ctx,
                                  struct why *why);

/* Remove the file and its incomplete copies. ERR_NOT_FOUND: there is none. */
MUST_USE enum err modelfile_remove(struct modelfile *m, struct why *why);

/* Unlock the folder. Folders that were created for nothing are removed, unless
 * another process may be about to use them. */
void modelfile_release(struct modelfile *m);

#endif
