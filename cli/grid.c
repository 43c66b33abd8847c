/* All rows are kept until the end, because the widths of the columns depend on
 * all of them. The widths of characters are a short list of ranges instead of
 * wcwidth, which depends on the locale. */
#include "cli/grid.h"

#include <assert.h>

struct grid_row {
    struct grid_row *next;
    struct str cells[GRID_COLUMNS_MAX];
};

/* The first character of s and its length in bytes; an invalid byte counts as
 * one character. */
static uint32_t next_char(struct str s, size_t *bytes)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? c : c & (0xffU >> (n + 1));

    if (n > s.n)
        n = 1, code = c;
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)s.p[i] & 0x3f);
    *bytes = n;
    return code;
}

static unsigned char_columns(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        unsigned columns;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x1100, 0x115f, 2},   {0x200b, 0x200f, 0},
        {0x202a, 0x202e, 0},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},
        {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
        {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
        {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

unsigned text_columns(struct str s)
{
    unsigned columns = 0;
    size_t n;

    for (; s.n; s = str_sub(s, n, s.n))
        columns += char_columns(next_char(s, &n));
    return columns;
}

struct str text_cut(struct str s, unsigned columns)
{
    struct str rest = s;
    unsigned used = 0;
    size_t n;

    for (; rest.n; rest = str_sub(rest, n, rest.n)) {
        used += char_columns(next_char(rest, &n));
        if (used > columns)
            break;
    }
    return str_sub(s, 0, s.n - rest.n);
}

unsigned text_add_cut(struct buf *out, struct str s, unsigned columns,
                      bool unicode)
{
    struct str dots = unicode ? STR("\u2026") : STR("..");

    if (text_columns(s) <= columns)
        dots.n = 0;
    else
        s = text_cut(s, columns - text_columns(dots));
    buf_add_str(out, s);
    buf_add_str(out, dots);
    return text_columns(s) + text_columns(dots);
}

void text_add_bar(struct buf *out, double v, int n_cells, const char *colour,
                  bool unicode)
{
    struct str full = unicode ? STR("\u2587") : STR("#");
    struct str empty = unicode ? STR("\u2581") : STR(".");
    int n = v > 0 ? (int)(v * n_cells + 0.5) : 0;

    if (n > n_cells)
        n = n_cells;
    if (colour)
        buf_add_str(out, str_of(n ? colour : "\033[2m"));
    for (int i = 0; i < n_cells; i++) {
        if (colour && i == n && n)
            buf_add_str(out, STR("\033[0;2m"));
        buf_add_str(out, i < n ? full : empty);
    }
    if (colour)
        buf_add_str(out, STR("\033[0m"));
}

void text_end_line(struct buf *out)
{
    while (out->n && out->p[out->n - 1] == ' ')
        out->n--;
    buf_add_char(out, '\n');
}

void grid_init(struct grid *g, const struct grid_head *heads, size_t n_columns)
{
    assert(n_columns > 0 && n_columns <= GRID_COLUMNS_MAX);
    *g = (struct grid){
        .heads = heads, .n_columns = n_columns, .right_from = n_columns};
    g->last = &g->first;
    arena_init(&g->arena, GRID_BYTES_MAX);
}

void grid_right_from(struct grid *g, size_t column)
{
    g->right_from = column;
}

void grid_fini(struct grid *g)
{
    arena_fini(&g->arena);
}

/* A copy on one line: runs of white space become one blank. */
static bool copy_cell(struct grid *g, struct str from, struct str *to)
{
    char *p;
    size_t n = 0;

    from = str_head(from, GRID_CELL_MAX);
    p = arena_alloc(&g->arena, from.n + 1);
    if (!p)
        return false;
    for (size_t i = 0; i < from.n; i++) {
        bool is_space = from.p[i] && strchr(" \t\r\n", from.p[i]);

        if (!is_space)
            p[n++] = from.p[i];
        else if (n && p[n - 1] != ' ')
            p[n++] = ' ';
    }
    while (n && p[n - 1] == ' ')
        n--;
    *to = (struct str){p, str_tame(p, n)};
    return true;
}

void grid_add(struct grid *g, const struct str *cells)
{
    struct grid_row *row = arena_alloc(&g->arena, sizeof(*row));

    for (size_t i = 0; row && i < g->n_columns; i++)
        if (!copy_cell(g, cells[i], &row->cells[i]))
            row = NULL;
    if (!row) {
        g->is_over = true;
        return;
    }
    *g->last = row;
    g->last = &row->next;
    g->n_rows++;
}

struct layout {
    const struct grid *grid;
    struct buf *out;
    unsigned widths[GRID_COLUMNS_MAX];
    unsigned before[GRID_COLUMNS_MAX], after[GRID_COLUMNS_MAX]; /* the point */
    bool colour, unicode;
};

static bool has_points(const struct grid *g, size_t i)
{
    return g->points & (1U << i);
}

static unsigned before_point(struct str cell)
{
    return (unsigned)str_find(cell, '.', 0);
}

/* The widths on both sides of the decimal point. */
static unsigned measure_points(struct layout *l, size_t i, unsigned title)
{
    unsigned before = 0, after = 0;

    for (const struct grid_row *r = l->grid->first; r; r = r->next) {
        unsigned n = before_point(r->cells[i]);
        unsigned rest = (unsigned)r->cells[i].n - n;

        before = n > before ? n : before;
        after = rest > after ? rest : after;
    }
    if (before + after < title)
        before = title - after;
    l->before[i] = before;
    l->after[i] = after;
    return before + after;
}

static void grid_measure(struct layout *l, unsigned width)
{
    const struct grid *g = l->grid;
    unsigned used = 0;

    for (size_t i = 0; i < g->n_columns; i++) {
        unsigned w = text_columns(str_of(g->heads[i].title));

        for (const struct grid_row *r = g->first; r; r = r->next) {
            unsigned cell = text_columns(r->cells[i]);

            if (cell > w)
                w = cell;
        }
        if (has_points(g, i))
            w = measure_points(l, i, text_columns(str_of(g->heads[i].title)));
        if (i + 1 < g->n_columns && w > GRID_CELL_COLUMNS)
            w = GRID_CELL_COLUMNS;
        l->widths[i] = w;
    }
    if (!width)
        return;
    for (size_t i = 0; i + 1 < g->n_columns; i++)
        used += l->widths[i] + 2;
    for (;
         g->cuts_first && used + 8 > width && l->widths[0] > GRID_FIRST_COLUMNS;
         used--)
        l->widths[0]--;
    /* Even on a full line the last column gets a few characters. */
    width = width > used + 8 ? width - used : 8;
    if (l->widths[g->n_columns - 1] > width)
        l->widths[g->n_columns - 1] = width;
}

static void write_cell(const struct layout *l, size_t i, struct str cell,
                       const char *colour)
{
    unsigned w = l->widths[i], used = text_columns(cell), left = 0;
    unsigned whole = before_point(cell);

    if (used <= w && has_points(l->grid, i) && whole < cell.n)
        left = l->before[i] - whole;
    else if (used <= w && (has_points(l->grid, i) || i >= l->grid->right_from))
        left = w - used;
    buf_addf(l->out, "%*s%s", (int)left, "", colour);
    used = text_add_cut(l->out, cell, w, l->unicode);
    if (*colour)
        buf_add_str(l->out, STR("\033[0m"));
    if (i + 1 < l->grid->n_columns)
        buf_addf(l->out, "%*s", (int)(w - used - left) + 2, "");
}

void grid_write(const struct grid *g, struct buf *out, unsigned width,
                bool colour, bool unicode)
{
    struct layout l = {
        .grid = g, .out = out, .colour = colour, .unicode = unicode};

    grid_measure(&l, width);
    for (size_t i = 0; i < g->n_columns; i++)
        write_cell(&l, i, str_of(g->heads[i].title), colour ? "\033[1m" : "");
    text_end_line(out);
    for (const struct grid_row *r = g->first; r; r = r->next) {
        for (size_t i = 0; i < g->n_columns; i++) {
            grid_colour_fn *fn = g->heads[i].colour;

            write_cell(&l, i, r->cells[i], colour && fn ? fn(r->cells[i]) : "");
        }
        text_end_line(out);
    }
    out->over = out->over || g->is_over;
}
