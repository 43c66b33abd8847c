/* The runner of the harness: finds the tests that were asked for, and runs each
 * in a process of its own. */
#include "test/t.h"

#include <sys/pidfd.h>
#include <sys/prctl.h>

static int t_limit_s(void)
{
    const char *s = getenv("T_LIMIT_S");
    long n = s ? strtol(s, NULL, 10) : 0;
    return n > 0 && n < 100000 ? (int)n : T_LIMIT_S;
}

/* In the child: says on fd that the test came to its end. */
__attribute__((noreturn)) static void t_child(const struct t_case *c, int fd)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    t_name = c->name;
    c->run();
    if (write(fd, "e", 1) != 1)
        _exit(1);
    exit(0);
}

/* Wait for the child to end. False when it had to be killed. */
static bool t_wait(pid_t pid, int limit_s, int *status)
{
    struct pollfd child = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    bool ended = child.fd >= 0 && poll(&child, 1, limit_s * 1000) == 1;

    if (!ended)
        kill(pid, SIGKILL);
    kill(-pid, SIGKILL); /* and whatever it left behind */
    waitpid(pid, status, 0);
    close(child.fd);
    return ended;
}

static bool t_run(const struct t_case *c)
{
    int status = 0, to_end[2];
    char said = 0;
    pid_t pid;
    bool ended;

    if (pipe(to_end) != 0 || (pid = fork()) < 0) {
        perror(c->name);
        return false;
    }
    if (pid == 0) {
        close(to_end[0]);
        t_child(c, to_end[1]);
    }
    close(to_end[1]);
    ended = t_wait(pid, t_limit_s(), &status);
    if (read(to_end[0], &said, 1) != 1)
        said = 0;
    close(to_end[0]);

    if (!ended)
        printf("FAIL %s: over its limit of %d s\n", c->name, t_limit_s());
    else if (WIFSIGNALED(status))
        printf("FAIL %s: %s\n", c->name, strsignal(WTERMSIG(status)));
    else if (status != 0)
        printf("FAIL %s: exit status %d\n", c->name, WEXITSTATUS(status));
    else if (!said)
        printf("FAIL %s: ended before its end\n", c->name);
    else
        return true;
    return false;
}

/* "json" for "../src/base/json_test.c". */
static bool is_of_file(const struct t_case *c, const char *stem)
{
    const char *slash = strrchr(c->file, '/');
    const char *base = slash ? slash + 1 : c->file;
    size_t n = strlen(stem);

    return strncmp(base, stem, n) == 0 && strcmp(base + n, "_test.c") == 0;
}

static bool is_file(const char *word)
{
    for (const struct t_case *c = t_first; c; c = c->next)
        if (is_of_file(c, word))
            return true;
    return false;
}

static bool is_wanted(const struct t_case *c, int argc, char **argv)
{
    int at = 1;

    if (argc > 1 && is_file(argv[1]) && !is_of_file(c, argv[at++]))
        return false;
    return argc <= at || strstr(c->name, argv[at]);
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;

    for (const struct t_case *c = t_first; c; c = c->next) {
        if (!is_wanted(c, argc, argv))
            continue;
        fflush(NULL);
        if (getenv("T_DEBUG")) {
            t_name = c->name;
            c->run();
            passed++;
        } else if (t_run(c)) {
            passed++;
        } else {
            failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
