/* An agent's program that tries to take over the server that started it.
 *
 * Speaks the hub's methods on its standard input and output. A task's message
 * is "SERVER_PID DATA OTHER SIBLING_PID CONFIG PORT TERMINAL", and the result
 * has an entry for each attempt: "environ=open", or the name of the error that
 * closed it. DATA has a file for each attempt that would spoil it (decoy-write,
 * decoy-truncate, …), so that none needs the database itself. Entries that
 * begin with "may-" are what a program needs for its work, and must be open. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LINE_BYTES = 1 << 20 };

static char out[16384];
static int server, sibling, port;
static char data[4096], other[4096], config[4096], terminal[4096];

static void note(const char *name, int is_open)
{
    size_t n = strlen(out);

    snprintf(out + n, sizeof(out) - n, "%s%s=%s", n ? ";" : "", name,
             is_open ? "open" : strerrorname_np(errno ? errno : EPERM));
}

static const char *in_data(const char *name)
{
    static char path[8192];

    snprintf(path, sizeof(path), "%s/%s", data, name);
    return path;
}

static int has(const char *path, const char *what)
{
    static char text[1 << 18];
    int fd = open(path, O_RDONLY), found = 0;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n > 0) {
        text[n] = '\0';
        for (ssize_t i = 0; i < n && !found; i++)
            found = strncmp(text + i, what, strlen(what)) == 0;
    }
    if (fd >= 0)
        close(fd);
    if (n >= 0 && !found)
        errno = ENODATA;
    return found;
}

/* Processes. */

static void try_environ(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/environ", server);
    note("environ", has(path, "SANDBOX_SECRET="));
    snprintf(path, sizeof(path), "/proc/%d/environ", sibling);
    note("sibling-environ", has(path, "SIBLING_SECRET="));
}

/* Where the server has something mapped; any address will do without maps. */
static unsigned long some_address(void)
{
    char path[64], line[512] = "";
    unsigned long at = 0x400000;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", server);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof(line), f))
        at = strtoul(line, NULL, 16);
    if (f)
        fclose(f);
    return at;
}

static void try_memory(void)
{
    unsigned long at = some_address();
    char path[64], byte;
    struct iovec here = {&byte, 1}, there = {(void *)at, 1};
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/mem", server);
    fd = open(path, O_RDONLY);
    note("mem", fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    if (fd >= 0)
        close(fd);
    note("vm-read", process_vm_readv(server, &here, 1, &there, 1, 0) == 1 ||
                        errno == EFAULT);
    /* To an address that nothing is at: it would do harm. */
    there.iov_base = (void *)8;
    note("vm-write", process_vm_writev(server, &here, 1, &there, 1, 0) == 1 ||
                         errno == EFAULT);
}

static void try_ptrace(void)
{
    int ok = ptrace(PTRACE_SEIZE, server, 0, 0) == 0;

    note("ptrace", ok);
    if (ok) {
        ptrace(PTRACE_INTERRUPT, server, 0, 0);
        waitpid(server, NULL, __WALL);
        ptrace(PTRACE_DETACH, server, 0, 0);
    }
#ifdef __x86_64__
    note("ptrace-x32",
         syscall(SYS_ptrace | 0x40000000, PTRACE_SEIZE, server, 0, 0) == 0);
#endif
}

static void try_descriptors(void)
{
    int pid = (int)syscall(SYS_pidfd_open, server, 0);
    int fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pid, 1, 0);

    note("pidfd-getfd", fd >= 0);
}

static void try_signals(void)
{
    note("signal", kill(server, SIGCONT) == 0);
    note("sibling-signal", kill(sibling, SIGCONT) == 0);
}

/* Files. */

static void try_open(void)
{
    int fd = open(in_data("signalbox.db"), O_RDONLY);

    note("db-read", fd >= 0);
    fd = open(in_data("decoy-write"), O_WRONLY);
    note("db-write", fd >= 0 && write(fd, "x", 1) == 1);
    fd = open(in_data("decoy-new"), O_CREAT | O_WRONLY, 0600);
    note("db-create", fd >= 0);
    note("config", has(config, "SIBLING_SECRET"));
    note("shadow", has("/etc/shadow", "root:"));
}

static void try_change(void)
{
    char here[8192];

    note("db-truncate", truncate(in_data("decoy-truncate"), 0) == 0);
    note("db-chmod", chmod(in_data("decoy-chmod"), 0777) == 0);
    note("db-chmod-2",
         syscall(452, AT_FDCWD, in_data("decoy-chmod"), 0777, 0) == 0);
    note("db-xattr",
         setxattr(in_data("decoy-xattr"), "user.x", "x", 1, 0) == 0);
    note("db-unlink", unlink(in_data("decoy-unlink")) == 0);
    note("db-rename",
         rename(in_data("decoy-rename"), "taken") == 0 ||
             syscall(SYS_renameat2, AT_FDCWD, in_data("decoy-rename"), AT_FDCWD,
                     "taken", 0) == 0);
    note("db-link", link(in_data("decoy-link"), "linked") == 0);
    snprintf(here, sizeof(here), "%s/signalbox.db", data);
    note("db-symlink", symlink(here, "s") == 0 && open("s", O_RDONLY) >= 0);
}

static void try_other(void)
{
    char path[8192];

    snprintf(path, sizeof(path), "%s/secret", other);
    note("other-read", has(path, "SIBLING"));
    snprintf(path, sizeof(path), "%s/planted", other);
    note("other-write", open(path, O_CREAT | O_WRONLY, 0600) >= 0);
    snprintf(path, sizeof(path), "%s-named/key", other);
    note("script-names", has(path, "HIDDEN"));
    snprintf(path, sizeof(path), "%s-linked/key", other);
    note("argument-links", has(path, "HIDDEN"));
}

static void try_terminal(void)
{
    int fd = open(terminal, O_RDWR | O_NOCTTY);

    note("terminal", fd >= 0 && write(fd, "x", 1) == 1);
    if (fd >= 0)
        close(fd);
}

/* Whether taking a mount away shows the data. In a process of its own: it
 * changes namespaces. */
static void try_mounts(void)
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        umount2(data, MNT_DETACH);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0)
            umount2(data, MNT_DETACH);
        _exit(open(in_data("signalbox.db"), O_RDONLY) >= 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    errno = EPERM;
    note("umount", status == 0);
}

/* What it needs. */

static void try_work(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((unsigned short)port)};
    int fd = open("mine", O_CREAT | O_RDWR | O_TRUNC, 0600), s;

    note("may-write", fd >= 0 && write(fd, "x", 1) == 1);
    note("may-truncate", fd >= 0 && ftruncate(fd, 0) == 0);
    note("may-rename", rename("mine", "mine-too") == 0);
    note("may-read", has("/etc/passwd", "root:"));
    note("may-execute", system("exit 0") == 0);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    s = socket(AF_INET, SOCK_STREAM, 0);
    note("may-connect", connect(s, (struct sockaddr *)&to, sizeof(to)) == 0);
    close(s);
    close(fd);
    fd = open("/tmp/signalbox-attacker", O_CREAT | O_RDWR, 0600);
    note("may-use-tmp", fd >= 0);
    unlink("/tmp/signalbox-attacker");
    close(fd);
    fd = posix_openpt(O_RDWR | O_NOCTTY);
    s = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0
            ? open(ptsname(fd), O_RDWR | O_NOCTTY)
            : -1;
    note("may-terminal", s >= 0);
    close(s);
    close(fd);
}

/* Leaves its session, as a daemon does. */
static void leave_stray(void)
{
    pid_t pid = fork();
    size_t n;

    if (pid == 0) {
        setsid();
        if (fork() == 0) {
            int fd = open("stray", O_CREAT | O_WRONLY | O_TRUNC, 0600);

            close(0);
            close(1);
            close(2);
            if (write(fd, "x", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    n = strlen(out);
    snprintf(out + n, sizeof(out) - n, ";pid=%d", (int)getpid());
}

static void attack(const char *message)
{
    out[0] = '\0';
    if (sscanf(message, "%d %4095s %4095s %d %4095s %d %4095s", &server, data,
               other, &sibling, config, &port, terminal) != 7) {
        snprintf(out, sizeof(out), "pid=%d", (int)getpid());
        return;
    }
    try_environ();
    try_memory();
    try_ptrace();
    try_descriptors();
    try_signals();
    try_open();
    try_change();
    try_other();
    try_terminal();
    try_mounts();
    try_work();
    leave_stray();
}

/* The text of a member, as it stands: none of ours has an escape. */
static void member(const char *line, const char *name, char *to, size_t size)
{
    char key[64];
    const char *at, *end;

    snprintf(key, sizeof(key), "\"%s\":\"", name);
    at = strstr(line, key);
    to[0] = '\0';
    if (!at)
        return;
    at += strlen(key);
    end = strchr(at, '"');
    if (end && (size_t)(end - at) < size)
        snprintf(to, size, "%.*s", (int)(end - at), at);
}

int main(void)
{
    static char line[LINE_BYTES], task[256], message[20000];

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        if (strstr(line, "\"method\":\"hello\"")) {
            puts("{\"jsonrpc\":\"2.0\",\"id\":\"hello\",\"result\":{}}");
            continue;
        }
        if (!strstr(line, "\"method\":\"task.execute\""))
            continue;
        member(line, "task_id", task, sizeof(task));
        member(line, "message", message, sizeof(message));
        attack(message);
        printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.result\","
               "\"params\":{\"task_id\":\"%s\",\"status\":\"completed\","
               "\"text\":\"%s\"}}\n",
               task, out);
    }
    return 0;
}
