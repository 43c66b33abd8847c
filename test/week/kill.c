/* The server is killed inside a system call of its store: the nth from when it
 * was armed, before the call, after it, or when half is written. SQLite finds
 * these instead of the C library's, because the program exports them. */
#include "test/week/kill.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static struct world *world;

void kill_arm(struct world *w)
{
    world = w;
}

void kill_now(void)
{
    world->n_kills++;
    world->api_left = 0;
    kill(getpid(), SIGKILL);
}

/* 0: not now; else where: 1 before, 2 in the middle, 3 after. */
static int is_time(void)
{
    if (!world)
        return 0;
    world->hour_calls++;
    if (world->api_left == 0 || --world->api_left > 0)
        return 0;
    return 1 + (int)(world->random % 3);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    int where = is_time();
    ssize_t done;

    if (where == 1)
        kill_now();
    done = syscall(SYS_pwrite64, fd, p, where == 2 ? n / 2 : n, at);
    if (where)
        kill_now();
    return done;
}

static int sync_or_die(long number, int fd)
{
    int where = is_time();
    int done;

    if (where == 1)
        kill_now();
    done = (int)syscall(number, fd);
    if (where)
        kill_now();
    return done;
}

int fdatasync(int fd)
{
    return sync_or_die(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return sync_or_die(SYS_fsync, fd);
}
