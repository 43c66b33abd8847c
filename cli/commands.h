#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* Shared by the files of `signalbox commands`. */

#include "cli/cli.h"

/* The options that select commands, as in cli_add_filters. */
#define COMMANDS_FILTERS "tag org"

/* Write them into the menu of a platform, "telegram" or "discord". */
enum exit_status commands_push(struct cli *c, struct str operand);

#endif
