#ifndef CLI_ADVICE_CONFIG_H
#define CLI_ADVICE_CONFIG_H

/* advice_config: what is likely to go wrong with the cards of a configuration,
 * as check, doctor and lint tell it. Pure. Threads: any. */

#include "config/config.h"
#include "model/advice.h"

/* The warnings of the i-th agent. Closeness is by description alone: lint
 * compares by meaning, which needs the model. */
void advice_config(const struct config *c, size_t i, struct advice *out);

#endif
