/* The agent that a decision chose, the reasons, and the other candidates. */
#include "cli/decision_show.h"

#include <stdio.h>

#include "cli/candidates.h"
#include "cli/price.h"
#include "model/decision.h"

enum { LIMIT = 10 };

static double decision_figure(const struct json *v, struct str key)
{
    return json_real_or(json_get(v, key), 0);
}

#define LAYER_WORDS(id, number, name, words) [LAYER_##id] = name ": " words,

/* A layer with its criterion. */
static const char *layer_words(struct str layer)
{
    static const char *const words[N_LAYERS] = {LAYERS(LAYER_WORDS)};
    enum layer l = layer_of(layer);

    return l ? words[l] : NULL;
}

static bool is_by_score(const struct json *d)
{
    return str_eq(cli_field(d, STR("layer")), STR("semantic"));
}

/* The candidate that was chosen by its score, or else the nearest; NULL: no
 * candidates. */
static const struct json *chosen_or_nearest(const struct json *d)
{
    const struct json *list = json_get(d, STR("candidates"));
    struct str agent = cli_field(d, STR("agent"));

    JSON_EACH(kid, list)
    {
        if (is_by_score(d) && str_eq(cli_field(kid, STR("agent")), agent))
            return kid;
    }
    return json_at(list, 0);
}

static void say_band(struct cli *c, const struct json *d)
{
    struct str band = cli_field(d, STR("band"));

    if (str_eq(band, STR("confident")))
        cli_named(c, "band", STR("confident: clearly for this agent"));
    else if (str_eq(band, STR("unsure")))
        cli_named(c, "band",
                  is_by_score(d)
                      ? STR("unsure: the message may be for another agent")
                      : STR("unsure: it is not clear which agent is meant"));
    else if (str_eq(band, STR("out_of_scope")))
        cli_named(c, "band",
                  STR("out of scope: no agent does what the message asks for"));
    if (band.n && !is_by_score(d))
        cli_named(c, "nearest", cli_field(chosen_or_nearest(d), STR("agent")));
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

/* "0.364, floor 0.096 (one of 5 agents)" */
static void say_floor(struct cli *c, const struct json *d)
{
    const struct json *best = chosen_or_nearest(d);
    int64_t n = json_int_or(json_get(json_get(d, STR("rules")), STR("n")),
                            json_int_or(json_get(d, STR("considered")), 0));
    double floor = json_real_or(json_get(best, STR("floor")), -1);
    const char *decided = band_reason(d, best, n, floor);
    char words[160], agents[48] = "";

    if (!best)
        return;
    if (n == 1 && !*decided)
        snprintf(agents, sizeof(agents), " (the only agent)");
    else if (n > 1)
        snprintf(agents, sizeof(agents), " (one of %lld agents)", (long long)n);
    if (floor < 0)
        snprintf(words, sizeof(words),
                 "%.3f; the floor of this agent is not known yet%s",
                 decision_figure(best, STR("semantic")), decided);
    else
        snprintf(words, sizeof(words), "%.3f, floor %.3f%s%s",
                 decision_figure(best, STR("semantic")), floor, agents,
                 decided);
    cli_named(c, "semantic", str_of(words));
}

/* The figures behind the band: the candidate's own floor for its semantic
 * signal, or one threshold for every score. */
static void say_score(struct cli *c, const struct json *d)
{
    const struct json *list = json_get(d, STR("candidates"));
    bool has_second = list && list->type == JSON_ARR && list->kids.n > 1;
    bool is_auto =
        json_bool_or(json_get(json_get(d, STR("rules")), STR("auto")), false);
    char words[160];

    say_band(c, d);
    if (is_auto && cli_field(d, STR("band")).n)
        say_floor(c, d);
    if (!is_by_score(d))
        return;
    if (is_auto)
        snprintf(words, sizeof(words), "%.3f",
                 decision_figure(d, STR("score")));
    else
        snprintf(words, sizeof(words), "%.3f, threshold %.3f",
                 decision_figure(d, STR("score")),
                 decision_figure(d, STR("threshold")));
    cli_named(c, "score", str_of(words));
    if (!has_second)
        return;
    snprintf(words, sizeof(words), "%.3f to the second",
             decision_figure(d, STR("margin")));
    cli_named(c, "margin", str_of(words));
}

/* The tier of the model that decided, if the model has two. */
static void say_tier(struct cli *c, const struct json *d)
{
    struct str tier = cli_field(d, STR("tier"));

    if (str_eq(tier, STR("transformer")))
        cli_named(c, "tier",
                  STR("transformer, because the table was not clear"));
    else if (cli_field(d, STR("tier_note")).n)
        cli_named(c, "tier", STR("table, without the transformer"));
    else
        cli_named(c, "tier", tier);
}

static void say_decide_time(struct cli *c, const struct json *d)
{
    int64_t us = json_int_or(json_get(d, STR("decide_us")), 0);
    char words[64];

    if (us <= 0)
        return;
    if (us < 10000)
        snprintf(words, sizeof(words), "%lld us", (long long)us);
    else
        snprintf(words, sizeof(words), "%.1f ms", (double)us / 1000);
    cli_named(c, "decided in", str_of(words));
}

static void say_intent(struct cli *c, const struct json *intent)
{
    char words[512];
    struct str why = cli_field(intent, STR("why"));

    if (!intent || intent->type != JSON_OBJ)
        return;
    if (why.n)
        snprintf(words, sizeof(words), "not used: %.*s",
                 STR_ARG(str_head(why, 400)));
    else
        snprintf(words, sizeof(words), "%.*s, with a confidence of %.2f",
                 STR_ARG(str_head(cli_field(intent, STR("agent")), 128)),
                 decision_figure(intent, STR("confidence")));
    cli_named(c, "classifier", str_of(words));
}

static void say_formula(struct cli *c, const struct json *d)
{
    const struct json *w = json_get(d, STR("weights"));
    char words[256];

    if (!w)
        return;
    snprintf(words, sizeof(words),
             "score = %g x semantic + %g x performance + %g x keyword + %g x "
             "recency",
             decision_figure(w, STR("semantic")),
             decision_figure(w, STR("performance")),
             decision_figure(w, STR("keyword")),
             decision_figure(w, STR("recency")));
    buf_add_char(&c->out, '\n');
    cli_wrapped(c, 0, 8, str_of(words));
}

void decision_show_candidates(struct cli *c, const struct json *d,
                              int64_t limit)
{
    struct candidates_opts opts = {.limit = (size_t)limit,
                                   .width = c->width,
                                   .chosen = cli_field(d, STR("agent")),
                                   .explains = args_has(&c->args, "explain"),
                                   .colour = c->colour,
                                   .unicode = c->unicode};
    const struct json *list = json_get(d, STR("candidates"));
    int64_t all, shown;

    if (!list || list->type != JSON_ARR || !list->kids.n)
        return;
    buf_add_char(&c->out, '\n');
    shown = (int64_t)candidates_write(&c->out, d, &opts);
    all = json_int_or(json_get(d, STR("considered")), shown);
    if (shown > limit)
        shown = limit;
    if (all > shown)
        buf_addf(&c->out, "     and %lld more\n", (long long)(all - shown));
    if (opts.explains)
        say_formula(c, d);
}

void decision_show_choice(struct cli *c, const struct json *d)
{
    struct str agent = cli_tamed(c, cli_field(d, STR("agent")));
    struct str layer = cli_field(d, STR("layer"));
    struct str reason = cli_field(d, STR("reason"));
    const char *words = layer_words(layer);
    int64_t price = json_int_or(json_get(d, STR("price_micros")), 0);
    int64_t ceiling = json_int_or(json_get(d, STR("ceiling_micros")), 0);

    cli_coloured(c, agent.n ? GREEN : YELLOW,
                 agent.n ? agent : STR("no agent"));
    buf_add_char(&c->out, '\n');
    cli_named(c, "layer", words ? str_of(words) : layer);
    cli_named(c, "skill", cli_field(d, STR("skill")));
    say_score(c, d);
    say_tier(c, d);
    /* A refusal's reason explains how to name an agent. */
    if (str_eq(layer, STR("none")))
        reason = client_own_words(c, reason);
    cli_named(c, "reason", reason);
    say_decide_time(c, d);
    if (price > 0)
        cli_named(c, "price", str_of(price_write(price).text));
    if (ceiling > 0)
        cli_named(c, "at most", str_of(price_write(ceiling).text));
    if (price > 0)
        cli_named(c, "quote", cli_field(d, STR("quote")));
    say_intent(c, json_get(d, STR("intent")));
    cli_named(c, "note", cli_field(d, STR("note")));
    cli_named(c, "gate", cli_field(d, STR("gate")));
    cli_named(c, "gate's rule", cli_field(d, STR("gate_rule")));
    cli_named(c, "gate's reason", cli_field(d, STR("gate_reason")));
}

bool decision_show_limit(struct cli *c, int64_t *limit,
                         enum exit_status *status)
{
    return cli_number(c, "limit", 1, DECISION_CANDIDATES_MAX, LIMIT, limit,
                      status);
}
