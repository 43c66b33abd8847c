#include "cli/sandbox.h"

#include <stdio.h>
#include <unistd.h>

#include "deliver/deliver.h"
#include "net/child/child.h"
#include "server/settings.h"

enum { OPEN_BYTES = 400 };

static void sandbox_report_limits(unsigned held, struct finding *f)
{
    struct child_threat threats[CHILD_THREATS];
    struct buf open; /* the remaining threats, in one sentence */

    buf_init(&open, OPEN_BYTES);
    child_threats(held, threats);
    for (size_t i = 0; i < CHILD_THREATS; i++)
        if (!threats[i].by)
            buf_addf(&open, "%s%s", open.n ? ", " : "", threats[i].what);
    if (!open.n) {
        finding_set(f, GOOD,
                    "programs are isolated from the server: Landlock %d, "
                    "%s%snamespaces",
                    child_held_abi(held),
                    held & CHILD_HOLDS_CALLS ? "seccomp, " : "",
                    held & CHILD_HOLDS_USER ? "another user, " : "");
    } else {
        finding_set(
            f, DOUBTFUL,
            "programs of agents can still %.*s (Landlock %d, %s seccomp, %s "
            "namespaces)",
            STR_ARG(buf_str(&open)), child_held_abi(held),
            held & CHILD_HOLDS_CALLS ? "with" : "no",
            held & CHILD_HOLDS_PIDS ? "with" : "no");
        finding_advise(
            f, "allow user namespaces, or use a kernel from 6.12 on with "
               "Landlock, or run the server as root with a user for each "
               "process");
    }
    buf_fini(&open);
}

void sandbox_look(const struct config *c, struct finding *f)
{
    const struct process_def *with = NULL, *without = NULL;
    struct deliver_settings s = settings_deliver(c);
    struct child_opts opts = {.path = STR("/usr/bin:/bin")};
    struct deliver_box box;
    struct why why = {""};
    size_t n_without = 0;
    unsigned held = 0;
    int launcher;

    for (size_t i = 0; i < c->processes.n; i++) {
        const struct process_def *d = &c->processes.list[i];

        if (d->sandbox) {
            with = with ? with : d;
        } else {
            without = without ? without : d;
            n_without++;
        }
    }
    if (!c->processes.n) {
        finding_set(f, GOOD, "no agent is a program");
    } else if (without) {
        finding_set(
            f, DOUBTFUL,
            "%zu of %zu programs run without a sandbox, %.*s first: they can "
            "read the database and stop the server",
            n_without, c->processes.n, STR_ARG(str_head(without->name, 64)));
        finding_advise(f, "remove the setting sandbox, and list the paths that "
                          "they need in read and write");
    } else {
        opts.argv = with->command.list;
        opts.n_argv = with->command.n;
        opts.env = with->whole_env.list;
        opts.n_env = with->whole_env.n;
        if (with->workspace.n && access(with->workspace.p, X_OK) == 0)
            opts.folder = with->workspace;
        opts.box = deliver_box_of(with, &s, &box);
        launcher = child_find_launcher();
        if (child_probe(launcher, &opts, &held, &why))
            finding_set(f, DOUBTFUL, "%s", why.text);
        else
            sandbox_report_limits(held, f);
        if (launcher >= 0)
            close(launcher);
    }
}
