/* decisions: list them, show one with its outcome, and correct one. */
#include "cli/decisions.h"

#include <stdio.h>

#include "cli/decision_show.h"
#include "cli/list.h"
#include "cli/one.h"
#include "cli/span.h"
#include "cli/verdicts.h"
#include "model/decision.h"

enum { NARROW = 100 /* columns; fewer have no LAYER and SCORE */ };

const struct arg_option cli_decisions_options[] = {
    {"text", "WORDS", "only messages with these words", false},
    {"layer", "LAYER", "only this layer: semantic, default, ...", false},
    VERDICT_OPTIONS,
    {"verdict", "VERDICT",
     "only this verdict: open, positive, negative, neutral", false},
    {"type", "N", "only this query type; 0: without a type", false},
    {"overridden", NULL, "only overridden decisions", false},
    {"since", "WHEN", "only from this time on: a span like 7d, or Unix ms",
     false},
    {"until", "WHEN", "only before this time, in the same format", false},
    {"requester", "USER", "only messages from this user; for admins", false},
    {"conversation", "ID", "only this conversation", false},
    {"task", "ID", "only this task", false},
    {"min-score", "SCORE", "only this score or higher", false},
    {"max-score", "SCORE", "only this score or lower", false},
    {"limit", "N",
     "list at most N decisions (default 20), or N candidates (default 10)",
     false},
    DECISION_SHOW_OPTIONS,
    DECISIONS_STATS_OPTIONS,
    CLIENT_OPTIONS,
    {0},
};

/* The list. */

static const char *verdict_colour(struct str verdict)
{
    if (str_eq(verdict, STR("positive")))
        return "\033[32m";
    if (str_eq(verdict, STR("negative")))
        return "\033[31m";
    return str_eq(verdict, STR("neutral")) ? "\033[33m" : "\033[2m";
}

static bool decisions_is_narrow(const struct cli *c)
{
    return c->width && c->width < NARROW;
}

/* The layer, and "unsure" if the band says so. A list has no room for bands
 * that need no attention. */
static struct str layer_cell(const struct json *item, char *room, size_t n)
{
    struct str layer = cli_field(item, STR("layer"));
    bool is_unsure = json_bool_or(json_get(item, STR("unsure")), false) ||
                     str_eq(cli_field(item, STR("band")), STR("unsure"));

    snprintf(room, n, "%.*s%s", STR_ARG(str_head(layer, 32)),
             is_unsure ? ", unsure" : "");
    return str_of(room);
}

/* A narrow terminal has no column for layers, so an unsure agent gets a "?". */
static struct str agent_cell(const struct listing *l, const struct json *item,
                             char *room, size_t n)
{
    struct str agent = cli_field(item, STR("agent"));

    if (str_eq(cli_field(item, STR("layer")), STR("none")))
        return STR("no agent");
    if (!decisions_is_narrow(l->c) ||
        !json_bool_or(json_get(item, STR("unsure")), false))
        return agent;
    snprintf(room, n, "%.*s ?", STR_ARG(str_head(agent, 128)));
    return str_of(room);
}

static void decisions_add_row(struct listing *l, const struct json *item)
{
    const struct json *score = json_get(item, STR("score"));
    struct span_text age =
        span_write(l->now_ms - cli_field_int(item, STR("at_ms")));
    struct str id = cli_field(item, STR("id"));
    char who[136], layer[48], figure[32] = "-";
    struct str agent = agent_cell(l, item, who, sizeof(who));
    struct str verdict = cli_field(item, STR("verdict"));
    struct str text = cli_field(item, STR("text"));

    if (json_get(item, STR("unreadable")))
        text = STR("(recorded by another version; cannot be read)");
    if (json_real_or(score, -1) >= 0)
        snprintf(figure, sizeof(figure), "%.3f", json_real_or(score, 0));
    if (decisions_is_narrow(l->c))
        grid_add(&l->grid,
                 (struct str[]){id, agent, verdict, str_of(age.text), text});
    else
        grid_add(&l->grid,
                 (struct str[]){id, layer_cell(item, layer, sizeof(layer)),
                                agent, str_of(figure), verdict,
                                str_of(age.text), text});
}

static bool add_score(struct cli *c, struct buf *path, const char *option,
                      const char *name, enum exit_status *status)
{
    double score;

    if (!cli_real(c, option, 0, 1, 0, &score, status))
        return false;
    if (args_has(&c->args, option))
        client_add_query(path, name, args_get(&c->args, option));
    return true;
}

static bool decisions_add_filters(struct cli *c, struct buf *path,
                                  enum exit_status *status)
{
    static const struct {
        const char *option, *name;
    } words[] = {{"agent", "agent"},  {"requester", "requester"},
                 {"text", "q"},       {"conversation", "conversation_id"},
                 {"task", "task_id"}, {"type", "type"}};
    int64_t type;
    struct str layer = {0}, verdict = {0};

    if (!cli_one_of(c, "layer", cli_words("decisions", "layer"), &layer,
                    status) ||
        !cli_one_of(c, "verdict", cli_words("decisions", "verdict"), &verdict,
                    status) ||
        !cli_number(c, "type", 0, INT64_MAX, 0, &type, status))
        return false;
    buf_add_str(path, STR("/api/decisions"));
    if (layer.n)
        client_add_query(path, "layer", layer);
    if (verdict.n)
        client_add_query(path, "verdict", verdict);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (args_has(&c->args, words[i].option))
            client_add_query(path, words[i].name,
                             args_get(&c->args, words[i].option));
    if (args_has(&c->args, "overridden"))
        client_add_query(path, "overridden", STR("true"));
    return client_add_time(c, path, "since", "since", status) &&
           client_add_time(c, path, "until", "until", status) &&
           add_score(c, path, "min-score", "min_score", status) &&
           add_score(c, path, "max-score", "max_score", status);
}

static enum exit_status decisions_list(struct cli *c, struct str operand)
{
    static const struct grid_head all[] = {{"ID", NULL},
                                           {"LAYER", NULL},
                                           {"AGENT", NULL},
                                           {"SCORE", NULL},
                                           {"VERDICT", verdict_colour},
                                           {"AGE", NULL},
                                           {"MESSAGE", NULL}};
    static const struct grid_head few[] = {{"ID", NULL},
                                           {"AGENT", NULL},
                                           {"VERDICT", verdict_colour},
                                           {"AGE", NULL},
                                           {"MESSAGE", NULL}};
    bool narrow = decisions_is_narrow(c);
    struct list_kind decisions = {.heads = narrow ? few : all,
                                  .n_heads = narrow ? 5 : 7,
                                  .add = decisions_add_row,
                                  .most = 100000,
                                  .preset = 20,
                                  .none = "No decisions.\n",
                                  .tells_of_further = true};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    (void)operand;
    buf_init(&path, 16 * 1024);
    if (decisions_add_filters(c, &path, &status)) {
        decisions.path = buf_str(&path);
        status = cli_list(c, &decisions);
    }
    buf_fini(&path);
    return status;
}

/* One decision. */

static void say_verdict(struct cli *c, const struct json *d)
{
    struct str verdict = cli_tamed(c, cli_field(d, STR("verdict")));
    const char *colour = c->colour ? verdict_colour(verdict) : "";

    buf_addf(&c->out, "  %-13s %s%.*s%s\n", "verdict", colour, STR_ARG(verdict),
             *colour ? "\033[0m" : "");
    cli_named_time(c, "judged", cli_field_int(d, STR("verdict_ms")));
}

static void say_override(struct cli *c, const struct json *d)
{
    struct str to = cli_field(d, STR("overridden_to"));
    char words[512];

    if (!to.n)
        return;
    snprintf(words, sizeof(words), "to %.*s by %.*s",
             STR_ARG(str_head(to, 128)),
             STR_ARG(str_head(cli_field(d, STR("overridden_by")), 128)));
    cli_named(c, "overridden", str_of(words));
    cli_named_time(c, "override", cli_field_int(d, STR("overridden_ms")));
}

static void say_answer(struct cli *c, const struct json *d)
{
    const struct json *chars = json_get(d, STR("answer_chars"));
    int64_t latency_ms = json_int_or(json_get(d, STR("latency_ms")), -1);
    char words[128];

    if (json_int_or(chars, -1) >= 0) {
        snprintf(words, sizeof(words), "%lld characters",
                 (long long)json_int_or(chars, 0));
        cli_named(c, "answer", str_of(words));
    }
    if (latency_ms >= 0) {
        snprintf(words, sizeof(words), "%.1f s", (double)latency_ms / 1000);
        cli_named(c, "latency", str_of(words));
    }
    cli_named(c, "error", cli_field(d, STR("error_code")));
}

static void show_decision(struct cli *c, const struct one *o,
                          const struct json *d)
{
    const int64_t *limit = o->ctx;

    buf_addf(&c->out, "%.*s  ", STR_ARG(cli_tamed(c, cli_field(d, STR("id")))));
    decision_show_choice(c, d);
    cli_named(c, "from", cli_field(d, STR("requester")));
    cli_named(c, "org", cli_field(d, STR("org")));
    cli_named_time(c, "made", cli_field_int(d, STR("at_ms")));
    cli_named(c, "task", cli_field(d, STR("task_id")));
    cli_named(c, "conversation", cli_field(d, STR("conversation_id")));
    say_answer(c, d);
    say_verdict(c, d);
    say_override(c, d);
    decision_show_candidates(c, d, *limit);
    cli_section(c, "Message", cli_field(d, STR("text")));
}

static enum exit_status decision_show_by_id(struct cli *c, struct str id)
{
    enum exit_status status = EXIT_DONE;
    int64_t limit;

    if (!decision_show_limit(c, &limit, &status))
        return status;
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/decisions/",
                                    .id = id,
                                    .called = "ID",
                                    .show = show_decision,
                                    .ctx = &limit});
}

const struct sub cli_decisions_subs[] = {
    {"list", NULL,
     "text layer agent verdict overridden since until requester conversation "
     "task min-score max-score limit",
     decisions_list},
    {"show", "ID", "limit explain", decision_show_by_id},
    {"stats", "[WHAT]", "window at csv", cli_decisions_stats},
    {"override", "ID AGENT", "comment send", cli_override},
    {"feedback", "ID VERDICT", "agent comment", cli_feedback},
    {0},
};

enum exit_status cli_decisions(struct cli *c)
{
    cli_show_alone(c, STR("dec_"));
    return cli_sub(c, cli_decisions_subs);
}
