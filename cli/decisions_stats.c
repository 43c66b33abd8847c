/* decisions stats: the tables of GET /api/analytics for people. JSON and CSV
 * are the server's, unchanged. */
#include "cli/decisions.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cli/grid.h"
#include "model/decision.h"

enum { PATH_MAX_BYTES = 4096, CELL_MAX = 512 };

/* A cell as people read it. */
struct cell {
    char text[CELL_MAX];
};

typedef struct str format_fn(const struct json *row, const char *key,
                             struct cell *room);

struct stats_column {
    const char *key;
    format_fn *format;
};

/* One table. */
struct stats {
    const char *what;
    const struct grid_head *heads;
    const struct stats_column *columns;
    size_t n_columns;
    size_t right_from; /* columns of numbers begin here */
    size_t stride;     /* show only every n-th row; zero: all */
    const char *none;
    const char *about; /* explains the figures; may be NULL */
};

/* Cells. */

static struct str stats_put_cell(struct cell *room, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

static struct str stats_put_cell(struct cell *room, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(room->text, sizeof(room->text), fmt, ap);
    va_end(ap);
    return str_of(room->text);
}

static bool stats_has(const struct json *row, const char *key)
{
    const struct json *v = json_get(row, str_of(key));

    return v && v->type != JSON_NULL;
}

static double stats_real(const struct json *row, const char *key)
{
    return json_real_or(json_get(row, str_of(key)), 0);
}

static int64_t stats_whole(const struct json *row, const char *key)
{
    return json_int_or(json_get(row, str_of(key)), 0);
}

static struct str as_text(const struct json *row, const char *key,
                          struct cell *room)
{
    (void)room;
    return cli_field(row, str_of(key));
}

/* 1,387 */
static struct str stats_put_count(struct cell *room, int64_t v)
{
    char digits[32];
    int n = snprintf(digits, sizeof(digits), "%lld", (long long)v);
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-')
            room->text[used++] = ',';
        room->text[used++] = digits[i];
    }
    room->text[used] = '\0';
    return (struct str){room->text, used};
}

static struct str as_count(const struct json *row, const char *key,
                           struct cell *room)
{
    return stats_put_count(room, stats_whole(row, key));
}

static struct str as_score(const struct json *row, const char *key,
                           struct cell *room)
{
    return stats_has(row, key)
               ? stats_put_cell(room, "%.3f", stats_real(row, key))
               : STR("-");
}

static struct str as_percent(const struct json *row, const char *key,
                             struct cell *room)
{
    return stats_has(row, key)
               ? stats_put_cell(room, "%.1f%%", 100 * stats_real(row, key))
               : STR("-");
}

static struct str as_chars(const struct json *row, const char *key,
                           struct cell *room)
{
    return stats_has(row, key)
               ? stats_put_count(room, (int64_t)(stats_real(row, key) + 0.5))
               : STR("-");
}

static struct str as_ms(const struct json *row, const char *key,
                        struct cell *room)
{
    double ms = stats_real(row, key);

    if (!stats_has(row, key))
        return STR("-");
    return ms < 1000 ? stats_put_cell(room, "%.0f ms", ms)
                     : stats_put_cell(room, "%.1f s", ms / 1000);
}

static struct str as_receiver(const struct json *row, const char *key,
                              struct cell *room)
{
    return stats_has(row, key) ? as_text(row, key, room) : STR("(no agent)");
}

/* Thresholds are set in hundredths. */
static struct str as_hundredths(const struct json *row, const char *key,
                                struct cell *room)
{
    return stats_put_cell(room, "%.2f", stats_real(row, key));
}

/* The start of an hour or a day in UTC. */
static struct str as_hour(const struct json *row, const char *key,
                          struct cell *room)
{
    time_t at = (time_t)(stats_whole(row, key) / 1000);
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(room->text, sizeof(room->text), "%Y-%m-%d %H:%M", &tm);
    return str_of(room->text);
}

/* The type's number, and its name if the server sent it. */
static struct str as_type(const struct json *row, const char *key,
                          struct cell *room)
{
    struct str name = cli_field(row, STR("name"));

    if (!stats_has(row, key))
        return STR("(none)");
    return stats_put_cell(room, "%lld%s%.*s", (long long)stats_whole(row, key),
                          name.n ? " " : "", STR_ARG(str_head(name, 200)));
}

static struct str as_samples(const struct json *row, const char *key,
                             struct cell *room)
{
    const struct json *list = json_get(row, str_of(key));
    size_t used = 0;

    room->text[0] = '\0';
    if (!list || list->type != JSON_ARR)
        return STR("");
    JSON_EACH(kid, list)
    {
        struct str s = str_head(json_str_or(kid, STR("")), 160);

        if (used + s.n + 4 > CELL_MAX)
            break;
        used += (size_t)snprintf(room->text + used, CELL_MAX - used, "%s%.*s",
                                 used ? " | " : "", STR_ARG(s));
    }
    return (struct str){room->text, used};
}

/* The tables. */

#define OF_ROUTED                                                             \
    "ROUTED counts the decisions that the router made from the text "         \
    "(semantic, intent, default, none); the figures after it are for these. " \
    "The other messages named an agent, stayed with theirs, or had a binding."

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct grid_head agent_heads[] = {
    {"AGENT", NULL},      {"DECISIONS", NULL}, {"ROUTED", NULL},
    {"CONFIDENCE", NULL}, {"OVERRIDES", NULL}, {"ERRORS", NULL},
    {"CHARS", NULL},      {"LATENCY", NULL},
};
static const struct stats_column agent_columns[] = {
    {"agent", as_text},         {"decisions", as_count},
    {"routed", as_count},       {"confidence", as_score},
    {"overrides", as_count},    {"error_rate", as_percent},
    {"answer_chars", as_chars}, {"latency_ms", as_ms},
};

static const struct grid_head type_heads[] = {
    {"TYPE", NULL},       {"AGENT", NULL},     {"DECISIONS", NULL},
    {"CONFIDENCE", NULL}, {"OVERRIDES", NULL}, {"GOOD", NULL},
    {"BAD", NULL},
};
static const struct stats_column type_columns[] = {
    {"type", as_type},        {"agent", as_text},      {"decisions", as_count},
    {"confidence", as_score}, {"overrides", as_count}, {"positive", as_count},
    {"negative", as_count},
};

static const struct grid_head gap_heads[] = {
    {"TYPE", NULL}, {"DECISIONS", NULL}, {"DEFAULT", NULL},  {"REFUSED", NULL},
    {"BEST", NULL}, {"NEAREST", NULL},   {"MESSAGES", NULL},
};
static const struct stats_column gap_columns[] = {
    {"type", as_type},        {"decisions", as_count},
    {"to_default", as_count}, {"refused", as_count},
    {"best_score", as_score}, {"nearest_agent", as_receiver},
    {"samples", as_samples},
};

static const struct grid_head signal_heads[] = {
    {"SIGNAL", NULL}, {"DECISIONS", NULL}, {"WOULD DIFFER", NULL},
    {"HELPED", NULL}, {"HURT", NULL},
};
static const struct stats_column signal_columns[] = {
    {"signal", as_text},  {"decisions", as_count}, {"would_differ", as_count},
    {"helped", as_count}, {"hurt", as_count},
};

static const struct grid_head keyword_heads[] = {
    {"KEYWORD", NULL}, {"AGENT", NULL}, {"FIRED", NULL}, {"WON", NULL},
    {"PULLED", NULL},  {"RIGHT", NULL}, {"WRONG", NULL},
};
static const struct stats_column keyword_columns[] = {
    {"keyword", as_text}, {"agent", as_text},   {"fired", as_count},
    {"won", as_count},    {"pulled", as_count}, {"right", as_count},
    {"wrong", as_count},
};

static const struct grid_head time_heads[] = {
    {"FROM (UTC)", NULL}, {"DECISIONS", NULL}, {"ROUTED", NULL},
    {"CONFIDENCE", NULL}, {"OVERRIDES", NULL}, {"ERRORS", NULL},
    {"LATENCY", NULL},
};
static const struct stats_column time_columns[] = {
    {"from_ms", as_hour},          {"decisions", as_count},
    {"routed", as_count},          {"confidence", as_score},
    {"override_rate", as_percent}, {"error_rate", as_percent},
    {"latency_ms", as_ms},
};

static const struct grid_head threshold_heads[] = {
    {"THRESHOLD", NULL}, {"BY SCORE", NULL}, {"BY DEFAULT", NULL},
    {"CHANGED", NULL},   {"TO AGENT", NULL}, {"TO DEFAULT", NULL},
    {"BETTER", NULL},    {"WORSE", NULL},
};
static const struct stats_column threshold_columns[] = {
    {"threshold", as_hundredths}, {"by_score", as_count},
    {"by_default", as_count},     {"changed", as_count},
    {"to_agent", as_count},       {"to_default", as_count},
    {"better", as_count},         {"worse", as_count},
};

static const struct grid_head alpha_heads[] = {
    {"ALPHA", NULL},        {"CONFIDENT", NULL}, {"UNSURE", NULL},
    {"OUT OF SCOPE", NULL}, {"CHANGED", NULL},   {"TO NONE", NULL},
    {"BETTER", NULL},       {"WORSE", NULL},
};
static const struct stats_column alpha_columns[] = {
    {"alpha", as_hundredths}, {"confident", as_count},
    {"unsure", as_count},     {"out_of_scope", as_count},
    {"changed", as_count},    {"to_nobody", as_count},
    {"better", as_count},     {"worse", as_count},
};

static const struct grid_head change_heads[] = {
    {"DECISION", NULL}, {"BEST", NULL},    {"FROM", NULL},
    {"TO", NULL},       {"OUTCOME", NULL}, {"MESSAGE", NULL},
};
static const struct stats_column change_columns[] = {
    {"id", as_text},     {"best_score", as_score}, {"from", as_receiver},
    {"to", as_receiver}, {"outcome", as_text},     {"text", as_text},
};

static const struct stats tables[] = {
    {"agents", agent_heads, agent_columns, N(agent_columns), 1, 0,
     "No decisions.\n", OF_ROUTED " CHARS is the mean length of an answer."},
    {"types", type_heads, type_columns, N(type_columns), 2, 0,
     "No decisions by meaning.\n", NULL},
    {"gaps", gap_heads, gap_columns, N(gap_columns), 0, 0,
     "No gaps: every message had a confident choice.\n",
     "Messages without a confident choice: they went to the default agent, "
     "were refused, or were close to the threshold or to the second agent. "
     "BEST is the mean of the best scores, NEAREST the nearest agent."},
    {"signals", signal_heads, signal_columns, N(signal_columns), 1, 0,
     "No decisions.\n",
     "WOULD DIFFER counts the decisions that would have gone to another agent "
     "without the signal, or to none with confidence. HELPED counts those with "
     "a good outcome, HURT those with a bad one."},
    {"keywords", keyword_heads, keyword_columns, N(keyword_columns), 2, 0,
     "No message had a keyword.\n",
     "PULLED counts the messages that the agent would not have got without "
     "the keyword, or not with confidence."},
    {"hours", time_heads, time_columns, N(time_columns), 1, 0,
     "No decisions.\n", OF_ROUTED},
    {"days", time_heads, time_columns, N(time_columns), 1, 0, "No decisions.\n",
     OF_ROUTED},
    {"thresholds", threshold_heads, threshold_columns, N(threshold_columns), 0,
     5, "No decisions.\n",
     "The decisions with each threshold, all other settings unchanged. CHANGED "
     "counts those with another agent: TO AGENT instead of the default agent, "
     "or TO DEFAULT. BETTER: a person said that the new agent is right. WORSE: "
     "the old choice had a good outcome. --json and --csv have every "
     "hundredth."},
    {"alphas", alpha_heads, alpha_columns, N(alpha_columns), 0, 0,
     "No decisions.\n",
     "The decisions by the threshold \"auto\" with each alpha, all other "
     "settings unchanged. Alpha is the share of unrelated messages that may "
     "become confident choices. CHANGED counts those with another agent, or "
     "with none (TO NONE)."},
    {"changes", change_heads, change_columns, N(change_columns), 0, 0,
     "Nothing would change.\n",
     "Decisions that the threshold --at would change, newest first. signalbox "
     "replay tries other settings."},
};

static const struct stats *stats_find(struct str what)
{
    for (size_t i = 0; i < N(tables); i++)
        if (str_eq(what, str_of(tables[i].what)))
            return &tables[i];
    return NULL;
}

static void show_table(struct cli *c, const struct stats *s,
                       const struct json *answer)
{
    const struct json *items = json_get(answer, STR("items"));
    size_t nth = 0;
    struct grid g;

    grid_init(&g, s->heads, s->n_columns);
    g.cuts_first = true;
    if (s->right_from)
        grid_right_from(&g, s->right_from);
    if (items && items->type == JSON_ARR)
        JSON_EACH(row, items)
        {
            struct str cells[GRID_COLUMNS_MAX];
            struct cell rooms[GRID_COLUMNS_MAX];

            if (s->stride && nth++ % s->stride)
                continue;
            for (size_t i = 0; i < s->n_columns; i++)
                cells[i] =
                    s->columns[i].format(row, s->columns[i].key, &rooms[i]);
            grid_add(&g, cells);
        }
    if (g.n_rows)
        grid_write(&g, &c->out, c->width, c->colour, c->unicode);
    else
        buf_add_str(&c->out, str_of(s->none));
    if (g.n_rows && s->about && c->on_terminal) {
        buf_add_char(&c->out, '\n');
        cli_wrapped(c, 0, 0, str_of(s->about));
    }
    grid_fini(&g);
}

/* The summary. */

static void stats_add_share(struct cell *to, const struct json *row,
                            const char *key)
{
    size_t used = strlen(to->text);
    struct cell n;

    if (stats_whole(row, key))
        snprintf(to->text + used, sizeof(to->text) - used, "%s%s %s",
                 used ? ", " : "", as_count(row, key, &n).p, key);
}

static void say_rates(struct cli *c, const struct json *row)
{
    struct cell routed, n, rate, line;

    cli_named(c, "confidence", as_score(row, "confidence", &line));
    cli_named(c, "margin", as_score(row, "margin", &line));
    cli_named(c, "overrides",
              stats_put_cell(&line, "%s (%s of %s)",
                             as_percent(row, "override_rate", &rate).p,
                             as_count(row, "overrides", &n).p,
                             as_count(row, "routed", &routed).p));
    cli_named(c, "errors", as_percent(row, "error_rate", &line));
    if (stats_has(row, "answer_chars"))
        cli_named(c, "answer",
                  stats_put_cell(&line, "%s characters",
                                 as_chars(row, "answer_chars", &n).p));
    if (stats_has(row, "latency_ms"))
        cli_named(c, "latency", as_ms(row, "latency_ms", &line));
}

static void show_summary(struct cli *c, const struct json *answer)
{
    static const char *const layers[] = {LAYERS(LAYER_TEXT) "explored"};
    static const char *const verdicts[] = {"positive", "negative", "neutral",
                                           "open"};
    const struct json *items = json_get(answer, STR("items"));
    const struct json *row = json_at(items, 0);
    struct cell line;

    cli_named(c, "decisions", as_count(row, "decisions", &line));
    if (!stats_whole(row, "decisions"))
        return;
    cli_named(c, "routed", as_count(row, "routed", &line));
    say_rates(c, row);
    line.text[0] = '\0';
    for (size_t i = 0; i < N(verdicts); i++)
        stats_add_share(&line, row, verdicts[i]);
    cli_named(c, "verdicts", str_of(line.text));
    line.text[0] = '\0';
    for (size_t i = 0; i < N(layers); i++)
        stats_add_share(&line, row, layers[i]);
    cli_named(c, "layers", str_of(line.text));
    cli_named_time(c, "first", stats_whole(row, "first_ms"));
    cli_named_time(c, "last", stats_whole(row, "last_ms"));
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
                 (long long)stats_whole(answer, "decisions_read"));
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
    if (!stats_whole(r->json, "decisions_read"))
        return EXIT_DONE;
    n_refused =
        stats_whole(json_at(json_get(r->json, STR("items")), 0), "none");
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

/* False: the error about --at has been printed. */
static bool at_is_good(struct cli *c, const struct stats *s,
                       enum exit_status *status)
{
    bool is_needed = s && strcmp(s->what, "changes") == 0;
    double at;

    if (is_needed && !args_get(&c->args, "at").n)
        *status = cli_error(c, ERR_USAGE, "give the threshold, like --at 0.35");
    else if (!is_needed && args_has(&c->args, "at"))
        *status = cli_error(c, ERR_USAGE, "--at is only for stats changes");
    else
        return cli_real(c, "at", 0, 1, 0, &at, status);
    return false;
}

enum exit_status cli_decisions_stats(struct cli *c, struct str what)
{
    bool is_summary = c->args.n_operands < 2 || str_eq(what, STR("summary"));
    const struct stats *s = is_summary ? NULL : stats_find(what);
    enum exit_status status = EXIT_DONE;
    struct client *cl;

    if (!s && !is_summary)
        return cli_error(c, ERR_USAGE,
                         "unknown table \"%.*s\"; known: summary, agents, "
                         "types, gaps, signals, keywords, hours, days, "
                         "thresholds, alphas, changes",
                         STR_ARG(str_head(what, 64)));
    if (c->json && args_has(&c->args, "csv"))
        return cli_error(c, ERR_USAGE, "give --json or --csv, not both");
    if (!at_is_good(c, s, &status) || !(cl = client_new(c, &status)))
        return status;
    status = stats_show(c, cl, s);
    client_free(cl);
    return status;
}
