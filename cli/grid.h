#ifndef CLI_GRID_H
#define CLI_GRID_H

/* grid: rows and columns for people. Columns are as wide as their widest
 * cell; the last one gets what is left of the line and is cut to it. Cells
 * come from outside: what could steer a terminal or break a line is replaced.
 * Owns copies of all cells. Threads: one at a time. */

#include "base/arena.h"
#include "base/buf.h"

enum {
    GRID_COLUMNS_MAX = 8,
    GRID_BYTES_MAX = 64 * 1024 * 1024,
    GRID_CELL_MAX = 512,    /* bytes that are looked at of one cell */
    GRID_CELL_COLUMNS = 40, /* of all but the last; longer ones are cut */
    GRID_FIRST_COLUMNS = 12 /* what cuts_first leaves */
};

/* How to colour the cell of a row; "" for not at all. */
typedef const char *grid_colour_fn(struct str cell);

struct grid_head {
    const char *title;
    grid_colour_fn *colour; /* an escape sequence; NULL: never */
};

struct grid {
    const struct grid_head *heads;
    size_t n_columns, n_rows;
    size_t right_from; /* this column and those behind it: to the right */
    unsigned points;   /* a bit for each column of amounts, whose points stand
                        * below each other */
    bool cuts_first;   /* where a line is too short, the first column too */
    struct arena arena;
    struct grid_row *first, **last;
    bool is_over; /* rows did not fit in memory */
};

/* heads has n_columns and outlives the grid. */
void grid_init(struct grid *g, const struct grid_head *heads, size_t n_columns);
void grid_fini(struct grid *g);

/* Columns from this one on are numbers: they end where their column ends. */
void grid_right_from(struct grid *g, size_t column);

/* A row; cells has n_columns. */
void grid_add(struct grid *g, const struct str *cells);

/* Header and rows. width zero: lines as long as they are. */
void grid_write(const struct grid *g, struct buf *out, unsigned width,
                bool colour, bool unicode);

/* How many columns a terminal gives to UTF-8 text: two to what is wide (most
 * of East Asia's characters, pictures), none to what combines. */
unsigned text_columns(struct str s);

/* The longest beginning of s that fits into so many columns. */
struct str text_cut(struct str s, unsigned columns);

/* Add s, cut to so many columns with dots at its end; returns the columns that
 * were written. */
unsigned text_add_cut(struct buf *out, struct str s, unsigned columns,
                      bool unicode);

/* Add a bar for a value from 0 to 1. The colour is NULL on a terminal without
 * colours. */
void text_add_bar(struct buf *out, double v, int n_cells, const char *colour,
                  bool unicode);

/* End the line without trailing blanks. */
void text_end_line(struct buf *out);

#endif
