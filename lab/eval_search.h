#ifndef LAB_EVAL_SEARCH_H
#define LAB_EVAL_SEARCH_H

/* eval_search: searches for every query of a set with a server's index.
 * Threads: the main one. */

#include "lab/eval_run.h"
#include "registry/index/index.h"

/* The parts of a score, from the configuration if the mode uses it. */
struct eval_formula {
    enum index_mode mode;
    enum index_fusion fusion;
    double semantic, text; /* weights of INDEX_WEIGHTED */
};
struct eval_formula eval_formula(const struct eval_plan *plan);

/* Like eval_run, for the modes of the index. The outcomes are allocated and
 * empty.
 */
MUST_USE enum err eval_search(struct cli *c, const struct eval_plan *plan,
                              struct eval_run *out, struct why *why);

#endif
