/* The agent that a decision chose, the reasons, and the other candidates. */
#include "cli/decision_show.h"

#include <stdio.h>

#include "cli/candidates.h"
#include "cli/cells.h"
#include "model/decision.h"

enum { LIMIT = 10 };

static double decision_figure(const struct json *v, struct str key)
{
    return json_real_or(json_get(v, key), 0);
}

static bool is_by_score(const struct json *d)
{
    return str_eq(cli_field(d, STR("layer")), STR("semantic"));
}

/* The candidate that was chosen by its score, or else the nearest; NULL: no
 * candidates. */
static const struct json *chosen_or_nearest(const struct json *d)
{
    const struct json *list = cli_items(d, "candidates");
    struct str agent = cli_field(d, STR("agent"));

    JSON_EACH(kid, list)
    {
        if (is_by_score(d) && str_eq(cli_field(kid, STR("agent")), agent))
            return kid;
    }
    return json_at(list, 0);
}

static void as_band(const struct cell *cell, struct buf *out)
{
    struct str band = json_str_or(cell->v, STR(""));

    if (str_eq(band, STR("confident")))
        buf_add_str(out, STR("confident: clearly for this agent"));
    else if (str_eq(band, STR("unsure")))
        buf_add_str(out,
                    is_by_score(cell->item)
                        ? STR("unsure: the message may be for another agent")
                        : STR("unsure: it is not clear which agent is meant"));
    else if (str_eq(band, STR("out_of_scope")))
        buf_add_str(
            out, STR("out of scope: no agent does what the message asks for"));
}

static void as_nearest(const struct cell *cell, struct buf *out)
{
    if (cell->v && !is_by_score(cell->item))
        buf_add_str(out,
                    cli_field(chosen_or_nearest(cell->item), STR("agent")));
}

static bool is_auto(const struct json *d)
{
    return json_bool_or(cli_member(d, "rules.auto"), false);
}

/* The reason if the band differs from the one of the semantic signal alone. */
static const char *band_reason(const struct json *d, const struct json *best,
                               int64_t n, double floor)
{
    struct str band = cli_field(d, STR("band"));
    bool is_below = floor < 0 || decision_figure(best, STR("semantic")) < floor;

    if (is_by_score(d) && json_bool_or(json_get(d, STR("example")), false))
        return json_bool_or(json_get(best, STR("taught")), false)
                   ? "; a correction of this text decided"
                   : "; corrections of similar texts decided";
    if (str_eq(band, STR("confident")) && is_below && is_by_score(d))
        return n == 1 ? "; the only agent gets every message"
                      : "; the lead over the next agent decided";
    if (str_eq(band, STR("unsure")) && !is_below)
        return "; but the next agent is too close";
    return "";
}

/* The candidate's own floor for its semantic signal: "0.364, floor 0.096 (one
 * of 5 agents)". */
static void as_floor(const struct cell *cell, struct buf *out)
{
    const struct json *d = cell->item, *best = chosen_or_nearest(d);
    int64_t n = json_int_or(cli_member(d, "rules.n"),
                            cli_field_int(d, STR("considered")));
    double floor = json_real_or(json_get(best, STR("floor")), -1);
    const char *decided = band_reason(d, best, n, floor);

    if (!best || !cell->v || !is_auto(d))
        return;
    buf_addf(out, "%.3f", decision_figure(best, STR("semantic")));
    if (floor < 0)
        buf_add_str(out, STR("; the floor of this agent is not known yet"));
    else
        buf_addf(out, ", floor %.3f", floor);
    if (floor >= 0 && n == 1 && !*decided)
        buf_add_str(out, STR(" (the only agent)"));
    else if (floor >= 0 && n > 1)
        buf_addf(out, " (one of %lld agents)", (long long)n);
    buf_add_str(out, str_of(decided));
}

/* Without floors there is one threshold for every score. */
static void as_reached(const struct cell *cell, struct buf *out)
{
    if (!is_by_score(cell->item))
        return;
    buf_addf(out, "%.3f", json_real_or(cell->v, 0));
    if (!is_auto(cell->item))
        buf_addf(out, ", threshold %.3f",
                 decision_figure(cell->item, STR("threshold")));
}

static void as_margin(const struct cell *cell, struct buf *out)
{
    if (is_by_score(cell->item) &&
        cli_items(cell->item, "candidates")->kids.n > 1)
        buf_addf(out, "%.3f to the second", json_real_or(cell->v, 0));
}

/* The tier of the model that decided, if the model has two. */
static void as_tier(const struct cell *cell, struct buf *out)
{
    struct str tier = json_str_or(cell->v, STR(""));

    if (str_eq(tier, STR("transformer")))
        buf_add_str(out, STR("transformer, because the table was not clear"));
    else if (cli_field(cell->item, STR("tier_note")).n)
        buf_add_str(out, STR("table, without the transformer"));
    else
        buf_add_str(out, tier);
}

static void as_us(const struct cell *cell, struct buf *out)
{
    int64_t us = json_int_or(cell->v, 0);

    if (us >= 10000)
        buf_addf(out, "%.1f ms", (double)us / 1000);
    else if (us > 0)
        buf_addf(out, "%lld us", (long long)us);
}

static void as_intent(const struct cell *cell, struct buf *out)
{
    if (!cell->v || cell->v->type != JSON_OBJ)
        return;
    if (cli_field(cell->v, STR("why")).n)
        cli_put_words(out, cell->v, "not used: {why}");
    else
        buf_addf(out, "%.*s, with a confidence of %.2f",
                 STR_ARG(cli_field(cell->v, STR("agent"))),
                 decision_figure(cell->v, STR("confidence")));
}

#define LAYER_WORDS(id, number, name, words) [LAYER_##id] = name ": " words,

/* A layer with its criterion. */
static void as_criterion(const struct cell *cell, struct buf *out)
{
    static const char *const words[N_LAYERS] = {LAYERS(LAYER_WORDS)};
    struct str layer = json_str_or(cell->v, STR(""));
    const char *known = words[layer_of(layer)];

    buf_add_str(out, known ? str_of(known) : layer);
}

/* A quote is for a price. */
static void as_quote(const struct cell *cell, struct buf *out)
{
    if (cli_field_int(cell->item, STR("price_micros")) > 0)
        buf_add_str(out, json_str_or(cell->v, STR("")));
}

static const struct field until_reason[] = {
    {"layer", "layer", as_criterion},
    {"skill", "skill", NULL},
    {"band", "band", as_band},
    {"nearest", "band", as_nearest},
    {"semantic", "band", as_floor},
    {"score", "score", as_reached},
    {"margin", "margin", as_margin},
    {"tier", "tier", as_tier},
    {0},
};
static const struct field after_reason[] = {
    {"decided in", "decide_us", as_us},
    {"price", "price_micros", as_price},
    {"at most", "ceiling_micros", as_price},
    {"quote", "quote", as_quote},
    {"classifier", "intent", as_intent},
    {"note", "note", NULL},
    {"gate", "gate", NULL},
    {"gate's rule", "gate_rule", NULL},
    {"gate's reason", "gate_reason", NULL},
    {0},
};

static bool read_limit(struct cli *c, int64_t *limit, enum exit_status *status)
{
    return cli_number(c, "limit", 1, DECISION_CANDIDATES_MAX, LIMIT, limit,
                      status);
}

bool decision_limit_is_good(struct cli *c, enum exit_status *status)
{
    int64_t limit;

    return read_limit(c, &limit, status);
}

void decision_show_candidates(struct cli *c, const struct json *d)
{
    struct candidates_opts opts = {.width = c->width,
                                   .chosen = cli_field(d, STR("agent")),
                                   .explains = args_has(&c->args, "explain"),
                                   .colour = c->colour,
                                   .unicode = c->unicode};
    const struct json *weights = json_get(d, STR("weights"));
    enum exit_status unused;
    int64_t all, shown, limit;
    char words[256];

    if (!cli_items(d, "candidates")->kids.n)
        return;
    if (!read_limit(c, &limit, &unused))
        return; /* decision_limit_is_good has reported it */
    opts.limit = (size_t)limit;
    buf_add_char(&c->out, '\n');
    shown = (int64_t)candidates_write(&c->out, d, &opts);
    all = json_int_or(json_get(d, STR("considered")), shown);
    if (shown > limit)
        shown = limit;
    if (all > shown)
        buf_addf(&c->out, "     and %lld more\n", (long long)(all - shown));
    if (!opts.explains || !weights)
        return;
    snprintf(words, sizeof(words),
             "score = %g x semantic + %g x performance + %g x keyword + %g x "
             "recency",
             decision_figure(weights, STR("semantic")),
             decision_figure(weights, STR("performance")),
             decision_figure(weights, STR("keyword")),
             decision_figure(weights, STR("recency")));
    buf_add_char(&c->out, '\n');
    cli_wrapped(c, 0, 8, str_of(words));
}

void decision_show_choice(struct cli *c, const struct json *d)
{
    struct str agent = cli_tamed(c, cli_field(d, STR("agent")));
    struct str reason = cli_field(d, STR("reason"));

    cli_coloured(c, agent.n ? GREEN : YELLOW,
                 agent.n ? agent : STR("no agent"));
    buf_add_char(&c->out, '\n');
    cli_fields(c, d, until_reason);
    /* A refusal's reason explains how to name an agent. */
    if (str_eq(cli_field(d, STR("layer")), STR("none")))
        reason = client_own_words(c, reason);
    cli_named(c, "reason", reason);
    cli_fields(c, d, after_reason);
}
