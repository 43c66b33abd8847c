/* man: signalbox(1), made from the tables that help is made from. Plain man
 * macros, so that groff and mandoc both set it. Text is written a paragraph a
 * line; what roff would read as its own is escaped, and hyphens are minus signs
 * wherever somebody may copy them into a shell. */
#include "cli/cli.h"

static void add_char(struct buf *out, char ch, bool is_code)
{
    static const struct {
        char ch;
        const char *roff;
    } named[] = {{'\\', "\\(rs"}, {'~', "\\(ti"}, {'^', "\\(ha"},
                 {'`', "\\(ga"},  {'"', "\\(dq"}, {'\'', "\\(aq"}};

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (ch == named[i].ch) {
            buf_add_str(out, str_of(named[i].roff));
            return;
        }
    if (ch == '-' && is_code)
        buf_add_str(out, STR("\\-"));
    else
        buf_add_char(out, ch);
}

/* As it is typed: in bold, or in the font that is on. */
static void add_code(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        add_char(out, text.p[i], true);
}

/* Words; within them --options and settings are typed too. */
static void add_words(struct buf *out, struct str text)
{
    struct str rest = text;

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');
        bool is_code =
            str_starts(word, STR("--")) || str_starts(word, STR("(--"));

        if (word.n && word.p[0] == '.')
            buf_add_str(out, STR("\\&"));
        for (size_t i = 0; i < word.n; i++)
            add_char(out, word.p[i], is_code);
        if (rest.n)
            buf_add_char(out, ' ');
    }
    buf_add_char(out, '\n');
}

static void add_heading(struct buf *out, const char *macro, const char *text)
{
    buf_addf(out, ".%s \"", macro);
    add_code(out, str_of(text));
    buf_add_str(out, STR("\"\n"));
}

static void add_option(struct buf *out, const struct arg_option *o)
{
    buf_add_str(out, STR(".TP\n\\fB"));
    add_code(out, STR("--"));
    add_code(out, str_of(o->name));
    buf_add_str(out, STR("\\fR"));
    if (o->value) {
        buf_add_str(out, STR(" \\fI"));
        add_code(out, str_of(o->value));
        buf_add_str(out, STR("\\fR"));
    }
    buf_add_char(out, '\n');
    add_words(out, str_of(o->what));
}

/* Its paragraphs, less what is said once for all of them. */
static void add_about(struct buf *out, const char *about)
{
    struct str all = str_of(about), shared = STR(CLI_CLIENT_ABOUT);

    if (all.n > shared.n &&
        str_eq(str_sub(all, all.n - shared.n, all.n), shared))
        all = str_trim(str_sub(all, 0, all.n - shared.n));
    while (all.n) {
        buf_add_str(out, STR(".PP\n"));
        add_words(out, str_cut(&all, '\n'));
    }
}

static void add_examples(struct buf *out, const char *const *examples)
{
    buf_add_str(out, STR(".PP\n.nf\n.RS 4\n"));
    for (; *examples; examples++) {
        add_code(out, str_of(*examples));
        buf_add_char(out, '\n');
    }
    buf_add_str(out, STR(".RE\n.fi\n"));
}

static void add_command(struct buf *out, const struct command *m)
{
    buf_add_str(out, STR(".SS \"signalbox "));
    add_code(out, str_of(m->name));
    if (*m->operands)
        buf_add_char(out, ' ');
    add_code(out, str_of(m->operands));
    buf_add_str(out, STR("\"\n"));
    add_about(out, m->about);
    for (const struct arg_option *o = m->options; o && o->name; o++)
        add_option(out, o);
    add_examples(out, m->examples);
}

static void add_commands(struct cli *c)
{
    add_heading(&c->out, "SH", "COMMANDS");
    add_words(&c->out, STR("Every command takes these, wherever they stand:"));
    for (const struct arg_option *o = cli_shared_options; o->name; o++)
        add_option(&c->out, o);
    for (const struct command *m = c->commands; m->name; m++)
        if (*m->summary)
            add_command(&c->out, m);
}

struct row {
    const char *name, *what;
};

static void add_rows(struct cli *c, const char *heading, const struct row *rows)
{
    add_heading(&c->out, "SH", heading);
    for (; rows->name; rows++) {
        buf_add_str(&c->out, STR(".TP\n\\fB"));
        add_code(&c->out, str_of(rows->name));
        buf_add_str(&c->out, STR("\\fR\n"));
        add_words(&c->out, str_of(rows->what));
    }
}

static void add_environment(struct cli *c)
{
    static const struct row rows[] = {
        {"SIGNALBOX_URL",
         "The server that commands talk to; http://127.0.0.1:8787 if it is not "
         "set."},
        {"SIGNALBOX_TOKEN", "Who asks: a token of signalbox token create."},
        {"SIGNALBOX_CA",
         "A PEM file of the authorities to trust over https, instead of the "
         "system's."},
        {"SIGNALBOX_CONFIG",
         "The configuration, instead of signalbox.jsonc in the current "
         "folder."},
        {"SIGNALBOX_SECTION__NAME",
         "A setting: SIGNALBOX_HTTP__MAX_HEADERS is http.maxHeaders. Two "
         "underscores separate levels."},
        {"OPENAI_BASE_URL, OPENAI_API_KEY, SIGNALBOX_DEMO_MODEL",
         "The model that the agents of signalbox demo are."},
        {"TELEGRAM_BOT_TOKEN, DISCORD_BOT_TOKEN",
         "The bot of signalbox commands push."},
        {"npm_config_registry, NPM_CONFIG_REGISTRY",
         "Where signalbox model install looks, unless --registry says "
         "another."},
        {"NO_COLOR", "If set, nothing is coloured."},
        {0},
    };

    add_rows(c, "ENVIRONMENT", rows);
}

static void add_files(struct cli *c)
{
    static const struct row rows[] = {
        {"signalbox.jsonc",
         "The configuration, where --config names no other. All settings: "
         "signalbox help config."},
        {"signalbox-data/", "What the server remembers, where data says so."},
        {"signalbox-data/signalbox.db",
         "The records, with signalbox.db-wal and signalbox.db-shm: never one "
         "without the others. Copy them with signalbox backup."},
        {"signalbox-data/models/", "Models that were installed."},
        {"signalbox-demo-data/", "The same of signalbox demo."},
        {0},
    };

    add_rows(c, "FILES", rows);
}

static void add_statuses(struct cli *c)
{
    static const struct row rows[] = {
        {"0", "Done."},
        {"1", "Failed; or what was looked at is not as it should be."},
        {"2", "Wrong usage or configuration."},
        {"3", "Refused: no such agent or task, an address or a folder in use."},
        {"4", "Nobody there."},
        {"5", "Not allowed: no token, a bad one, or one without the scope."},
        {0},
    };

    add_rows(c, "EXIT STATUS", rows);
}

static void add_first_steps(struct cli *c)
{
    static const char *const lines[] = {
        "signalbox demo",
        "export SIGNALBOX_TOKEN=...   # as it says there",
        "signalbox send \"why is my query slow?\"",
        "signalbox route \"draft a blog post\"",
        "signalbox feed --follow",
        NULL,
    };

    add_heading(&c->out, "SH", "EXAMPLES");
    add_words(&c->out, STR("A server with four agents, and what to ask them "
                           "from another terminal:"));
    add_examples(&c->out, lines);
    add_words(&c->out, STR("Each command above has its own."));
}

static void add_synopsis(struct cli *c)
{
    add_heading(&c->out, "SH", "SYNOPSIS");
    buf_add_str(&c->out, STR("\\fBsignalbox\\fR \\fICOMMAND\\fR "
                             "[\\fIOPERANDS\\fR] [\\fIOPTIONS\\fR]\n"
                             ".br\n"
                             "\\fBsignalbox help\\fR [\\fICOMMAND\\fR | "
                             "\\fBconfig\\fR]\n"));
}

enum exit_status cli_man(struct cli *c)
{
    if (c->json)
        return cli_error(c, ERR_USAGE, "a manual page is no JSON");
    buf_add_str(&c->out,
                STR(".\\\" Made by: signalbox man\n"
                    ".TH SIGNALBOX 1 \"\" \"Signalbox " SIGNALBOX_VERSION
                    "\" \"Signalbox\"\n"
                    ".ad l\n.nh\n"));
    add_heading(&c->out, "SH", "NAME");
    buf_add_str(&c->out, STR("signalbox \\- send each message to the right one "
                             "of many agents\n"));
    add_synopsis(c);
    add_heading(&c->out, "SH", "DESCRIPTION");
    add_words(&c->out,
              STR("Signalbox stands between people and a fleet of agents: a "
                  "message goes to the agent that it fits, what was accepted "
                  "is not lost, and every decision is kept with its reasons. "
                  "serve runs the server; most other commands talk to one."));
    buf_add_str(&c->out, STR(".PP\n"));
    add_words(&c->out, STR(CLI_CLIENT_ABOUT));
    add_commands(c);
    add_environment(c);
    add_files(c);
    add_statuses(c);
    add_first_steps(c);
    return EXIT_DONE;
}
