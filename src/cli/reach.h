#ifndef CLI_REACH_H
#define CLI_REACH_H

/* reach: what becomes of a URL that an agent supplies. */

#include "cli/cli.h"

/* `signalbox doctor --reach URL`. Ends with EXIT_REFUSED when the guard says
 * no, EXIT_UNREACHABLE when nobody answers, EXIT_FAILED when what answers does
 * not do it well. */
enum exit_status cli_reach(struct cli *c, struct str url);

#endif
