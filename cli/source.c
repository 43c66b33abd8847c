/* Turn the options of a command into the source of its configuration. The
 * shorthands --listen and --data become values of --set, so that config.c knows
 * one kind of flag, and later options override earlier ones. */
#include "cli/cli.h"

#include "base/json.h"

/* The limits of args keep this below the limit of the arena. */
void cli_source(struct cli *c, struct config_source *src)
{
    struct str *sets = arena_array(&c->arena, ARGS_OPTIONS_MAX, sizeof(*sets));
    size_t n = 0;

    for (size_t i = 0; i < c->args.n_options; i++) {
        struct str name = str_of(c->args.options[i].option->name);
        struct str value = c->args.options[i].value;
        char *p;

        if (str_eq(name, STR("set"))) {
            sets[n++] = value;
        } else if (str_eq(name, STR("listen")) || str_eq(name, STR("data"))) {
            p = arena_alloc(&c->arena, name.n + 1 + value.n + 1);
            memcpy(p, name.p, name.n);
            p[name.n] = '=';
            memcpy(p + name.n + 1, value.p, value.n);
            sets[n++] = (struct str){p, name.n + 1 + value.n};
        }
    }
    /* Values come from argv and end in NUL. */
    *src = (struct config_source){.path = args_get(&c->args, "config").p,
                                  .environ = c->environ,
                                  .sets = sets,
                                  .n_sets = n};
}

enum exit_status cli_bad_config(struct cli *c,
                                const struct config_report *report)
{
    struct str rest = str_of(report->text), first = str_cut(&rest, '\n');

    /* The first error; warnings may come before it. */
    for (unsigned i = 0;
         i + 1 < report->n_problems && report->problems[i].is_warning; i++)
        first = str_cut(&rest, '\n');
    if (report->n_errors < 2)
        return cli_error(c, ERR_BAD_CONFIG, "%.*s", STR_ARG(first));
    return cli_error(c, ERR_BAD_CONFIG,
                     "%.*s; and %u more: signalbox check, with the same "
                     "--config and --set, lists all errors",
                     STR_ARG(first), report->n_errors - 1);
}

bool cli_data(struct cli *c, struct str *folder, enum exit_status *status)
{
    struct str given = args_get(&c->args, "data"), first;
    struct config_report report;
    struct config_source src;
    struct config *cfg;

    /* With --data an invalid configuration is ignored: restoring a backup must
     * work in spite of it. */
    if (given.n) {
        *folder = given;
        return true;
    }
    cli_source(c, &src);
    cfg = config_load(&src, &report);
    if (!cfg) {
        first = str_of(report.text);
        first = str_cut(&first, '\n');
        *status = cli_error(c, ERR_BAD_CONFIG,
                            "%.*s: signalbox check lists all errors; or name "
                            "the folder with --data",
                            STR_ARG(first));
        return false;
    }
    *folder = (struct str){arena_strdup(&c->arena, cfg->data), cfg->data.n};
    config_free(cfg);
    return true;
}
