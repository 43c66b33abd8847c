/* Not a grid: cells that are bars with figures, of which a narrow terminal gets
 * fewer, are more than a grid can do. */
#include "cli/candidates.h"

#include <stdio.h>

#include "cli/grid.h"

enum {
    SCORE_COLUMNS = 5,
    FIGURE_COLUMNS = 4,
    FLOOR_COLUMNS = 5, /* of its head */
    NAME_BYTES = 512,  /* that are looked at */
};

static const struct signal {
    const char *key, *head, *colour;
} signals[] = {
    {"semantic", "SEMANTIC", "\033[36m"},
    {"performance", "PERFORMANCE", "\033[32m"},
    {"keyword", "KEYWORD", "\033[33m"},
    {"recency", "RECENCY", "\033[35m"},
};

enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };

/* A line that is written; names are tamed. */
struct page {
    const struct candidates_opts *opts;
    struct buf *out;
    const struct json *list;
    size_t n;           /* lines */
    bool has_threshold; /* a number that every score is held against */
    double threshold;
    unsigned rank, agent, skill; /* columns; skill zero: none is shown */
    bool has_figures;
    bool has_floors; /* FLOOR, beside the figure that it is held against */
    bool is_centred; /* the card's median is taken off the cosine */
};

/* Reading. */

static double real(const struct json *v, const char *key)
{
    return json_real_or(json_get(v, str_of(key)), 0);
}

struct name {
    char text[NAME_BYTES + 1];
};

static struct str name_of(const struct json *candidate, const char *key,
                          struct name *room)
{
    struct str s = str_head(
        json_str_or(json_get(candidate, str_of(key)), STR("")), NAME_BYTES);

    if (s.n)
        memcpy(room->text, s.p, s.n);
    for (size_t i = 0; i < s.n; i++)
        if (strchr("\t\r\n", room->text[i]))
            room->text[i] = ' ';
    return (struct str){room->text, str_tame(room->text, s.n)};
}

struct candidates_figure candidates_figure(double v)
{
    struct candidates_figure f;

    if (!(v > 0))
        v = 0;
    if (v > 99)
        v = 99;
    snprintf(f.text, sizeof(f.text), "%.3f", v);
    if (f.text[0] == '0')
        memmove(f.text, f.text + 1, strlen(f.text)); /* ".362" */
    else
        f.text[FIGURE_COLUMNS] = '\0'; /* "1.00" */
    return f;
}

/* The candidate's floor; below zero: it has none, or none that is known. */
static double floor_of(const struct json *candidate)
{
    return json_real_or(json_get(candidate, STR("floor")), -1);
}

/* Floors decide. A refusal has no rules: there, a candidate has one. */
static bool is_auto(const struct json *decision)
{
    const struct json *rules = json_get(decision, STR("rules"));
    const struct json *list = json_get(decision, STR("candidates"));

    if (rules)
        return json_bool_or(json_get(rules, STR("auto")), false);
    JSON_EACH(kid, list)
    {
        if (floor_of(kid) >= 0)
            return true;
    }
    return false;
}

/* Room. */

static unsigned signal_columns(const struct page *p, size_t i)
{
    unsigned head = (unsigned)strlen(signals[i].head);
    unsigned cell =
        CANDIDATES_BAR_CELLS + (p->has_figures ? 1 + FIGURE_COLUMNS : 0);

    return head > cell ? head : cell;
}

static unsigned line_columns(const struct page *p)
{
    unsigned n = 2 + p->rank + 2 + p->agent + 2 + SCORE_COLUMNS;

    if (p->skill)
        n += p->skill + 2;
    if (p->has_floors)
        n += 2 + FLOOR_COLUMNS;
    for (size_t i = 0; i < N_SIGNALS; i++)
        n += 2 + signal_columns(p, i);
    return n;
}

static void widen(unsigned *columns, struct str s)
{
    unsigned w = text_columns(s);

    if (w > CANDIDATES_NAME_COLUMNS)
        w = CANDIDATES_NAME_COLUMNS;
    if (w > *columns)
        *columns = w;
}

/* Columns that do not fit are dropped in this order: the skill, the floors, the
 * figures, the end of the name. */
static void measure(struct page *p)
{
    unsigned width = p->opts->width;
    size_t i = 0;

    p->rank = p->n > 9 ? 2 : 1;
    p->agent = 5; /* of its head */
    p->has_figures = true;
    JSON_EACH(kid, p->list)
    {
        struct name room;

        if (i++ == p->n)
            break;
        widen(&p->agent, name_of(kid, "agent", &room));
        widen(&p->skill, name_of(kid, "best_skill_id", &room));
    }
    if (p->skill && p->skill < 5)
        p->skill = 5;
    if (!width)
        return;
    if (line_columns(p) > width)
        p->skill = 0;
    if (line_columns(p) > width)
        p->has_floors = false;
    if (line_columns(p) > width + p->agent - CANDIDATES_NAME_LEAST &&
        p->agent > CANDIDATES_NAME_LEAST)
        p->has_figures = false;
    else if (line_columns(p) > width && p->agent <= CANDIDATES_NAME_LEAST)
        p->has_figures = false;
    while (line_columns(p) > width && p->agent > CANDIDATES_NAME_LEAST)
        p->agent--;
}

/* Writing. */

static void pad(const struct page *p, unsigned n)
{
    buf_addf(p->out, "%*s", (int)n, "");
}

static void paint(const struct page *p, const char *colour)
{
    if (p->opts->colour)
        buf_add_str(p->out, str_of(colour));
}

static void end_line(const struct page *p)
{
    while (p->out->n && p->out->p[p->out->n - 1] == ' ')
        p->out->n--;
    buf_add_char(p->out, '\n');
}

static void write_name(const struct page *p, struct str name, unsigned columns)
{
    struct str dots = p->opts->unicode ? STR("\u2026") : STR("..");
    unsigned used = text_columns(name);

    if (used > columns) {
        name = text_cut(name, columns - text_columns(dots));
        buf_add_str(p->out, name);
        buf_add_str(p->out, dots);
        used = text_columns(name) + text_columns(dots);
    } else {
        buf_add_str(p->out, name);
    }
    pad(p, columns - used);
}

static void write_bar(const struct page *p, double v, const char *colour)
{
    struct str full = p->opts->unicode ? STR("\u2587") : STR("#");
    struct str empty = p->opts->unicode ? STR("\u2581") : STR(".");
    int n = v > 0 ? (int)(v * CANDIDATES_BAR_CELLS + 0.5) : 0;

    if (n > CANDIDATES_BAR_CELLS)
        n = CANDIDATES_BAR_CELLS;
    paint(p, n ? colour : "\033[2m");
    for (int i = 0; i < CANDIDATES_BAR_CELLS; i++) {
        if (i == n && n)
            paint(p, "\033[0;2m");
        buf_add_str(p->out, i < n ? full : empty);
    }
    paint(p, "\033[0m");
}

static void write_heads(const struct page *p)
{
    paint(p, "\033[1m");
    buf_addf(p->out, "  %*s  %-*s", (int)p->rank, "#", (int)p->agent, "AGENT");
    if (p->skill)
        buf_addf(p->out, "  %-*s", (int)p->skill, "SKILL");
    buf_addf(p->out, "  %-*s", SCORE_COLUMNS, "SCORE");
    for (size_t i = 0; i < N_SIGNALS; i++) {
        buf_addf(p->out, "  %-*s",
                 i + 1 < N_SIGNALS ? (int)signal_columns(p, i) : 0,
                 signals[i].head);
        if (!i && p->has_floors)
            buf_addf(p->out, "  %-*s", FLOOR_COLUMNS, "FLOOR");
    }
    paint(p, "\033[0m");
    end_line(p);
}

static void write_signal(const struct page *p, size_t i, double v)
{
    unsigned used = CANDIDATES_BAR_CELLS;

    buf_add_str(p->out, STR("  "));
    write_bar(p, v, signals[i].colour);
    if (p->has_figures) {
        buf_addf(p->out, " %s", candidates_figure(v).text);
        used += 1 + FIGURE_COLUMNS;
    }
    pad(p, signal_columns(p, i) - used);
}

/* Green once the semantic signal has reached it. */
static void write_floor(const struct page *p, const struct json *candidate)
{
    double floor = floor_of(candidate);
    bool is_sure = floor >= 0 && real(candidate, "semantic") >= floor;

    buf_add_str(p->out, STR("  "));
    paint(p, is_sure ? "\033[32m" : "\033[2m");
    buf_addf(p->out, "%-*s", FLOOR_COLUMNS,
             floor < 0 ? "-" : candidates_figure(floor).text);
    paint(p, "\033[0m");
}

static void write_row(const struct page *p, size_t rank,
                      const struct json *candidate)
{
    struct name room;
    struct str agent = name_of(candidate, "agent", &room);
    bool is_chosen = p->opts->chosen.n && str_eq(agent, p->opts->chosen);

    buf_addf(p->out, "%c %*zu  ", is_chosen ? '>' : ' ', (int)p->rank, rank);
    if (is_chosen)
        paint(p, "\033[1m");
    write_name(p, agent, p->agent);
    if (is_chosen)
        paint(p, "\033[0m");
    if (p->skill) {
        buf_add_str(p->out, STR("  "));
        write_name(p, name_of(candidate, "best_skill_id", &room), p->skill);
    }
    buf_addf(p->out, "  %.3f", real(candidate, "score"));
    for (size_t i = 0; i < N_SIGNALS; i++) {
        write_signal(p, i, real(candidate, signals[i].key));
        if (!i && p->has_floors)
            write_floor(p, candidate);
    }
    end_line(p);
}

static void write_parts(const struct page *p, const struct json *candidate)
{
    static const char *const parts[] = {"cosine", "text", "learned"};
    struct name room;
    struct str word = name_of(candidate, "matched_keyword", &room);

    if (!json_get(candidate, STR("cosine")))
        return; /* a refusal has no more than the scores */
    pad(p, 2 + p->rank + 2);
    paint(p, "\033[2m");
    buf_add_str(p->out, STR("semantic of"));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        buf_addf(p->out, "%s %s %s", i ? "," : "", parts[i],
                 candidates_figure(real(candidate, parts[i])).text);
        if (!i && p->is_centred)
            buf_addf(p->out, " less the card's usual %s",
                     candidates_figure(real(candidate, "level_mid")).text);
    }
    if (real(candidate, "discount") > 0)
        buf_addf(p->out, ", less %s because its owner is a stranger",
                 candidates_figure(real(candidate, "discount")).text);
    if (word.n)
        buf_addf(p->out, "; keyword \"%.*s\"", STR_ARG(word));
    paint(p, "\033[0m");
    end_line(p);
}

/* Where the scores that are enough end. */
static void write_threshold(const struct page *p)
{
    pad(p, 2 + p->rank + 2);
    paint(p, "\033[2m");
    buf_addf(p->out, "below %.3f, which is not enough:", p->threshold);
    paint(p, "\033[0m");
    end_line(p);
}

static void write_rows(const struct page *p)
{
    bool is_below = false;
    size_t rank = 0;

    JSON_EACH(kid, p->list)
    {
        if (rank == p->n)
            return;
        if (p->has_threshold && !is_below &&
            real(kid, "score") < p->threshold) {
            write_threshold(p);
            is_below = true;
        }
        write_row(p, ++rank, kid);
        if (p->opts->explains)
            write_parts(p, kid);
    }
}

size_t candidates_write(struct buf *out, const struct json *decision,
                        const struct candidates_opts *opts)
{
    const struct json *list = json_get(decision, STR("candidates"));
    struct page p = {.opts = opts,
                     .out = out,
                     .list = list,
                     .threshold = real(decision, "threshold")};

    if (!list || list->type != JSON_ARR || !list->kids.n)
        return 0;
    p.has_floors = is_auto(decision);
    p.has_threshold = !p.has_floors;
    p.is_centred = json_bool_or(
        json_get(json_get(decision, STR("rules")), STR("centred")), false);
    p.n = list->kids.n < opts->limit ? list->kids.n : opts->limit;
    measure(&p);
    write_heads(&p);
    write_rows(&p);
    return list->kids.n;
}
