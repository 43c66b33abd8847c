/* Programs are searched as child_start does: a path from the workspace, a name
 * in the PATH of the child. The server creates a missing workspace when it
 * starts, if its parent folder exists. */
#include "cli/programs.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/child/child.h"

static bool is_folder(struct str path)
{
    char text[PATH_MAX];
    struct stat st;
    int n = snprintf(text, sizeof(text), "%.*s", STR_ARG(path));

    return n > 0 && n < PATH_MAX && stat(text, &st) == 0 && S_ISDIR(st.st_mode);
}

void programs_check(const struct config *c, programs_say *say, void *ctx)
{
    for (size_t k = 0; k < c->processes.n; k++) {
        const struct process_def *d = &c->processes.list[k];
        struct child_opts seek = {.argv = d->command.list, .n_argv = 1};
        const char *setting = "processes";
        struct str name = str_head(d->command.list[0], 200);
        struct str install = process_install(d->dialect);
        bool is_path = str_find(name, '/', 0) < name.n;
        char what[640];

        /* A process of an agent has the agent's name. */
        for (size_t i = 0; i < c->agents.n; i++)
            if (str_eq(c->agents.list[i].name, d->name))
                setting = "agents.list";
        for (size_t i = d->whole_env.n; i-- > 0;)
            if (str_starts(d->whole_env.list[i], STR("PATH=")))
                seek.path = str_sub(d->whole_env.list[i], 5, SIZE_MAX);
        if (is_folder(d->workspace))
            seek.folder = d->workspace;
        if (d->workspace.n && !is_folder(d->workspace) &&
            (access(d->workspace.p, F_OK) == 0 ||
             !is_folder(str_parent(d->workspace)))) {
            snprintf(
                what, sizeof(what),
                "the workspace of %.*s, %.300s, does not exist and cannot be "
                "created: without it the program does not start",
                STR_ARG(d->name), d->workspace.p);
            say(ctx, setting, true, what);
        } else if (child_seek(&seek, NULL) != OK) {
            snprintf(what, sizeof(what),
                     "the program of %.*s, %.*s, is %s%s%.*s", STR_ARG(d->name),
                     STR_ARG(name),
                     is_path ? "missing or not executable" : "not in the PATH",
                     !is_path && install.n ? "; install it: " : "",
                     STR_ARG(is_path ? STR("") : install));
            say(ctx, setting, true, what);
        }
    }
}
