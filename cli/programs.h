#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

/* programs: check whether the programs of agents can be started here.
 * Threads: any. */

#include "server/config/config.h"

/* Report each obstacle with its setting. All are warnings: a missing program
 * may be installed by the time it is needed. */
typedef void programs_say(void *ctx, const char *setting, bool is_warning,
                          const char *what);
void programs_check(const struct config *c, programs_say *say, void *ctx);

#endif
