/* Checks of processes and models across rows, and everything they get from the
 * environment, which only the configuration reads. */
#include <stdio.h>

#include "base/paths.h"
#include "server/config/internal.h"

/* Most programs need these variables, and none of them is a secret. */
static bool variable_is_usual(struct str name)
{
    static const char *const names[] = {"PATH",  "HOME",   "USER", "LOGNAME",
                                        "SHELL", "TMPDIR", "TZ",   "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return str_starts(name, STR("LC_"));
}

static struct str variable_name(struct str entry)
{
    return str_sub(entry, 0, str_find(entry, '=', 0));
}

static bool variable_is_listed(const struct strs *names, struct str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(variable_name(names->list[i]), name))
            return true;
    return false;
}

/* Whether the process gets the server's value of the variable. */
static bool variable_is_passed(const struct process_def *d, struct str name)
{
    bool is_allowed = variable_is_listed(&d->env_allowed, name);
    bool is_of_user = str_eq(name, STR("HOME")) || str_eq(name, STR("USER")) ||
                      str_eq(name, STR("LOGNAME"));

    /* The launcher sets those of another user. */
    if (d->user.n && is_of_user && !is_allowed)
        return false;
    return (variable_is_usual(name) || is_allowed) &&
           !variable_is_listed(&d->env, name);
}

/* First the variables of the definition, then those passed from the server. */
static void make_process_env(struct load *l, struct process_def *d)
{
    struct value_pos at = load_where(l, "processes");
    size_t n = 0, most = d->env.n + 1;
    struct str *list;

    for (char *const *e = l->environ; e && *e; e++)
        most += variable_is_passed(d, variable_name(str_of(*e)));
    list = arena_array(&l->c->arena, most, sizeof(*list));
    if (!list) {
        report_no_memory(&l->report, at);
        return;
    }
    for (size_t i = 0; i < d->env.n; i++)
        list[n++] = d->env.list[i];
    for (char *const *e = l->environ; e && *e; e++)
        if (variable_is_passed(d, variable_name(str_of(*e))))
            load_keep(l, at, str_of(*e), &list[n++]);
    d->whole_env = (struct strs){list, n};
    if (!variable_is_listed(&d->whole_env, STR("PATH")))
        list[d->whole_env.n++] = STR("PATH=/usr/local/bin:/usr/bin:/bin");
}

/* Agents' own definitions are written in agents.list. */
static struct value_pos process_position(const struct load *l)
{
    struct value_pos at = load_where(l, "processes");

    return at.from == FROM_DEFAULT ? load_where(l, "agents.list") : at;
}

/* Landlock cannot deny access to the data inside a folder that it allows. */
static void check_process_paths(struct load *l, const struct process_def *d,
                                struct value_pos at)
{
    char data[PATH_MAX];
    struct why why;
    enum err e = OK;

    if (!d->sandbox || !path_real(l->c->data, data))
        return;
    e = path_beside_data(d->workspace, data, "the workspace", &why);
    for (size_t i = 0; !e && i < d->read.n; i++)
        e = path_beside_data(d->read.list[i], data, "the path in read,", &why);
    for (size_t i = 0; !e && i < d->write.n; i++)
        e = path_beside_data(d->write.list[i], data, "the path in write,",
                             &why);
    if (e)
        report_error(&l->report, at, "the process %s: %s", quote(d->name).text,
                     why.text);
}

static void check_process(struct load *l, const struct process_def *d)
{
    struct value_pos at = process_position(l);

    if (!d->command.list[0].n)
        report_error(&l->report, at,
                     "the process %s has no program: the first word of its "
                     "command is empty",
                     quote(d->name).text);
    if (d->user.n && !d->sandbox)
        report_error(&l->report, at,
                     "the process %s has a user and sandbox false; only the "
                     "sandbox can change the user",
                     quote(d->name).text);
    check_process_paths(l, d, at);
    if (d->min > d->max)
        report_error(&l->report, at,
                     "the process %s has min %lld and max %lld; min may not "
                     "exceed max",
                     quote(d->name).text, (long long)d->min, (long long)d->max);
}

static void read_model_key(struct load *l, struct model_def *d)
{
    struct value_pos at = load_where(l, "models");

    load_secret(l, "models", d->key_variable, &d->key);
    if (d->key_variable.n && !d->key.n)
        report_warning(&l->report, at,
                       "the key of the model %s is expected in %.*s, which is "
                       "not set: the endpoint will probably reject requests",
                       quote(d->name).text, STR_ARG(d->key_variable));
    if (load_is_exposed(d->base_url))
        report_warning(&l->report, at,
                       "%sall requests to the model %s are sent in plain text; "
                       "use https",
                       d->key_variable.n ? "the key and " : "",
                       quote(d->name).text);
}

/* Paths that no program may open: the data folder and files with secrets. */
static void list_closed_paths(struct load *l)
{
    struct config *c = l->c;
    struct str *list = arena_array(&c->arena, c->tls.more.n + 6, sizeof(*list));
    size_t n = 0;

    if (!list) {
        report_no_memory(&l->report, load_where(l, "data"));
        return;
    }
    list[n++] = c->data;
    if (c->has_file)
        list[n++] = c->path;
    list[n++] = c->tls.key_file;
    if (!str_eq(c->secrets.key_file, STR(CONFIG_RULES_AUTO)))
        list[n++] = c->secrets.key_file;
    list[n++] = c->secrets.credential_file;
    list[n++] = c->secrets.home_file;
    for (size_t i = 0; i < c->tls.more.n; i++)
        list[n++] = c->tls.more.list[i].key_file;
    c->closed = (struct strs){list, n};
}

void load_definitions(struct load *l)
{
    struct process_def usual = {0};
    struct config *c = l->c;

    for (size_t i = 0; i < c->processes.n; i++) {
        struct process_def *d = (struct process_def *)&c->processes.list[i];

        check_process(l, d);
        make_process_env(l, d);
    }
    for (size_t i = 0; i < c->models.n; i++)
        read_model_key(l, (struct model_def *)&c->models.list[i]);
    make_process_env(l, &usual);
    c->usual_env = usual.whole_env;
    list_closed_paths(l);
}
