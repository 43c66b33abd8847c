/* First the figures, then the details: the worst agents, and agents that are
 * confused. The JSON has the same content; its names never change. */
#include "lab/eval_show.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/grid.h"
#include "lab/eval_search.h"

enum { WORST_MAX = 10, MIXUPS_MAX = 10 };

static const struct str no_agent = {"(none)", 6};

static struct str eval_view_name(const struct eval_view *v, uint32_t agent)
{
    return agent < v->plan->set->n_agents ? v->plan->set->agents[agent].name
                                          : no_agent;
}

static double eval_per_second(const struct eval_view *v)
{
    double seconds = v->run->seconds > 1e-9 ? v->run->seconds : 1e-9;

    return (double)v->plan->set->n_queries / seconds;
}

/* An agent that was right or chosen at least once. */
struct agent_row {
    uint32_t agent;
    const struct eval_tally *tally;
};

static int agent_rows_compare(const void *a, const void *b)
{
    const struct agent_row *x = a, *y = b;
    double f = eval_f1(x->tally), g = eval_f1(y->tally);

    if (f != g)
        return f < g ? -1 : 1;
    if (x->tally->n_missed != y->tally->n_missed)
        return x->tally->n_missed > y->tally->n_missed ? -1 : 1;
    return x->agent < y->agent ? -1 : x->agent > y->agent;
}

/* The worst first. Returns owned; NULL: out of memory. */
static struct agent_row *agent_rows(const struct eval_view *v, size_t *n)
{
    size_t n_agents = v->plan->set->n_agents;
    struct agent_row *rows = calloc(n_agents + 1, sizeof(*rows));

    *n = 0;
    for (size_t i = 0; rows && i < n_agents; i++)
        if (!isnan(eval_f1(&v->score->tallies[i])))
            rows[(*n)++] =
                (struct agent_row){(uint32_t)i, &v->score->tallies[i]};
    if (rows)
        qsort(rows, *n, sizeof(*rows), agent_rows_compare);
    if (*n > WORST_MAX && !v->is_by_agent)
        *n = WORST_MAX;
    return rows;
}

struct level_counts {
    size_t n, n_right[EVAL_TOP], n_out, n_out_right;
};

/* Queries without a level are counted last. */
static void eval_count_levels(const struct eval_view *v,
                              struct level_counts out[EVAL_LEVELS_MAX + 1])
{
    const struct eval_set *s = v->plan->set;

    memset(out, 0, (EVAL_LEVELS_MAX + 1) * sizeof(*out));
    for (size_t i = 0; i < s->n_queries; i++) {
        const struct eval_outcome *o = &v->run->outcomes[i];
        uint32_t at = s->queries[i].level;
        struct level_counts *l = &out[at == EVAL_NO_LEVEL ? s->n_levels : at];
        unsigned place = eval_place(o);

        l->n += o->n_expected > 0;
        l->n_out += !o->n_expected;
        l->n_out_right += !o->n_expected && eval_best(o) < v->score->threshold;
        for (unsigned k = place ? place : EVAL_TOP + 1; k <= EVAL_TOP; k++)
            l->n_right[k - 1]++;
    }
}

/* Text. */

void eval_format_percent(char out[EVAL_CELL], double part)
{
    if (isnan(part))
        snprintf(out, EVAL_CELL, "-");
    else
        snprintf(out, EVAL_CELL, "%.1f %%", 100 * part);
}

void eval_show_line(struct cli *c, const char *what, const char *fmt, ...)
{
    char words[512], head[32];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    snprintf(head, sizeof(head), "%-15s", what);
    cli_coloured(c, BOLD, str_of(head));
    cli_wrapped(c, 15, 15, str_of(words));
}

static void eval_show_accuracy(struct cli *c, const struct eval_view *v,
                               const char *what, unsigned k)
{
    char percent[EVAL_CELL];

    eval_format_percent(percent, eval_accuracy(v->score, k));
    eval_show_line(c, what, "%s (%zu of %zu)", percent,
                   v->score->n_right_at[k - 1], v->score->n);
}

/* Recall and NDCG are shown at these k. */
static const unsigned ats[] = {1, 3, 5, 10};
enum { N_ATS = sizeof(ats) / sizeof(ats[0]) };

static void eval_show_places(struct cli *c, const struct eval_score *s)
{
    char recall[4 * EVAL_CELL] = "", ndcg[4 * EVAL_CELL] = "";
    size_t m = 0, n = 0;

    if (!s->n)
        return;
    for (size_t i = 0; i < N_ATS; i++) {
        const char *comma = i ? ", " : "";

        m += (size_t)snprintf(recall + m, sizeof(recall) - m, "%s%.1f %% at %u",
                              comma, 100 * s->recall_at[ats[i] - 1], ats[i]);
        n += (size_t)snprintf(ndcg + n, sizeof(ndcg) - n, "%s%.3f at %u", comma,
                              s->ndcg_at[ats[i] - 1], ats[i]);
    }
    eval_show_line(c, "recall", "%s", recall);
    eval_show_line(c, "NDCG", "%s; MRR %.3f", ndcg, s->mrr);
}

static const char *query_noun(size_t n)
{
    return n == 1 ? "query" : "queries";
}

static void eval_show_scope(struct cli *c, const struct eval_view *v)
{
    const struct eval_score *s = v->score;
    char f1[EVAL_CELL], right[EVAL_CELL];

    if (!s->n_out)
        return;
    if (isnan(s->auroc)) {
        eval_show_line(c, "out of scope", "%zu %s, and none in scope", s->n_out,
                       query_noun(s->n_out));
        return;
    }
    eval_format_percent(f1, s->out_f1);
    eval_format_percent(right, s->scoped_right);
    eval_show_line(
        c, "out of scope",
        "%zu %s; AUROC of the best score %.3f; with no agent below %.3f, the "
        "best threshold for these queries: F1 %s, and %s of all answered "
        "right",
        s->n_out, query_noun(s->n_out), s->auroc, (double)s->threshold, f1,
        right);
}

/* Describes how agents are ranked. */
static struct why eval_ranking_text(const struct eval_view *v)
{
    const struct eval_plan *p = v->plan;
    const char *how = p->is_best ? "the nearest" : "the mean";
    struct eval_formula f = eval_formula(p);
    struct why out;

    if (p->mode == EVAL_TEXT)
        why_err(&out, OK, "the words of the agent and its skills");
    else if (p->mode == EVAL_SEMANTIC)
        why_err(&out, OK, "the vector of the agent or its best skill");
    else if (p->mode == EVAL_HYBRID && f.fusion == INDEX_RRF)
        why_err(&out, OK,
                "the ranks by vectors and by words, of the agent or its best "
                "skill (rrf)");
    else if (p->mode == EVAL_HYBRID)
        why_err(&out, OK,
                "%g of the vector and %g of the words, of the agent or its "
                "best skill",
                f.semantic, f.text);
    else if (p->mode == EVAL_ROUTING)
        why_err(&out, OK, "four signals, as in a server with these agents%s",
                p->shots ? ", with examples on their cards" : "");
    else if (!p->shots)
        why_err(&out, OK, "%s of name and description, skills, examples", how);
    else
        why_err(&out, OK, "%s of %zu example%s%s", how, p->shots,
                p->shots == 1 ? "" : "s",
                p->has_own ? " and the agent's own words" : "");
    return out;
}

static void eval_show_figures(struct cli *c, const struct eval_view *v)
{
    const struct eval_set *set = v->plan->set;
    const struct eval_run *run = v->run;
    char percent[EVAL_CELL];

    eval_show_line(c, "mode", "%s%s", eval_mode_name(v->plan->mode),
                   v->plan->mode == EVAL_ROUTING   ? ", as messages are routed"
                   : v->plan->mode == EVAL_VECTORS ? " alone"
                                                   : ", as agent.search finds "
                                                     "agents");
    if (v->plan->mode == EVAL_TEXT)
        eval_show_line(c, "model", "none");
    else
        eval_show_line(c, "model", "%.*s, %u dimensions, %.12s",
                       STR_ARG(cli_tamed(c, str_of(run->first.name))),
                       run->first.dims, run->first.hash);
    eval_show_line(c, "set", "%zu agent%s, %zu %s in scope, %zu out of scope",
                   set->n_agents, set->n_agents == 1 ? "" : "s", v->score->n,
                   query_noun(v->score->n), v->score->n_out);
    eval_show_line(c, "ranked by", "%s", eval_ranking_text(v).text);
    buf_add_char(&c->out, '\n');
    eval_show_accuracy(c, v, "first place", 1);
    eval_show_accuracy(c, v, "first three", 3);
    eval_show_accuracy(c, v, "first five", 5);
    eval_show_places(c, v->score);
    eval_format_percent(percent, v->score->macro_f1);
    eval_show_line(c, "macro F1", "%s", percent);
    eval_show_scope(c, v);
    if (v->plan->mode == EVAL_ROUTING)
        eval_show_route(c, v);
    eval_show_line(c, "speed", "%.0f queries a second, %s", eval_per_second(v),
                   v->plan->mode == EVAL_TEXT ? "searching"
                                              : "embedding and scoring");
}

void eval_show_grid(struct cli *c, struct grid *g)
{
    buf_add_char(&c->out, '\n');
    grid_write(g, &c->out, c->width, c->colour, c->unicode);
    grid_fini(g);
}

static void eval_show_levels(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {
        {"LEVEL", NULL},   {"QUERIES", NULL}, {"FIRST", NULL},
        {"FIRST 3", NULL}, {"FIRST 5", NULL}, {"OUT OF SCOPE", NULL}};
    const struct eval_set *s = v->plan->set;
    struct level_counts levels[EVAL_LEVELS_MAX + 1];
    struct grid g;

    if (!s->n_levels)
        return;
    eval_count_levels(v, levels);
    grid_init(&g, heads, 6);
    for (size_t i = 0; i <= s->n_levels; i++) {
        const struct level_counts *l = &levels[i];
        char n[EVAL_CELL], at[3][EVAL_CELL], out[EVAL_CELL] = "-";

        if (!l->n && !l->n_out)
            continue;
        snprintf(n, sizeof(n), "%zu", l->n);
        for (unsigned k = 0; k < 3; k++)
            eval_format_percent(at[k], eval_share(l->n_right[2 * k], l->n));
        if (l->n_out)
            snprintf(out, sizeof(out), "%zu of %zu detected", l->n_out_right,
                     l->n_out);
        grid_add(&g, (struct str[]){i < s->n_levels ? s->levels[i] : STR("-"),
                                    str_of(n), str_of(at[0]), str_of(at[1]),
                                    str_of(at[2]), str_of(out)});
    }
    eval_show_grid(c, &g);
}

static void eval_show_agents(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head all[] = {{"AGENT", NULL},
                                           {"F1", NULL},
                                           {"RIGHT", NULL},
                                           {"MISSED", NULL},
                                           {"TAKEN FROM OTHERS", NULL}};
    struct grid_head heads[5];
    size_t n;
    struct agent_row *rows = agent_rows(v, &n);
    struct grid g;

    memcpy(heads, all, sizeof(heads));
    if (!v->is_by_agent)
        heads[0].title = "WORST AGENTS";
    grid_init(&g, heads, 5);
    for (size_t i = 0; rows && i < n; i++) {
        const struct eval_tally *t = rows[i].tally;
        char f1[EVAL_CELL], right[EVAL_CELL], missed[EVAL_CELL],
            taken[EVAL_CELL];

        if (!v->is_by_agent && eval_f1(t) >= 1)
            break;
        eval_format_percent(f1, eval_f1(t));
        snprintf(right, sizeof(right), "%zu", t->n_right);
        snprintf(missed, sizeof(missed), "%.4g", t->n_missed);
        snprintf(taken, sizeof(taken), "%zu", t->n_taken);
        grid_add(&g,
                 (struct str[]){eval_view_name(v, rows[i].agent), str_of(f1),
                                str_of(right), str_of(missed), str_of(taken)});
    }
    c->out.over = c->out.over || !rows;
    free(rows);
    if (g.n_rows)
        eval_show_grid(c, &g);
    else
        grid_fini(&g);
}

static void eval_show_mixups(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {{"EXPECTED", NULL},
                                             {"CHOSEN", NULL},
                                             {"TIMES", NULL},
                                             {"FOR EXAMPLE", NULL}};
    const struct eval_score *s = v->score;
    struct grid g;

    if (!s->n_mixups)
        return;
    grid_init(&g, heads, 4);
    for (size_t i = 0; i < s->n_mixups && i < MIXUPS_MAX; i++) {
        const struct eval_mixup *m = &s->mixups[i];
        char n[EVAL_CELL];

        snprintf(n, sizeof(n), "%zu", m->n);
        grid_add(&g, (struct str[]){eval_view_name(v, m->expected),
                                    eval_view_name(v, m->chosen), str_of(n),
                                    v->plan->set->queries[m->example].text});
    }
    eval_show_grid(c, &g);
}

enum { WARNINGS_MAX = 4 };

/* Circumstances that make the figures less meaningful. */
static size_t eval_warn(const struct eval_view *v, struct why out[WARNINGS_MAX])
{
    const struct eval_run *r = v->run;
    size_t n = 0;

    if (r->n_few)
        why_err(&out[n++], OK, "%zu agent%s fewer than %zu examples", r->n_few,
                r->n_few == 1 ? " has" : "s have", v->plan->shots);
    if (r->n_bare)
        why_err(&out[n++], OK,
                "%zu agent%s no example and %s ranked by the description",
                r->n_bare, r->n_bare == 1 ? " has" : "s have",
                r->n_bare == 1 ? "is" : "are");
    if (r->n_empty)
        why_err(&out[n++], OK, "%s %zu quer%s%s: no agent was chosen",
                v->plan->mode > EVAL_VECTORS ? "for" : "in", r->n_empty,
                r->n_empty == 1 ? "y" : "ies",
                v->plan->mode > EVAL_VECTORS ? " nothing was found"
                                             : " the model knows nothing");
    if (v->plan->mode == EVAL_ROUTING && r->is_auto && !r->has_levels)
        why_err(&out[n++], OK,
                "the provider has no vectors for the reference texts: every "
                "choice is unsure");
    return n;
}

void eval_show(struct cli *c, const struct eval_view *v)
{
    struct why warnings[WARNINGS_MAX];
    size_t n = eval_warn(v, warnings);

    eval_show_figures(c, v);
    eval_show_learning(c, v);
    eval_show_raids(c, v);
    eval_show_levels(c, v);
    eval_show_bands(c, v);
    eval_show_agents(c, v);
    eval_show_mixups(c, v);
    for (size_t i = 0; i < n; i++) {
        if (!i)
            buf_add_char(&c->out, '\n');
        cli_coloured(c, YELLOW, STR("note"));
        buf_add_str(&c->out, STR(": "));
        cli_wrapped(c, 6, 6, str_of(warnings[i].text));
    }
}

/* JSON. */

static void eval_put_scope(struct json_out *o, const struct eval_score *s)
{
    json_key(o, STR("out_of_scope"));
    if (!s->n_out) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    json_member_real(o, "auroc", s->auroc);
    json_member_real(o, "best_f1", s->out_f1);
    json_member_real(o, "best_threshold", (double)s->threshold);
    json_member_real(o, "answered_right", s->scoped_right);
    json_close(o, '}');
}

static void eval_put_levels(struct json_out *o, const struct eval_view *v)
{
    const struct eval_set *s = v->plan->set;
    struct level_counts levels[EVAL_LEVELS_MAX + 1];

    eval_count_levels(v, levels);
    json_key(o, STR("levels"));
    json_open(o, '[');
    for (size_t i = 0; i < s->n_levels; i++) {
        const struct level_counts *l = &levels[i];

        json_open(o, '{');
        json_member_text(o, "level", s->levels[i]);
        json_member_int(o, "n", (int64_t)l->n);
        for (unsigned k = 1; k <= 5; k += 2) {
            char key[32];

            snprintf(key, sizeof(key), "accuracy_at_%u", k);
            json_member_real(o, key, eval_share(l->n_right[k - 1], l->n));
        }
        json_member_int(o, "n_out_of_scope", (int64_t)l->n_out);
        json_member_int(o, "n_out_of_scope_noticed", (int64_t)l->n_out_right);
        if (v->plan->mode == EVAL_ROUTING)
            eval_put_bands(o, v, (uint32_t)i);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void eval_put_agents(struct json_out *o, const struct eval_view *v)
{
    size_t n;
    struct agent_row *rows = agent_rows(v, &n);

    json_key(o, v->is_by_agent ? STR("by_agent") : STR("worst_agents"));
    json_open(o, '[');
    for (size_t i = 0; rows && i < n; i++) {
        json_open(o, '{');
        json_member_text(o, "agent", eval_view_name(v, rows[i].agent));
        json_member_real(o, "f1", eval_f1(rows[i].tally));
        json_member_int(o, "right", (int64_t)rows[i].tally->n_right);
        json_member_real(o, "missed", rows[i].tally->n_missed);
        json_member_int(o, "taken", (int64_t)rows[i].tally->n_taken);
        json_close(o, '}');
    }
    json_close(o, ']');
    o->out->over = o->out->over || !rows;
    free(rows);
}

static void eval_put_mixups(struct json_out *o, const struct eval_view *v)
{
    const struct eval_score *s = v->score;

    json_key(o, STR("confusions"));
    json_open(o, '[');
    for (size_t i = 0; i < s->n_mixups && i < MIXUPS_MAX; i++) {
        const struct eval_mixup *m = &s->mixups[i];

        json_open(o, '{');
        json_member_text(o, "expected", eval_view_name(v, m->expected));
        json_key(o, STR("chosen"));
        if (m->chosen == EVAL_NOBODY)
            json_put_null(o);
        else
            json_put_str(o, eval_view_name(v, m->chosen));
        json_member_int(o, "n", (int64_t)m->n);
        json_member_text(o, "example", v->plan->set->queries[m->example].text);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void eval_put_warnings(struct json_out *o, const struct eval_view *v)
{
    struct why warnings[WARNINGS_MAX];
    size_t n = eval_warn(v, warnings);

    json_key(o, STR("warnings"));
    json_open(o, '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(o, str_of(warnings[i].text));
    json_close(o, ']');
}

static void eval_put_formula(struct json_out *o, const struct eval_plan *p)
{
    struct eval_formula f = eval_formula(p);

    if (p->mode != EVAL_HYBRID) {
        json_member_null(o, "formula");
        return;
    }
    json_key(o, STR("formula"));
    json_open(o, '{');
    json_member_text(o, "fusion",
                     f.fusion == INDEX_RRF ? STR("rrf") : STR("weighted"));
    json_member_real(o, "semantic", f.semantic);
    json_member_real(o, "text", f.text);
    json_close(o, '}');
}

static void eval_put_models(struct json_out *o, const struct eval_view *v)
{
    const struct eval_plan *p = v->plan;

    json_member_text(o, "mode", str_of(eval_mode_name(p->mode)));
    eval_put_formula(o, p);
    if (p->mode == EVAL_TEXT) {
        json_member_null(o, "kind");
        json_member_null(o, "embedder");
    } else {
        json_member_text(o, "kind", str_of(embed_kind_name(p->kind)));
        json_key(o, STR("embedder"));
        json_open(o, '{');
        json_member_text(o, "name", str_of(v->run->first.name));
        json_member_text(o, "hash", str_of(v->run->first.hash));
        json_member_int(o, "dims", (int64_t)v->run->first.dims);
        json_close(o, '}');
    }
}

static void eval_put_places(struct json_out *o, const struct eval_score *s)
{
    for (size_t i = 0; i < N_ATS; i++) {
        char key[32];

        snprintf(key, sizeof(key), "recall_at_%u", ats[i]);
        json_member_real(o, key, s->recall_at[ats[i] - 1]);
        snprintf(key, sizeof(key), "ndcg_at_%u", ats[i]);
        json_member_real(o, key, s->ndcg_at[ats[i] - 1]);
    }
    json_member_real(o, "mrr", s->mrr);
}

void eval_show_as_json(struct cli *c, const struct eval_view *v)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    eval_put_models(&o, v);
    json_member_int(&o, "agents", (int64_t)v->plan->set->n_agents);
    json_member_int(&o, "n", (int64_t)v->score->n);
    json_member_int(&o, "n_out_of_scope", (int64_t)v->score->n_out);
    json_member_int(&o, "n_empty", (int64_t)v->run->n_empty);
    json_member_int(&o, "shots", (int64_t)v->plan->shots);
    if (v->plan->mode != EVAL_VECTORS)
        json_member_null(&o, "match");
    else
        json_member_text(&o, "match",
                         v->plan->is_best ? STR("best") : STR("mean"));
    json_member_real(&o, "accuracy_at_1", eval_accuracy(v->score, 1));
    json_member_real(&o, "accuracy_at_3", eval_accuracy(v->score, 3));
    json_member_real(&o, "accuracy_at_5", eval_accuracy(v->score, 5));
    eval_put_places(&o, v->score);
    json_member_real(&o, "macro_f1", v->score->macro_f1);
    json_member_real(&o, "queries_per_second", eval_per_second(v));
    json_member_real(&o, "seconds", v->run->seconds);
    eval_put_scope(&o, v->score);
    eval_put_route(&o, v);
    eval_put_levels(&o, v);
    eval_put_agents(&o, v);
    eval_put_mixups(&o, v);
    eval_put_warnings(&o, v);
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

/* Query by query. */

static void eval_put_ranked(struct json_out *o, const struct eval_view *v,
                            const struct eval_ranked *r)
{
    json_key(o, STR("ranked"));
    json_open(o, '[');
    for (unsigned k = 0; k < r->n; k++) {
        json_open(o, '{');
        json_member_text(o, "agent", eval_view_name(v, r->agents[k]));
        json_member_real(o, "score", (double)r->scores[k]);
        json_close(o, '}');
    }
    json_close(o, ']');
}

void eval_add_lines(struct buf *out, const struct eval_view *v)
{
    const struct eval_set *s = v->plan->set;

    for (size_t i = 0; i < s->n_queries; i++) {
        const struct eval_query *q = &s->queries[i];
        const struct eval_outcome *r = &v->run->outcomes[i];
        struct json_out o = json_out(out);

        json_open(&o, '{');
        json_member_text(&o, "text", q->text);
        json_key(&o, STR("expected"));
        json_open(&o, '[');
        for (size_t k = 0; k < q->n_agents; k++)
            json_put_str(&o, eval_view_name(v, q->agents[k]));
        json_close(&o, ']');
        if (q->level != EVAL_NO_LEVEL)
            json_member_text(&o, "level", s->levels[q->level]);
        eval_put_ranked(&o, v, &r->ranked);
        if (v->plan->mode == EVAL_TEXT)
            json_member_null(&o, "model");
        else
            json_member_text(&o, "model", str_of(v->run->first.name));
        json_key(&o, STR("right"));
        if (q->n_agents)
            json_put_bool(&o, eval_place(r) == 1);
        else if (isnan(v->score->threshold))
            json_put_null(&o);
        else
            json_put_bool(&o, eval_best(r) < v->score->threshold);
        if (v->plan->mode == EVAL_ROUTING)
            json_member_text(&o, "band", band_name(v->run->decided[i].band));
        json_close(&o, '}');
        buf_add_char(out, '\n');
    }
}
