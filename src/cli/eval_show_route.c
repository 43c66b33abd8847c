/* What only routing has: the threshold and the layers, what learning changes,
 * and what hostile cards win. */
#include "cli/eval_show.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/grid.h"

enum { CELL = 64 };

static double part(size_t n, size_t of)
{
    return of ? (double)n / (double)of : NAN;
}

static void add_percent(char out[CELL], size_t n, size_t of)
{
    if (of)
        snprintf(out, CELL, "%.1f %%", 100 * part(n, of));
    else
        snprintf(out, CELL, "-");
}

static void show_line(struct cli *c, const char *what, const char *words)
{
    char head[32];

    snprintf(head, sizeof(head), "%-15s", what);
    cli_coloured(c, BOLD, str_of(head));
    cli_wrapped(c, 15, 15, str_of(words));
}

static void show_gate(struct cli *c, const struct eval_run *run)
{
    const struct eval_gate *g = &run->gate;
    char right[CELL], refused[CELL], recall[CELL], words[4 * CELL + 128];
    int n;

    add_percent(right, g->n_right, g->n);
    add_percent(refused, g->n_refused, g->n);
    add_percent(recall, g->n_out_refused, g->n_out);
    n = snprintf(words, sizeof(words), "%.3g", run->threshold);
    if (g->n)
        n += snprintf(words + n, sizeof(words) - (size_t)n,
                      "; of those in scope %s go to a right agent, %s to none",
                      right, refused);
    if (g->n_out)
        snprintf(words + n, sizeof(words) - (size_t)n,
                 "; of those out of scope %s are noticed", recall);
    show_line(c, "threshold", words);
}

static void show_layers(struct cli *c, const struct eval_view *v)
{
    const struct eval_gate *g = &v->run->gate;
    char words[N_LAYERS * CELL];
    size_t at = 0;

    for (size_t i = 1; i <= N_LAYERS; i++) {
        size_t layer = i % N_LAYERS;
        struct str name = layer ? layer_name((enum layer)layer) : STR("nobody");
        char percent[CELL];

        if (!g->by_layer[layer])
            continue;
        add_percent(percent, g->by_layer[layer], g->n + g->n_out);
        at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%.*s %s",
                               at ? ", " : "", STR_ARG(name), percent);
    }
    show_line(c, "decided by", words);
}

void eval_show_route(struct cli *c, const struct eval_view *v)
{
    char words[2 * CELL];

    show_gate(c, v->run);
    show_layers(c, v);
    snprintf(words, sizeof(words),
             "%.0f us from text to decision, %.0f us for the slowest in a "
             "hundred",
             v->run->p50_us, v->run->p99_us);
    show_line(c, "latency", words);
}

static void show_grid(struct cli *c, struct grid *g)
{
    buf_add_char(&c->out, '\n');
    grid_write(g, &c->out, c->width, c->colour, c->unicode);
    grid_fini(g);
}

static void add_checkpoint(struct grid *g, size_t outcomes,
                           const struct eval_checkpoint *p)
{
    const struct eval_gate *k = &p->gate;
    char cells[7][CELL];
    struct str row[7];

    snprintf(cells[0], CELL, "%zu", outcomes);
    add_percent(cells[1], k->n_first, k->n);
    add_percent(cells[2], k->n_right, k->n);
    add_percent(cells[3], k->n_refused, k->n);
    add_percent(cells[4], k->n_out_refused, k->n_out);
    snprintf(cells[5], CELL, "%zu", p->corrections);
    snprintf(cells[6], CELL, "%zu", p->types);
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
                                             {"OUT OF SCOPE NOTICED", NULL},
                                             {"CORRECTIONS", NULL},
                                             {"QUERY TYPES", NULL}};
    struct eval_checkpoint none = {.gate = v->run->gate};
    struct grid g;

    if (!v->run->n_checkpoints)
        return;
    grid_init(&g, heads, 7);
    add_checkpoint(&g, 0, &none);
    for (size_t i = 0; i < v->run->n_checkpoints; i++)
        add_checkpoint(&g, v->run->checkpoints[i].outcomes,
                       &v->run->checkpoints[i]);
    show_grid(c, &g);
}

void eval_show_raids(struct cli *c, const struct eval_view *v)
{
    static const struct grid_head heads[] = {{"HOSTILE CARDS", NULL},
                                             {"MADE OF", NULL},
                                             {"FIRST PLACES", NULL},
                                             {"ACCURACY", NULL}};
    struct grid g;

    if (!v->run->n_raids)
        return;
    grid_init(&g, heads, 4);
    for (size_t i = 0; i < v->run->n_raids; i++) {
        const struct eval_raid *r = &v->run->raids[i];
        char cards[CELL], won[CELL], first[CELL];

        snprintf(cards, CELL, "%zu", r->cards);
        add_percent(won, r->n_captured, r->gate.n);
        add_percent(first, r->gate.n_first, r->gate.n);
        grid_add(&g, (struct str[]){str_of(cards), str_of(r->how), str_of(won),
                                    str_of(first)});
    }
    show_grid(c, &g);
}

/* For programs. */

static void put_gate(struct json_out *o, const struct eval_gate *g)
{
    json_member_real(o, "accuracy_at_1", part(g->n_first, g->n));
    json_member_real(o, "right_agent", part(g->n_right, g->n));
    json_member_real(o, "false_alarms", part(g->n_refused, g->n));
    json_member_real(o, "out_of_scope_recall",
                     part(g->n_out_refused, g->n_out));
}

static void put_layers(struct json_out *o, const struct eval_gate *g)
{
    json_key(o, STR("layers"));
    json_open(o, '{');
    for (size_t i = 1; i < N_LAYERS; i++)
        if (g->by_layer[i]) {
            json_key(o, layer_name((enum layer)i));
            json_put_int(o, (int64_t)g->by_layer[i]);
        }
    json_member_int(o, "nobody", (int64_t)g->by_layer[0]);
    json_close(o, '}');
}

static void put_checkpoints(struct json_out *o, const struct eval_run *r)
{
    json_key(o, STR("learning"));
    json_open(o, '[');
    for (size_t i = 0; i < r->n_checkpoints; i++) {
        const struct eval_checkpoint *p = &r->checkpoints[i];

        json_open(o, '{');
        json_member_int(o, "outcomes", (int64_t)p->outcomes);
        put_gate(o, &p->gate);
        json_member_int(o, "corrections", (int64_t)p->corrections);
        json_member_int(o, "examples", (int64_t)p->examples);
        json_member_int(o, "query_types", (int64_t)p->types);
        json_close(o, '}');
    }
    json_close(o, ']');
}

static void put_raids(struct json_out *o, const struct eval_run *r)
{
    json_key(o, STR("capture"));
    json_open(o, '[');
    for (size_t i = 0; i < r->n_raids; i++) {
        const struct eval_raid *raid = &r->raids[i];

        json_open(o, '{');
        json_member_text(o, "made_of", str_of(raid->how));
        json_member_int(o, "cards", (int64_t)raid->cards);
        json_member_real(o, "captured", part(raid->n_captured, raid->gate.n));
        put_gate(o, &raid->gate);
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
    json_member_real(o, "threshold", r->threshold);
    put_gate(o, &r->gate);
    put_layers(o, &r->gate);
    json_member_real(o, "p50_us", r->p50_us);
    json_member_real(o, "p99_us", r->p99_us);
    put_checkpoints(o, r);
    put_raids(o, r);
    json_close(o, '}');
}
