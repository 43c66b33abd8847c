/* Three processes where a program has a PID namespace of its own.
 *
 *     outside   in the server's namespace: its number is the child's for the
 *               server. Waits, and ends as the program has ended
 *     process 1 the first of the namespace: with it all others in there end,
 *               also those that left the program's group or session. It reaps,
 *               and hands SIGTERM and the like on to all of them
 *     program   a session of its own, as it would have without all this: the
 *               number of a group whose leader is outside reads as 0
 *
 * The first two hold none of the program's pipes, or their end would never be
 * seen. They are not dumpable: the program runs as the same user. */
#include "child/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/internal.h"

enum { STATUS_FD = 3, ALIVE_FD = 4, ABOVE = 16 };

/* Only these stay. alive: -1 for none. */
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

static void block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

/* End as the program did. */
_Noreturn static void end_as(int status)
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
    int status = SIGKILL; /* process 1 was killed before it could say */
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
    end_as(status);
}

/* Whether the program is over; *status says how. */
static bool reap_all(pid_t program, int *status)
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
    while (!reap_all(program, &status)) {
        int number = sigwaitinfo(&all, &info);

        if (number > 0 && number != SIGCHLD)
            kill(-1, number); /* all in here but us */
    }
    if (write(STATUS_FD, &status, sizeof(status)) < 0)
        _exit(126);
    _exit(0);
}

/* PR_SET_PDEATHSIG says nothing of a parent that is gone already; the pipe
 * does. */
static void follow_outside(int alive)
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
    pid_t pid;

    block_signals();
    if (pipe2(status, O_CLOEXEC) != 0 || pipe2(alive, O_CLOEXEC) != 0)
        launch_fail(STEP_LAUNCH, errno);
    pid = fork();
    if (pid < 0)
        launch_fail(STEP_LAUNCH, errno);
    if (pid > 0)
        be_outside(pid, status[0], alive[1]);
    close(status[0]);
    close(alive[1]);
    follow_outside(alive[0]);
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
