#ifndef CLI_REACH_H
#define CLI_REACH_H

/* reach: check a URL that an agent supplies. */

#include "cli/cli.h"

/* `signalbox doctor --reach URL`. EXIT_REFUSED: the guard forbids the
 * connection. EXIT_UNREACHABLE: no response. EXIT_FAILED: the response is of no
 * use. */
enum exit_status cli_reach(struct cli *c, struct str url);

#endif
