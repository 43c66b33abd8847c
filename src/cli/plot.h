#ifndef CLI_PLOT_H
#define CLI_PLOT_H

/* plot: curves in characters, for a terminal or a pipe. */

#include "base/buf.h"

struct plot_curve {
    const char *name;
    char mark;
    const double *y; /* n of them, 0 to 1; what is no number is not drawn */
};

/* x goes from x0 to x1 in n steps; `at` is marked by a line. The first curve
 * lies over the others. At most `width` columns, 0: 72. */
void plot_write(struct buf *out, const struct plot_curve *curves,
                size_t n_curves, size_t n, double x0, double x1, double at,
                unsigned width);

#endif
