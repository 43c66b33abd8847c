/* help: generated from the tables, so that no command, option or setting can
 * be missing. In a pipe `help config` is docs/config.md word for word; on a
 * terminal, where Markdown tables are hard to read, it prints paragraphs. */
#include "cli/cli.h"

#include <stdio.h>

#include "api/api.h"
#include "base/json.h"
#include "cli/client.h"

/* Options that many commands take are explained in one place. */
static const struct arg_option client_options[] = {CLIENT_OPTIONS, {0}};

static bool is_common(const struct arg_option *o)
{
    const struct arg_option *tables[] = {client_options, cli_shared_options};

    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *p = tables[t]; p->name; p++)
            if (strcmp(o->name, p->name) == 0 && strcmp(o->what, p->what) == 0)
                return true;
    return false;
}

static unsigned option_columns(const struct arg_option *o)
{
    return (unsigned)(2 + strlen(o->name) +
                      (o->value ? 1 + strlen(o->value) : 0));
}

/* The options in both tables that are common, or those that are not. */
static void add_options(struct cli *c, const struct arg_option *own,
                        bool are_common)
{
    const struct arg_option *tables[] = {own, cli_shared_options};
    unsigned widest = 0;

    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *o = tables[t]; o && o->name; o++)
            if (is_common(o) == are_common && option_columns(o) > widest)
                widest = option_columns(o);
    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *o = tables[t]; o && o->name; o++) {
            if (is_common(o) != are_common)
                continue;
            buf_addf(&c->out, "  --%s%s%s%*s", o->name, o->value ? " " : "",
                     o->value ? o->value : "",
                     (int)(widest - option_columns(o) + 2), "");
            cli_wrapped(c, widest + 4, widest + 4, str_of(o->what));
        }
}

static void options_as_json(struct json_out *o, const struct arg_option *own)
{
    const struct arg_option *tables[] = {own, cli_shared_options};

    json_key(o, STR("options"));
    json_open(o, '[');
    for (size_t t = 0; t < 2; t++)
        for (const struct arg_option *p = tables[t]; p && p->name; p++) {
            json_open(o, '{');
            json_member_text(o, "name", str_of(p->name));
            json_key(o, STR("value"));
            if (p->value)
                json_put_str(o, str_of(p->value));
            else
                json_put_null(o);
            json_member_text(o, "what", str_of(p->what));
            json_close(o, '}');
        }
    json_close(o, ']');
}

static void command_as_json(struct cli *c, const struct command *about)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_member_text(&o, "command", str_of(about->name));
    json_member_text(&o, "summary", str_of(about->summary));
    json_member_text(&o, "operands", str_of(about->operands));
    options_as_json(&o, about->options);
    json_key(&o, STR("subcommands"));
    json_open(&o, '[');
    for (const struct sub *s = about->subs; s && s->name; s++) {
        json_open(&o, '{');
        json_member_text(&o, "name", str_of(s->name));
        json_member_text(&o, "operands", str_of(s->operand ? s->operand : ""));
        json_key(&o, STR("options"));
        json_open(&o, '[');
        for (const struct arg_option *p = about->options; p && p->name; p++)
            if (cli_sub_takes(about->subs, s, p->name))
                json_put_str(&o, str_of(p->name));
        json_close(&o, ']');
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

void cli_help_command(struct cli *c, const struct command *about)
{
    struct str paragraphs = str_of(about->about);
    struct str examples = str_of(about->examples);
    char usage[256];

    if (c->json) {
        command_as_json(c, about);
        return;
    }
    /* People read help through a pager, too. */
    if (!c->width)
        c->width = 80;
    cli_coloured(c, BOLD, STR("Usage"));
    buf_add_char(&c->out, '\n');
    snprintf(usage, sizeof(usage), "signalbox %s%s%s [OPTIONS]", about->name,
             *about->operands ? " " : "", about->operands);
    buf_add_str(&c->out, STR("  "));
    cli_wrapped(c, 2, 4, str_of(usage));
    buf_add_char(&c->out, '\n');
    while (paragraphs.n) {
        cli_wrapped(c, 0, 0, str_cut(&paragraphs, '\n'));
        buf_add_char(&c->out, '\n');
    }
    /* Its own options with their meaning, and the names of the common ones. */
    cli_coloured(c, BOLD, STR("Options"));
    buf_add_str(&c->out, STR("\n"));
    add_options(c, about->options, false);
    buf_add_str(&c->out, STR("  "));
    for (const struct arg_option *o = about->options; o && o->name; o++)
        if (is_common(o))
            buf_addf(&c->out, "--%s, ", o->name);
    buf_add_str(&c->out, STR("--json, --help: signalbox help options\n"));
    buf_add_char(&c->out, '\n');
    cli_coloured(c, BOLD, STR("Examples"));
    buf_add_char(&c->out, '\n');
    while (examples.n) {
        struct str line = str_cut(&examples, '\n');

        buf_addf(&c->out, "  %.*s\n", STR_ARG(line));
    }
}

void cli_help_overview(struct cli *c)
{
    if (c->json) {
        for (const struct command *m = c->commands; m->name; m++)
            if (*m->summary)
                command_as_json(c, m);
        return;
    }
    buf_add_str(&c->out,
                STR("Signalbox routes each message to the right one of many "
                    "agents.\n\n"));
    cli_coloured(c, BOLD, STR("Commands"));
    buf_add_char(&c->out, '\n');
    for (const struct command *m = c->commands; m->name; m++)
        if (*m->summary)
            buf_addf(&c->out, "  %-11s  %s\n", m->name, m->summary);
    buf_add_str(&c->out, STR("\nTry it               signalbox demo\n"
                             "Start a server       signalbox serve\n"
                             "Explain a command    signalbox help COMMAND\n"
                             "List all settings    signalbox help config\n"
                             "List all calls       signalbox help api\n"
                             "Shared options       signalbox help options\n"));
}

static void setting_as_json(struct cli *c, const struct config_setting *s)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_member_text(&o, "setting", str_of(s->path));
    json_member_raw(&o, "default", str_of(s->preset));
    json_member_text(&o, "must_be", str_of(s->allowed));
    json_member_text(&o, "what", str_of(s->what));
    json_member_text(&o, "variable", str_of(s->variable));
    json_member_bool(&o, "needs_restart", s->needs_restart);
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

static void setting_as_text(struct cli *c, const struct config_setting *s)
{
    char must_be[256];

    cli_coloured(c, BOLD, str_of(s->path));
    buf_add_str(&c->out, STR("  "));
    cli_wrapped(c, (unsigned)strlen(s->path) + 2, 4, str_of(s->preset));
    buf_add_str(&c->out, STR("    "));
    cli_wrapped(c, 4, 4, str_of(s->what));
    snprintf(must_be, sizeof(must_be), "Must be %s.%s", s->allowed,
             s->needs_restart ? " Needs a restart." : "");
    buf_add_str(&c->out, STR("    "));
    cli_wrapped(c, 4, 4, str_of(must_be));
}

static void help_on_config(struct cli *c)
{
    struct config_setting s;

    if (!c->json && !c->on_terminal) {
        config_write_reference(&c->out);
        return;
    }
    if (!c->json)
        cli_wrapped(
            c, 0, 0,
            STR("Settings and their defaults. A setting can be in "
                "signalbox.jsonc, in the environment (http.maxHeaders is "
                "SIGNALBOX_HTTP__MAX_HEADERS) or on the command line (--set "
                "http.maxHeaders=50). The command line overrides the "
                "environment, and both override the file."));
    for (size_t i = 0; config_setting(i, &s); i++) {
        if (!c->json)
            buf_add_char(&c->out, '\n');
        (c->json ? setting_as_json : setting_as_text)(c, &s);
    }
}

static void help_on_options(struct cli *c)
{
    struct json_out o = json_out(&c->out);

    if (c->json) {
        json_open(&o, '{');
        options_as_json(&o, client_options);
        json_close(&o, '}');
        buf_add_char(&c->out, '\n');
        return;
    }
    c->width = c->width ? c->width : 80;
    cli_wrapped(c, 0, 0,
                STR("Every command takes --json and --help. A command that "
                    "talks to a server also takes the other options."));
    buf_add_char(&c->out, '\n');
    add_options(c, client_options, true);
    buf_add_char(&c->out, '\n');
    cli_wrapped(c, 0, 0, STR(CLI_CLIENT_ABOUT));
}

enum exit_status cli_unknown_command(struct cli *c, struct str name,
                                     const char *topics)
{
    struct str_guess g = str_guess(name);
    struct str rest = str_of(topics);

    while (rest.n) {
        struct str topic = str_cut(&rest, ' ');

        str_guess_offer(&g, topic, str_distance(name, topic));
    }
    for (const struct command *m = c->commands; m->name; m++)
        if (*m->summary)
            str_guess_offer(&g, str_of(m->name),
                            str_distance(name, str_of(m->name)));
    name = str_head(name, 64);
    if (g.name.n)
        return cli_error(c, ERR_USAGE,
                         "there is no command \"%.*s\"; did you mean %.*s?",
                         STR_ARG(name), STR_ARG(g.name));
    return cli_error(c, ERR_USAGE,
                     "there is no command \"%.*s\"; signalbox help lists all",
                     STR_ARG(name));
}

enum exit_status cli_help(struct cli *c)
{
    struct str topic = c->args.operands[0];

    if (!c->args.n_operands) {
        cli_help_overview(c);
        return EXIT_DONE;
    }
    if (str_eq(topic, STR("config"))) {
        help_on_config(c);
        return EXIT_DONE;
    }
    if (str_eq(topic, STR("options"))) {
        help_on_options(c);
        return EXIT_DONE;
    }
    if (str_eq(topic, STR("api"))) {
        api_write_reference(&c->out);
        return EXIT_DONE;
    }
    for (const struct command *m = c->commands; m->name; m++)
        if (str_eq(str_of(m->name), topic)) {
            cli_help_command(c, m);
            return EXIT_DONE;
        }
    return cli_unknown_command(c, topic, "api config options");
}
