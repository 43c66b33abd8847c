/* Lines are collected first, because the widths of the columns depend on all of
 * them. The first column gets the rest of the terminal's width, and is cut to
 * it; the ids are dropped before anything is cut. Every text from the server is
 * copied and tamed. */
#include "cli/tree_draw.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "cli/grid.h"
#include "cli/price.h"
#include "model/task.h"

enum {
    CELL_MAX = 40,
    CELLS = 5, /* after the first: status, waited, worked, cost, branch */
    STATUS = 0,
    WAITED = 1,
    COST = 3,
    LEAST_COLUMNS = 16, /* of the first, even on a narrow terminal */
    TEXT_MAX = 1024,
    DRAWING_BYTES = 16 * 1024 * 1024,
};

struct line {
    struct line *next;
    struct str left;  /* branches and agent */
    struct str below; /* branches in front of an error */
    struct str id, error;
    const char *colour;
    bool is_asked_for;
    char cells[CELLS][CELL_MAX];
};

struct drawing {
    const struct tree_paper *paper;
    struct arena arena;
    struct line *first, **last;
    struct str asked;
    bool has_cost;
    bool is_over; /* the memory limit is reached */
};

/* Words. */

static struct str tree_field(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR(""));
}

static int64_t tree_number(const struct json *v, const char *key)
{
    return json_int_or(json_get(v, str_of(key)), 0);
}

static struct str tamed(struct drawing *d, struct str s)
{
    char *copy;

    s = str_head(s, TEXT_MAX);
    copy = arena_strdup(&d->arena, s);
    d->is_over = d->is_over || !copy;
    return (struct str){copy, copy ? str_tame(copy, s.n) : 0};
}

static struct str joined(struct drawing *d, struct str a, struct str b)
{
    char *to = arena_alloc(&d->arena, a.n + b.n + 1);

    if (!to) {
        d->is_over = true;
        return (struct str){NULL, 0};
    }
    if (a.n)
        memcpy(to, a.p, a.n);
    if (b.n)
        memcpy(to + a.n, b.p, b.n);
    return (struct str){to, a.n + b.n};
}

static void write_time(char out[CELL_MAX], const struct json *ms)
{
    long long v = json_int_or(ms, -1);

    if (v < 0)
        snprintf(out, CELL_MAX, "-");
    else if (v < 1000)
        snprintf(out, CELL_MAX, "%lldms", v);
    else if (v < 60 * 1000)
        snprintf(out, CELL_MAX, "%lld.%llds", v / 1000, v % 1000 / 100);
    else if (v < 3600 * 1000)
        snprintf(out, CELL_MAX, "%lldm %02llds", v / 60000, v / 1000 % 60);
    else
        snprintf(out, CELL_MAX, "%lldh %02lldm", v / 3600000, v / 60000 % 60);
}

/* The paid amount, or the reserved amount in brackets. */
static void write_cost(char out[CELL_MAX], int64_t paid, int64_t reserved)
{
    if (paid > 0)
        snprintf(out, CELL_MAX, "%s", price_write(paid).text);
    else if (reserved > 0)
        snprintf(out, CELL_MAX, "(%s)", price_write(reserved).text);
    else
        snprintf(out, CELL_MAX, "-");
}

static const char *tree_status_colour(enum task_status s)
{
    switch ((int)s) {
    case TASK_COMPLETED: return "\033[32m";
    case TASK_FAILED:
    case TASK_EXPIRED:
    case TASK_DROPPED: return "\033[31m";
    case TASK_CANCELLED:
    case TASK_HELD:
    case TASK_ESCALATED:
    case TASK_INPUT_REQUIRED: return "\033[33m";
    default: return "";
    }
}

/* Gathering. */

static bool tree_task_is_open(const struct json *node)
{
    return !task_is_over(task_status_of(tree_field(node, "status")));
}

static bool tree_has_children(const struct json *node)
{
    const struct json *kids = json_get(node, STR("children"));

    return kids && kids->type == JSON_ARR && kids->kids.first;
}

static void tree_add_line(struct drawing *d, const struct json *node,
                          struct str branches, struct str below)
{
    struct line *l = arena_alloc(&d->arena, sizeof(*l));
    enum task_status status = task_status_of(tree_field(node, "status"));
    struct str agent = tamed(d, tree_field(node, "agent"));
    struct str skill = tamed(d, tree_field(node, "skill"));
    const struct json *error = json_get(node, STR("error"));
    struct str code = tamed(d, tree_field(error, "code"));
    struct str words = tamed(d, tree_field(error, "message"));
    long long turn = tree_number(node, "turn");
    char more[32];

    if (!l) {
        d->is_over = true;
        return;
    }
    if (skill.n)
        agent = joined(d, joined(d, agent, STR(", ")), skill);
    if (turn > 1) {
        snprintf(more, sizeof(more), " (turn %lld)", turn);
        agent = joined(d, agent, str_of(more));
    }
    *l = (struct line){
        .left = joined(d, branches, agent),
        .below = joined(d, below, STR("")),
        .id = tamed(d, tree_field(node, "task_id")),
        .error = code.n && words.n
                     ? joined(d, joined(d, code, STR(": ")), words)
                 : code.n ? code
                          : words,
        .colour = tree_status_colour(status),
        .is_asked_for = str_eq(tree_field(node, "task_id"), d->asked)};
    snprintf(l->cells[STATUS], CELL_MAX, "%.*s",
             STR_ARG(task_status_name(status)));
    write_time(l->cells[WAITED], json_get(node, STR("waited_ms")));
    write_time(l->cells[WAITED + 1], json_get(node, STR("worked_ms")));
    write_cost(l->cells[COST], tree_number(node, "captured_micros"),
               task_is_over(status) ? 0 : tree_number(node, "price_micros"));
    write_cost(
        l->cells[COST + 1],
        tree_has_children(node)
            ? tree_number(json_get(node, STR("branch")), "captured_micros")
            : 0,
        0);
    *d->last = l;
    d->last = &l->next;
}

/* `above`: the branches in front of every line below the node. JSON_DEPTH_MAX
 * limits the depth of the recursion. */
static void tree_add_node(struct drawing *d, const struct json *node,
                          struct str branches, struct str above)
{
    bool unicode = d->paper->unicode;

    tree_add_line(d, node, branches,
                  joined(d, above,
                         !tree_has_children(node) ? STR("   ")
                         : unicode                ? STR("│  ")
                                                  : STR("|  ")));
    if (!tree_has_children(node))
        return;
    JSON_EACH(kid, json_get(node, STR("children")))
    {
        struct str mine = kid->next ? unicode ? STR("├─ ") : STR("|- ")
                          : unicode ? STR("└─ ")
                                    : STR("`- ");
        struct str under = !kid->next ? STR("   ")
                           : unicode  ? STR("│  ")
                                      : STR("|  ");

        tree_add_node(d, kid, joined(d, above, mine), joined(d, above, under));
    }
}

/* Writing. */

struct widths {
    unsigned left, cells[CELLS], id;
    bool is_shown[CELLS];
    bool has_ids;
};

static const char *const heads[CELLS] = {"STATUS", "WAITED", "WORKED", "COST",
                                         "BRANCH"};

static void tree_widen(unsigned *width, unsigned n)
{
    if (n > *width)
        *width = n;
}

/* The width of all cells, with the two blanks before each. */
static unsigned cells_columns(const struct widths *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CELLS; i++)
        n += w->is_shown[i] ? 2 + w->cells[i] : 0;
    return n;
}

/* Drop the ids first, then columns, then the ends of names. */
static void tree_fit_columns(struct widths *w, unsigned width)
{
    static const unsigned least[] = {COST + 1, WAITED, WAITED + 1, COST};
    unsigned all = cells_columns(w);

    w->has_ids = w->id && (!width || w->left + all + 2 + w->id <= width);
    for (unsigned i = 0; width && i < sizeof(least) / sizeof(least[0]) &&
                         all + LEAST_COLUMNS > width;
         i++) {
        w->is_shown[least[i]] = false;
        all = cells_columns(w);
    }
    if (width && w->left + all > width) {
        unsigned room = width > all ? width - all : 0;

        w->left = room > LEAST_COLUMNS ? room : LEAST_COLUMNS;
    }
}

static struct widths tree_measure(const struct drawing *d)
{
    struct widths w = {.left = 5};

    for (unsigned i = 0; i < CELLS; i++) {
        w.is_shown[i] = i < COST || d->has_cost;
        w.cells[i] = (unsigned)strlen(heads[i]);
    }
    for (const struct line *l = d->first; l; l = l->next) {
        tree_widen(&w.left, text_columns(l->left));
        tree_widen(&w.id, text_columns(l->id));
        for (unsigned i = 0; i < CELLS; i++)
            tree_widen(&w.cells[i], text_columns(str_of(l->cells[i])));
    }
    tree_fit_columns(&w, d->paper->width);
    return w;
}

static void add_blanks(struct buf *out, unsigned n)
{
    while (n--)
        buf_add_char(out, ' ');
}

static void add_coloured(struct buf *out, bool colour, const char *sequence,
                         struct str s)
{
    bool is_wanted = colour && *sequence;

    buf_add_str(out, str_of(is_wanted ? sequence : ""));
    buf_add_str(out, s);
    buf_add_str(out, str_of(is_wanted ? "\033[0m" : ""));
}

/* Words are aligned left, numbers right; no blanks after the last. */
static void add_cells(struct buf *out, const struct widths *w,
                      const char *const cells[CELLS], const char *colour)
{
    bool is_alone = cells_columns(w) == 2 + w->cells[STATUS] && !w->has_ids;

    for (unsigned i = 0; i < CELLS; i++) {
        struct str cell = str_of(cells[i]);
        unsigned rest = w->cells[i] - text_columns(cell);

        if (!w->is_shown[i])
            continue;
        buf_add_str(out, STR("  "));
        if (i != STATUS)
            add_blanks(out, rest);
        add_coloured(out, *colour, i == STATUS ? colour : "", cell);
        if (i == STATUS && !is_alone)
            add_blanks(out, rest);
    }
}

static void write_line(struct buf *out, const struct drawing *d,
                       const struct widths *w, const struct line *l)
{
    const char *cells[CELLS];
    bool colour = d->paper->colour;
    unsigned n, col = text_columns(l->below) + 3, width = d->paper->width;
    struct str words = l->error;
    bool is_cut = width && col + text_columns(words) > width;

    for (int i = 0; i < CELLS; i++)
        cells[i] = l->cells[i];
    if (colour && l->is_asked_for)
        buf_add_str(out, STR("\033[1m"));
    n = text_add_cut(out, l->left, w->left, false);
    if (colour && l->is_asked_for)
        buf_add_str(out, STR("\033[0m"));
    add_blanks(out, w->left - n);
    add_cells(out, w, cells, colour ? l->colour : "");
    if (w->has_ids) {
        buf_add_str(out, STR("  "));
        buf_add_str(out, l->id);
    }
    buf_add_char(out, '\n');
    if (!l->error.n)
        return;
    if (is_cut)
        words = text_cut(words, width > col + 2 ? width - col - 2 : 1);
    buf_add_str(out, l->below);
    buf_add_str(out, STR("   "));
    add_coloured(out, colour, "\033[31m", words);
    buf_add_str(out, is_cut ? STR("..\n") : STR("\n"));
}

/* The reserved amount: the price of all open tasks. */
static int64_t reserved_in(const struct json *node)
{
    int64_t sum =
        tree_task_is_open(node) ? tree_number(node, "price_micros") : 0;

    if (tree_has_children(node))
        JSON_EACH(kid, json_get(node, STR("children")))
    sum += reserved_in(kid);
    return sum;
}

static void write_total(struct buf *out, const struct drawing *d,
                        const struct json *answer, const struct json *tree)
{
    long long n = tree_number(answer, "tasks"),
              open = tree_number(answer, "open");
    int64_t paid = tree_number(answer, "captured_micros");
    int64_t reserved = reserved_in(tree);
    char duration[CELL_MAX];

    write_time(duration, json_get(tree, STR("duration_ms")));
    buf_addf(out, "\n%lld task%s, ", n, n == 1 ? "" : "s");
    if (open)
        buf_addf(out, "%lld open, %s so far", open, duration);
    else
        buf_addf(out, "none open, %s", duration);
    if (d->has_cost)
        buf_addf(out, ", paid %s", paid ? price_write(paid).text : "nothing");
    if (reserved)
        buf_addf(out, " (%s reserved)", price_write(reserved).text);
    buf_add_char(out, '\n');
    if (d->is_over)
        buf_add_str(out,
                    STR("The tree is too large; some of it is missing.\n"));
    else if (!json_bool_or(json_get(answer, STR("is_whole")), true))
        buf_add_str(out, STR("This is a part of a larger tree.\n"));
}

void tree_draw(struct buf *out, const struct json *answer,
               const struct tree_paper *paper)
{
    const struct json *tree = json_get(answer, STR("tree"));
    struct drawing d = {.paper = paper,
                        .last = &d.first,
                        .asked = tree_field(answer, "task_id"),
                        .has_cost = tree_number(answer, "price_micros") ||
                                    tree_number(answer, "captured_micros")};
    struct widths w;

    if (!tree || tree->type != JSON_OBJ)
        return;
    arena_init(&d.arena, DRAWING_BYTES);
    tree_add_node(&d, tree, STR(""), STR(""));
    w = tree_measure(&d);
    buf_add_str(out, str_of(paper->colour ? "\033[1mAGENT" : "AGENT"));
    add_blanks(out, w.left - 5);
    add_cells(out, &w, heads, "");
    buf_add_str(out, str_of(w.has_ids ? "  TASK" : ""));
    buf_add_str(out, str_of(paper->colour ? "\033[0m\n" : "\n"));
    for (const struct line *l = d.first; l; l = l->next)
        write_line(out, &d, &w, l);
    write_total(out, &d, answer, tree);
    arena_fini(&d.arena);
}
