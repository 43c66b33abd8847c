#ifndef LAB_EVAL_SHOW_H
#define LAB_EVAL_SHOW_H

/* eval_show: prints the figures of an evaluation, as text or JSON. */

#include "lab/eval_run.h"

struct eval_view {
    const struct eval_plan *plan;
    const struct eval_run *run;
    const struct eval_score *score;
    bool is_by_agent; /* all agents, not only the worst */
};

/* A figure with its name, a grid after a blank line, and a share in percent
 * ("-" for NaN). */
enum { EVAL_CELL = 64 };
void eval_show_line(struct cli *c, const char *what, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
struct grid;
void eval_show_grid(struct cli *c, struct grid *g);
void eval_format_percent(char out[EVAL_CELL], double part);

/* Print the evaluation into c->out. */
void eval_show(struct cli *c, const struct eval_view *v);
void eval_show_as_json(struct cli *c, const struct eval_view *v);

/* Figures and tables of routing only; in JSON one member. (eval_show_route.c)
 */
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

/* One line with a JSON object for each query. */
void eval_add_lines(struct buf *out, const struct eval_view *v);

#endif
