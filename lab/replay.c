/* replay: repeats recorded decisions locally, with their own settings or with
 * others, and shows the differences.
 *
 * The server only provides the records. The settings come from local files, so
 * a configuration can be tried before it goes live. With its own settings a
 * decision must have the same result to the last bit; otherwise there is a bug,
 * or another version made the record. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/client.h"
#include "cli/grid.h"
#include "cli/span.h"
#include "lab/tally.h"
#include "server/settings.h"
#include "speak/speak.h"

enum {
    LIMIT = 1000,
    LIMIT_MAX = 1000 * 1000,
    SHOWN = 20,
    SHOWN_MAX = 10 * 1000,
    SCRATCH_BYTES = 4 * 1024 * 1024,
    WORDS_MAX = 160,
};

const struct arg_option cli_replay_options[] = {
    {"config", "FILE", "use the settings of this file", false},
    {"set", "NAME=VALUE",
     "and this one; without --config, all others are as recorded", true},
    {"since", "SPAN", "only decisions of this span, like 12h or 7d", false},
    {"agent", "AGENT", "only messages that this agent got", false},
    {"layer", "LAYER", "only decisions of this layer: semantic, default, ...",
     false},
    {"limit", "N", "the latest N decisions; default: 1000", false},
    {"show", "N", "show up to N changed decisions; default: 20", false},
    CLIENT_OPTIONS,
    {0},
};

/* The settings of --set, which replace those of the record. */
struct replay_sets {
    struct choose_settings from;
    uint32_t which; /* bits, by index in replay_settings */
};

struct replay {
    struct cli *c;
    const struct choose_settings *settings; /* NULL: those of each record */
    const struct replay_sets *sets;         /* NULL: none */
    struct tally tally;
    struct grid changes;
    struct arena scratch;
    int64_t shown, show_most;
    enum exit_status status;
};

/* Settings. */

#define FIELD(name, field)                               \
    {                                                    \
        name, offsetof(struct choose_settings, field),   \
            sizeof(((struct choose_settings *)0)->field) \
    }

/* The settings that a record contains. */
static const struct {
    const char *name;
    size_t at, n;
} replay_settings[] = {
    FIELD("routing.threshold", threshold),
    FIELD("routing.preset", is_seed),
    FIELD("routing.unsure", unsure),
    FIELD("routing.textBlend", text_blend),
    FIELD("routing.explore", explore),
    FIELD("routing.closeMargin", close_margin),
    FIELD("routing.layers", is_off),
    FIELD("routing.weights", weights),
    FIELD("routing.weights.semantic", weights.semantic),
    FIELD("routing.weights.performance", weights.performance),
    FIELD("routing.weights.keyword", weights.keyword),
    FIELD("routing.weights.recency", weights.recency),
    FIELD("routing.intentClassifier.threshold", intent.threshold),
    FIELD("routing.intentClassifier.when", intent.when),
    FIELD("routing.intentClassifier.overrides", intent.overrides),
    FIELD("agents.default", default_agent),
};

enum {
    N_SETTINGS = sizeof(replay_settings) / sizeof(replay_settings[0]),
    THRESHOLD_ROW = 0,
    PRESET_ROW
};

static bool sets_read(struct cli *c, const struct config_source *src,
                      struct replay_sets *out, enum exit_status *status)
{
    for (size_t i = 0; i < src->n_sets; i++) {
        struct str rest = src->sets[i], name = str_cut(&rest, '=');
        size_t k = 0;

        while (k < N_SETTINGS && !str_eq(name, str_of(replay_settings[k].name)))
            k++;
        if (k == N_SETTINGS) {
            *status = cli_error(
                c, ERR_USAGE,
                "--set %.*s is not among the recorded settings; use --config "
                "FILE to decide by a whole configuration and this setting",
                STR_ARG(str_head(name, 128)));
            return false;
        }
        out->which |= 1U << k;
    }
    return true;
}

static bool sets_row(const struct replay_sets *sets, size_t row)
{
    return sets->which >> row & 1;
}

/* A preset replaces only defaults. A recorded number that differs from the
 * default was set, and stays. */
static void apply_preset(const struct choose_settings *from,
                         struct choose_settings *own)
{
    bool is_number = own->threshold < choose_defaults().threshold ||
                     own->threshold > choose_defaults().threshold;

    if (own->is_seed == from->is_seed)
        return;
    own->text_blend = from->text_blend;
    if (own->is_auto || !is_number) {
        own->is_auto = from->is_auto;
        own->threshold = from->threshold;
    }
}

/* Scores are relative to the card's median only with "auto", as in a server. */
static void apply_sets(void *ctx, struct choose_settings *own)
{
    const struct replay_sets *sets = ctx;
    bool was_auto = own->is_auto;

    if (sets_row(sets, PRESET_ROW))
        apply_preset(&sets->from, own);
    for (size_t k = 0; k < N_SETTINGS; k++)
        if (sets_row(sets, k))
            memcpy((char *)own + replay_settings[k].at,
                   (char *)&sets->from + replay_settings[k].at,
                   replay_settings[k].n);
    if (sets_row(sets, THRESHOLD_ROW)) /* a number ends "auto" */
        own->is_auto = sets->from.is_auto;
    if (own->is_auto != was_auto)
        own->is_centred = own->is_auto && sets->from.is_centred;
}

static bool replay_has_other_settings(const struct replay *r)
{
    return r->settings || r->sets;
}

/* One decision. */

static struct str replay_agent_name(struct str agent)
{
    return agent.n ? agent : STR("(none)");
}

static void replay_put_change(struct replay *r, const struct decision *was,
                              const struct decision *now, enum hindsight word)
{
    struct json_out o = json_out(&r->c->out);
    bool has_agent = now->agent.n > 0;

    json_open(&o, '{');
    json_member_text(&o, "id", str_of(was->id.text));
    json_member_text(&o, "text", was->text);
    json_member_text(&o, "from", was->agent);
    json_member_text(&o, "from_layer", layer_name(was->layer));
    json_key(&o, STR("to"));
    if (has_agent)
        json_put_str(&o, now->agent);
    else
        json_put_null(&o);
    json_key(&o, STR("to_layer"));
    if (has_agent)
        json_put_str(&o, layer_name(now->layer));
    else
        json_put_null(&o);
    json_member_text(&o, "outcome", str_of(hindsight_word(word)));
    json_close(&o, '}');
    buf_add_char(&r->c->out, '\n');
}

static void replay_add_change(struct replay *r, const struct decision *was,
                              const struct decision *now, enum hindsight word)
{
    struct str cells[] = {str_of(was->id.text), replay_agent_name(was->agent),
                          replay_agent_name(now->agent),
                          str_of(hindsight_word(word)),
                          str_head(was->text, WORDS_MAX)};

    if (r->c->json) {
        replay_put_change(r, was, now, word);
        r->status = cli_flush(r->c, EXIT_DONE);
    } else if (r->shown++ < r->show_most) {
        grid_add(&r->changes, cells);
    }
}

static uint64_t double_bits(double v)
{
    uint64_t out;

    memcpy(&out, &v, sizeof(out));
    return out;
}

/* Exact comparison, for a record with its own settings. */
static bool replay_is_same(const struct decision *a, const struct decision *b)
{
    return a->layer == b->layer && str_eq(a->agent, b->agent) &&
           str_eq(a->skill, b->skill) && str_eq(a->reason, b->reason) &&
           double_bits(a->score) == double_bits(b->score) &&
           double_bits(a->margin) == double_bits(b->margin);
}

static void replay_count(struct replay *r, const struct decision *was,
                         const struct decision *now)
{
    struct tally *t = &r->tally;
    bool is_as_before = replay_has_other_settings(r)
                            ? str_eq_nocase(was->agent, now->agent)
                            : replay_is_same(was, now);

    t->partly += was->n_considered > (int64_t)was->n_candidates;
    if (is_as_before) {
        t->same++;
        t->relayed += was->layer != now->layer;
    } else {
        replay_add_change(r, was, now, tally_add(t, was, now->agent));
    }
}

static bool replay_on_decision(void *ctx, const struct json *item)
{
    struct replay *r = ctx;
    struct decision was, now = {0};
    enum err e;

    arena_reset(&r->scratch);
    r->tally.replayed++;
    if (speak_decision_read(&r->scratch, item, &was)) {
        r->tally.unread++;
        return true;
    }
    if (r->sets)
        e = choose_again_but(apply_sets, (void *)r->sets, &was, &r->scratch,
                             &now);
    else
        e = choose_again(r->settings, NULL, &was, &r->scratch, &now);
    if (e == ERR_NOMEM)
        r->status = cli_error(r->c, e, "out of memory");
    else if (e == ERR_NOT_FOUND)
        r->tally.unsaid++;
    else
        replay_count(r, &was, &now);
    return r->status == EXIT_DONE;
}

/* Output. */

static void replay_put_summary(const struct replay *r)
{
    const struct tally *t = &r->tally;
    const struct {
        const char *name;
        int64_t n;
    } numbers[] = {{"replayed", t->replayed},        {"same", t->same},
                   {"by_another_layer", t->relayed}, {"changed", t->changed},
                   {"not_known", t->unsaid},         {"not_read", t->unread},
                   {"partly_recorded", t->partly}};
    struct json_out o = json_out(&r->c->out);

    json_open(&o, '{');
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_member_int(&o, numbers[i].name, numbers[i].n);
    json_key(&o, STR("outcomes"));
    json_open(&o, '{');
    for (int w = 0; w < N_HINDSIGHTS; w++)
        json_member_int(&o, hindsight_word((enum hindsight)w), t->by_word[w]);
    json_close(&o, '}');
    json_close(&o, '}');
    buf_add_char(&r->c->out, '\n');
}

static void replay_show_pairs(struct replay *r)
{
    static const struct grid_head heads[] = {
        {"FROM", NULL},    {"TO", NULL},     {"DECISIONS", NULL},
        {"BETTER", NULL},  {"WORSE", NULL},  {"AS BAD", NULL},
        {"WAS BAD", NULL}, {"UNKNOWN", NULL}};
    struct grid grid;

    tally_sort(&r->tally);
    grid_init(&grid, heads, sizeof(heads) / sizeof(heads[0]));
    grid_right_from(&grid, 2);
    for (size_t i = 0; i < r->tally.n_pairs; i++) {
        const struct tally_pair *p = &r->tally.pairs[i];
        char numbers[1 + N_HINDSIGHTS][24];
        struct str cells[3 + N_HINDSIGHTS] = {replay_agent_name(p->from),
                                              replay_agent_name(p->to)};

        snprintf(numbers[0], sizeof(numbers[0]), "%lld", (long long)p->n);
        for (int w = 0; w < N_HINDSIGHTS; w++)
            snprintf(numbers[1 + w], sizeof(numbers[0]), "%lld",
                     (long long)p->by_word[w]);
        for (int k = 0; k <= N_HINDSIGHTS; k++)
            cells[2 + k] = str_of(numbers[k]);
        grid_add(&grid, cells);
    }
    grid_write(&grid, &r->c->out, r->c->width, r->c->colour, r->c->unicode);
    grid_fini(&grid);
}

static void replay_say(struct replay *r, const char *fmt, ...)
    PRINTF_LIKE(2, 3);

static void replay_say(struct replay *r, const char *fmt, ...)
{
    char words[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    cli_wrapped(r->c, 0, 0, str_of(words));
}

/* The limits of the figures. */
static void replay_say_limits(struct replay *r)
{
    const struct tally *t = &r->tally;

    if (t->unsaid)
        replay_say(
            r,
            "%lld cannot be replayed: agents were not compared then, or the "
            "classifier was not asked, and now that would matter.",
            (long long)t->unsaid);
    if (t->unread)
        replay_say(r, "%lld %s recorded by another version and cannot be read.",
                   (long long)t->unread, t->unread == 1 ? "was" : "were");
    if (replay_has_other_settings(r) && t->partly)
        replay_say(
            r,
            "For %lld the record has the best %d agents, and there were more: "
            "an agent that is not among them cannot be chosen here.",
            (long long)t->partly, DECISION_CANDIDATES_MAX);
}

static void replay_show_changes(struct replay *r)
{
    const struct tally *t = &r->tally;

    buf_add_char(&r->c->out, '\n');
    replay_show_pairs(r);
    buf_add_char(&r->c->out, '\n');
    if (r->show_most)
        grid_write(&r->changes, &r->c->out, r->c->width, r->c->colour,
                   r->c->unicode);
    if (r->show_most && r->shown > r->show_most)
        replay_say(r, "There are more: --show %lld", (long long)t->changed);
    buf_add_char(&r->c->out, '\n');
    replay_say(
        r,
        "Known effects of the changes: %lld better (a user said that this "
        "agent was right), %lld worse (the recorded agent did well), %lld as "
        "bad (a third agent was right), %lld were bad anyway, %lld unknown.",
        (long long)t->by_word[HINDSIGHT_BETTER],
        (long long)t->by_word[HINDSIGHT_WORSE],
        (long long)t->by_word[HINDSIGHT_AS_BAD],
        (long long)t->by_word[HINDSIGHT_WAS_BAD],
        (long long)t->by_word[HINDSIGHT_UNKNOWN]);
}

static void replay_show(struct replay *r)
{
    const struct tally *t = &r->tally;

    if (r->c->json) {
        replay_put_summary(r);
        return;
    }
    if (!t->replayed) {
        buf_add_str(&r->c->out, STR("No decisions.\n"));
        return;
    }
    if (replay_has_other_settings(r))
        replay_say(
            r,
            "%lld decisions, by %s: %lld go to the same agent (%lld of them by "
            "another layer), %lld to another.",
            (long long)t->replayed,
            r->sets ? "the recorded settings and --set" : "the local settings",
            (long long)t->same, (long long)t->relayed, (long long)t->changed);
    else
        replay_say(
            r,
            "Of %lld decision%s %lld come%s out as before, to the last bit, "
            "%lld do%s not.",
            (long long)t->replayed, t->replayed == 1 ? "" : "s",
            (long long)t->same, t->same == 1 ? "s" : "", (long long)t->changed,
            t->changed == 1 ? "es" : "");
    replay_say_limits(r);
    if (t->changed)
        replay_show_changes(r);
}

/* The requests. */

static bool replay_add_filters(struct cli *c, struct buf *path,
                               enum exit_status *status)
{
    struct str span = args_get(&c->args, "since");
    char since[32];
    int64_t ms;

    buf_add_str(path, STR("/api/decisions?full=1"));
    if (args_has(&c->args, "agent"))
        client_add_query(path, "agent", args_get(&c->args, "agent"));
    if (args_has(&c->args, "layer"))
        client_add_query(path, "layer", args_get(&c->args, "layer"));
    if (!args_has(&c->args, "since"))
        return true;
    if (span_read(span, &ms)) {
        *status = cli_error(c, ERR_USAGE,
                            "--since is \"%.*s\"; it must be a span like 12h "
                            "or 7d",
                            STR_ARG(str_head(span, 64)));
        return false;
    }
    snprintf(since, sizeof(since), "%lld", (long long)(cli_now_ms() - ms));
    client_add_query(path, "since", str_of(since));
    return true;
}

static enum exit_status replay_request(struct replay *r, int64_t limit)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(r->c, &status);
    struct buf path;
    bool more;

    if (!cl)
        return status;
    buf_init(&path, 16 * 1024);
    if (replay_add_filters(r->c, &path, &status) &&
        client_list(cl, buf_str(&path), limit, replay_on_decision, r, &more))
        status = client_fail(cl);
    buf_fini(&path);
    client_free(cl);
    return status ? status : r->status;
}

static enum exit_status replay_run(struct cli *c,
                                   const struct choose_settings *settings,
                                   const struct replay_sets *sets)
{
    static const struct grid_head heads[] = {{"DECISION", NULL},
                                             {"FROM", NULL},
                                             {"TO", NULL},
                                             {"OUTCOME", NULL},
                                             {"MESSAGE", NULL}};
    struct replay r = {.c = c, .settings = settings, .sets = sets};
    enum exit_status status = EXIT_DONE;
    int64_t limit;

    if (!cli_number(c, "limit", 1, LIMIT_MAX, LIMIT, &limit, &status) ||
        !cli_number(c, "show", 0, SHOWN_MAX, SHOWN, &r.show_most, &status))
        return status;
    arena_init(&r.scratch, SCRATCH_BYTES);
    grid_init(&r.changes, heads, sizeof(heads) / sizeof(heads[0]));
    tally_init(&r.tally);
    status = replay_request(&r, limit);
    if (!status)
        replay_show(&r);
    /* With their own settings no decision may change. */
    if (!status && !replay_has_other_settings(&r) &&
        r.tally.changed + r.tally.unsaid)
        status = EXIT_FAILED;
    tally_fini(&r.tally);
    grid_fini(&r.changes);
    arena_fini(&r.scratch);
    return status;
}

enum exit_status cli_replay(struct cli *c)
{
    bool is_whole = args_has(&c->args, "config");
    struct choose_settings settings;
    struct replay_sets sets = {.which = 0};
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct config *cfg;

    if (!is_whole && !args_has(&c->args, "set"))
        return replay_run(c, NULL, NULL);
    cli_source(c, &src);
    if (!is_whole) {
        src.is_without_file = true;
        src.environ = NULL;
    }
    cfg = config_load(&src, &report);
    if (!cfg)
        return cli_bad_config(c, &report);
    settings = sets.from = settings_route(cfg).choose;
    if (is_whole)
        status = replay_run(c, &settings, NULL);
    else if (sets_read(c, &src, &sets, &status))
        status = replay_run(c, NULL, &sets);
    config_free(cfg);
    return status;
}
