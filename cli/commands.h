#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

/* Shared by the files of `signalbox commands`. */

#include "cli/cli.h"

enum { COMMANDS_PATH_BYTES = 32 * 1024 };

/* The path of the list, with the filters from the options; format may be NULL.
 */
void commands_path(struct cli *c, struct buf *path, const char *format);

/* Write them into the menu of a platform, "telegram" or "discord". */
enum exit_status commands_push(struct cli *c, struct str operand);

#endif
