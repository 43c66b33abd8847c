/* decisions stats: the tables of GET /api/analytics for people. JSON and CSV
 * are the server's, unchanged. */
#include "cli/decisions.h"

#include <time.h>

#include "cli/list.h"
#include "model/decision.h"

enum { PATH_MAX_BYTES = 4096, SAMPLE_BYTES = 160 };

/* One table. */
struct stats {
    const char *what;
    const struct grid_column *columns;
    size_t right_from; /* columns of numbers begin here */
    size_t stride;     /* show only every n-th row; zero: all */
    const char *none;
    const char *about; /* explains the figures; may be NULL */
};

/* Cells. */

static void as_percent(const struct cell *cell, struct buf *out)
{
    if (cell->v)
        buf_addf(out, "%.1f%%", 100 * json_real_or(cell->v, 0));
    else
        buf_add_char(out, '-');
}

static void as_chars(const struct cell *cell, struct buf *out)
{
    if (cell->v)
        cli_put_count(out, (int64_t)(json_real_or(cell->v, 0) + 0.5));
    else
        buf_add_char(out, '-');
}

static void as_ms(const struct cell *cell, struct buf *out)
{
    double ms = json_real_or(cell->v, 0);

    if (!cell->v)
        buf_add_char(out, '-');
    else if (ms < 1000)
        buf_addf(out, "%.0f ms", ms);
    else
        buf_addf(out, "%.1f s", ms / 1000);
}

static void as_receiver(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, json_str_or(cell->v, STR("(no agent)")));
}

/* Thresholds are set in hundredths. */
static void as_hundredths(const struct cell *cell, struct buf *out)
{
    buf_addf(out, "%.2f", json_real_or(cell->v, 0));
}

/* The start of an hour or a day in UTC. */
static void as_hour(const struct cell *cell, struct buf *out)
{
    time_t at = (time_t)(json_int_or(cell->v, 0) / 1000);
    char text[32];
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
    buf_add_str(out, str_of(text));
}

/* The type's number, and its name if the server sent it. */
static void as_type(const struct cell *cell, struct buf *out)
{
    cli_put_words(out, cell->item, cell->v ? "{type}[ {name}]" : "(none)");
}

static void as_samples(const struct cell *cell, struct buf *out)
{
    for (size_t i = 0; json_at(cell->v, i); i++)
        buf_addf(out, "%s%.*s", i ? " | " : "",
                 STR_ARG(str_head(json_str_or(json_at(cell->v, i), STR("")),
                                  SAMPLE_BYTES)));
}

/* The tables. */

#define OF_ROUTED                                                             \
    "ROUTED counts the decisions that the router made from the text "         \
    "(semantic, intent, default, none); the figures after it are for these. " \
    "The other messages named an agent, stayed with theirs, or had a binding."

static const struct grid_column agent_columns[] = {
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"DECISIONS", "decisions", as_count, KEPT, NULL},
    {"ROUTED", "routed", as_count, KEPT, NULL},
    {"CONFIDENCE", "confidence", as_score, KEPT, NULL},
    {"OVERRIDES", "overrides", as_count, KEPT, NULL},
    {"ERRORS", "error_rate", as_percent, KEPT, NULL},
    {"CHARS", "answer_chars", as_chars, KEPT, NULL},
    {"LATENCY", "latency_ms", as_ms, KEPT, NULL},
    {0},
};

static const struct grid_column type_columns[] = {
    {"TYPE", "type", as_type, KEPT, NULL},
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"DECISIONS", "decisions", as_count, KEPT, NULL},
    {"CONFIDENCE", "confidence", as_score, KEPT, NULL},
    {"OVERRIDES", "overrides", as_count, KEPT, NULL},
    {"GOOD", "positive", as_count, KEPT, NULL},
    {"BAD", "negative", as_count, KEPT, NULL},
    {0},
};

static const struct grid_column gap_columns[] = {
    {"TYPE", "type", as_type, KEPT, NULL},
    {"DECISIONS", "decisions", as_count, KEPT, NULL},
    {"DEFAULT", "to_default", as_count, KEPT, NULL},
    {"REFUSED", "refused", as_count, KEPT, NULL},
    {"BEST", "best_score", as_score, KEPT, NULL},
    {"NEAREST", "nearest_agent", as_receiver, KEPT, NULL},
    {"MESSAGES", "samples", as_samples, KEPT, NULL},
    {0},
};

static const struct grid_column signal_columns[] = {
    {"SIGNAL", "signal", NULL, KEPT, NULL},
    {"DECISIONS", "decisions", as_count, KEPT, NULL},
    {"WOULD DIFFER", "would_differ", as_count, KEPT, NULL},
    {"HELPED", "helped", as_count, KEPT, NULL},
    {"HURT", "hurt", as_count, KEPT, NULL},
    {0},
};

static const struct grid_column keyword_columns[] = {
    {"KEYWORD", "keyword", NULL, KEPT, NULL},
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"FIRED", "fired", as_count, KEPT, NULL},
    {"WON", "won", as_count, KEPT, NULL},
    {"PULLED", "pulled", as_count, KEPT, NULL},
    {"RIGHT", "right", as_count, KEPT, NULL},
    {"WRONG", "wrong", as_count, KEPT, NULL},
    {0},
};

static const struct grid_column time_columns[] = {
    {"FROM (UTC)", "from_ms", as_hour, KEPT, NULL},
    {"DECISIONS", "decisions", as_count, KEPT, NULL},
    {"ROUTED", "routed", as_count, KEPT, NULL},
    {"CONFIDENCE", "confidence", as_score, KEPT, NULL},
    {"OVERRIDES", "override_rate", as_percent, KEPT, NULL},
    {"ERRORS", "error_rate", as_percent, KEPT, NULL},
    {"LATENCY", "latency_ms", as_ms, KEPT, NULL},
    {0},
};

static const struct grid_column threshold_columns[] = {
    {"THRESHOLD", "threshold", as_hundredths, KEPT, NULL},
    {"BY SCORE", "by_score", as_count, KEPT, NULL},
    {"BY DEFAULT", "by_default", as_count, KEPT, NULL},
    {"CHANGED", "changed", as_count, KEPT, NULL},
    {"TO AGENT", "to_agent", as_count, KEPT, NULL},
    {"TO DEFAULT", "to_default", as_count, KEPT, NULL},
    {"BETTER", "better", as_count, KEPT, NULL},
    {"WORSE", "worse", as_count, KEPT, NULL},
    {0},
};

static const struct grid_column alpha_columns[] = {
    {"ALPHA", "alpha", as_hundredths, KEPT, NULL},
    {"CONFIDENT", "confident", as_count, KEPT, NULL},
    {"UNSURE", "unsure", as_count, KEPT, NULL},
    {"OUT OF SCOPE", "out_of_scope", as_count, KEPT, NULL},
    {"CHANGED", "changed", as_count, KEPT, NULL},
    {"TO NONE", "to_nobody", as_count, KEPT, NULL},
    {"BETTER", "better", as_count, KEPT, NULL},
    {"WORSE", "worse", as_count, KEPT, NULL},
    {0},
};

static const struct grid_column change_columns[] = {
    {"DECISION", "id", NULL, KEPT, NULL},
    {"BEST", "best_score", as_score, KEPT, NULL},
    {"FROM", "from", as_receiver, KEPT, NULL},
    {"TO", "to", as_receiver, KEPT, NULL},
    {"OUTCOME", "outcome", NULL, KEPT, NULL},
    {"MESSAGE", "text", NULL, KEPT, NULL},
    {0},
};

static const struct stats tables[] = {
    {"agents", agent_columns, 1, 0, "No decisions.\n",
     OF_ROUTED " CHARS is the mean length of an answer."},
    {"types", type_columns, 2, 0, "No decisions by meaning.\n", NULL},
    {"gaps", gap_columns, 0, 0,
     "No gaps: every message had a confident choice.\n",
     "Messages without a confident choice: they went to the default agent, "
     "were refused, or were close to the threshold or to the second agent. "
     "BEST is the mean of the best scores, NEAREST the nearest agent."},
    {"signals", signal_columns, 1, 0, "No decisions.\n",
     "WOULD DIFFER counts the decisions that would have gone to another agent "
     "without the signal, or to none with confidence. HELPED counts those with "
     "a good outcome, HURT those with a bad one."},
    {"keywords", keyword_columns, 2, 0, "No message had a keyword.\n",
     "PULLED counts the messages that the agent would not have got without "
     "the keyword, or not with confidence."},
    {"hours", time_columns, 1, 0, "No decisions.\n", OF_ROUTED},
    {"days", time_columns, 1, 0, "No decisions.\n", OF_ROUTED},
    {"thresholds", threshold_columns, 0, 5, "No decisions.\n",
     "The decisions with each threshold, all other settings unchanged. CHANGED "
     "counts those with another agent: TO AGENT instead of the default agent, "
     "or TO DEFAULT. BETTER: a person said that the new agent is right. WORSE: "
     "the old choice had a good outcome. --json and --csv have every "
     "hundredth."},
    {"alphas", alpha_columns, 0, 0, "No decisions.\n",
     "The decisions by the threshold \"auto\" with each alpha, all other "
     "settings unchanged. Alpha is the share of unrelated messages that may "
     "become confident choices. CHANGED counts those with another agent, or "
     "with none (TO NONE)."},
    {"changes", change_columns, 0, 0, "Nothing would change.\n",
     "Decisions that the threshold --at would change, newest first. signalbox "
     "replay tries other settings."},
};

static const struct stats *stats_find(struct str what)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if (str_eq(what, str_of(tables[i].what)))
            return &tables[i];
    return NULL;
}

static void show_table(struct cli *c, const struct stats *s,
                       const struct json *answer)
{
    struct item_table t;
    size_t nth = 0;

    item_table_init(&t, c, s->columns, 0);
    t.grid.cuts_first = true;
    if (s->right_from)
        grid_right_from(&t.grid, s->right_from);
    JSON_EACH(row, cli_items(answer, "items"))
    {
        if (!s->stride || nth++ % s->stride == 0)
            item_table_add(&t, row);
    }
    if (t.grid.n_rows)
        grid_write(&t.grid, &c->out, c->width, c->colour, c->unicode);
    else
        buf_add_str(&c->out, str_of(s->none));
    if (t.grid.n_rows && s->about && c->on_terminal) {
        buf_add_char(&c->out, '\n');
        cli_wrapped(c, 0, 0, str_of(s->about));
    }
    item_table_fini(&t);
}

/* The summary. */

static void as_overrides(const struct cell *cell, struct buf *out)
{
    as_percent(cell, out);
    buf_add_str(out, STR(" ("));
    cli_put_count(out, cli_field_int(cell->item, STR("overrides")));
    buf_add_str(out, STR(" of "));
    cli_put_count(out, cli_field_int(cell->item, STR("routed")));
    buf_add_char(out, ')');
}

static void as_mean_answer(const struct cell *cell, struct buf *out)
{
    if (!cell->v)
        return;
    as_chars(cell, out);
    buf_add_str(out, STR(" characters"));
}

static void as_mean_latency(const struct cell *cell, struct buf *out)
{
    if (cell->v)
        as_ms(cell, out);
}

/* "12 positive, 3 open": the figures that are not zero. */
static void add_shares(const struct cell *cell, const char *const *names,
                       size_t n, struct buf *out)
{
    size_t from = out->n;

    for (size_t i = 0; i < n; i++) {
        int64_t figure = cli_field_int(cell->item, str_of(names[i]));

        if (!figure)
            continue;
        if (out->n > from)
            buf_add_str(out, STR(", "));
        cli_put_count(out, figure);
        buf_addf(out, " %s", names[i]);
    }
}

static void as_verdicts(const struct cell *cell, struct buf *out)
{
    static const char *const names[] = {"positive", "negative", "neutral",
                                        "open"};

    add_shares(cell, names, sizeof(names) / sizeof(names[0]), out);
}

static void as_layers(const struct cell *cell, struct buf *out)
{
    static const char *const names[] = {LAYERS(LAYER_TEXT) "explored"};

    add_shares(cell, names, sizeof(names) / sizeof(names[0]), out);
}

static const struct field summary[] = {
    {"routed", "routed", as_count},
    {"confidence", "confidence", as_score},
    {"margin", "margin", as_score},
    {"overrides", "override_rate", as_overrides},
    {"errors", "error_rate", as_percent},
    {"answer", "answer_chars", as_mean_answer},
    {"latency", "latency_ms", as_mean_latency},
    {"verdicts", "", as_verdicts},
    {"layers", "", as_layers},
    {"first", "first_ms", as_ago},
    {"last", "last_ms", as_ago},
    {0},
};

static void show_summary(struct cli *c, const struct json *answer)
{
    static const struct field first[] = {{"decisions", "decisions", as_count},
                                         {0}};
    const struct json *row = json_at(json_get(answer, STR("items")), 0);

    cli_fields(c, row, first);
    if (cli_field_int(row, STR("decisions")))
        cli_fields(c, row, summary);
}

static enum exit_status stats_request(struct cli *c, struct client *cl,
                                      const char *what, bool is_csv)
{
    enum exit_status status = EXIT_DONE;
    struct buf path;

    buf_init(&path, PATH_MAX_BYTES);
    buf_addf(&path, "/api/analytics/%s", what);
    if (args_has(&c->args, "window"))
        client_add_query(&path, "window", args_get(&c->args, "window"));
    if (args_has(&c->args, "at"))
        client_add_query(&path, "at", args_get(&c->args, "at"));
    if (is_csv)
        client_add_query(&path, "format", STR("csv"));
    if (path.over)
        status = cli_error(c, ERR_USAGE, "--window or --at is too long");
    else if (client_call(cl, &(struct client_request){.method = "GET",
                                                      .path = buf_str(&path),
                                                      .wants_text = is_csv,
                                                      .notice = "Counting"}))
        status = client_fail(cl);
    buf_fini(&path);
    return status;
}

static void say_if_cut(struct cli *c, const struct json *answer)
{
    if (!json_bool_or(json_get(answer, STR("is_complete")), true) &&
        !args_has(&c->args, "at"))
        buf_addf(&c->out,
                 "\nOnly the newest %lld decisions of this period were "
                 "counted.\n",
                 (long long)cli_field_int(answer, STR("decisions_read")));
}

/* Unchanged, but without carriage returns on a terminal. */
static void write_csv(struct cli *c, struct str text)
{
    while (c->on_terminal && text.n) {
        struct str line = str_cut(&text, '\n');

        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        cli_text(c, line);
        buf_add_char(&c->out, '\n');
    }
    cli_text(c, text);
}

static enum exit_status stats_show(struct cli *c, struct client *cl,
                                   const struct stats *s)
{
    bool is_csv = args_has(&c->args, "csv");
    const struct stats *agents = s ? NULL : stats_find(STR("agents"));
    enum exit_status status =
        stats_request(c, cl, s ? s->what : "summary", is_csv);
    const struct client_reply *r = client_reply(cl);
    int64_t n_refused;

    if (status)
        return status;
    if (is_csv) {
        write_csv(c, r->text);
        return EXIT_DONE;
    }
    if (c->json) {
        cli_json_line(&c->out, r->json);
        return EXIT_DONE;
    }
    if (s) {
        show_table(c, s, r->json);
        say_if_cut(c, r->json);
        return EXIT_DONE;
    }
    show_summary(c, r->json);
    say_if_cut(c, r->json);
    if (!cli_field_int(r->json, STR("decisions_read")))
        return EXIT_DONE;
    n_refused =
        cli_field_int(json_at(json_get(r->json, STR("items")), 0), STR("none"));
    status = stats_request(c, cl, agents->what, false);
    if (!status) {
        buf_add_char(&c->out, '\n');
        show_table(c, agents, r->json);
        if (n_refused)
            buf_addf(&c->out, "\nRefused messages (%lld) have no row here.\n",
                     (long long)n_refused);
    }
    return status;
}

enum exit_status cli_decisions_stats(struct cli *c, struct str what)
{
    bool is_summary = c->args.n_operands < 2 || str_eq(what, STR("summary"));
    const struct stats *s = is_summary ? NULL : stats_find(what);
    bool needs_at = s && strcmp(s->what, "changes") == 0;
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    double at;

    if (!s && !is_summary)
        return cli_error(c, ERR_USAGE,
                         "unknown table \"%.*s\"; known: summary, agents, "
                         "types, gaps, signals, keywords, hours, days, "
                         "thresholds, alphas, changes",
                         STR_ARG(str_head(what, 64)));
    if (c->json && args_has(&c->args, "csv"))
        return cli_error(c, ERR_USAGE, "give --json or --csv, not both");
    if (needs_at && !args_has(&c->args, "at"))
        return cli_error(c, ERR_USAGE, "give the threshold, like --at 0.35");
    if (!needs_at && args_has(&c->args, "at"))
        return cli_error(c, ERR_USAGE, "--at is only for stats changes");
    if (!cli_real(c, "at", 0, 1, 0, &at, &status) ||
        !(cl = client_new(c, &status)))
        return status;
    status = stats_show(c, cl, s);
    client_free(cl);
    return status;
}
