#ifndef LAB_EVAL_H
#define LAB_EVAL_H

/* eval: options that `signalbox eval` and `signalbox calibrate` share. */

#include "cli/cli.h"
#include "lab/eval_run.h"

/* The configuration, owned by the caller. NULL: the error has been reported. */
MUST_USE struct config *eval_config(struct cli *c, enum exit_status *status);

/* Read the model of --embedder or of the configuration into the plan. An error
 * has been reported. */
enum exit_status eval_read_embedder(struct cli *c, struct eval_plan *p);

/* Read --learn, "500,2000,5000". Likewise. */
enum exit_status eval_read_checkpoints(struct cli *c, struct eval_plan *p);

#endif
