#ifndef CLI_EVAL_SEARCH_H
#define CLI_EVAL_SEARCH_H

/* eval_search: every query of a set as somebody would search for it, by the
 * index that a server searches with. Threads: the main one. */

#include "cli/eval_run.h"
#include "index/index.h"

/* What a score is made of: as the configuration says, where it has a say. */
struct eval_formula {
    enum index_mode mode;
    enum index_fusion fusion;
    double semantic, text; /* weights of INDEX_WEIGHTED */
};
struct eval_formula eval_formula(const struct eval_plan *plan);

/* As eval_run, for a plan whose mode is not EVAL_ROUTING; outcomes are there
 * and empty. */
MUST_USE enum err eval_search(struct cli *c, const struct eval_plan *plan,
                              struct eval_run *out, struct why *why);

#endif
