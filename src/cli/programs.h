#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

/* programs: whether the programs that agents are could be started here.
 * Threads: any. */

#include "config/config.h"

/* What would keep them from starting, each with the setting to blame. Only
 * warnings: what is missing may be there by the time it is needed. */
typedef void programs_say(void *ctx, const char *setting, bool is_warning,
                          const char *what);
void programs_check(const struct config *c, programs_say *say, void *ctx);

#endif
