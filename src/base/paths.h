#ifndef BASE_PATHS_H
#define BASE_PATHS_H

/* paths: where a path really leads, and whether one lies in another. Looks at
 * the disk. Threads: any. */

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* The path from the root, without links. What is not there yet is taken as it
 * is written, behind the last folder that is there. False: it is too long, or
 * cannot be followed. */
MUST_USE bool path_real(struct str path, char out[PATH_MAX]);

/* Whether path is folder, or lies in it. Both as path_real gives them. */
bool path_is_within(const char *path, const char *folder);

/* Whether a program may have path while data, as path_real gives it, stays
 * closed to it: neither may hold the other. ERR_NOT_ALLOWED, and why begins
 * with what ("the workspace"). An empty path is none. */
MUST_USE enum err path_beside_data(struct str path, const char *data,
                                   const char *what, struct why *why);

#endif
