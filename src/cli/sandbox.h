#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

/* sandbox: what the programs that agents are could do to the server here. */

#include "cli/finding.h"
#include "config/config.h"

/* Tries it with the configuration's first program that has a sandbox: a process
 * is started and ends. */
void sandbox_look(const struct config *c, struct finding *f);

#endif
