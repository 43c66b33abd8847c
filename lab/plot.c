/* A row of characters for each tenth of y, a column for each step of x. */
#include "lab/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 11, COLUMNS_MAX = 61, COLUMNS_LEAST = 21, LEFT = 7 };

static size_t plot_column(double x, double x0, double x1, size_t columns)
{
    double part = x1 > x0 ? (x - x0) / (x1 - x0) : 0;

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return (size_t)(part * (double)(columns - 1) + 0.5);
}

static void plot_draw_curve(char cells[ROWS][COLUMNS_MAX + 1], size_t columns,
                            const struct plot_curve *c, size_t n)
{
    for (size_t k = 0; k < columns; k++) {
        size_t i = (k * (n - 1) + (columns - 1) / 2) / (columns - 1);
        double y = c->y[i];

        if (isnan(y))
            continue;
        y = y < 0 ? 0 : y > 1 ? 1 : y;
        cells[ROWS - 1 - (size_t)(y * (ROWS - 1) + 0.5)][k] = c->mark;
    }
}

void plot_write(struct buf *out, const struct plot_curve *curves,
                size_t n_curves, size_t n, double x0, double x1, double at,
                unsigned width)
{
    char cells[ROWS][COLUMNS_MAX + 1], line[4 * COLUMNS_MAX];
    size_t columns = width ? width - LEFT - 1 : COLUMNS_MAX;
    size_t mark;

    if (width && width < COLUMNS_LEAST + LEFT + 1)
        columns = COLUMNS_LEAST;
    if (columns > COLUMNS_MAX)
        columns = COLUMNS_MAX;
    mark = plot_column(at, x0, x1, columns);
    for (size_t i = 0; i < ROWS; i++) {
        memset(cells[i], ' ', columns);
        cells[i][columns] = '\0';
        cells[i][mark] = ':';
    }
    for (size_t i = n_curves; n > 1 && i > 0; i--)
        plot_draw_curve(cells, columns, &curves[i - 1], n);
    for (size_t i = 0; i < ROWS; i++) {
        if (i % 5)
            snprintf(line, sizeof(line), "      |%.*s", (int)columns, cells[i]);
        else
            snprintf(line, sizeof(line), "%3zu %% |%.*s", 100 - 10 * i,
                     (int)columns, cells[i]);
        buf_add_str(out, str_of(line));
        buf_add_char(out, '\n');
    }
    snprintf(line, sizeof(line), "      +%.*s\n       %-*.2f%.2f\n",
             (int)columns,
             "-------------------------------------------------------------",
             (int)columns - 4, x0, x1);
    buf_add_str(out, str_of(line));
    for (size_t i = 0; i < n_curves; i++) {
        snprintf(line, sizeof(line), "       %c  %s\n", curves[i].mark,
                 curves[i].name);
        buf_add_str(out, str_of(line));
    }
}
