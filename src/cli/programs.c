/* Looked for as child_start would: a path as seen from the workspace, a name in
 * the folders of the PATH that the child gets. */
#include "cli/programs.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           access(path, X_OK) == 0;
}

static bool is_in(struct str folder, struct str name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%.*s/%.*s", STR_ARG(folder),
                     STR_ARG(name));

    return n > 0 && n < PATH_MAX && is_program(path);
}

static struct str path_of(const struct process_def *d)
{
    for (size_t i = 0; i < d->whole_env.n; i++)
        if (str_starts(d->whole_env.list[i], STR("PATH=")))
            return str_sub(d->whole_env.list[i], 5, SIZE_MAX);
    return STR("");
}

static bool is_found(const struct process_def *d)
{
    struct str name = d->command.list[0], path = path_of(d);

    if (str_starts(name, STR("/")))
        return is_program(name.p);
    if (str_find(name, '/', 0) < name.n)
        return is_in(d->workspace.n ? d->workspace : STR("."), name);
    while (path.n) {
        struct str folder = str_cut(&path, ':');

        if (str_starts(folder, STR("/")) && is_in(folder, name))
            return true;
    }
    return false;
}

/* Where it is written: an agent's own is called as that agent. */
static const char *setting_of(const struct config *c,
                              const struct process_def *d)
{
    for (size_t i = 0; i < c->agents.n; i++)
        if (str_eq(c->agents.list[i].name, d->name))
            return "agents.list";
    return "processes";
}

static void check(const struct config *c, const struct process_def *d,
                  programs_say *say, void *ctx)
{
    const char *setting = setting_of(c, d);

    struct str name = str_head(d->command.list[0], 200);
    bool is_path = str_find(name, '/', 0) < name.n;
    char what[640];

    if (d->workspace.n && !is_folder(d->workspace.p)) {
        snprintf(what, sizeof(what),
                 "the workspace of %.*s, %.300s, is no folder: make it, or it "
                 "cannot be started",
                 STR_ARG(d->name), d->workspace.p);
        say(ctx, setting, true, what);
    } else if (!is_found(d)) {
        snprintf(what, sizeof(what), "the program of %.*s, %.*s, is %s",
                 STR_ARG(d->name), STR_ARG(name),
                 is_path ? "not there, or may not be run"
                         : "in none of the folders of PATH");
        say(ctx, setting, true, what);
    }
}

void programs_check(const struct config *c, programs_say *say, void *ctx)
{
    for (size_t i = 0; i < c->processes.n; i++)
        check(c, &c->processes.list[i], say, ctx);
}
