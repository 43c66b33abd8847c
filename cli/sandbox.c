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

static void probe(const struct config *c, const struct process_def *d,
                  struct finding *f)
{
    struct deliver_settings s = settings_deliver(c);
    bool is_there = d->workspace.n && access(d->workspace.p, X_OK) == 0;
    int launcher = child_find_launcher();
    struct deliver_box box;
    struct why why = {""};
    unsigned held = 0;
    enum err e = child_probe(
        launcher,
        &(struct child_opts){.argv = d->command.list,
                             .n_argv = d->command.n,
                             .env = d->whole_env.list,
                             .n_env = d->whole_env.n,
                             .path = STR("/usr/bin:/bin"),
                             .folder = is_there ? d->workspace : STR(""),
                             .box = deliver_box_of(d, &s, &box)},
        &held, &why);

    if (launcher >= 0)
        close(launcher);
    if (e)
        finding_set(f, DOUBTFUL, "%s", why.text);
    else
        sandbox_report_limits(held, f);
}

void sandbox_look(const struct config *c, struct finding *f)
{
    const struct process_def *with = NULL, *without = NULL;
    size_t n_without = 0;

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
        probe(c, with, f);
    }
}
