/* Options, prepared for a process that must not allocate; and the messages of
 * failures.
 *
 * A name without '/' is searched by trying to execute it in each folder, as
 * execvp does: a search before the exec could find something else than the
 * exec. Unlike with execvp, a script without "#!" is not passed to a shell,
 * and empty or relative folders are not searched: a file in a child's working
 * folder must not be mistaken for a program. */
#include "net/child/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    SHOWN_BYTES = 160, /* of a name or path in messages */
    USUAL_FILES = 1024,
};

/* For printf: the beginning of s. */
#define SHOWN(s) STR_ARG(str_head(s, SHOWN_BYTES))

static bool has_nul(struct str s)
{
    return s.n && memchr(s.p, 0, s.n);
}

static const char *opts_error(const struct child_opts *o)
{
    if (o->n_argv == 0 || o->argv[0].n == 0)
        return "no program is named; the first argument names it";
    for (size_t i = 0; i < o->n_argv; i++)
        if (has_nul(o->argv[i]))
            return "an argument has a NUL byte in it; take it out";
    for (size_t i = 0; i < o->n_env; i++)
        if (has_nul(o->env[i]) || str_find(o->env[i], '=', 0) == 0 ||
            str_find(o->env[i], '=', 0) == o->env[i].n)
            return "the environment takes NAME=value without NUL bytes";
    if (has_nul(o->folder) || has_nul(o->path))
        return "its folder or path has a NUL byte in it; take it out";
    return NULL;
}

/* Far more than the kernel takes. So if something does not fit into the arena
 * later, memory is gone. */
static bool is_too_large(const struct child_opts *o)
{
    size_t n = (o->n_argv + o->n_env) * sizeof(char *) + o->path.n;

    for (size_t i = 0; i < o->n_argv && n <= ARGS_BYTES; i++)
        n += o->argv[i].n + 1;
    for (size_t i = 0; i < o->n_env && n <= ARGS_BYTES; i++)
        n += o->env[i].n + 1;
    return n > ARGS_BYTES;
}

static char **plan_copy_all(struct arena *a, const struct str *from, size_t n)
{
    char **to = arena_array(a, n + 1, sizeof(*to));

    for (size_t i = 0; to && i < n; i++) {
        to[i] = arena_strdup(a, from[i]);
        if (!to[i])
            return NULL;
    }
    return to;
}

static char *path_join(struct arena *a, struct str folder, struct str name)
{
    char *p = arena_alloc(a, folder.n + 1 + name.n + 1);

    if (!p)
        return NULL;
    memcpy(p, folder.p, folder.n);
    p[folder.n] = '/';
    memcpy(p + folder.n + 1, name.p, name.n);
    return p;
}

/* A name in each folder of path, in their order. */
static char **programs_in_path(struct arena *a, struct str path,
                               struct str name)
{
    size_t n = 1, i = 0;
    char **to;

    for (size_t at = 0; at < path.n; at++)
        n += path.p[at] == ':';
    to = arena_array(a, n + 1, sizeof(*to));
    while (to && path.n) {
        struct str folder = str_cut(&path, ':');

        if (!str_starts(folder, STR("/")))
            continue;
        to[i] = path_join(a, folder, name);
        if (!to[i++])
            return NULL;
    }
    return to;
}

static void add_limit(struct spawn *s, int resource, int64_t soft, int64_t more)
{
    struct spawn_limit *l = &s->limits[s->n_limits];
    struct rlimit ours;
    rlim_t want = (rlim_t)soft;

    if (soft < 0 || getrlimit((__rlimit_resource_t)resource, &ours) != 0)
        return;
    l->resource = resource;
    l->value.rlim_cur = want < ours.rlim_max ? want : ours.rlim_max;
    want += (rlim_t)more;
    l->value.rlim_max = want < ours.rlim_max ? want : ours.rlim_max;
    s->n_limits++;
}

static int64_t limit_or_ours(int64_t v)
{
    return v > 0 ? v : -1;
}

/* Our own limit was raised to the maximum, and select() breaks with numbers
 * over 1023. So a child begins with fewer, and a program that can handle more
 * raises its limit, as we did. */
static void add_usual_files(struct spawn *s)
{
    struct spawn_limit *l = &s->limits[s->n_limits];

    l->resource = RLIMIT_NOFILE;
    if (getrlimit(RLIMIT_NOFILE, &l->value) != 0 ||
        l->value.rlim_cur <= USUAL_FILES)
        return;
    l->value.rlim_cur = USUAL_FILES;
    s->n_limits++;
}

static void add_limits(struct spawn *s, const struct child_limits *l)
{
    add_limit(s, RLIMIT_AS, limit_or_ours(l->memory_bytes), 0);
    add_limit(s, RLIMIT_CPU, limit_or_ours(l->cpu_s), 1);
    if (l->files > 0)
        add_limit(s, RLIMIT_NOFILE, l->files, 0);
    else
        add_usual_files(s);
    add_limit(s, RLIMIT_NPROC, limit_or_ours(l->processes), 0);
    add_limit(s, RLIMIT_FSIZE, limit_or_ours(l->file_bytes), 0);
    add_limit(s, RLIMIT_CORE, 0, 0);
}

enum err spawn_plan(struct spawn *s, const struct child_opts *o, int oom_score,
                    struct why *why)
{
    const char *wrong = opts_error(o);
    bool is_path = !wrong && str_find(o->argv[0], '/', 0) < o->argv[0].n;
    enum err e = OK;

    *s = (struct spawn){.in = -1,
                        .out = -1,
                        .err = -1,
                        .file = -1,
                        .report = -1,
                        .report_to = -1,
                        .plan = -1,
                        .launcher = -1};
    arena_init(&s->arena, (size_t)ARGS_BYTES * 4);
    if (wrong)
        return why_err(why, ERR_BAD_REQUEST, "cannot start a program: %s",
                       wrong);
    if (is_too_large(o))
        return spawn_why(o, STEP_EXEC, E2BIG, why);
    s->argv = plan_copy_all(&s->arena, o->argv, o->n_argv);
    s->env = plan_copy_all(&s->arena, o->env, o->n_env);
    s->programs = is_path ? plan_copy_all(&s->arena, o->argv, 1)
                          : programs_in_path(&s->arena, o->path, o->argv[0]);
    if (o->folder.n)
        s->folder = arena_strdup(&s->arena, o->folder);
    if (FAULT("child.args") || !s->argv || !s->env || !s->programs ||
        (o->folder.n && !s->folder))
        return spawn_why(o, STEP_EXEC, ENOMEM, why);
    if (o->box)
        e = child_box_check(o->box, o->folder, why);
    if (e)
        return e;
    add_limits(s, &o->limits);
    snprintf(s->oom_score, sizeof(s->oom_score), "%d", oom_score);
    return OK;
}

/* Messages. A failed step that concerns neither the folder nor the program is
 * a system error; the step's name helps with support questions. */

static const char *const step_names[] = {
    [STEP_SESSION] = "setsid",
    [STEP_SIGNALS] = "its signals",
    [STEP_PARENT] = "prctl PDEATHSIG",
    [STEP_PRIVILEGES] = "prctl NO_NEW_PRIVS",
    [STEP_PIPES] = "its descriptors",
    [STEP_FOLDER] = "its folder",
    [STEP_LIMITS] = "its limits",
    [STEP_MASK] = "its signal mask",
    [STEP_EXEC] = "execve",
    [STEP_FORK] = "a new process",
    [STEP_MAKE_PIPES] = "pipes to it",
    [STEP_WATCH] = "watching it",
    [STEP_LAUNCH] = "its sandbox",
    [STEP_PATHS] = "its paths",
    [STEP_USER] = "its user",
    [STEP_HELD] = "its report",
    [STEP_LATE] = "its sandbox",
};

const char *spawn_step_name(int step)
{
    return step_names[step];
}

static enum err step_err(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR: return ERR_NOT_FOUND;
    case EACCES:
    case EPERM: return ERR_NOT_ALLOWED;
    case E2BIG: return ERR_BAD_REQUEST;
    case ENOMEM: return ERR_NOMEM;
    default: return ERR_IO;
    }
}

static enum err folder_why(struct str program, struct str folder, int error,
                           struct why *why)
{
    const char *what = strerrordesc_np(error);

    if (error == ENOENT)
        what = "does not exist; create it";
    else if (error == ENOTDIR)
        what = "is no folder";
    else if (error == EACCES)
        what = "is closed to the server's user; let it in";
    return why_err(why, step_err(error),
                   "cannot start %.*s: its folder %.*s: %s", SHOWN(program),
                   SHOWN(folder), what);
}

static enum err program_why(const struct child_opts *o, int error,
                            struct why *why)
{
    struct str name = o->argv[0];
    const char *what = strerrordesc_np(error);

    if (error == ENOENT && str_find(name, '/', 0) == name.n)
        return why_err(why, ERR_NOT_FOUND,
                       "cannot start %.*s: there is no such program in \"%.*s\""
                       "; install it%s%.*s%s, or name it by its whole path",
                       SHOWN(name), SHOWN(o->path), o->install.n ? " (" : "",
                       SHOWN(o->install), o->install.n ? ")" : "");
    if (error == ENOENT)
        what = "no such file, or the interpreter that its first line (#!) "
               "names is missing; check the path";
    else if (error == EACCES && o->box)
        what = "permission denied; make it executable (chmod +x), its folder "
               "open to the user it runs as, and list its folder in read if it "
               "lies outside the workspace";
    else if (error == EACCES)
        what = "permission denied; make it executable (chmod +x) and its "
               "folder open to the server's user";
    else if (error == ENOEXEC)
        what = "it is not a program for this machine; a script begins with #! "
               "and its interpreter";
    else if (error == E2BIG)
        what = "its arguments and environment are too large together, or one "
               "of them is; hand it less";
    return why_err(why, step_err(error), "cannot start %.*s: %s", SHOWN(name),
                   what);
}

static enum err user_why(const struct child_opts *o, int error, struct why *why)
{
    struct str user = o->box ? o->box->user : STR("");

    if (error == ENOENT)
        return why_err(why, ERR_NOT_FOUND,
                       "cannot start %.*s: this machine has no user %.*s; "
                       "create it, or change user",
                       SHOWN(o->argv[0]), SHOWN(user));
    if (error == EPERM)
        return why_err(why, ERR_NOT_ALLOWED,
                       "cannot start %.*s: only a server that runs as root "
                       "can start a program as the user %.*s; leave user out",
                       SHOWN(o->argv[0]), SHOWN(user));
    return why_err(why, ERR_IO, "cannot start %.*s as the user %.*s: %s",
                   SHOWN(o->argv[0]), SHOWN(user), strerrordesc_np(error));
}

enum err spawn_why(const struct child_opts *o, int step, int error,
                   struct why *why)
{
    const char *what = strerrordesc_np(error), *hint = "";

    if (step == STEP_FOLDER)
        return folder_why(o->argv[0], o->folder, error, why);
    if (step == STEP_EXEC)
        return program_why(o, error, why);
    if (step == STEP_USER)
        return user_why(o, error, why);
    if (step == STEP_PATHS)
        return why_err(why, ERR_NOT_ALLOWED,
                       "cannot start %.*s: its workspace, or a path of its "
                       "read or write, leads to the server's data folder",
                       SHOWN(o->argv[0]));
    if (step == STEP_LATE)
        return why_err(why, ERR_TIMEOUT,
                       "cannot start %.*s: its sandbox was not set up within "
                       "%d s; a path of its workspace, read or write does not "
                       "answer, or the machine has too much to do",
                       SHOWN(o->argv[0]), CHILD_LAUNCH_MS / 1000);
    if (step == STEP_LAUNCH)
        hint = "; process.sandbox false runs it without one";
    if (error == EMFILE || error == ENFILE)
        hint = "; raise the limit of open files (ulimit -n)";
    else if (error == EAGAIN)
        hint = "; too many processes: raise the limit (ulimit -u) or start "
               "fewer";
    return why_err(why, error == ENOMEM ? ERR_NOMEM : ERR_IO,
                   "cannot start %.*s: %s: %s%s", SHOWN(o->argv[0]),
                   step_names[step], what ? what : "failed", hint);
}

/* Checking without starting. */

static bool is_program(int folder, const char *path)
{
    struct stat s;

    if (faccessat(folder, path, X_OK, AT_EACCESS) != 0 ||
        fstatat(folder, path, &s, 0) != 0)
        return false;
    errno = EACCES;
    return S_ISREG(s.st_mode);
}

/* In the order of spawn_run_program. */
static int program_find(int folder, char *const *programs)
{
    int error = ENOENT;

    for (; *programs; programs++) {
        if (is_program(folder, *programs))
            return 0;
        if (errno == EACCES)
            error = EACCES;
    }
    return error;
}

enum err child_seek(const struct child_opts *o, struct why *why)
{
    struct spawn s;
    enum err e = spawn_plan(&s, o, 0, why);
    int folder = AT_FDCWD, error = 0;

    if (!e && s.folder) {
        folder = open(s.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || faccessat(folder, ".", X_OK, AT_EACCESS) != 0)
            e = spawn_why(o, STEP_FOLDER, errno, why);
    }
    if (!e)
        error = program_find(folder, s.programs);
    if (error)
        e = spawn_why(o, STEP_EXEC, error, why);
    if (folder >= 0)
        close(folder);
    spawn_fini(&s);
    return e;
}
