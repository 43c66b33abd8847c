#ifndef BENCH_PEER_H
#define BENCH_PEER_H

/* peer: what the benches share that put load on a server from outside: the
 * server as a child, its processor time, a connection to it, a median.
 * Everything ends the program with a word when it fails. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct peer {
    const char *name;
    pid_t pid;
    clockid_t cpu;
    uint16_t port;
    char line[1024];    /* the first it wrote */
    size_t reply_bytes; /* of one reply, as last seen */
};

static inline void die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
            strerror(errno));
    exit(1);
}

/* The processor time of a child, from now on. */
static inline void peer_watch(struct peer *p)
{
    if (clock_getcpuclockid(p->pid, &p->cpu) != 0)
        die("processor time");
}

/* Start argv with its standard output, or error, into a pipe, whose reading
 * end is returned. */
static inline FILE *peer_start(struct peer *p, const char *const argv[],
                               int which)
{
    int out[2];
    FILE *f;

    if (pipe(out) != 0 || (p->pid = fork()) < 0)
        die(p->name);
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], which);
        execvp(argv[0], (char *const *)argv);
        die(argv[0]);
    }
    close(out[1]);
    f = fdopen(out[0], "r");
    if (!f)
        die(p->name);
    peer_watch(p);
    return f;
}

/* Start a server whose first line on stdout has its port: ...:PORT */
static inline struct peer peer_run(const char *name, const char *const argv[])
{
    struct peer p = {.name = name};
    FILE *f = peer_start(&p, argv, STDOUT_FILENO);
    const char *at;

    if (!fgets(p.line, sizeof(p.line), f) ||
        !(at = strstr(p.line, "//127.0.0.1:"))) {
        fprintf(stderr, "%s: %s did not start: %s\n",
                program_invocation_short_name, name, p.line);
        exit(1);
    }
    p.port = (uint16_t)strtoul(at + strlen("//127.0.0.1:"), NULL, 10);
    return p;
}

static inline void peer_stop(struct peer *p)
{
    kill(p->pid, SIGTERM);
    waitpid(p->pid, NULL, 0);
}

/* What it has used so far, all its threads. */
static inline double peer_cpu_s(const struct peer *p)
{
    struct timespec t;

    if (clock_gettime(p->cpu, &t) != 0)
        die("processor time");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int peer_connect(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* A listening socket on a free port. */
static inline int peer_listen(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(fd, (struct sockaddr *)&a, n) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        die("listen");
    *port = ntohs(a.sin_port);
    return fd;
}

static inline void peer_send(int fd, const char *p, size_t n)
{
    if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
        die("send");
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
