#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

/* agents: what the files of `signalbox agents` share. Threads: the main one. */

#include "cli/client.h"

/* One agent's path: "/api/agents/NAME". */
void agents_path(struct buf *path, struct str name);

/* A card, for people. */
void agents_show_card(struct cli *c, const struct json *card);

/* [{"code","field","message"}] of a server, a line each; NULL: none. */
void agents_show_warnings(struct cli *c, const struct json *warnings);

enum exit_status agents_register(struct cli *c, struct str operand);
enum exit_status agents_patch(struct cli *c, struct str name);

#endif
