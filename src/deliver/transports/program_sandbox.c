/* The sandbox of agent programs: they cannot open the data folder, files with
 * secrets, and each other's workspaces. In addition to its command and its
 * workspace, pi gets the folder of its settings and its login. */
#include <stdio.h>

#include "deliver/transports/pool.h"

enum { WORDS_BYTES = 512 };

static struct str process_variable(const struct process_def *d, struct str name)
{
    for (size_t i = 0; i < d->whole_env.n; i++) {
        struct str value = d->whole_env.list[i];

        if (str_eq(str_cut(&value, '='), name))
            return value;
    }
    return STR("");
}

static void sandbox_find_own(const struct process_def *d,
                             struct deliver_box *out)
{
    struct str folder = process_variable(d, STR("PI_CODING_AGENT_DIR"));
    struct str home = process_variable(d, STR("HOME"));
    int n;

    if (d->dialect != DIALECT_PI || (!folder.n && !home.n))
        return;
    n = folder.n ? snprintf(out->own_path, sizeof(out->own_path), "%.*s",
                            STR_ARG(folder))
                 : snprintf(out->own_path, sizeof(out->own_path), "%.*s/.pi",
                            STR_ARG(home));
    if (n >= PATH_MAX)
        return;
    out->own = str_of(out->own_path);
    out->box.own = &out->own;
    out->box.n_own = 1;
}

const struct child_box *deliver_box_of(const struct process_def *d,
                                       const struct deliver_settings *s,
                                       struct deliver_box *out)
{
    size_t n = 0;

    if (!d->sandbox)
        return NULL;
    out->box = (struct child_box){.read = d->read.list,
                                  .n_read = d->read.n,
                                  .write = d->write.list,
                                  .n_write = d->write.n,
                                  .closed = s->closed.list,
                                  .n_closed = s->closed.n,
                                  .user = d->user};
    sandbox_find_own(d, out);
    for (size_t i = 0; i < s->n_processes && n < TRANSPORTS_MAX; i++)
        if (s->processes[i].workspace.n &&
            !str_eq(s->processes[i].workspace, d->workspace))
            out->others[n++] = s->processes[i].workspace;
    out->box.others = out->others;
    out->box.n_others = n;
    return &out->box;
}

void pool_tell_box(struct pool *p, unsigned held)
{
    struct log *log = p->all->deliver->opts.log;
    struct child_threat threats[CHILD_THREATS];
    struct buf open;

    if (p->has_told_box)
        return;
    p->has_told_box = true;
    if (!held) {
        if (!p->def.sandbox)
            log_warn(log, "deliver.no_sandbox", LOG_S("process", p->def.name),
                     LOG_C("because", "its sandbox is false: it can do "
                                      "whatever the server can"));
        return;
    }
    buf_init(&open, WORDS_BYTES);
    child_threats(held, threats);
    for (size_t i = 0; i < CHILD_THREATS; i++)
        if (!threats[i].by)
            buf_addf(&open, "%s%s", open.n ? ", " : "", threats[i].what);
    if (open.n)
        log_warn(log, "deliver.sandbox_is_partial",
                 LOG_S("process", p->def.name), LOG_S("it_can", buf_str(&open)),
                 LOG_I("landlock", child_held_abi(held)),
                 LOG_C("do", "signalbox doctor says what would close it"));
    else
        log_info(log, "deliver.sandboxed", LOG_S("process", p->def.name),
                 LOG_I("landlock", child_held_abi(held)));
    buf_fini(&open);
}
