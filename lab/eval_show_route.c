/* Figures of routing: the threshold, the bands and the layers, the effect of
 * learning, and the share that hostile cards win. */
#include "lab/eval_show.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/grid.h"

static void route_format_percent(char out[EVAL_CELL], size_t n, size_t of)
{
    eval_format_percent(out, eval_share(n, of));
}

static void route_show_gate(struct cli *c, const struct eval_run *run)
{
    const struct eval_gate *g = &run->gate;
    char right[EVAL_CELL], refused[EVAL_CELL], recall[EVAL_CELL],
        words[4 * EVAL_CELL + 128];
    int n;

    route_format_percent(right, g->n_right, g->n);
    route_format_percent(refused, g->n_refused, g->n);
    route_format_percent(recall, g->n_out_refused, g->n_out);
    n = run->is_auto ? snprintf(words, sizeof(words), "auto")
                     : snprintf(words, sizeof(words), "%.3g", run->threshold);
    if (g->n)
        n += snprintf(words + n, sizeof(words) - (size_t)n,
                      "; in scope %s go to a right agent, %s to none", right,
                      refused);
    if (g->n_out)
        snprintf(words + n, sizeof(words) - (size_t)n,
                 "; out of scope %s go to none", recall);
    eval_show_line(c, "threshold", "%s", words);
}

/* The bands. */

static struct eval_bands route_bands(const struct eval_view *v, uint32_t level)
{
    const struct eval_set *s = v->plan->set;
    struct eval_bands out = {.n = 0};

    for (size_t i = 0; i < s->n_queries; i++)
        if (level == EVAL_ANY_LEVEL || s->queries[i].level == level)
            eval_bands_count(&out, &v->run->outcomes[i], &v->run->decided[i]);
    return out;
}

static void route_show_bands(struct cli *c, const struct eval_view *v)
{
    struct eval_bands b = route_bands(v, EVAL_ANY_LEVEL);
    char a[EVAL_CELL], d[EVAL_CELL], e[EVAL_CELL], words[4 * EVAL_CELL + 128];

    if (b.n) {
        route_format_percent(a, b.n_confident_right, b.n);
        route_format_percent(d, b.n_confident_wrong, b.n);
        route_format_percent(e, b.n_first_confident, b.n_first);
        snprintf(words, sizeof(words),
                 "%s right, %s wrong; %s of the queries with a right first "
                 "place are confident and right",
                 a, d, e);
        eval_show_line(c, "confident", "%s", words);
        route_format_percent(a, b.n_unsure, b.n);
        route_format_percent(d, b.n_unsure_right, b.n);
        route_format_percent(e, b.n_unsure_three, b.n);
        snprintf(words, sizeof(words),
                 "%s; %s with the right agent in first place, %s with the "
                 "right agent among three",
                 a, d, e);
        eval_show_line(c, "unsure", "%s", words);
        route_format_percent(a, b.n_confident_right + b.n_unsure_right, b.n);
        route_format_percent(d, b.n_refused, b.n);
        snprintf(words, sizeof(words),
                 "%s right if unsure messages go to the best agent; %s are "
                 "classified as out of scope",
                 a, d);
        eval_show_line(c, "delivered", "%s", words);
    }
    if (b.n_out) {
        route_format_percent(a, b.n_out - b.n_out_confident, b.n_out);
        route_format_percent(d, b.n_out_unsure, b.n_out);
        route_format_percent(e, b.n_out_confident, b.n_out);
        snprintf(words, sizeof(words),
                 "%s of the queries out of scope (%s are unsure); %s are "
                 "confident, and so wrong",
                 a, d, e);
        eval_show_line(c, "detected", "%s", words);
    }
}

/* A row for each level, in whole percents. */
void eval_show_bands(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {
        {"BANDS", NULL},   {"RIGHT", NULL}, {"WRONG", NULL},   {"UNSURE", NULL},
        {"REFUSED", NULL}, {"SHARE", NULL}, {"DETECTED", NULL}};
    const struct eval_set *s = v->plan->set;
    struct grid g;

    if (v->plan->mode != EVAL_ROUTING || !s->n_levels)
        return;
    grid_init(&g, heads, 7);
    for (size_t i = 0; i <= s->n_levels; i++) {
        bool has_name = i < s->n_levels;
        struct eval_bands b =
            route_bands(v, has_name ? (uint32_t)i : EVAL_NO_LEVEL);
        const size_t parts[6][2] = {{b.n_confident_right, b.n},
                                    {b.n_confident_wrong, b.n},
                                    {b.n_unsure, b.n},
                                    {b.n_refused, b.n},
                                    {b.n_first_confident, b.n_first},
                                    {b.n_out - b.n_out_confident, b.n_out}};
        struct str row[7] = {has_name ? s->levels[i] : STR("-")};
        char cells[6][EVAL_CELL];

        if (!b.n && !b.n_out)
            continue;
        for (size_t k = 0; k < 6; k++) {
            if (parts[k][1])
                snprintf(cells[k], EVAL_CELL, "%.0f %%",
                         100 * eval_share(parts[k][0], parts[k][1]));
            else
                snprintf(cells[k], EVAL_CELL, "-");
            row[k + 1] = str_of(cells[k]);
        }
        grid_add(&g, row);
    }
    eval_show_grid(c, &g);
}

static void route_show_layers(struct cli *c, const struct eval_view *v)
{
    const struct eval_gate *g = &v->run->gate;
    char words[N_LAYERS * EVAL_CELL];
    size_t at = 0;

    for (size_t i = 1; i < N_LAYERS; i++) {
        struct str name = layer_name((enum layer)i);
        char percent[EVAL_CELL];

        if (!g->by_layer[i])
            continue;
        route_format_percent(percent, g->by_layer[i], g->n + g->n_out);
        at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%.*s %s",
                               at ? ", " : "", STR_ARG(name), percent);
    }
    eval_show_line(c, "decided by", "%s", words);
}

/* The decisions of each tier of the model. */
static void route_show_tiers(struct cli *c, const struct eval_gate *g)
{
    size_t table = g->by_tier[TIER_TABLE];
    size_t transformer = g->by_tier[TIER_TRANSFORMER];
    char words[4 * EVAL_CELL], percent[2][EVAL_CELL];

    if (!table && !transformer)
        return;
    route_format_percent(percent[0], table, g->n + g->n_out);
    route_format_percent(percent[1], transformer, g->n + g->n_out);
    snprintf(words, sizeof(words), "table %zu (%s), transformer %zu (%s)",
             table, percent[0], transformer, percent[1]);
    eval_show_line(c, "tiers", "%s", words);
}

void eval_show_route(struct cli *c, const struct eval_view *v)
{
    char words[2 * EVAL_CELL];

    route_show_gate(c, v->run);
    route_show_bands(c, v);
    route_show_layers(c, v);
    route_show_tiers(c, &v->run->gate);
    snprintf(words, sizeof(words),
             "%.0f us from text to decision, %.0f us for the slowest in a "
             "hundred",
             v->run->p50_us, v->run->p99_us);
    eval_show_line(c, "latency", "%s", words);
}

static void route_add_checkpoint(struct grid *g, size_t outcomes,
                                 const struct eval_checkpoint *p)
{
    const struct eval_gate *k = &p->gate;
    char cells[7][EVAL_CELL];
    struct str row[7];

    snprintf(cells[0], EVAL_CELL, "%zu", outcomes);
    route_format_percent(cells[1], k->n_first, k->n);
    route_format_percent(cells[2], k->n_right, k->n);
    route_format_percent(cells[3], k->n_refused, k->n);
    route_format_percent(cells[4], k->n_out_refused, k->n_out);
    snprintf(cells[5], EVAL_CELL, "%zu", p->corrections);
    snprintf(cells[6], EVAL_CELL, "%zu", p->types);
    for (size_t i = 0; i < 7; i++)
        row[i] = str_of(cells[i]);
    grid_add(g, row);
}

void eval_show_learning(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {{"OUTCOMES", NULL},
                                             {"FIRST", NULL},
                                             {"RIGHT AGENT", NULL},
                                             {"FALSE ALARMS", NULL},
                                             {"OUT OF SCOPE DETECTED", NULL},
                                             {"CORRECTIONS", NULL},
                                             {"QUERY TYPES", NULL}};
    struct eval_checkpoint none = {.gate = v->run->gate};
    struct grid g;

    if (!v->run->n_checkpoints)
        return;
    grid_init(&g, heads, 7);
    route_add_checkpoint(&g, 0, &none);
    for (size_t i = 0; i < v->run->n_checkpoints; i++)
        route_add_checkpoint(&g, v->run->checkpoints[i].outcomes,
                             &v->run->checkpoints[i]);
    eval_show_grid(c, &g);
}

void eval_show_raids(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {{"HOSTILE CARDS", NULL},
                                             {"OWNERS", NULL},
                                             {"MADE OF", NULL},
                                             {"FIRST PLACES", NULL},
                                             {"ACCURACY", NULL}};
    struct grid g;

    if (!v->run->n_raids)
        return;
    grid_init(&g, heads, 5);
    for (size_t i = 0; i < v->run->n_raids; i++) {
        const struct eval_raid *r = &v->run->raids[i];
        char cards[EVAL_CELL], owners[EVAL_CELL], won[EVAL_CELL],
            first[EVAL_CELL];

        snprintf(cards, EVAL_CELL, "%zu", r->cards);
        snprintf(owners, EVAL_CELL, "%zu", r->owners);
        route_format_percent(won, r->n_captured, r->gate.n);
        route_format_percent(first, r->gate.n_first, r->gate.n);
        grid_add(&g,
                 (struct str[]){str_of(cards), str_of(owners), str_of(r->how),
                                str_of(won), str_of(first)});
    }
    eval_show_grid(c, &g);
}

/* JSON. */

static void eval_put_gate(struct json_out *o, const struct eval_gate *g)
{
    json_member_real(o, "accuracy_at_1", eval_share(g->n_first, g->n));
    json_member_real(o, "right_agent", eval_share(g->n_right, g->n));
    json_member_real(o, "false_alarms", eval_share(g->n_refused, g->n));
    json_member_real(o, "out_of_scope_recall",
                     eval_share(g->n_out_refused, g->n_out));
}

/* Counts, which can be added up over levels and sets, and the two target
 * shares.
 */
void eval_put_bands(struct json_out *o, const struct eval_view *v,
                    uint32_t level)
{
    struct eval_bands b = route_bands(v, level);

    json_key(o, STR("bands"));
    json_open(o, '{');
    json_member_int(o, "n", (int64_t)b.n);
    json_member_int(o, "top_1", (int64_t)b.n_first);
    json_member_int(o, "confident_right", (int64_t)b.n_confident_right);
    json_member_int(o, "confident_wrong", (int64_t)b.n_confident_wrong);
    json_member_int(o, "unsure", (int64_t)b.n_unsure);
    json_member_int(o, "out_of_scope", (int64_t)b.n_refused);
    json_member_int(o, "top_1_confident", (int64_t)b.n_first_confident);
    json_member_int(o, "unsure_right", (int64_t)b.n_unsure_right);
    json_member_int(o, "unsure_among_three", (int64_t)b.n_unsure_three);
    json_member_int(o, "n_out_of_scope", (int64_t)b.n_out);
    json_member_int(o, "out_of_scope_detected",
                    (int64_t)(b.n_out - b.n_out_confident));
    json_member_int(o, "out_of_scope_unsure", (int64_t)b.n_out_unsure);
    json_member_real(o, "confident_share", eval_confident_share(&b));
    json_member_real(o, "detected_share", eval_detected_share(&b));
    json_close(o, '}');
}

static void route_put_layers(struct json_out *o, const struct eval_gate *g)
{
    json_key(o, STR("layers"));
    json_open(o, '{');
    for (size_t i = 1; i < N_LAYERS; i++)
        if (g->by_layer[i]) {
            json_key(o, layer_name((enum layer)i));
            json_put_int(o, (int64_t)g->by_layer[i]);
        }
    json_close(o, '}');
}

static void route_put_tiers(struct json_out *o, const struct eval_gate *g)
{
    json_key(o, STR("tiers"));
    json_open(o, '{');
    for (size_t i = TIER_NONE + 1; i < N_TIERS; i++)
        if (g->by_tier[i]) {
            json_key(o, tier_name((enum tier)i));
            json_put_int(o, (int64_t)g->by_tier[i]);
        }
    json_close(o, '}');
}

static void route_put_checkpoints(struct json_out *o, const struct eval_run *r)
{
    json_key(o, STR("learning"));
    json_open(o, '[');
    for (size_t i = 0; i < r->n_checkpoints; i++) {
        const struct eval_checkpoint *p = &r->checkpoints[i];

        json_open(o, '{');
        json_member_int(o, "outcomes", (int64_t)p->outcomes);
        eval_put_gate(o, &p->gate);
        json_member_int(o, "corrections", (int64_t)p->corrections);
        json_member_int(o, "examples", (int64_t)p->examples);
        json_member_int(o, "query_types", (int64_t)p->types);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void route_put_raids(struct json_out *o, const struct eval_run *r)
{
    json_key(o, STR("capture"));
    json_open(o, '[');
    for (size_t i = 0; i < r->n_raids; i++) {
        const struct eval_raid *raid = &r->raids[i];

        json_open(o, '{');
        json_member_text(o, "made_of", str_of(raid->how));
        json_member_int(o, "cards", (int64_t)raid->cards);
        json_member_int(o, "owners", (int64_t)raid->owners);
        json_member_real(o, "captured",
                         eval_share(raid->n_captured, raid->gate.n));
        eval_put_gate(o, &raid->gate);
        json_close(o, '}');
    }
    json_close(o, ']');
}

void eval_put_route(struct json_out *o, const struct eval_view *v)
{
    const struct eval_run *r = v->run;

    json_key(o, STR("routing"));
    if (v->plan->mode != EVAL_ROUTING) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    if (r->is_auto)
        json_member_text(o, "threshold", STR("auto"));
    else
        json_member_real(o, "threshold", r->threshold);
    eval_put_gate(o, &r->gate);
    eval_put_bands(o, v, EVAL_ANY_LEVEL);
    route_put_layers(o, &r->gate);
    route_put_tiers(o, &r->gate);
    json_member_real(o, "p50_us", r->p50_us);
    json_member_real(o, "p99_us", r->p99_us);
    route_put_checkpoints(o, r);
    json_member_text(o, "relation",
                     str_of(eval_relation_name(v->plan->relation)));
    route_put_raids(o, r);
    json_close(o, '}');
}
