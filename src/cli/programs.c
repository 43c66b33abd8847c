/* Looked for as child_start would: a path as seen from the workspace, a name in
 * the folders of the PATH that the child gets. A workspace that is not there is
 * made when the server starts, if the folder is there that it lies in. */
#include "cli/programs.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child/child.h"

static bool is_folder(struct str path)
{
    char text[PATH_MAX];
    struct stat st;
    int n = snprintf(text, sizeof(text), "%.*s", STR_ARG(path));

    return n > 0 && n < PATH_MAX && stat(text, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool can_be_made(struct str path)
{
    return access(path.p, F_OK) != 0 && is_folder(str_parent(path));
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
    return child_seek(&(struct child_opts){.argv = d->command.list,
                                           .n_argv = 1,
                                           .path = path_of(d),
                                           .folder = is_folder(d->workspace)
                                                         ? d->workspace
                                                         : STR("")},
                      NULL) == OK;
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
    struct str install = process_install(d->dialect);
    bool is_path = str_find(name, '/', 0) < name.n;
    char what[640];

    if (d->workspace.n && !is_folder(d->workspace) &&
        !can_be_made(d->workspace)) {
        snprintf(what, sizeof(what),
                 "the workspace of %.*s, %.300s, is no folder, and none can be "
                 "made there: make it, or it cannot be started",
                 STR_ARG(d->name), d->workspace.p);
        say(ctx, setting, true, what);
    } else if (!is_found(d)) {
        snprintf(what, sizeof(what), "the program of %.*s, %.*s, is %s%s%.*s",
                 STR_ARG(d->name), STR_ARG(name),
                 is_path ? "not there, or may not be run"
                         : "in none of the folders of PATH",
                 !is_path && install.n ? "; install it: " : "",
                 STR_ARG(is_path ? STR("") : install));
        say(ctx, setting, true, what);
    }
}

void programs_check(const struct config *c, programs_say *say, void *ctx)
{
    for (size_t i = 0; i < c->processes.n; i++)
        check(c, &c->processes.list[i], say, ctx);
}
