/* What no row can know of processes and models: whether their parts fit
 * together, and what they have from the environment, which nobody but the
 * configuration may look at. */
#include <stdio.h>

#include "base/paths.h"
#include "config/internal.h"

/* Without these hardly a program runs, and none of them is a secret. */
static bool is_usual(struct str name)
{
    static const char *const names[] = {"PATH",  "HOME",   "USER", "LOGNAME",
                                        "SHELL", "TMPDIR", "TZ",   "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(name, str_of(names[i])))
            return true;
    return str_starts(name, STR("LC_"));
}

static struct str name_of(struct str entry)
{
    return str_sub(entry, 0, str_find(entry, '=', 0));
}

static bool is_among(const struct strs *names, struct str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(name_of(names->list[i]), name))
            return true;
    return false;
}

/* Of another user, which the launcher knows. */
static bool is_users_own(struct str name)
{
    return str_eq(name, STR("HOME")) || str_eq(name, STR("USER")) ||
           str_eq(name, STR("LOGNAME"));
}

/* Whether d gets what the server has under that name. */
static bool is_given(const struct process_def *d, struct str name)
{
    if (d->user.n && is_users_own(name) && !is_among(&d->env_allowed, name))
        return false;
    return (is_usual(name) || is_among(&d->env_allowed, name)) &&
           !is_among(&d->env, name);
}

static bool add(struct load *l, struct str *list, size_t *n, struct str entry)
{
    char *copy = arena_strdup(&l->c->arena, entry);

    if (copy)
        list[(*n)++] = (struct str){copy, entry.n};
    return copy != NULL;
}

/* Its own words first, then ours that it may have. */
static void make_env(struct load *l, struct process_def *d)
{
    static const struct str path = STR("PATH=/usr/local/bin:/usr/bin:/bin");
    size_t n = 0, most = d->env.n + 1;
    struct str *list;
    bool is_whole = true;

    for (char *const *e = l->environ; e && *e; e++)
        most += is_given(d, name_of(str_of(*e)));
    list = arena_array(&l->c->arena, most, sizeof(*list));
    for (size_t i = 0; list && i < d->env.n; i++)
        list[n++] = d->env.list[i];
    for (char *const *e = list ? l->environ : NULL; e && *e; e++)
        if (is_given(d, name_of(str_of(*e))))
            is_whole = is_whole && add(l, list, &n, str_of(*e));
    d->whole_env = (struct strs){list, n};
    if (list && !is_among(&d->whole_env, STR("PATH")))
        is_whole = is_whole && add(l, list, &n, path);
    d->whole_env.n = n;
    if (!list || !is_whole)
        report_no_memory(&l->report, load_where(l, "processes"));
}

/* Those of agents' own stand elsewhere. */
static struct place where_of(const struct load *l)
{
    struct place at = load_where(l, "processes");

    return at.from == FROM_DEFAULT ? load_where(l, "agents.list") : at;
}

/* Landlock cannot close the data inside a folder that is open. */
static void check_paths(struct load *l, const struct process_def *d,
                        struct place at)
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
    struct place at = where_of(l);

    if (!d->command.list[0].n)
        report_error(&l->report, at,
                     "the process %s has no program: the first word of its "
                     "command is empty",
                     quote(d->name).text);
    if (d->user.n && !d->sandbox)
        report_error(&l->report, at,
                     "the process %s has a user and sandbox false; the "
                     "sandbox is what changes the user",
                     quote(d->name).text);
    check_paths(l, d, at);
    if (d->min > d->max)
        report_error(&l->report, at,
                     "the process %s has min %lld and max %lld; min may not be "
                     "more",
                     quote(d->name).text, (long long)d->min, (long long)d->max);
}

/* From the environment, and from nowhere else. */
static void read_key(struct load *l, struct model_def *d)
{
    const char *value =
        d->key_variable.n ? config_env(l->environ, d->key_variable.p) : NULL;
    struct place at = load_where(l, "models");
    char *copy;

    if (d->key_variable.n && (!value || !*value))
        report_warning(&l->report, at,
                       "the key of the model %s is to be in %.*s, and that is "
                       "not set: the endpoint will hardly answer",
                       quote(d->name).text, STR_ARG(d->key_variable));
    if (load_is_exposed(d->base_url))
        report_warning(&l->report, at,
                       "%swhatever the model %s is asked travels in plain "
                       "text; use https",
                       d->key_variable.n ? "the key and " : "",
                       quote(d->name).text);
    if (!value || !*value)
        return;
    copy = arena_strdup(&l->c->arena, str_of(value));
    if (copy)
        d->key = str_of(copy);
    else
        report_no_memory(&l->report, at);
}

/* What no program of ours opens: the data folder, files with secrets. */
static void list_closed(struct load *l)
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

void load_road_rest(struct load *l)
{
    struct process_def usual = {0};
    struct config *c = l->c;

    for (size_t i = 0; i < c->processes.n; i++) {
        struct process_def *d = (struct process_def *)&c->processes.list[i];

        check_process(l, d);
        make_env(l, d);
    }
    for (size_t i = 0; i < c->models.n; i++)
        read_key(l, (struct model_def *)&c->models.list[i]);
    make_env(l, &usual);
    c->usual_env = usual.whole_env;
    list_closed(l);
}
