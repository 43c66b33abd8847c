#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

/* sandbox: check how well programs of agents are isolated from the server. */

#include "cli/finding.h"
#include "server/config/config.h"

/* Starts a short process with the sandbox of the first program that has one. */
void sandbox_look(const struct config *c, struct finding *f);

#endif
