/* The restrictions of a program, as the launcher gets them; and those in
 * effect.
 *
 * The plan is an unnamed file: arguments and environment may be longer than a
 * command line, and contain secrets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/paths.h"
#include "net/child/internal.h"
#include "net/child/launch.h"

enum { PLAN_BYTES = 4 * ARGS_BYTES };

/* The plan. */

static void plan_put(struct buf *out, enum launch_tag tag, struct str text)
{
    buf_add_char(out, (char)tag);
    buf_add_str(out, text);
    buf_add_char(out, '\0');
}

static void plan_put_all(struct buf *out, enum launch_tag tag,
                         const struct str *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].n)
            plan_put(out, tag, list[i]);
}

static void plan_put_texts(struct buf *out, enum launch_tag tag,
                           char *const *list)
{
    for (; *list; list++)
        plan_put(out, tag, str_of(*list));
}

/* The launcher compares these with others, so they must not contain links. */
static void plan_put_real(struct buf *out, enum launch_tag tag,
                          const struct str *list, size_t n)
{
    char real[PATH_MAX];

    for (size_t i = 0; i < n; i++)
        if (list[i].n && path_real(list[i], real))
            plan_put(out, tag, str_of(real));
}

static void plan_put_limits(struct buf *out, const struct spawn *s)
{
    for (size_t i = 0; i < s->n_limits; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%d %llu %llu", s->limits[i].resource,
                 (unsigned long long)s->limits[i].value.rlim_cur,
                 (unsigned long long)s->limits[i].value.rlim_max);
        plan_put(out, TAG_LIMIT, str_of(text));
    }
}

/* For tests: simulate an older kernel, or a container. */
static void plan_put_mistakes(struct buf *out)
{
    if (PLANTED("box.abi2") || PLANTED("box.abi2_alone"))
        plan_put(out, TAG_MAX_ABI, STR("2"));
    if (PLANTED("box.open"))
        plan_put(out, TAG_MAX_ABI, STR("0"));
    if (PLANTED("box.alone") || PLANTED("box.abi2_alone") ||
        PLANTED("box.open") || PLANTED("child.no_cgroup_kill"))
        plan_put(out, TAG_NO_NAMESPACES, STR(""));
    if (PLANTED("child.launcher_hangs"))
        plan_put(out, TAG_HANG, STR(""));
}

static void plan_put_box(struct buf *out, const struct spawn *s,
                         const struct child_opts *o)
{
    const struct child_box *b = o->box;
    char parent[32];

    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    plan_put(out, TAG_PARENT, str_of(parent));
    plan_put(out, TAG_OOM_SCORE, str_of(s->oom_score));
    if (s->cgroup[0])
        plan_put(out, TAG_CGROUP, str_of(s->cgroup));
    plan_put_texts(out, TAG_ARG, s->argv);
    plan_put_texts(out, TAG_ENV, s->env);
    plan_put_texts(out, TAG_PROGRAM, s->programs);
    plan_put_all(out, TAG_FOLDER, &o->folder, 1);
    plan_put_limits(out, s);
    plan_put_all(out, TAG_READ, b->read, b->n_read);
    plan_put_all(out, TAG_WRITE, b->write, b->n_write);
    plan_put_all(out, TAG_OWN, b->own, b->n_own);
    plan_put_all(out, TAG_USER, &b->user, 1);
    plan_put_real(out, TAG_CLOSED, b->closed, b->n_closed);
    plan_put_real(out, TAG_OTHER, b->others, b->n_others);
    plan_put_mistakes(out);
}

/* Zero, or errno. */
static int plan_write(int fd, struct str text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return errno;
        text = str_sub(text, (size_t)n, SIZE_MAX);
    }
    return 0;
}

enum err box_plan(struct spawn *s, const struct child_opts *o, struct why *why)
{
    struct buf text;
    int error;

    buf_init(&text, PLAN_BYTES);
    plan_put_box(&text, s, o);
    error = FAULT("child.plan") || text.over ? ENOMEM : 0;
    if (!error) {
        s->plan = memfd_create("signalbox-plan", MFD_CLOEXEC);
        error = s->plan < 0 || !spawn_raise_fd(&s->plan)
                    ? errno
                    : plan_write(s->plan, buf_str(&text));
    }
    buf_fini(&text);
    return error ? spawn_why(o, STEP_LAUNCH, error, why) : OK;
}

enum err spawn_by(struct spawn *s, const struct child_opts *o, int launcher,
                  struct why *why)
{
    if (launcher < 0)
        return why_err(why, ERR_NOT_ALLOWED,
                       "cannot start %.*s: the server cannot find its own "
                       "binary, which sets up the sandbox; process.sandbox "
                       "false runs it without one",
                       STR_ARG(str_head(o->argv[0], 160)));
    s->launcher = launcher;
    return box_plan(s, o, why);
}

/* Rejections. */

enum err child_box_check(const struct child_box *b, struct str folder,
                         struct why *why)
{
    char data[PATH_MAX];
    enum err e;

    if (!b->n_closed || !b->closed[0].n || !path_real(b->closed[0], data))
        return OK;
    e = path_beside_data(folder, data, "the workspace", why);
    for (size_t i = 0; !e && i < b->n_read; i++)
        e = path_beside_data(b->read[i], data, "the path in read,", why);
    for (size_t i = 0; !e && i < b->n_write; i++)
        e = path_beside_data(b->write[i], data, "the path in write,", why);
    return e;
}

/* The launcher. */

int child_find_launcher(void)
{
    int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

    /* In a chroot without /proc: by its path. */
    if (fd < 0 && strchr(program_invocation_name, '/'))
        fd = open(program_invocation_name, O_PATH | O_CLOEXEC);
    if (fd >= 0 && !spawn_raise_fd(&fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

enum err child_probe(int launcher, const struct child_opts *opts,
                     unsigned *held, struct why *why)
{
    struct spawn s;
    int ours[3];
    pid_t pid;
    enum err e = spawn_plan(&s, opts, 0, why);

    *held = 0;
    if (!e)
        s.programs[0] = NULL; /* only the report is needed */
    if (!e)
        e = spawn_by(&s, opts, launcher, why);
    if (!e)
        e = spawn_pipes(&s, opts, ours, why);
    if (!e) {
        e = spawn_run(&s, opts, &pid, why);
        for (int i = 0; i < 3; i++)
            close(ours[i]);
        if (!e)
            spawn_undo(pid);
        *held = s.held;
    }
    spawn_fini(&s);
    return e;
}

/* Threats. */

static const char *threat_closer(unsigned held, unsigned mask)
{
    static const struct {
        unsigned hold;
        const char *name;
    } names[] = {
        {CHILD_HOLDS_USER, "another user"},
        {CHILD_HOLDS_PIDS, "a PID namespace"},
        {CHILD_HOLDS_MOUNTS, "a mount namespace"},
        {CHILD_HOLDS_RUN, "a mount namespace"},
        {CHILD_HOLDS_PATHS, "Landlock"},
        {CHILD_HOLDS_CALLS, "seccomp"},
        {CHILD_HOLDS_CGROUP, "a cgroup"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (held & mask & names[i].hold)
            return names[i].name;
    return NULL;
}

void child_threats(unsigned held, struct child_threat out[CHILD_THREATS])
{
    int abi = child_held_abi(held);
    unsigned landlock_truncate =
        abi >= LANDLOCK_TRUNCATE ? CHILD_HOLDS_PATHS : 0;
    unsigned landlock_signals = abi >= LANDLOCK_SIGNALS ? CHILD_HOLDS_PATHS : 0;
    const unsigned apart = CHILD_HOLDS_USER | CHILD_HOLDS_MOUNTS;
    const struct {
        const char *what;
        unsigned mask;
    } all[CHILD_THREATS] = {
        {"trace the server or other programs",
         CHILD_HOLDS_PATHS | CHILD_HOLDS_CALLS},
        {"open the database", apart | CHILD_HOLDS_PATHS},
        {"truncate the database",
         apart | landlock_truncate | CHILD_HOLDS_CALLS},
        {"change the rights of the database", apart | CHILD_HOLDS_CALLS},
        {"signal the server",
         CHILD_HOLDS_USER | CHILD_HOLDS_PIDS | landlock_signals},
        {"open other agents' workspaces", CHILD_HOLDS_PATHS},
        {"use the sockets in /run", CHILD_HOLDS_RUN},
        {"leave processes behind", CHILD_HOLDS_PIDS | CHILD_HOLDS_CGROUP},
    };

    for (size_t i = 0; i < CHILD_THREATS; i++)
        out[i] = (struct child_threat){all[i].what,
                                       threat_closer(held, all[i].mask)};
}
