/* Generates the reference of all settings from their rows: docs/config.md. */
#include "model/card.h"
#include "server/config/internal.h"

enum { KIB = 1024, MIB = 1024 * 1024, SECOND_MS = 1000 };

static const char preamble[] =
    "# Configuration\n"
    "\n"
    "Every setting has a default, so the server works without a file.\n"
    "This page is generated from the table in `src/server/config/table.c`;\n"
    "`signalbox help config` prints it.\n"
    "\n"
    "A setting can come from four sources; a later one overrides an earlier\n"
    "one:\n"
    "\n"
    "1. its default;\n"
    "2. the file given with `--config FILE`, else the one named by\n"
    "   `SIGNALBOX_CONFIG`, else `signalbox.jsonc` in the current folder if\n"
    "   there is one: JSON with comments and trailing commas;\n"
    "3. the environment: `SIGNALBOX_HTTP__MAX_BODY_BYTES=4096` sets\n"
    "   `http.maxBodyBytes`. Two underscores separate levels; case and single\n"
    "   underscores within a level are ignored. An empty variable counts as\n"
    "   not set. `SIGNALBOX_URL`, `SIGNALBOX_TOKEN` and `SIGNALBOX_CA` are "
    "for\n"
    "   commands that talk to a server;\n"
    "4. the command line: `--set http.maxBodyBytes=4096`. `--listen ADDRESS`\n"
    "   and `--data FOLDER` are short for `--set listen=…` and "
    "`--set data=…`.\n"
    "\n"
    "A list is always written as JSON, and replaces the list of an earlier "
    "source\n"
    "as a whole: `--set agents.list='[{\"id\":\"echo\",\"url\":\"echo:\"}]'`.\n"
    "\n"
    "`signalbox check` reports problems with line and column, and\n"
    "`signalbox check --print` shows the resulting configuration.\n"
    "\n"
    "The path of a folder or file may begin with `~/`. In the file, a "
    "relative\n"
    "path starts at the folder of the file, so that the same file always "
    "means\n"
    "the same path; anywhere else, and for the default, it starts at the\n"
    "current folder.\n"
    "\n"
    "A running server applies settings marked *reload* when the file changes "
    "or\n"
    "when it gets SIGHUP; the others need a restart.\n";

static const struct {
    const char *name, *heading;
} sections[] = {
    {"", "The server"},
    {"tls", "`tls`: encrypted connections"},
    {"log", "`log`: log messages"},
    {"http", "`http`: limits and timeouts of connections"},
    {"metrics", "`metrics`: access to the metrics"},
    {"web", "`web`: the dashboard"},
    {"ws", "`ws`: limits of WebSockets, incoming and outgoing"},
    {"rate", "`rate`: rate limits"},
    {"agents", "`agents`: agents of the configuration"},
    {"bindings", "`bindings`: sources assigned to agents"},
    {"routing", "`routing`: choosing an agent"},
    {"routing.weights", "`routing.weights`: parts of the score"},
    {"routing.intentClassifier",
     "`routing.intentClassifier`: choosing by language model"},
    {"learning", "`learning`: learning from outcomes"},
    {"processes", "`processes`: programs that agents run as"},
    {"models", "`models`: language models that agents use"},
    {"registry", "`registry`: limits of agents and skills"},
    {"seal", "`seal`: encryption of the credentials of cards"},
    {"search", "`search`: searching for agents"},
    {"outgoing", "`outgoing`: connections to other hosts"},
    {"embed", "`embed`: turning text into vectors"},
    {"embed.http", "`embed.http`: the provider of vectors"},
    {"tasks", "`tasks`: limits of unfinished tasks"},
    {"gate", "`gate`: limits in addition to the rules"},
    {"deliver", "`deliver`: delivering tasks to agents"},
    {"hub", "`hub`: limits of connections at `/hub`"},
    {"delegation", "`delegation`: agents that delegate to agents"},
    {"ledger", "`ledger`: prices and budgets"},
    {"retention", "`retention`: how long data is kept"},
    {"traces", "`traces`: OpenTelemetry spans"},
};

/* " (1 MiB)" for 1048576 bytes, and nothing for a number without a short form.
 */
static void add_readable(const struct setting *s, struct buf *out)
{
    static const struct {
        const char *unit;
        int64_t factor;
        const char *name;
    } forms[] = {
        {"bytes", MIB, "MiB"},
        {"bytes", KIB, "KiB"},
        {"milliseconds", 60 * 60 * SECOND_MS, "h"},
        {"milliseconds", 60 * SECOND_MS, "min"},
        {"milliseconds", SECOND_MS, "s"},
    };
    int64_t v;

    if (!s->unit || str_to_i64(str_of(s->preset), &v))
        return;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strcmp(s->unit, forms[i].unit) == 0 && v &&
            v % forms[i].factor == 0) {
            buf_addf(out, " (%lld %s)", (long long)(v / forms[i].factor),
                     forms[i].name);
            return;
        }
}

static void reference_row(const struct setting *s, struct buf *out)
{
    buf_addf(out, "| `%s` | `%s`", s->path, s->preset);
    add_readable(s, out);
    buf_add_str(out, STR(" | "));
    s->type->allowed(s, out);
    buf_addf(out, " | %s | %s |\n", s->needs_restart ? "restart" : "reload",
             s->what);
}

/* The members of the objects in a list or map. */
static void reference_elements(const struct setting *s, struct buf *out)
{
    const struct setting_table *t = s->elements->table;

    buf_addf(out,
             "\nEach %s of `%s` is an object:\n\n"
             "| member | default | must be | description |\n"
             "| --- | --- | --- | --- |\n",
             s->type == &type_map ? "member" : "element", s->path);
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *m = &t->rows[i];
        const char *quote = m->preset ? "`" : "";

        buf_addf(out, "| `%s` | %s%s%s | ", m->path, quote,
                 m->preset ? m->preset : "required", quote);
        m->type->allowed(m, out);
        buf_addf(out, " | %s |\n", m->what);
    }
}

static void reference_card_field(void *ctx, const struct card_about *f)
{
    buf_addf(ctx, "| `%.*s` | %s | %.*s | %s |\n", STR_ARG(f->path),
             f->is_required ? "yes" : "", STR_ARG(f->allowed), f->what);
}

/* Maps and bindings have sections of their own, with their names. */
static bool setting_is_in(const struct setting *s, const char *section)
{
    if (s->type == &type_map || s->type == &type_bindings)
        return strcmp(s->path, section) == 0;
    return str_eq(setting_section(s->path), str_of(section));
}

static void reference_section(const char *name, struct buf *out)
{
    const struct setting_table *t = &config_settings;

    for (size_t i = 0; i < t->n; i++)
        if (setting_is_in(&t->rows[i], name))
            reference_row(&t->rows[i], out);
    for (size_t i = 0; i < t->n; i++)
        if (setting_is_in(&t->rows[i], name) && t->rows[i].elements &&
            !t->rows[i].elements->is_plain)
            reference_elements(&t->rows[i], out);
        else if (setting_is_in(&t->rows[i], name) &&
                 t->rows[i].type == &type_cards) {
            buf_add_str(out,
                        STR("\nEach element of `agents.list` is a card:\n\n"
                            "| member | required | must be | description |\n"
                            "| --- | --- | --- | --- |\n"));
            card_each(CARD_CONFIG, reference_card_field, out);
        }
}

void config_write_reference(struct buf *out)
{
    buf_addf(out, "%s", preamble);
    for (size_t k = 0; k < sizeof(sections) / sizeof(sections[0]); k++) {
        buf_addf(out,
                 "\n## %s\n\n"
                 "| setting | default | must be | applied by | description |\n"
                 "| --- | --- | --- | --- | --- |\n",
                 sections[k].heading);
        reference_section(sections[k].name, out);
    }
}
