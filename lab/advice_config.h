#ifndef LAB_ADVICE_CONFIG_H
#define LAB_ADVICE_CONFIG_H

/* advice_config: warnings about the cards of a configuration, for check, doctor
 * and lint. Pure. Threads: any. */

#include "model/advice.h"
#include "server/config/config.h"

/* The warnings of the i-th agent. Similarity is by description only; lint
 * compares by meaning, which needs the model. */
void advice_config(const struct config *c, size_t i, struct advice *out);

#endif
