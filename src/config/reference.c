/* The reference of all settings, made from their rows: docs/config.md. */
#include "config/internal.h"
#include "model/card.h"

enum { KIB = 1024, MIB = 1024 * 1024, SECOND_MS = 1000 };

static const char preamble[] =
    "# Configuration\n"
    "\n"
    "Everything has a default: no file at all is a working server.\n"
    "This page is made from the table in `src/config/table.c`;\n"
    "`signalbox help config` prints it.\n"
    "\n"
    "A setting is looked for in four places, and the later wins:\n"
    "\n"
    "1. its default;\n"
    "2. the file given with `--config FILE`, else the one named by\n"
    "   `SIGNALBOX_CONFIG`, else `signalbox.jsonc` in the current folder if\n"
    "   there is one: JSON, in which comments and trailing commas are fine;\n"
    "3. the environment: `SIGNALBOX_HTTP__MAX_BODY_BYTES=4096` sets\n"
    "   `http.maxBodyBytes`. Two underscores separate levels; case and single\n"
    "   underscores within a level do not count. An empty variable counts as\n"
    "   not set. `SIGNALBOX_URL`, `SIGNALBOX_TOKEN` and `SIGNALBOX_CA` are "
    "for\n"
    "   commands that talk to a server;\n"
    "4. the command line: `--set http.maxBodyBytes=4096`. `--listen ADDRESS`\n"
    "   and `--data FOLDER` are short for `--set listen=…` and "
    "`--set data=…`.\n"
    "\n"
    "A list is written as JSON wherever it stands, and replaces the one "
    "before\n"
    "as a whole: `--set agents.list='[{\"id\":\"echo\",\"url\":\"echo:\"}]'`.\n"
    "\n"
    "`signalbox check` finds what is wrong with line and column, and\n"
    "`signalbox check --print` shows what all of it comes to.\n"
    "\n"
    "The path of a folder or file may begin with `~/`. A relative one begins\n"
    "at the folder of the file it is written in, so that the same file always\n"
    "means the same place; anywhere else, and for the default, it begins at\n"
    "the current folder.\n"
    "\n"
    "Settings marked *reload* are taken over by a running server when the "
    "file\n"
    "changes or SIGHUP comes; the others need a restart.\n";

static const struct {
    const char *name, *heading;
} sections[] = {
    {"", "The server"},
    {"tls", "`tls`: connections that nobody can listen to"},
    {"log", "`log`: what it writes about itself"},
    {"http", "`http`: limits and time-outs of connections"},
    {"metrics", "`metrics`: who may read the figures"},
    {"web", "`web`: the dashboard"},
    {"ws", "`ws`: limits of every WebSocket, in and out"},
    {"rate", "`rate`: how often one may call"},
    {"agents", "`agents`: who can be given work"},
    {"bindings", "`bindings`: who answers where"},
    {"routing", "`routing`: how an agent is chosen"},
    {"routing.weights", "`routing.weights`: what a score is made of"},
    {"routing.intentClassifier",
     "`routing.intentClassifier`: a language model's word"},
    {"learning", "`learning`: what is made of what came of it"},
    {"processes", "`processes`: programs that agents are"},
    {"models", "`models`: models that agents are"},
    {"registry", "`registry`: how many of them there may be"},
    {"seal", "`seal`: how the credentials of cards are kept"},
    {"search", "`search`: how they are found"},
    {"outgoing", "`outgoing`: what the server connects to"},
    {"embed", "`embed`: what turns text into vectors"},
    {"embed.http", "`embed.http`: the provider of vectors"},
    {"tasks", "`tasks`: how much may wait, and how long"},
    {"gate", "`gate`: what it takes, beside its rules"},
    {"deliver", "`deliver`: how tasks are carried to agents"},
    {"hub", "`hub`: limits of connections at `/hub`"},
    {"delegation", "`delegation`: agents that give work to agents"},
    {"ledger",
     "`ledger`: what agents' work costs, and how much of it there may "
     "be"},
    {"retention", "`retention`: how long things are remembered"},
    {"traces", "`traces`: what agents did for each other, for a collector"},
};

/* "1048576 (1 MiB)": the figure as written, and as people say it. */
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

static void write_row(const struct setting *s, struct buf *out)
{
    buf_addf(out, "| `%s` | `%s`", s->path, s->preset);
    add_readable(s, out);
    buf_add_str(out, STR(" | "));
    s->type->allowed(s, out);
    buf_addf(out, " | %s | %s |\n", s->needs_restart ? "restart" : "reload",
             s->what);
}

/* What the objects of a list are made of. */
static void write_elements(const struct setting *s, struct buf *out)
{
    const struct setting_table *t = s->elements->table;

    buf_addf(out,
             "\nEach %s of `%s` is an object:\n\n"
             "| member | default | must be | what it is |\n"
             "| --- | --- | --- | --- |\n",
             s->type == &type_map ? "member" : "element", s->path);
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *m = &t->rows[i];
        const char *quote = m->preset ? "`" : "";

        buf_addf(out, "| `%s` | %s%s%s | ", m->path, quote,
                 m->preset ? m->preset : "needed", quote);
        m->type->allowed(m, out);
        buf_addf(out, " | %s |\n", m->what);
    }
}

static void write_field(void *ctx, const struct card_about *f)
{
    buf_addf(ctx, "| `%.*s` | %s | %.*s | %s |\n", STR_ARG(f->path),
             f->is_required ? "yes" : "", STR_ARG(f->allowed), f->what);
}

/* What an agent is made of: the table that cards are read by. */
static void write_card(struct buf *out)
{
    buf_add_str(out, STR("\nEach element of `agents.list` is a card:\n\n"
                         "| member | needed | must be | what it is |\n"
                         "| --- | --- | --- | --- |\n"));
    card_each(CARD_CONFIG, write_field, out);
}

/* Objects by name and bindings have a section of their own, called as they
 * are. */
static bool is_in(const struct setting *s, const char *section)
{
    if (s->type == &type_map || s->type == &type_bindings)
        return strcmp(s->path, section) == 0;
    return str_eq(setting_section(s->path), str_of(section));
}

static void write_section(const char *name, struct buf *out)
{
    const struct setting_table *t = &config_settings;

    for (size_t i = 0; i < t->n; i++)
        if (is_in(&t->rows[i], name))
            write_row(&t->rows[i], out);
    for (size_t i = 0; i < t->n; i++)
        if (is_in(&t->rows[i], name) && t->rows[i].elements &&
            !t->rows[i].elements->is_plain)
            write_elements(&t->rows[i], out);
        else if (is_in(&t->rows[i], name) && t->rows[i].type == &type_cards)
            write_card(out);
}

void config_write_reference(struct buf *out)
{
    buf_addf(out, "%s", preamble);
    for (size_t k = 0; k < sizeof(sections) / sizeof(sections[0]); k++) {
        buf_addf(out,
                 "\n## %s\n\n"
                 "| setting | default | must be | taken over by | what it is "
                 "|\n| --- | --- | --- | --- | --- |\n",
                 sections[k].heading);
        write_section(sections[k].name, out);
    }
}
