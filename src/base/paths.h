#ifndef BASE_PATHS_H
#define BASE_PATHS_H

/* paths: the real location of a path, and whether one path contains another.
 * Reads the disk. Threads: any. */

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* The absolute path without symbolic links. A part that does not exist yet is
 * appended unchanged to the last existing folder. False if it is too long or
 * cannot be resolved. */
MUST_USE bool path_real(struct str path, char out[PATH_MAX]);

/* Whether path is folder or lies in it. Both are results of path_real. */
bool path_is_within(const char *path, const char *folder);

/* Whether a program may be given `path` without access to `data` (a result of
 * path_real): neither may contain the other. ERR_NOT_ALLOWED with a message
 * that begins with `what` ("the workspace"). An empty path is allowed. */
MUST_USE enum err path_beside_data(struct str path, const char *data,
                                   const char *what, struct why *why);

#endif
