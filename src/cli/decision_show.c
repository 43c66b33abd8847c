/* Whom a decision chose and why, and who else could have been. */
#include "cli/decision_show.h"

#include <stdio.h>

#include "cli/candidates.h"
#include "cli/price.h"
#include "model/decision.h"

enum { LIMIT = 10 };

static double real(const struct json *v, struct str key)
{
    return json_real_or(json_get(v, key), 0);
}

/* What each layer goes by. */
static const char *layer_words(struct str layer)
{
    static const char *const words[N_LAYERS] = {
        [LAYER_EXPLICIT] = "explicit: the message names it",
        [LAYER_PREFIX] = "prefix: the text begins with its name",
        [LAYER_STICKY] = "sticky: the conversation has it already",
        [LAYER_BINDING] = "binding: it answers where this came from",
        [LAYER_INTENT] = "intent: a language model says who is meant",
        [LAYER_SEMANTIC] = "semantic: it has the best score",
        [LAYER_DEFAULT] = "default: it gets what nobody else is chosen for",
    };
    enum layer l = layer_of(layer);

    return l ? words[l] : NULL;
}

static void say_score(struct cli *c, const struct json *d)
{
    const struct json *list = json_get(d, STR("candidates"));
    bool has_second = list && list->type == JSON_ARR && list->kids.n > 1;
    char words[160];
    size_t n;

    if (!str_eq(cli_field(d, STR("layer")), STR("semantic")))
        return;
    n = (size_t)snprintf(words, sizeof(words), "%.3f, and %.3f is enough",
                         real(d, STR("score")), real(d, STR("threshold")));
    cli_named(c, "score", (struct str){words, n});
    if (!has_second)
        return;
    n = (size_t)snprintf(words, sizeof(words), "%.3f to the second",
                         real(d, STR("margin")));
    cli_named(c, "margin", (struct str){words, n});
}

static void say_chosen(struct cli *c, const struct json *d)
{
    struct str layer = cli_field(d, STR("layer"));
    const char *words = layer_words(layer);
    int64_t price = json_int_or(json_get(d, STR("price_micros")), 0);

    cli_coloured(c, GREEN, cli_tamed(c, cli_field(d, STR("agent"))));
    buf_add_char(&c->out, '\n');
    cli_named(c, "layer", words ? str_of(words) : layer);
    cli_named(c, "skill", cli_field(d, STR("skill")));
    say_score(c, d);
    cli_named(c, "reason", cli_field(d, STR("reason")));
    if (price > 0)
        cli_named(c, "price", str_of(price_write(price).text));
}

/* Whether it might go then, and why. */
static void say_gate(struct cli *c, const struct json *d)
{
    cli_named(c, "gate", cli_field(d, STR("gate")));
    cli_named(c, "gate's rule", cli_field(d, STR("gate_rule")));
    cli_named(c, "gate's reason", cli_field(d, STR("gate_reason")));
}

static void say_intent(struct cli *c, const struct json *intent)
{
    char words[512];
    struct str why = cli_field(intent, STR("why"));

    if (!intent || intent->type != JSON_OBJ)
        return;
    if (why.n)
        snprintf(words, sizeof(words), "not heard: %.*s",
                 STR_ARG(str_head(why, 400)));
    else
        snprintf(words, sizeof(words), "%.*s, with a confidence of %.2f",
                 STR_ARG(str_head(cli_field(intent, STR("agent")), 128)),
                 real(intent, STR("confidence")));
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
             real(w, STR("semantic")), real(w, STR("performance")),
             real(w, STR("keyword")), real(w, STR("recency")));
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
    say_chosen(c, d);
    say_intent(c, json_get(d, STR("intent")));
    cli_named(c, "note", cli_field(d, STR("note")));
    say_gate(c, d);
}

bool decision_show_limit(struct cli *c, int64_t *limit,
                         enum exit_status *status)
{
    return cli_number(c, "limit", 1, DECISION_CANDIDATES_MAX, LIMIT, limit,
                      status);
}
