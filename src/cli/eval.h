#ifndef CLI_EVAL_H
#define CLI_EVAL_H

/* eval: what `signalbox eval` and `signalbox calibrate` read alike. */

#include "cli/cli.h"
#include "cli/eval_run.h"

/* The configuration, to be freed; NULL: an error has been said. */
MUST_USE struct config *eval_config(struct cli *c, enum exit_status *status);

/* The model that --embedder or the configuration names, into the plan. An
 * error has been said already. */
enum exit_status eval_read_embedder(struct cli *c, struct eval_plan *p);

/* "500,2000,5000" of --learn. Likewise. */
enum exit_status eval_read_checkpoints(struct cli *c, struct eval_plan *p);

#endif
