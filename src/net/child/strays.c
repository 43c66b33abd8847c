/* Processes that a child has started and that have left its group (setsid, a
 * shell with job control): a signal to the group does not reach them.
 *
 * When the child is asked to end, they are searched, while their parents can
 * still be asked for children, and remembered. Before a kill they are searched
 * again, since they may have started others. Each is identified by its PID and
 * start time, and a pidfd holds it during the comparison: no signal is ever
 * sent to a PID that was reused.
 *
 * Only the child's own tree is searched, through /proc/PID/task/TID/children,
 * not all processes. A process whose parent ended before the search belongs to
 * init, and cannot be recognized as the child's. If the kernel lacks these
 * files, none is found. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/fault.h"
#include "net/child/internal.h"

enum {
    TREE_MAX = 256,   /* processes that are examined */
    READS_MAX = 1024, /* files that are read in one search */
    FILE_BYTES = 4096,
};

struct tree {
    pid_t pids[TREE_MAX];
    size_t n;
    int n_reads;
};

static bool process_read_file(const char *path, char out[FILE_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, FILE_BYTES - 1);

    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The relevant facts of a process. */
struct being {
    pid_t parent, group;
    uint64_t began; /* in ticks since boot */
};

/* "PID (NAME) STATE PPID PGRP …", the 22nd is the start time; NAME may contain
 * anything. False: the process is gone. */
static bool process_read(pid_t pid, struct being *out)
{
    char path[64], text[FILE_BYTES];
    char *at, *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (!process_read_file(path, text))
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

    return process_read(s->pid, &b) && b.began == s->began;
}

/* Searching. */

static void stray_add(struct child *c, pid_t pid, const struct being *b)
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
        if (!process_read((pid_t)pid, &b) || b.parent != parent)
            continue;
        add_to_tree(t, (pid_t)pid);
        if (b.group != c->process)
            stray_add(c, (pid_t)pid, &b);
    }
}

/* Each of its threads has children of its own. */
static void tree_look_below(struct child *c, struct tree *t, pid_t pid)
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
        if (e->d_name[0] != '.' && process_read_file(path, text))
            add_children(c, t, pid, text);
    }
    closedir(d);
}

void strays_gather(struct child *c)
{
    struct tree t = {.n = 0};

    /* They cannot leave a PID namespace, and its process 1 signals them. */
    if (c->held & CHILD_HOLDS_PIDS)
        return;
    add_to_tree(&t, c->process);
    for (size_t i = 0; i < c->n_strays; i++)
        if (is_still(&c->strays[i]))
            add_to_tree(&t, c->strays[i].pid);
    for (size_t i = 0; i < t.n; i++)
        tree_look_below(c, &t, t.pids[i]);
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
