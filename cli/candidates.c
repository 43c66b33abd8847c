/* The cells are bars with figures, and a narrow terminal gets fewer of them; a
 * grid cannot do that. */
#include "cli/candidates.h"

#include <stdio.h>

#include "cli/grid.h"

enum {
    SCORE_COLUMNS = 5,
    FIGURE_COLUMNS = 4,
    FLOOR_COLUMNS = 5, /* the width of the title */
    NAME_BYTES = 512,
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

/* The table that is written. */
struct page {
    const struct candidates_opts *opts;
    struct buf *out;
    const struct json *list;
    size_t n;           /* lines */
    bool has_threshold; /* a number that every score must reach */
    double threshold;
    unsigned rank, agent, skill; /* columns; skill zero: none is shown */
    bool has_figures;
    bool has_floors; /* FLOOR, beside the figure that must reach it */
    bool is_centred; /* the card's median is subtracted from the cosine */
};

/* Reading. */

static double candidate_figure(const struct json *v, const char *key)
{
    return json_real_or(json_get(v, str_of(key)), 0);
}

struct name {
    char text[NAME_BYTES + 1];
};

static struct str candidate_name(const struct json *candidate, const char *key,
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

/* The candidate's floor; below zero: none, or not known. */
static double floor_of(const struct json *candidate)
{
    return json_real_or(json_get(candidate, STR("floor")), -1);
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

static void candidates_widen(unsigned *columns, struct str s)
{
    unsigned w = text_columns(s);

    if (w > CANDIDATES_NAME_COLUMNS)
        w = CANDIDATES_NAME_COLUMNS;
    if (w > *columns)
        *columns = w;
}

/* Drop columns until the line fits: the skill, the floors, the figures, then
 * the end of the name. */
static void candidates_fit_columns(struct page *p)
{
    unsigned width = p->opts->width;
    size_t i = 0;

    p->rank = p->n > 9 ? 2 : 1;
    p->agent = 5; /* the width of the title */
    p->has_figures = true;
    JSON_EACH(kid, p->list)
    {
        struct name room;

        if (i++ == p->n)
            break;
        candidates_widen(&p->agent, candidate_name(kid, "agent", &room));
        candidates_widen(&p->skill,
                         candidate_name(kid, "best_skill_id", &room));
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

static void candidates_pad(const struct page *p, unsigned n)
{
    buf_addf(p->out, "%*s", (int)n, "");
}

static void paint(const struct page *p, const char *colour)
{
    if (p->opts->colour)
        buf_add_str(p->out, str_of(colour));
}

static void candidates_write_name(const struct page *p, struct str name,
                                  unsigned columns)
{
    candidates_pad(
        p, columns - text_add_cut(p->out, name, columns, p->opts->unicode));
}

static void candidates_write_titles(const struct page *p)
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
    text_end_line(p->out);
}

static void write_signal(const struct page *p, size_t i, double v)
{
    unsigned used = CANDIDATES_BAR_CELLS;

    buf_add_str(p->out, STR("  "));
    text_add_bar(p->out, v, CANDIDATES_BAR_CELLS,
                 p->opts->colour ? signals[i].colour : NULL, p->opts->unicode);
    if (p->has_figures) {
        buf_addf(p->out, " %s", candidates_figure(v).text);
        used += 1 + FIGURE_COLUMNS;
    }
    candidates_pad(p, signal_columns(p, i) - used);
}

static void candidates_write_row(const struct page *p, size_t rank,
                                 const struct json *candidate)
{
    struct name room;
    struct str agent = candidate_name(candidate, "agent", &room);
    bool is_chosen = p->opts->chosen.n && str_eq(agent, p->opts->chosen);
    double floor = floor_of(candidate);

    buf_addf(p->out, "%c %*zu  ", is_chosen ? '>' : ' ', (int)p->rank, rank);
    if (is_chosen)
        paint(p, "\033[1m");
    candidates_write_name(p, agent, p->agent);
    if (is_chosen)
        paint(p, "\033[0m");
    if (p->skill) {
        buf_add_str(p->out, STR("  "));
        candidates_write_name(
            p, candidate_name(candidate, "best_skill_id", &room), p->skill);
    }
    buf_addf(p->out, "  %.3f", candidate_figure(candidate, "score"));
    for (size_t i = 0; i < N_SIGNALS; i++) {
        write_signal(p, i, candidate_figure(candidate, signals[i].key));
        if (i || !p->has_floors)
            continue;
        /* Green once the semantic signal has reached it. */
        buf_add_str(p->out, STR("  "));
        paint(p, floor >= 0 && candidate_figure(candidate, "semantic") >= floor
                     ? "\033[32m"
                     : "\033[2m");
        buf_addf(p->out, "%-*s", FLOOR_COLUMNS,
                 floor < 0 ? "-" : candidates_figure(floor).text);
        paint(p, "\033[0m");
    }
    text_end_line(p->out);
}

static void write_parts(const struct page *p, const struct json *candidate)
{
    static const char *const parts[] = {"cosine", "text", "learned"};
    struct name room;
    struct str word = candidate_name(candidate, "matched_keyword", &room);

    if (!json_get(candidate, STR("cosine")))
        return; /* a refusal has only the scores */
    candidates_pad(p, 2 + p->rank + 2);
    paint(p, "\033[2m");
    buf_add_str(p->out, STR("semantic:"));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        buf_addf(p->out, "%s %s %s", i ? "," : "", parts[i],
                 candidates_figure(candidate_figure(candidate, parts[i])).text);
        if (!i && p->is_centred)
            buf_addf(p->out, " minus the card's median %s",
                     candidates_figure(candidate_figure(candidate, "level_mid"))
                         .text);
    }
    if (candidate_figure(candidate, "discount") > 0)
        buf_addf(
            p->out, ", minus %s because the owner is a stranger",
            candidates_figure(candidate_figure(candidate, "discount")).text);
    if (word.n)
        buf_addf(p->out, "; keyword \"%.*s\"", STR_ARG(word));
    paint(p, "\033[0m");
    text_end_line(p->out);
}

size_t candidates_write(struct buf *out, const struct json *decision,
                        const struct candidates_opts *opts)
{
    const struct json *list = json_get(decision, STR("candidates"));
    struct page p = {.opts = opts,
                     .out = out,
                     .list = list,
                     .threshold = candidate_figure(decision, "threshold")};
    const struct json *rules = json_get(decision, STR("rules"));
    bool is_below = false;
    size_t rank = 0;

    if (!list || list->type != JSON_ARR || !list->kids.n)
        return 0;
    /* True if floors decided. A refusal has no rules; then a candidate has a
     * floor. */
    p.has_floors = json_bool_or(json_get(rules, STR("auto")), false);
    if (!rules)
        JSON_EACH(kid, list)
    p.has_floors |= floor_of(kid) >= 0;
    p.has_threshold = !p.has_floors;
    p.is_centred = json_bool_or(json_get(rules, STR("centred")), false);
    p.n = list->kids.n < opts->limit ? list->kids.n : opts->limit;
    candidates_fit_columns(&p);
    candidates_write_titles(&p);
    JSON_EACH(kid, list)
    {
        if (rank == p.n)
            break;
        if (p.has_threshold && !is_below &&
            candidate_figure(kid, "score") < p.threshold) {
            candidates_pad(&p, 2 + p.rank + 2);
            paint(&p, "\033[2m");
            buf_addf(out, "below the threshold of %.3f:", p.threshold);
            paint(&p, "\033[0m");
            text_end_line(out);
            is_below = true;
        }
        candidates_write_row(&p, ++rank, kid);
        if (opts->explains)
            write_parts(&p, kid);
    }
    return list->kids.n;
}
