/* Lines are gathered first and written when it is known how wide each column
 * is. The first column gets what is left of the terminal, and is cut to it; the
 * ids are left out before anything is cut. What comes from the server steers no
 * terminal: every text is copied and tamed. */
#include "cli/tree_draw.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "cli/grid.h"
#include "cli/price.h"
#include "model/task.h"

enum {
    CELL_MAX = 40,
    CELLS = 5, /* behind the first: status, waited, worked, cost, branch */
    STATUS = 0,
    WAITED = 1,
    COST = 3,
    LEAST_COLUMNS = 16, /* of the first, however narrow the terminal is */
    TEXT_MAX = 1024,
    DRAWING_BYTES = 16 * 1024 * 1024,
};

struct line {
    struct line *next;
    struct str left;  /* branches and who */
    struct str below; /* what stands before an error, and before nothing else */
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
    bool is_over; /* it did not all fit */
};

/* Words. */

static struct str field(const struct json *v, const char *key)
{
    return json_str_or(json_get(v, str_of(key)), STR(""));
}

static int64_t number(const struct json *v, const char *key)
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

/* What was paid; in brackets what is only set aside so far. */
static void write_cost(char out[CELL_MAX], int64_t paid, int64_t reserved)
{
    if (paid > 0)
        snprintf(out, CELL_MAX, "%s", price_write(paid).text);
    else if (reserved > 0)
        snprintf(out, CELL_MAX, "(%s)", price_write(reserved).text);
    else
        snprintf(out, CELL_MAX, "-");
}

static const char *status_colour(enum task_status s)
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

static bool is_open(const struct json *node)
{
    return !task_is_over(task_status_of(field(node, "status")));
}

static struct str who(struct drawing *d, const struct json *node)
{
    struct str agent = tamed(d, field(node, "agent"));
    struct str skill = tamed(d, field(node, "skill"));
    long long turn = number(node, "turn");
    char more[32];

    if (skill.n)
        agent = joined(d, joined(d, agent, STR(", ")), skill);
    if (turn > 1) {
        snprintf(more, sizeof(more), " (turn %lld)", turn);
        agent = joined(d, agent, str_of(more));
    }
    return agent;
}

static struct str error_of(struct drawing *d, const struct json *node)
{
    const struct json *error = json_get(node, STR("error"));
    struct str code = tamed(d, field(error, "code"));
    struct str words = tamed(d, field(error, "message"));

    if (!code.n || !words.n)
        return code.n ? code : words;
    return joined(d, joined(d, code, STR(": ")), words);
}

static bool has_kids(const struct json *node)
{
    const struct json *kids = json_get(node, STR("children"));

    return kids && kids->type == JSON_ARR && kids->kids.first;
}

static void fill_cells(struct line *l, const struct json *node)
{
    const struct json *branch = json_get(node, STR("branch"));
    int64_t price = number(node, "price_micros");

    snprintf(l->cells[STATUS], CELL_MAX, "%.*s",
             STR_ARG(task_status_name(task_status_of(field(node, "status")))));
    write_time(l->cells[WAITED], json_get(node, STR("waited_ms")));
    write_time(l->cells[WAITED + 1], json_get(node, STR("worked_ms")));
    write_cost(l->cells[COST], number(node, "captured_micros"),
               is_open(node) ? price : 0);
    write_cost(l->cells[COST + 1],
               has_kids(node) ? number(branch, "captured_micros") : 0, 0);
}

static void add_line(struct drawing *d, const struct json *node,
                     struct str branches, struct str below)
{
    struct line *l = arena_alloc(&d->arena, sizeof(*l));

    if (!l) {
        d->is_over = true;
        return;
    }
    *l = (struct line){
        .left = joined(d, branches, who(d, node)),
        .below = joined(d, below, STR("")),
        .id = tamed(d, field(node, "task_id")),
        .error = error_of(d, node),
        .colour = status_colour(task_status_of(field(node, "status"))),
        .is_asked_for = str_eq(field(node, "task_id"), d->asked)};
    fill_cells(l, node);
    *d->last = l;
    d->last = &l->next;
}

/* `above`: what is drawn before every line that hangs on the node. JSON that
 * was read is not deeper than JSON_DEPTH_MAX, so this is not either. */
static void add_node(struct drawing *d, const struct json *node,
                     struct str branches, struct str above)
{
    bool unicode = d->paper->unicode;

    add_line(d, node, branches,
             joined(d, above,
                    !has_kids(node) ? STR("   ")
                    : unicode       ? STR("│  ")
                                    : STR("|  ")));
    if (!has_kids(node))
        return;
    JSON_EACH(kid, json_get(node, STR("children")))
    {
        struct str mine = kid->next ? unicode ? STR("├─ ") : STR("|- ")
                          : unicode ? STR("└─ ")
                                    : STR("`- ");
        struct str under = !kid->next ? STR("   ")
                           : unicode  ? STR("│  ")
                                      : STR("|  ");

        add_node(d, kid, joined(d, above, mine), joined(d, above, under));
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

static void grow(unsigned *width, unsigned n)
{
    if (n > *width)
        *width = n;
}

/* Of all cells, with the two blanks before each. */
static unsigned cells_columns(const struct widths *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CELLS; i++)
        n += w->is_shown[i] ? 2 + w->cells[i] : 0;
    return n;
}

/* Ids go first, then columns, and at last the ends of names. */
static void fit(struct widths *w, unsigned width)
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

static struct widths measure(const struct drawing *d)
{
    struct widths w = {.left = 5};

    for (unsigned i = 0; i < CELLS; i++) {
        w.is_shown[i] = i < COST || d->has_cost;
        w.cells[i] = (unsigned)strlen(heads[i]);
    }
    for (const struct line *l = d->first; l; l = l->next) {
        grow(&w.left, text_columns(l->left));
        grow(&w.id, text_columns(l->id));
        for (unsigned i = 0; i < CELLS; i++)
            grow(&w.cells[i], text_columns(str_of(l->cells[i])));
    }
    fit(&w, d->paper->width);
    return w;
}

static void add_blanks(struct buf *out, unsigned n)
{
    while (n--)
        buf_add_char(out, ' ');
}

/* Cut to `width` columns if need be; what was written of it. */
static unsigned add_cut(struct buf *out, struct str s, unsigned width)
{
    if (text_columns(s) > width)
        s = text_cut(s, width - 2);
    else
        width = 0;
    buf_add_str(out, s);
    if (!width)
        return text_columns(s);
    buf_add_str(out, STR(".."));
    return text_columns(s) + 2;
}

static void add_coloured(struct buf *out, bool colour, const char *sequence,
                         struct str s)
{
    bool is_wanted = colour && *sequence;

    buf_add_str(out, str_of(is_wanted ? sequence : ""));
    buf_add_str(out, s);
    buf_add_str(out, str_of(is_wanted ? "\033[0m" : ""));
}

/* Words to the left, numbers to the right; nothing behind the last. */
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

static void write_heads(struct buf *out, const struct widths *w, bool colour)
{
    buf_add_str(out, str_of(colour ? "\033[1m" : ""));
    buf_add_str(out, STR("AGENT"));
    add_blanks(out, w->left - 5);
    add_cells(out, w, heads, "");
    buf_add_str(out, str_of(w->has_ids ? "  TASK" : ""));
    buf_add_str(out, str_of(colour ? "\033[0m\n" : "\n"));
}

static void write_error(struct buf *out, const struct drawing *d,
                        const struct line *l)
{
    unsigned col = text_columns(l->below) + 3, width = d->paper->width;
    struct str words = l->error;
    bool is_cut = width && col + text_columns(words) > width;

    if (is_cut)
        words = text_cut(words, width > col + 2 ? width - col - 2 : 1);
    buf_add_str(out, l->below);
    buf_add_str(out, STR("   "));
    add_coloured(out, d->paper->colour, "\033[31m", words);
    buf_add_str(out, is_cut ? STR("..\n") : STR("\n"));
}

static void write_line(struct buf *out, const struct drawing *d,
                       const struct widths *w, const struct line *l)
{
    const char *cells[CELLS];
    bool colour = d->paper->colour;
    unsigned n;

    for (int i = 0; i < CELLS; i++)
        cells[i] = l->cells[i];
    if (colour && l->is_asked_for)
        buf_add_str(out, STR("\033[1m"));
    n = add_cut(out, l->left, w->left);
    if (colour && l->is_asked_for)
        buf_add_str(out, STR("\033[0m"));
    add_blanks(out, w->left - n);
    add_cells(out, w, cells, colour ? l->colour : "");
    if (w->has_ids) {
        buf_add_str(out, STR("  "));
        buf_add_str(out, l->id);
    }
    buf_add_char(out, '\n');
    if (l->error.n)
        write_error(out, d, l);
}

/* What is set aside: the price of those that are not over. */
static int64_t reserved_in(const struct json *node)
{
    int64_t sum = is_open(node) ? number(node, "price_micros") : 0;

    if (has_kids(node))
        JSON_EACH(kid, json_get(node, STR("children")))
    sum += reserved_in(kid);
    return sum;
}

static void write_total(struct buf *out, const struct drawing *d,
                        const struct json *answer, const struct json *tree)
{
    long long n = number(answer, "tasks"), open = number(answer, "open");
    int64_t paid = number(answer, "captured_micros");
    int64_t reserved = reserved_in(tree);
    char took[CELL_MAX];

    write_time(took, json_get(tree, STR("duration_ms")));
    buf_addf(out, "\n%lld task%s, ", n, n == 1 ? "" : "s");
    if (open)
        buf_addf(out, "%lld open, %s so far", open, took);
    else
        buf_addf(out, "none open, %s", took);
    if (d->has_cost)
        buf_addf(out, ", paid %s", paid ? price_write(paid).text : "nothing");
    if (reserved)
        buf_addf(out, " (%s reserved)", price_write(reserved).text);
    buf_add_char(out, '\n');
    if (d->is_over)
        buf_add_str(out, STR("It is too large to be drawn whole.\n"));
    else if (!json_bool_or(json_get(answer, STR("is_whole")), true))
        buf_add_str(out, STR("It is a part of a larger tree.\n"));
}

void tree_draw(struct buf *out, const struct json *answer,
               const struct tree_paper *paper)
{
    const struct json *tree = json_get(answer, STR("tree"));
    struct drawing d = {.paper = paper,
                        .last = &d.first,
                        .asked = field(answer, "task_id"),
                        .has_cost = number(answer, "price_micros") ||
                                    number(answer, "captured_micros")};
    struct widths w;

    if (!tree || tree->type != JSON_OBJ)
        return;
    arena_init(&d.arena, DRAWING_BYTES);
    add_node(&d, tree, STR(""), STR(""));
    w = measure(&d);
    write_heads(out, &w, paper->colour);
    for (const struct line *l = d.first; l; l = l->next)
        write_line(out, &d, &w, l);
    write_total(out, &d, answer, tree);
    arena_fini(&d.arena);
}
