#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* What the files of `signalbox commands` share. */

#include "cli/cli.h"

enum { COMMANDS_PATH_BYTES = 32 * 1024 };

/* Where the commands are told, with the filters that were given; format may be
 * NULL. */
void commands_path(struct cli *c, struct buf *path, const char *format);

/* Make them the menu of a platform, "telegram" or "discord". */
enum exit_status commands_push(struct cli *c, struct str operand);

#endif
