#ifndef CLI_GATE_H
#define CLI_GATE_H

#include "cli/cli.h"

/* gate_try.c: the envelope in a file, "-" for standard input. */
enum exit_status cli_gate_try(struct cli *c, struct str path);

#endif
