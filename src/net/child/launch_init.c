/* Three processes, if a program has its own PID namespace.
 *
 *     outside   in the server's namespace: the server knows the child by its
 * PID. Waits, and ends as the program has ended process 1 the first of the
 * namespace: when it ends, all others in there end, including those that left
 * the program's group or session. It reaps, and passes SIGTERM and the like on
 * to all of them program   a session of its own, as without a namespace: a
 * group whose leader is outside has the number 0
 *
 * The first two hold none of the program's pipes, or their end would never be
 * seen. They are not dumpable, because the program runs as the same user. */
#include "net/child/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/child/internal.h"

enum { STATUS_FD = 3, ALIVE_FD = 4, ABOVE = 16 };

/* Keep only these descriptors. alive: -1 for none. */
static void close_all_but(int status, int alive)
{
    status = fcntl(status, F_DUPFD, ABOVE);
    alive = alive < 0 ? -1 : fcntl(alive, F_DUPFD, ABOVE);
    if (dup2(status, STATUS_FD) < 0 ||
        (alive >= 0 && dup2(alive, ALIVE_FD) < 0))
        _exit(126);
    close_range(alive < 0 ? ALIVE_FD : ALIVE_FD + 1, ~0U, 0);
    close_range(0, STATUS_FD - 1, 0);
}

/* End with the program's status. */
_Noreturn static void launch_end_as(int status)
{
    const struct rlimit none = {0, 0};
    sigset_t one;
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    _exit(126);
}

_Noreturn static void be_outside(pid_t first, int status_fd, int alive)
{
    int status = SIGKILL; /* process 1 was killed before it could report */
    ssize_t n;

    close_all_but(status_fd, alive);
    prctl(PR_SET_DUMPABLE, 0);
    do
        n = read(STATUS_FD, &status, sizeof(status));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(status))
        status = SIGKILL;
    while (waitpid(first, NULL, 0) < 0 && errno == EINTR)
        ;
    launch_end_as(status);
}

/* Whether the program is over; *status is its status. */
static bool launch_reap_all(pid_t program, int *status)
{
    bool is_over = false;
    int one;
    pid_t pid;

    while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
        if (pid == program) {
            is_over = true;
            *status = one;
        }
    return is_over;
}

_Noreturn static void be_first(pid_t program, int status_fd)
{
    sigset_t all;
    siginfo_t info;
    int status = 0;

    close_all_but(status_fd, -1);
    prctl(PR_SET_DUMPABLE, 0);
    sigfillset(&all);
    while (!launch_reap_all(program, &status)) {
        int number = sigwaitinfo(&all, &info);

        if (number > 0 && number != SIGCHLD)
            kill(-1, number); /* all processes of the namespace but this one */
    }
    if (write(STATUS_FD, &status, sizeof(status)) < 0)
        _exit(126);
    _exit(0);
}

/* PR_SET_PDEATHSIG does nothing if the parent has already ended; the pipe
 * shows that. */
static void launch_follow_outside(int alive)
{
    struct pollfd p = {.fd = alive, .events = POLLIN};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        launch_fail(STEP_PARENT, errno);
    if (poll(&p, 1, 0) != 0)
        _exit(126);
    close(alive);
}

void launch_divide(struct launch *l)
{
    int status[2], alive[2];
    sigset_t all;
    pid_t pid;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (pipe2(status, O_CLOEXEC) != 0 || pipe2(alive, O_CLOEXEC) != 0)
        launch_fail(STEP_LAUNCH, errno);
    pid = fork();
    if (pid < 0)
        launch_fail(STEP_LAUNCH, errno);
    if (pid > 0)
        be_outside(pid, status[0], alive[1]);
    close(status[0]);
    close(alive[1]);
    launch_follow_outside(alive[0]);
    launch_mount(l);
    pid = fork();
    if (pid < 0)
        launch_fail(STEP_LAUNCH, errno);
    if (pid > 0)
        be_first(pid, status[1]);
    close(status[1]);
    if (setsid() < 0)
        launch_fail(STEP_SESSION, errno);
}
