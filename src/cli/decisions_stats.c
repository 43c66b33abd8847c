/* decisions stats: the tables of GET /api/analytics for people; as JSON and as
 * CSV they are the server's own, as they are. */
#include "cli/decisions.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cli/grid.h"

enum { PATH_MAX_BYTES = 4096, CELL_MAX = 512 };

/* A cell as a person reads it. */
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
    size_t stride;     /* people are shown every so many rows; zero: all */
    const char *none;
    const char *about; /* what its figures mean, where that is not plain */
};

/* Cells. */

static struct str put(struct cell *room, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

static struct str put(struct cell *room, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(room->text, sizeof(room->text), fmt, ap);
    va_end(ap);
    return str_of(room->text);
}

static bool has(const struct json *row, const char *key)
{
    const struct json *v = json_get(row, str_of(key));

    return v && v->type != JSON_NULL;
}

static double real(const struct json *row, const char *key)
{
    return json_real_or(json_get(row, str_of(key)), 0);
}

static int64_t whole(const struct json *row, const char *key)
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
static struct str put_count(struct cell *room, int64_t v)
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
    return put_count(room, whole(row, key));
}

static struct str as_score(const struct json *row, const char *key,
                           struct cell *room)
{
    return has(row, key) ? put(room, "%.3f", real(row, key)) : STR("-");
}

static struct str as_percent(const struct json *row, const char *key,
                             struct cell *room)
{
    return has(row, key) ? put(room, "%.1f%%", 100 * real(row, key)) : STR("-");
}

static struct str as_chars(const struct json *row, const char *key,
                           struct cell *room)
{
    return has(row, key) ? put_count(room, (int64_t)(real(row, key) + 0.5))
                         : STR("-");
}

static struct str as_ms(const struct json *row, const char *key,
                        struct cell *room)
{
    double ms = real(row, key);

    if (!has(row, key))
        return STR("-");
    return ms < 1000 ? put(room, "%.0f ms", ms)
                     : put(room, "%.1f s", ms / 1000);
}

static struct str as_receiver(const struct json *row, const char *key,
                              struct cell *room)
{
    return has(row, key) ? as_text(row, key, room) : STR("(nobody)");
}

/* Whole hundredths, as thresholds are set. */
static struct str as_hundredths(const struct json *row, const char *key,
                                struct cell *room)
{
    return put(room, "%.2f", real(row, key));
}

/* When an hour or a day begins, in UTC, as they are counted. */
static struct str as_hour(const struct json *row, const char *key,
                          struct cell *room)
{
    time_t at = (time_t)(whole(row, key) / 1000);
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(room->text, sizeof(room->text), "%Y-%m-%d %H:%M", &tm);
    return str_of(room->text);
}

/* Its number, and its name where we may know it. */
static struct str as_type(const struct json *row, const char *key,
                          struct cell *room)
{
    struct str name = cli_field(row, STR("name"));

    if (!has(row, key))
        return STR("(none)");
    return put(room, "%lld%s%.*s", (long long)whole(row, key),
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

#define OF_ROUTED                                                              \
    "ROUTED are the decisions that the router made, by what the message says " \
    "(semantic, intent, default, none); what follows it is of these. The "     \
    "others stayed with their agent, named one, or had a binding."

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
     "No decisions that were compared by meaning.\n", NULL},
    {"gaps", gap_heads, gap_columns, N(gap_columns), 0, 0,
     "No gaps: some agent was a sure choice every time.\n",
     "Messages that no agent was a sure choice for: they went to the default "
     "agent, were refused, or were close to the threshold or to the second. "
     "BEST is the mean of the best scores, NEAREST the agent that came "
     "nearest."},
    {"signals", signal_heads, signal_columns, N(signal_columns), 1, 0,
     "No decisions.\n",
     "How many decisions would have gone to another agent without the signal, "
     "or to none with confidence; of those, where the signal helped (it went "
     "well) and where it hurt."},
    {"keywords", keyword_heads, keyword_columns, N(keyword_columns), 2, 0,
     "No keyword was in any message.\n",
     "PULLED: the agent got it, and without the keyword would not have, or "
     "not with confidence."},
    {"hours", time_heads, time_columns, N(time_columns), 1, 0,
     "No decisions.\n", OF_ROUTED},
    {"days", time_heads, time_columns, N(time_columns), 1, 0, "No decisions.\n",
     OF_ROUTED},
    {"thresholds", threshold_heads, threshold_columns, N(threshold_columns), 0,
     5, "No decisions.\n",
     "What each threshold would have made of the decisions, every other "
     "setting "
     "being as it was. CHANGED would have gone to another agent: TO AGENT from "
     "the default agent, TO DEFAULT to it; BETTER where somebody said that "
     "this "
     "agent was right, WORSE where it did well as it was. Every hundredth is "
     "in "
     "--json and --csv."},
    {"alphas", alpha_heads, alpha_columns, N(alpha_columns), 0, 0,
     "No decisions.\n",
     "What each alpha would have made of the decisions that the threshold "
     "\"auto\" was for, every other setting being as it was. Alpha is how "
     "many unrelated messages, in one, may become confident choices. CHANGED "
     "would have gone to another agent or, TO NONE, to none."},
    {"changes", change_heads, change_columns, N(change_columns), 0, 0,
     "Nothing would change.\n",
     "What would have gone to another agent by the threshold --at, the latest "
     "first. signalbox replay tries other settings."},
};

static const struct stats *find(struct str what)
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

static void add_part(struct cell *to, const struct json *row, const char *key)
{
    size_t used = strlen(to->text);
    struct cell n;

    if (whole(row, key))
        snprintf(to->text + used, sizeof(to->text) - used, "%s%s %s",
                 used ? ", " : "", as_count(row, key, &n).p, key);
}

static void say_rates(struct cli *c, const struct json *row)
{
    struct cell routed, n, rate, line;

    cli_named(c, "confidence", as_score(row, "confidence", &line));
    cli_named(c, "margin", as_score(row, "margin", &line));
    cli_named(c, "overrides",
              put(&line, "%s (%s of %s)",
                  as_percent(row, "override_rate", &rate).p,
                  as_count(row, "overrides", &n).p,
                  as_count(row, "routed", &routed).p));
    cli_named(c, "errors", as_percent(row, "error_rate", &line));
    if (has(row, "answer_chars"))
        cli_named(
            c, "answer",
            put(&line, "%s characters", as_chars(row, "answer_chars", &n).p));
    if (has(row, "latency_ms"))
        cli_named(c, "latency", as_ms(row, "latency_ms", &line));
}

static void show_summary(struct cli *c, const struct json *answer)
{
    static const char *const layers[] = {"explicit", "prefix", "sticky",
                                         "binding",  "intent", "semantic",
                                         "default",  "none",   "explored"};
    static const char *const verdicts[] = {"positive", "negative", "neutral",
                                           "open"};
    const struct json *items = json_get(answer, STR("items"));
    const struct json *row = json_at(items, 0);
    struct cell line;

    cli_named(c, "decisions", as_count(row, "decisions", &line));
    if (!whole(row, "decisions"))
        return;
    cli_named(c, "routed", as_count(row, "routed", &line));
    say_rates(c, row);
    line.text[0] = '\0';
    for (size_t i = 0; i < N(verdicts); i++)
        add_part(&line, row, verdicts[i]);
    cli_named(c, "verdicts", str_of(line.text));
    line.text[0] = '\0';
    for (size_t i = 0; i < N(layers); i++)
        add_part(&line, row, layers[i]);
    cli_named(c, "layers", str_of(line.text));
    cli_named_time(c, "first", whole(row, "first_ms"));
    cli_named_time(c, "last", whole(row, "last_ms"));
}

/* Asking. */

static enum exit_status ask(struct cli *c, struct client *cl, const char *what,
                            bool is_csv)
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
                 "\nOnly the newest %lld decisions were counted; there are "
                 "more in that time.\n",
                 (long long)whole(answer, "decisions_read"));
}

/* As it is; but a terminal has no use for the first half of a line's end. */
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

static enum exit_status show(struct cli *c, struct client *cl,
                             const struct stats *s)
{
    bool is_csv = args_has(&c->args, "csv");
    const struct stats *agents = s ? NULL : find(STR("agents"));
    enum exit_status status = ask(c, cl, s ? s->what : "summary", is_csv);
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
    if (!whole(r->json, "decisions_read"))
        return EXIT_DONE;
    n_refused = whole(json_at(json_get(r->json, STR("items")), 0), "none");
    status = ask(c, cl, agents->what, false);
    if (!status) {
        buf_add_char(&c->out, '\n');
        show_table(c, agents, r->json);
        if (n_refused)
            buf_addf(&c->out, "\nWhat went to nobody (%lld) has no row here.\n",
                     (long long)n_refused);
    }
    return status;
}

/* False: it has been said what is wrong with --at. */
static bool at_is_good(struct cli *c, const struct stats *s,
                       enum exit_status *status)
{
    bool is_needed = s && strcmp(s->what, "changes") == 0;
    double at;

    if (is_needed && !args_get(&c->args, "at").n)
        *status = cli_error(c, ERR_USAGE,
                            "name the threshold with --at, like --at 0.35");
    else if (!is_needed && args_has(&c->args, "at"))
        *status = cli_error(c, ERR_USAGE, "--at is for stats changes alone");
    else
        return cli_real(c, "at", 0, 1, 0, &at, status);
    return false;
}

enum exit_status cli_decisions_stats(struct cli *c, struct str what)
{
    bool is_summary = c->args.n_operands < 2 || str_eq(what, STR("summary"));
    const struct stats *s = is_summary ? NULL : find(what);
    enum exit_status status = EXIT_DONE;
    struct client *cl;

    if (!s && !is_summary)
        return cli_error(c, ERR_USAGE,
                         "there are no stats of \"%.*s\"; there is summary, "
                         "agents, types, gaps, signals, keywords, hours, "
                         "days, thresholds, alphas, changes",
                         STR_ARG(str_head(what, 64)));
    if (c->json && args_has(&c->args, "csv"))
        return cli_error(c, ERR_USAGE, "give --json or --csv, not both");
    if (!at_is_good(c, s, &status) || !(cl = client_new(c, &status)))
        return status;
    status = show(c, cl, s);
    client_free(cl);
    return status;
}
