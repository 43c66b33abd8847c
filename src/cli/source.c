/* From the options of a command to where its configuration comes from. The
 * shorthands --listen and --data become what --set would be given, so that
 * config.c knows one kind of flag, and the order on the command line is the
 * order in which they count. */
#include "cli/cli.h"

#include "base/json.h"

static bool add_set(struct cli *c, struct str *sets, size_t *n,
                    const struct arg_option *o, struct str value)
{
    struct str name = str_of(o->name);
    char *p;

    if (str_eq(name, STR("set"))) {
        sets[(*n)++] = value;
        return true;
    }
    if (!str_eq(name, STR("listen")) && !str_eq(name, STR("data")))
        return true;
    p = arena_alloc(&c->arena, name.n + 1 + value.n + 1);
    if (!p)
        return false;
    memcpy(p, name.p, name.n);
    p[name.n] = '=';
    memcpy(p + name.n + 1, value.p, value.n);
    sets[(*n)++] = (struct str){p, name.n + 1 + value.n};
    return true;
}

bool cli_source(struct cli *c, struct config_source *src,
                enum exit_status *status)
{
    struct str *sets = arena_array(&c->arena, ARGS_OPTIONS_MAX, sizeof(*sets));
    size_t n = 0;

    for (size_t i = 0; sets && i < c->args.n_options; i++)
        if (!add_set(c, sets, &n, c->args.options[i].option,
                     c->args.options[i].value))
            sets = NULL;
    if (!sets) {
        *status = cli_error(c, ERR_NOMEM, "out of memory");
        return false;
    }
    /* Values come from argv and end in NUL. */
    *src = (struct config_source){.path = args_get(&c->args, "config").p,
                                  .environ = c->environ,
                                  .sets = sets,
                                  .n_sets = n};
    return true;
}

/* What is wrong with the configuration, the first of it. A warning may stand
 * before it, and is not why. */
static struct str first_error(const struct config_report *report)
{
    struct str rest = str_of(report->text), line;

    for (unsigned i = 0; i < report->n_problems; i++) {
        line = str_cut(&rest, '\n');
        if (!report->problems[i].is_warning)
            return line;
    }
    rest = str_of(report->text);
    return str_cut(&rest, '\n');
}

enum exit_status cli_bad_config(struct cli *c,
                                const struct config_report *report)
{
    struct str first = first_error(report);

    if (report->n_errors < 2)
        return cli_error(c, ERR_BAD_CONFIG, "%.*s", STR_ARG(first));
    return cli_error(c, ERR_BAD_CONFIG,
                     "%.*s; there %s %u more: signalbox check, with the same "
                     "--config and --set, shows all there is to mend",
                     STR_ARG(first), report->n_errors == 2 ? "is" : "are",
                     report->n_errors - 1);
}

bool cli_data(struct cli *c, struct str *folder, enum exit_status *status)
{
    struct str given = args_get(&c->args, "data"), first;
    struct config_report report;
    struct config_source src;
    struct config *cfg;
    char *copy;

    /* With the folder named, a configuration that is wrong is in nobody's
     * way: going back to a backup may be just what is needed. */
    if (given.n) {
        *folder = given;
        return true;
    }
    if (!cli_source(c, &src, status))
        return false;
    cfg = config_load(&src, &report);
    if (!cfg) {
        first = str_of(report.text);
        first = str_cut(&first, '\n');
        *status = cli_error(c, ERR_BAD_CONFIG,
                            "%.*s: signalbox check shows all there is to "
                            "mend; or name the folder with --data",
                            STR_ARG(first));
        return false;
    }
    copy = arena_strdup(&c->arena, cfg->data);
    *folder = (struct str){copy, cfg->data.n};
    config_free(cfg);
    if (!copy)
        *status = cli_error(c, ERR_NOMEM, "out of memory");
    return copy != NULL;
}
