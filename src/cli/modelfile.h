#ifndef CLI_MODELFILE_H
#define CLI_MODELFILE_H

/* modelfile: the folder of installed models, DATA/models, and how a file gets
 * there whole or not at all.
 *
 * A server may be running: it keeps the file that it has mapped, whatever name
 * that has by then, so a new one only ever takes the place of the old one in
 * one step. Whoever changes something holds the folder meanwhile.
 * Threads: one. */

#include <signal.h>

#include "base/str.h"

enum { MODELFILE_PATH_MAX = 4096 };

struct modelfile {
    char folder[MODELFILE_PATH_MAX]; /* "DATA/models" */
    char path[MODELFILE_PATH_MAX];   /* of the model's file */
    int fd;                          /* of the folder; -1: not held */
    bool is_locked;                  /* false: the file system has no locks */
    bool made_data, made_folder;     /* by us */
    bool has_written;
    bool has_signals; /* that wait */
    sigset_t signals; /* those that did before */
};

/* Where the model's file lies or would lie: nothing is touched. `name` is
 * "minilm.sbm". ERR_LIMIT. */
MUST_USE enum err modelfile_find(struct modelfile *m, struct str data,
                                 const char *name, struct why *why);

/* Whether it could be written there, as far as looking tells. ERR_NOT_ALLOWED,
 * ERR_NOT_FOUND, ERR_IO. */
MUST_USE enum err modelfile_look(const struct modelfile *m, struct why *why);

/* Hold the folder, and signals that would end us; it is made where `may_make`,
 * and what others left half written is taken away. On a file system without
 * locks it is held by nobody, and nothing is taken away. ERR_NOT_FOUND: it is
 * not there, ERR_BUSY: another has it, ERR_NOT_ALLOWED, ERR_NO_SPACE, ERR_IO.
 */
MUST_USE enum err modelfile_hold(struct modelfile *m, bool may_make,
                                 struct why *why);

/* What to find out of a file before it gets its name. */
typedef enum err modelfile_check(void *ctx, const char *path, struct why *why);

/* Put these bytes there, for everybody to read. On an error what was there
 * before is as it was, and there is nothing beside it; but if the folder cannot
 * be synced (ERR_IO, the words say so), the new file is there already, and only
 * a power cut may bring the old one back. */
MUST_USE enum err modelfile_write(struct modelfile *m, struct str bytes,
                                  modelfile_check *check, void *ctx,
                                  struct why *why);

/* And whatever is half written of it. ERR_NOT_FOUND: there is none. */
MUST_USE enum err modelfile_remove(struct modelfile *m, struct why *why);

/* Let go of it. Folders that were made for nothing are taken away, unless
 * another may be about to use them. */
void modelfile_release(struct modelfile *m);

#endif
