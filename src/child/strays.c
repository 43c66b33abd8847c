/* Those whom a child has started and who have left its group (setsid, a shell
 * with job control): a signal to the group does not reach them.
 *
 * When the child is asked to end they are looked for, while whoever started
 * them is still there to be asked for its children, and remembered; before a
 * kill once more, since they may have started others. Each is known by its
 * number and the time at which it began, and is held by a pidfd while that is
 * compared: a number that is somebody else's by now is never sent anything.
 *
 * Only the child's own tree is looked at, by /proc/PID/task/TID/children, and
 * not every process there is. Whose parent ended before we asked is init's and
 * nobody can tell that it was the child's; where the kernel has no such files,
 * none is found. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/fault.h"
#include "child/internal.h"

enum {
    TREE_MAX = 256,   /* processes that are looked at */
    READS_MAX = 1024, /* files that are read at once */
    FILE_BYTES = 4096,
};

struct tree {
    pid_t pids[TREE_MAX];
    size_t n;
    int n_reads;
};

static bool read_file(const char *path, char out[FILE_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, FILE_BYTES - 1);

    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* What a process is, as far as it matters here. */
struct being {
    pid_t parent, group;
    uint64_t began; /* in ticks since the machine's start */
};

/* "PID (NAME) STATE PPID PGRP …", the 22nd is the time; NAME may be anything.
 * False: it is gone. */
static bool look_at(pid_t pid, struct being *out)
{
    char path[64], text[FILE_BYTES];
    char *at, *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (!read_file(path, text))
        return false;
    at = strrchr(text, ')');
    if (!at || strlen(at) < 4)
        return false;
    at += 4; /* behind the state */
    out->parent = (pid_t)strtol(at, &end, 10);
    out->group = (pid_t)strtol(end, &end, 10);
    for (int i = 6; i <= 21; i++)
        strtoll(end, &end, 10);
    out->began = strtoull(end, &end, 10);
    return out->began > 0;
}

static bool is_still(const struct stray *s)
{
    struct being b;

    return look_at(s->pid, &b) && b.began == s->began;
}

/* Gathering. */

static void remember(struct child *c, pid_t pid, const struct being *b)
{
    for (size_t i = 0; i < c->n_strays; i++)
        if (c->strays[i].pid == pid && c->strays[i].began == b->began)
            return;
    if (c->n_strays == STRAYS_MAX) {
        log_warn(c->all->log, "child.strays_left", LOG_I("pid", pid));
        return;
    }
    c->strays[c->n_strays++] =
        (struct stray){.pid = pid, .group = b->group, .began = b->began};
}

static void add_to_tree(struct tree *t, pid_t pid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->pids[i] == pid)
            return;
    if (t->n < TREE_MAX)
        t->pids[t->n++] = pid;
}

static void add_children(struct child *c, struct tree *t, pid_t parent,
                         const char *list)
{
    char *end;
    long pid;

    while ((pid = strtol(list, &end, 10)) > 1 && end != list) {
        struct being b;

        list = end;
        if (!look_at((pid_t)pid, &b) || b.parent != parent)
            continue;
        add_to_tree(t, (pid_t)pid);
        if (b.group != c->process)
            remember(c, (pid_t)pid, &b);
    }
}

/* Each of its threads has children of its own. */
static void look_below(struct child *c, struct tree *t, pid_t pid)
{
    char path[64 + NAME_MAX], text[FILE_BYTES];
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = FAULT("child.strays") ? NULL : opendir(path);
    if (!d)
        return;
    while ((e = readdir(d)) && t->n_reads++ < READS_MAX) {
        snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid,
                 e->d_name);
        if (e->d_name[0] != '.' && read_file(path, text))
            add_children(c, t, pid, text);
    }
    closedir(d);
}

void strays_gather(struct child *c)
{
    struct tree t = {.n = 0};

    /* They cannot leave a PID namespace, and its process 1 tells them. */
    if (c->held & CHILD_HOLDS_PIDS)
        return;
    add_to_tree(&t, c->process);
    for (size_t i = 0; i < c->n_strays; i++)
        if (is_still(&c->strays[i]))
            add_to_tree(&t, c->strays[i].pid);
    for (size_t i = 0; i < t.n; i++)
        look_below(c, &t, t.pids[i]);
}

void strays_signal(const struct child *c, int signal)
{
    for (size_t i = 0; i < c->n_strays; i++) {
        int fd = pidfd_open(c->strays[i].pid, 0);

        if (fd < 0)
            continue;
        if (is_still(&c->strays[i]))
            pidfd_send_signal(fd, signal, NULL, 0);
        close(fd);
    }
}

void strays_reaped(struct child *c)
{
    for (size_t i = 0; i < c->n_strays; i++)
        if (is_still(&c->strays[i]))
            orphans_add(c->all, c->strays[i].group);
    c->n_strays = 0;
}
