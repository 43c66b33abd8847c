#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

/* agents: shared by the files of `signalbox agents`. Threads: the main one. */

#include "cli/client.h"
#include "model/agent.h"

/* The server's [{"code","field","message"}], one line each; NULL: none. */
void agents_show_warnings(struct cli *c, const struct json *warnings);

sub_run agents_register, agents_patch;

#endif
