#ifndef CLI_EVAL_SHOW_H
#define CLI_EVAL_SHOW_H

/* eval_show: the figures of an evaluation, for people and for programs. */

#include "cli/eval_run.h"

struct eval_view {
    const struct eval_plan *plan;
    const struct eval_run *run;
    const struct eval_score *score;
    bool is_by_agent; /* every agent, not only the worst */
};

/* Into c->out. */
void eval_show(struct cli *c, const struct eval_view *v);
void eval_show_as_json(struct cli *c, const struct eval_view *v);

/* What only routing has: its figures, and tables where there are any; with
 * JSON one member. (eval_show_route.c) */
struct json_out;
void eval_show_route(struct cli *c, const struct eval_view *v);
void eval_show_learning(struct cli *c, const struct eval_view *v);
void eval_show_raids(struct cli *c, const struct eval_view *v);
void eval_put_route(struct json_out *o, const struct eval_view *v);

/* The bands of all queries, or of one level; with JSON one member. */
#define EVAL_ANY_LEVEL (UINT32_MAX - 1)
void eval_show_bands(struct cli *c, const struct eval_view *v);
void eval_put_bands(struct json_out *o, const struct eval_view *v,
                    uint32_t level);

/* One JSON object a query and line. */
void eval_add_lines(struct buf *out, const struct eval_view *v);

#endif
