/* man: signalbox(1), generated from the tables of help. It uses plain man
 * macros, so that groff and mandoc both set it. Each paragraph is one line.
 * Roff's own characters are escaped, and hyphens are minus signs wherever a
 * reader may copy them into a shell. */
#include "cli/cli.h"

static void man_add_char(struct buf *out, char ch, bool is_code)
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

/* Text as the user types it, in the current font. */
static void add_code(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        man_add_char(out, text.p[i], true);
}

/* Running text, in which --options are typed text. */
static void man_add_text(struct buf *out, struct str text)
{
    struct str rest = text;

    while (rest.n) {
        struct str word = str_cut(&rest, ' ');
        bool is_code =
            str_starts(word, STR("--")) || str_starts(word, STR("(--"));

        if (word.n && word.p[0] == '.')
            buf_add_str(out, STR("\\&"));
        for (size_t i = 0; i < word.n; i++)
            man_add_char(out, word.p[i], is_code);
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

static void man_add_option(struct buf *out, const struct arg_option *o)
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
    man_add_text(out, str_of(o->what));
}

static void man_add_examples(struct buf *out, struct str examples)
{
    buf_add_str(out, STR(".PP\n.nf\n.RS 4\n"));
    while (examples.n) {
        add_code(out, str_cut(&examples, '\n'));
        buf_add_char(out, '\n');
    }
    buf_add_str(out, STR(".RE\n.fi\n"));
}

static void man_add_command(struct buf *out, const struct command *m)
{
    struct str about = str_of(m->about);

    buf_add_str(out, STR(".SS \"signalbox "));
    add_code(out, str_of(m->name));
    if (*m->operands)
        buf_add_char(out, ' ');
    add_code(out, str_of(m->operands));
    buf_add_str(out, STR("\"\n"));
    while (about.n) {
        buf_add_str(out, STR(".PP\n"));
        man_add_text(out, str_cut(&about, '\n'));
    }
    for (const struct arg_option *o = m->options; o && o->name; o++)
        man_add_option(out, o);
    man_add_examples(out, str_of(m->examples));
}

struct row {
    const char *name, *what;
};

static void man_add_rows(struct cli *c, const char *heading,
                         const struct row *rows)
{
    add_heading(&c->out, "SH", heading);
    for (; rows->name; rows++) {
        buf_add_str(&c->out, STR(".TP\n\\fB"));
        add_code(&c->out, str_of(rows->name));
        buf_add_str(&c->out, STR("\\fR\n"));
        man_add_text(&c->out, str_of(rows->what));
    }
}

static const struct row environment_rows[] = {
    {"SIGNALBOX_URL",
     "The server that commands talk to; http://127.0.0.1:8787 if it is not "
     "set."},
    {"SIGNALBOX_TOKEN", "The caller's token, from signalbox token create."},
    {"SIGNALBOX_CA",
     "A PEM file of the authorities to trust over https, instead of the "
     "system's."},
    {"SIGNALBOX_CONFIG",
     "The configuration, instead of signalbox.jsonc in the current folder."},
    {"SIGNALBOX_SECTION__NAME",
     "A setting: SIGNALBOX_HTTP__MAX_HEADERS is http.maxHeaders. Two "
     "underscores separate levels."},
    {"OPENAI_BASE_URL, OPENAI_API_KEY, SIGNALBOX_DEMO_MODEL",
     "The model behind the agents of signalbox demo."},
    {"TELEGRAM_BOT_TOKEN, DISCORD_BOT_TOKEN",
     "The bot of signalbox commands push."},
    {"npm_config_registry, NPM_CONFIG_REGISTRY",
     "The registry of signalbox model install; --registry overrides it."},
    {"NO_COLOR", "If set, the output has no colours."},
    {0},
};

static const struct row file_rows[] = {
    {"signalbox.jsonc",
     "The configuration, unless --config names another. signalbox help config "
     "lists all settings."},
    {"signalbox-data/", "The data folder, unless data names another."},
    {"signalbox-data/signalbox.db",
     "The database, with signalbox.db-wal and signalbox.db-shm: never copy "
     "one without the others. Use signalbox backup."},
    {"signalbox-data/models/", "Installed models."},
    {"signalbox-demo-data/", "The data folder of signalbox demo."},
    {0},
};

static const struct row status_rows[] = {
    {"0", "Done."},
    {"1", "Failed, or a check found a problem."},
    {"2", "Wrong usage or configuration."},
    {"3", "Refused: no such agent or task, an address or a folder in use."},
    {"4", "No response."},
    {"5", "Not allowed: no token, a wrong one, or one without the scope."},
    {0},
};

enum exit_status cli_man(struct cli *c)
{
    if (c->json)
        return cli_error(c, ERR_USAGE,
                         "the manual page is not available as JSON");
    buf_add_str(&c->out,
                STR(".\\\" Made by: signalbox man\n"
                    ".TH SIGNALBOX 1 \"\" \"Signalbox " SIGNALBOX_VERSION
                    "\" \"Signalbox\"\n"
                    ".ad l\n.nh\n"));
    add_heading(&c->out, "SH", "NAME");
    buf_add_str(&c->out, STR("signalbox \\- send each message to the right one "
                             "of many agents\n"));
    add_heading(&c->out, "SH", "SYNOPSIS");
    buf_add_str(&c->out, STR("\\fBsignalbox\\fR \\fICOMMAND\\fR "
                             "[\\fIOPERANDS\\fR] [\\fIOPTIONS\\fR]\n"
                             ".br\n"
                             "\\fBsignalbox help\\fR [\\fICOMMAND\\fR | "
                             "\\fBconfig\\fR]\n"));
    add_heading(&c->out, "SH", "DESCRIPTION");
    man_add_text(
        &c->out,
        STR("Signalbox routes messages to agents. Each message goes to the "
            "agent that it fits best, accepted messages are never lost, and "
            "every decision is stored with its reasons. serve runs the "
            "server; most other commands talk to a running server."));
    buf_add_str(&c->out, STR(".PP\n"));
    man_add_text(&c->out, STR(CLI_CLIENT_ABOUT));
    add_heading(&c->out, "SH", "COMMANDS");
    man_add_text(&c->out, STR("Every command takes these options, at any "
                              "position:"));
    for (const struct arg_option *o = cli_shared_options; o->name; o++)
        man_add_option(&c->out, o);
    for (const struct command *m = c->commands; m->name; m++)
        if (*m->summary)
            man_add_command(&c->out, m);
    man_add_rows(c, "ENVIRONMENT", environment_rows);
    man_add_rows(c, "FILES", file_rows);
    man_add_rows(c, "EXIT STATUS", status_rows);
    add_heading(&c->out, "SH", "EXAMPLES");
    man_add_text(&c->out, STR("Start a server with four agents, then try these "
                              "commands in another terminal:"));
    man_add_examples(&c->out,
                     STR("signalbox demo\n"
                         "export SIGNALBOX_TOKEN=...   # the demo prints it\n"
                         "signalbox send \"why is my query slow?\"\n"
                         "signalbox route \"draft a blog post\"\n"
                         "signalbox feed --follow"));
    man_add_text(&c->out, STR("Each command above has its own examples."));
    return EXIT_DONE;
}
