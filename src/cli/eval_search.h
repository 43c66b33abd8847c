#ifndef CLI_EVAL_SEARCH_H
#define CLI_EVAL_SEARCH_H

/* eval_search: every query of a set as somebody would search for it, by the
 * index that a server searches with. Threads: the main one. */

#include "cli/eval_run.h"

/* As eval_run, for a plan whose mode is EVAL_TEXT or EVAL_HYBRID; outcomes are
 * there and empty. */
MUST_USE enum err eval_search(struct cli *c, const struct eval_plan *plan,
                              struct eval_run *out, struct why *why);

#endif
