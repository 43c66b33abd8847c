/* From a plan to a process that runs another program.
 *
 * vfork, not fork: fork copies the page tables of the whole server. For a
 * server with gigabytes that takes longer than everything else here, and it
 * fails if memory may not be overcommitted. With vfork the new process borrows
 * our memory, our thread waits, and only the table of descriptors is copied.
 * The new process must not change anything of ours: it only makes system
 * calls, with data prepared before, and reports failures through a pipe that
 * exec closes. All signals are blocked meanwhile: a handler of ours would run
 * there, in our memory.
 *
 * Rejected: clone() with the same flags, which could return the pidfd at once.
 * The compiler and the sanitizers know vfork and not that (ThreadSanitizer
 * takes vfork for fork, which is also why the report is a pipe and not a
 * variable). pidfd_open afterwards is as good, because only we reap. Rejected:
 * posix_spawn, which has no limits and no no_new_privs.
 *
 * A session of its own, not just a group: a child then has no terminal, gets
 * no Ctrl-C meant for the server, and cannot type into the terminal. The
 * leader of a session can never leave its group, so killing the group reaches
 * it.
 *
 * PR_SET_PDEATHSIG is SIGKILL: a child that outlives the server would work for
 * nothing, perhaps next to the one that the next server starts in the same
 * folder. Closed pipes end most children; this ends those that do not look. */
#include "net/child/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "net/child/launch.h"

/* 0, 1, 2 are its pipes, then the report and the file passed to it. The last
 * two are for the launcher. */
enum {
    REPORT = LAUNCH_REPORT,
    LAUNCHER = LAUNCH_PLAN + 1,
    FIRST_FREE = LAUNCHER + 1
};

_Static_assert(CHILD_FILE == REPORT + 1 && LAUNCH_PLAN == CHILD_FILE + 1,
               "nothing is between them");

/* The new process: only system calls from here on. Each step returns zero or
 * errno. */

static int set_session(const struct spawn *s)
{
    (void)s;
    return setsid() < 0 ? errno : 0;
}

/* exec keeps ignored signals and resets handlers; reset both before signals
 * are unblocked. Not by sigaction, which rejects two of them (32, 33): a
 * careless parent of ours may have ignored these too. All zero is SIG_DFL in
 * every layout of the kernel. Only SIGKILL and SIGSTOP give EINVAL. */
static int spawn_set_signals(const struct spawn *s)
{
    static const uintptr_t plain[8];
    const size_t set_bytes = (_NSIG - 1) / 8;

    (void)s;
    for (int i = 1; i < _NSIG; i++)
        if (syscall(SYS_rt_sigaction, i, plain, NULL, set_bytes) != 0 &&
            errno != EINVAL)
            return errno;
    return 0;
}

static int set_parent(const struct spawn *s)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    return getppid() == s->parent ? 0 : ESRCH; /* the parent was killed just
                                                * before */
}

/* When the machine runs out of memory, a child should go before the server.
 * Optional: without /proc it does nothing. */
static void spawn_offer_to_oom(const struct spawn *s)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, s->oom_score, strlen(s->oom_score)) < 0)
        errno = 0;
    close(fd);
}

static int set_privileges(const struct spawn *s)
{
    spawn_offer_to_oom(s);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? errno : 0;
}

static int set_pipes(const struct spawn *s)
{
    if (dup2(s->in, 0) < 0 || dup2(s->out, 1) < 0 || dup2(s->err, 2) < 0)
        return errno;
    if (dup2(s->report_to, REPORT) < 0 ||
        fcntl(REPORT, F_SETFD, s->launcher < 0 ? FD_CLOEXEC : 0) != 0 ||
        (s->file >= 0 && dup2(s->file, CHILD_FILE) < 0))
        return errno;
    if (s->launcher >= 0 && (dup2(s->plan, LAUNCH_PLAN) < 0 ||
                             dup3(s->launcher, LAUNCHER, O_CLOEXEC) < 0))
        return errno;
    if (s->keeps_fds)
        return 0;
    if (s->file < 0)
        close(CHILD_FILE);
    return close_range(s->launcher < 0 ? LAUNCH_PLAN : FIRST_FREE, ~0U, 0)
               ? errno
               : 0;
}

static int set_folder(const struct spawn *s)
{
    return s->launcher < 0 && s->folder && chdir(s->folder) != 0 ? errno : 0;
}

static int spawn_set_limits(const struct spawn *s)
{
    for (size_t i = 0; s->launcher < 0 && i < s->n_limits; i++)
        if (setrlimit((__rlimit_resource_t)s->limits[i].resource,
                      &s->limits[i].value) != 0)
            return errno;
    return 0;
}

static int set_mask(const struct spawn *s)
{
    sigset_t none;

    (void)s;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) != 0 ? errno : 0;
}

/* The launcher does the rest: folder, limits, program. */
static int spawn_run_launcher(void)
{
    static char name[] = CHILD_LAUNCHER;
    char *const argv[] = {name, NULL}, *const env[] = {NULL};

    syscall(SYS_execveat, LAUNCHER, "", argv, env, AT_EMPTY_PATH);
    return errno;
}

static int spawn_run_program(const struct spawn *s)
{
    int error = ENOENT;

    if (s->launcher >= 0)
        return spawn_run_launcher();

    for (char **p = s->programs; *p; p++) {
        execve(*p, s->argv, s->env);
        if (errno == EACCES)
            error = EACCES; /* there may be another one in a later folder */
        else if (errno != ENOENT && errno != ENOTDIR)
            return errno;
    }
    return error;
}

static int (*const steps[N_STEPS])(const struct spawn *s) = {
    [STEP_SESSION] = set_session,     [STEP_SIGNALS] = spawn_set_signals,
    [STEP_PARENT] = set_parent,       [STEP_PRIVILEGES] = set_privileges,
    [STEP_PIPES] = set_pipes,         [STEP_FOLDER] = set_folder,
    [STEP_LIMITS] = spawn_set_limits, [STEP_MASK] = set_mask,
    [STEP_EXEC] = spawn_run_program,
};

noreturn static __attribute__((noinline)) void become(const struct spawn *s)
{
    struct spawn_report r = {0, 0};

    while (r.step < N_STEPS) {
        if (s->failing == r.step)
            r.error = EIO;
        else if (s->skipped != r.step)
            r.error = steps[r.step](s);
        if (r.error)
            break;
        r.step++;
    }
    /* Whether set_pipes has already moved the descriptor. */
    if (write(r.step > STEP_PIPES ? REPORT : s->report_to, &r, sizeof(r)) < 0)
        _exit(126);
    _exit(127);
}

/* The server's process. */

/* Above 0 to 6, where set_pipes puts others. */
bool spawn_raise_fd(int *fd)
{
    int up;

    if (*fd >= FIRST_FREE)
        return true;
    up = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE);
    if (up < 0)
        return false;
    close(*fd);
    *fd = up;
    return true;
}

static bool make_pipe(int *from, int *to)
{
    int fds[2];

    if (FAULT("child.pipe")) {
        errno = EMFILE;
        return false;
    }
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    *from = fds[0];
    *to = fds[1];
    return spawn_raise_fd(from) && spawn_raise_fd(to);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A copy, since ours may have a number that is needed. */
static bool copy_file(struct spawn *s, int file)
{
    if (file)
        s->file = fcntl(file, F_DUPFD_CLOEXEC, FIRST_FREE);
    return !file || s->file >= 0;
}

enum err spawn_pipes(struct spawn *s, const struct child_opts *opts,
                     int ours[3], struct why *why)
{
    int error;

    ours[0] = ours[1] = ours[2] = -1;
    if (make_pipe(&s->in, &ours[0]) && make_pipe(&ours[1], &s->out) &&
        make_pipe(&ours[2], &s->err) && make_pipe(&s->report, &s->report_to) &&
        copy_file(s, opts->file))
        return OK;
    error = errno;
    for (int i = 0; i < 3; i++)
        close_fd(&ours[i]);
    return spawn_why(opts, STEP_MAKE_PIPES, error, why);
}

void spawn_fini(struct spawn *s)
{
    close_fd(&s->in);
    close_fd(&s->out);
    close_fd(&s->err);
    close_fd(&s->file);
    close_fd(&s->report);
    close_fd(&s->report_to);
    close_fd(&s->plan);
    arena_fini(&s->arena);
}

/* vfork returns twice, so it is alone in this function. */
static __attribute__((noinline)) pid_t spawn_vfork(const struct spawn *s)
{
    pid_t pid = vfork();

    if (pid == 0)
        become(s);
    return pid;
}

/* For tests: a step that fails, or is left out. Decided here, because a test
 * would not see state of the new process. */
static void plan_mistakes(struct spawn *s)
{
    s->failing = s->skipped = -1;
    for (int i = 0; i < N_STEPS; i++) {
        if (FAULT("child.step"))
            s->failing = i;
        if (PLANTED(spawn_step_name(i)))
            s->skipped = i;
    }
    s->keeps_fds = PLANTED("child.keep_fds");
}

static pid_t make_process(struct spawn *s)
{
    sigset_t all, before;
    pid_t pid = -1;

    s->parent = getpid();
    plan_mistakes(s);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (FAULT("child.fork"))
        errno = EAGAIN;
    else
        pid = spawn_vfork(s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

void spawn_undo(pid_t pid)
{
    kill(-pid, SIGKILL); /* fails before setsid, when the group is still ours */
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

enum err spawn_begin(struct spawn *s, const struct child_opts *opts, pid_t *pid,
                     struct why *why)
{
    *pid = make_process(s);
    if (*pid < 0) {
        *pid = 0;
        return spawn_why(opts, STEP_FORK, errno, why);
    }
    /* The exec, or the end of the process, closes the other end. */
    close_fd(&s->report_to);
    return OK;
}

enum err spawn_run(struct spawn *s, const struct child_opts *opts, pid_t *pid,
                   struct why *why)
{
    struct spawn_report r = {STEP_FORK, 0};
    enum err e = spawn_begin(s, opts, pid, why);
    struct pollfd p = {.fd = s->report, .events = POLLIN};
    bool was_late;
    ssize_t n;

    if (e)
        return e;
    do {
        /* Without a launcher there is nothing to wait for: vfork has
         * returned. */
        was_late = s->launcher >= 0 && poll(&p, 1, CHILD_LAUNCH_MS) == 0;
        n = was_late ? -1 : read(s->report, &r, sizeof(r));
        if (n > 0 && r.step == STEP_HELD)
            s->held = (unsigned)r.error;
    } while (!was_late &&
             ((n < 0 && errno == EINTR) || (n > 0 && r.step == STEP_HELD)));
    if (n == 0 && (s->launcher < 0 || s->held))
        return OK;
    if (was_late)
        r = (struct spawn_report){STEP_LATE, ETIMEDOUT};
    else if (n == 0) /* the launcher ended without a report */
        r = (struct spawn_report){STEP_LAUNCH, ENOEXEC};
    spawn_undo(*pid);
    s->undone = *pid;
    *pid = 0;
    return spawn_why(opts, r.step, r.error, why);
}
