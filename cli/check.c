/* check: validate the configuration. Problems are the output and go to stdout.
 * With --print the configuration is the output, and problems go to stderr. */
#include "cli/cli.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/names_held.h"
#include "cli/programs.h"
#include "cli/tlsfiles.h"
#include "gate/rules_file.h"
#include "lab/advice_config.h"
#include "server/providers.h"
#include "server/settings.h"

const struct arg_option cli_check_options[] = {
    CLI_SOURCE_OPTIONS,
    {"print", NULL, "print all settings with their values, as JSON", false},
    {0},
};

static void add_count(struct buf *out, unsigned n, const char *what)
{
    buf_addf(out, "%u %s%s", n, what, n == 1 ? "" : "s");
}

/* The rules of the gate. */
struct rules_seen {
    bool is_there;
    size_t n;
};

static void say_ok(struct cli *c, const struct config *cfg,
                   struct rules_seen rules)
{
    struct buf *out = &c->out;
    size_t from;
    struct str words;

    cli_coloured(c, GREEN, STR("ok"));
    from = out->n;
    buf_addf(out, ": %.*s",
             STR_ARG(cfg->has_file ? cfg->path : STR("no file")));
    if (cfg->n_from_file) {
        buf_add_str(out, STR(", "));
        add_count(out, cfg->n_from_file, "setting");
    }
    if (cfg->n_from_env)
        buf_addf(out, ", %u from the environment", cfg->n_from_env);
    if (cfg->n_from_flags)
        buf_addf(out, ", %u from the command line", cfg->n_from_flags);
    if (!cfg->n_from_file && !cfg->n_from_env && !cfg->n_from_flags)
        buf_add_str(out, STR(", all defaults"));
    buf_addf(out, "; listens on %.*s", STR_ARG(cfg->listen));
    if (cfg->tls.listen.n)
        buf_addf(out, "%s%.*s with TLS", cfg->listen.n ? " and " : "",
                 STR_ARG(cfg->tls.listen));
    if (cfg->agents.n) {
        buf_add_str(out, STR(", has "));
        add_count(out, (unsigned)cfg->agents.n, "agent");
    }
    if (rules.is_there) {
        buf_add_str(out, cfg->agents.n ? STR(" and ") : STR(", has "));
        add_count(out, (unsigned)rules.n, "rule");
        buf_add_str(out, STR(" of the gate"));
    }
    buf_addf(out, ", keeps its data in %.*s", STR_ARG(cfg->data));
    words = (struct str){out->p + from, out->n - from};
    words.p = arena_strdup(&c->arena, words);
    out->n = from;
    if (words.p)
        cli_wrapped(c, 2, 4, words);
}

static void say_problems(struct cli *c, const struct config_report *report)
{
    struct str rest = str_of(report->text);

    while (rest.n)
        cli_wrapped(c, 0, 4, str_cut(&rest, '\n'));
    if (!report->n_errors)
        return;
    add_count(&c->out, report->n_errors, "error");
    if (report->n_warnings) {
        buf_add_str(&c->out, STR(", "));
        add_count(&c->out, report->n_warnings, "warning");
    }
    buf_add_char(&c->out, '\n');
}

static void say_as_json(struct cli *c, const struct config *cfg,
                        const struct config_report *report)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    json_member_bool(&o, "ok", cfg != NULL);
    if (cfg) {
        json_member_str(&o, "file",
                        cfg->has_file ? cfg->path : (struct str){0});
        json_key(&o, STR("settings"));
        json_open(&o, '{');
        json_member_int(&o, "file", cfg->n_from_file);
        json_member_int(&o, "environment", cfg->n_from_env);
        json_member_int(&o, "flags", cfg->n_from_flags);
        json_close(&o, '}');
    }
    config_report_write(&o, report);
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

struct looking {
    const struct config *config;
    struct config_report *report;
    struct rules_seen rules;
};

static void check_add_problem(void *ctx, const char *setting, bool is_warning,
                              const char *what)
{
    struct looking *l = ctx;

    config_report_add(l->report, l->config, setting, is_warning, what);
}

static void add_error(void *ctx, const char *setting, const char *what)
{
    check_add_problem(ctx, setting, false, what);
}

/* Report every problem of the rules. */
static void look_at_rules(struct looking *l)
{
    struct gate_problems problems = {.n = 0};
    char found[RULES_FILE_PATH_BYTES];
    const char *where;
    struct str path = rules_file_place(l->config, found, &where);
    struct gate_rules *rules;
    struct str rest;

    if (!path.n && l->config->rules.n &&
        rules_file_was_found(l->config->data, found)) {
        char words[RULES_FILE_WORDS];

        rules_file_say_missed(found, words);
        add_error(l, "rules", words);
    }
    if (!path.n)
        return;
    if (rules_file_read(path.p, &rules, &problems) == OK) {
        l->rules.is_there = true;
        l->rules.n = gate_rules_count(rules);
        gate_rules_free(rules);
    }
    rest = (struct str){problems.text, problems.n_bytes};
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');
        char words[1024];

        snprintf(words, sizeof(words), "%.*s", STR_ARG(line));
        add_error(l, "rules", words);
    }
}

static void check_add_held_name(void *ctx, const struct name_taken *t,
                                const char *words)
{
    static const char *const settings[] = {[NAME_NOWHERE] = "agents.list",
                                           [NAME_LISTED] = "agents.list",
                                           [NAME_DEFAULT] = "agents.default",
                                           [NAME_BACKUP] = "agents.list",
                                           [NAME_RULES] = "rules"};

    check_add_problem(ctx, settings[t->place], false, words);
}

/* Valid cards that will not work. */
static void look_at_cards(struct looking *l)
{
    const struct config *cfg = l->config;
    struct advice advice;
    char words[ADVICE_TEXT_MAX + AGENT_NAME_MAX + 32];

    for (size_t i = 0; i < cfg->agents.n; i++) {
        advice_config(cfg, i, &advice);
        for (size_t k = 0; k < advice.n; k++) {
            snprintf(words, sizeof(words), "%.*s: %s",
                     STR_ARG(cfg->agents.list[i].name), advice.list[k].message);
            check_add_problem(l, "agents.list", true, words);
        }
    }
}

/* Policies for unsure messages that never apply, or that have no agent. */
static void look_at_unsure(struct looking *l)
{
    const struct config *cfg = l->config;

    if (cfg->routing.unsure == CONFIG_UNSURE_AUTO)
        return;
    if (!settings_route(cfg).choose.is_auto)
        check_add_problem(
            l, "routing.unsure", true,
            "routing.unsure is set, but with a number as the threshold "
            "no message is ever unsure; set routing.threshold to "
            "\"auto\", or leave routing.unsure out");
    else if (cfg->routing.unsure == CONFIG_UNSURE_DEFAULT &&
             !cfg->default_agent.n)
        check_add_problem(
            l, "routing.unsure", true,
            "routing.unsure is \"default\", but there is no default "
            "agent: unsure messages are refused; set "
            "agents.default, or \"best\" or \"ask\" instead");
}

/* Unusable TLS files are errors. A server starts without its file of trusted
 * authorities, so that is only a warning. */
static struct config *check_tls_files(struct config *cfg,
                                      struct config_report *report,
                                      bool is_printing,
                                      struct rules_seen *rules)
{
    struct looking l = {.config = cfg, .report = report};
    struct gate_rules *own;
    struct why why;

    if (!cfg)
        return NULL;
    tlsfiles_check(cfg, cli_now_ms(), check_add_problem, &l);
    if (cfg->outgoing.ca_file.n) {
        tlsfiles_check_trust(cfg->outgoing.ca_file.p, &why);
        if (why.text[0])
            check_add_problem(&l, "outgoing.caFile", true, why.text);
    }
    providers_check(cfg, add_error, &l);
    programs_check(cfg, check_add_problem, &l);
    if (!is_printing) { /* advice is not a problem of the configuration */
        look_at_cards(&l);
        look_at_unsure(&l);
        names_held(cfg, names_rules(cfg, &own), check_add_held_name, &l);
        gate_rules_free(own);
    }
    look_at_rules(&l);
    *rules = l.rules;
    if (!report->n_errors)
        return cfg;
    config_free(cfg);
    return NULL;
}

enum exit_status cli_check(struct cli *c)
{
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct config *cfg;
    struct rules_seen rules = {.n = 0};
    bool is_printing = args_has(&c->args, "print");
    struct buf json;

    cli_source(c, &src);
    if (c->args.n_operands && src.path)
        return cli_error(c, ERR_USAGE, "give FILE or --config FILE, not both");
    if (c->args.n_operands)
        src.path = c->args.operands[0].p;
    cfg = check_tls_files(config_load(&src, &report), &report, is_printing,
                          &rules);
    if (is_printing && cfg) {
        buf_init(&json, CLI_OUT_MAX);
        config_write_json(cfg, &json);
        if (c->json)
            buf_addf(&c->out, "%.*s\n", STR_ARG(buf_str(&json)));
        else
            cli_indented(&c->out, buf_str(&json));
        c->out.over |= json.over;
        buf_fini(&json);
    }
    if (is_printing && (cfg || !c->json)) {
        fputs(report.text, stderr);
    } else if (c->json) {
        say_as_json(c, cfg, &report);
    } else {
        say_problems(c, &report);
        if (cfg)
            say_ok(c, cfg, rules);
    }
    status = cfg ? EXIT_DONE : err_row(ERR_BAD_CONFIG)->exit_status;
    config_free(cfg);
    return status;
}
