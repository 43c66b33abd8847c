#ifndef LAB_PLOT_H
#define LAB_PLOT_H

/* plot: draws curves with characters. */

#include "base/buf.h"

struct plot_curve {
    const char *name;
    char mark;
    const double *y; /* n values, 0 to 1; NaN is not drawn */
};

/* Draw x from x0 to x1 in n steps; a line marks `at`. The first curve covers
 * the others. At most `width` columns, 0: 72. */
void plot_write(struct buf *out, const struct plot_curve *curves,
                size_t n_curves, size_t n, double x0, double x1, double at,
                unsigned width);

#endif
