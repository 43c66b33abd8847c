/* A cgroup for each program, if the server's own was delegated to it.
 *
 * A service manager delegates a cgroup (systemd: Delegate=yes) by marking it
 * and making it the user's. Only then are others made inside; elsewhere the
 * manager would have to clean them up. Ownership is not enough: everything
 * that a user starts in a session may be in such a cgroup.
 *
 *     the server's own    controllers are passed on; contains no process
 *         server          the server
 *         child-PID-N     one program of the server with that PID, and
 * everything it starts; another server may be in here too
 *
 * memoryBytes and processes then limit the program and everything that it
 * starts together. When the program is over, cgroup.kill ends the rest, in any
 * session or group. The kernel removes only empty cgroups, so the others are
 * tried again with the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fault.h"
#include "net/child/internal.h"

enum { TEXT_BYTES = 16384 };

static bool cgroup_write(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    size_t n = strlen(text);
    int fd;
    bool ok;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
        return false;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool cgroup_read(const char *path, char out[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    size_t at = 0;

    while (fd >= 0 && at < TEXT_BYTES - 1 &&
           (n = read(fd, out + at, TEXT_BYTES - 1 - at)) > 0)
        at += (size_t)n;
    if (fd >= 0)
        close(fd);
    out[at] = '\0';
    return at > 0;
}

/* The mount point of version 2: the fifth word of a line whose part behind " -
 * " has the type. */
static bool cgroup_find_mount(char out[PATH_MAX])
{
    char text[TEXT_BYTES];
    struct str rest;

    if (!cgroup_read("/proc/self/mountinfo", text))
        return false;
    rest = str_of(text);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n'), word = {0};
        const char *kind = memmem(line.p, line.n, " - cgroup2 ", 11);

        for (int i = 0; i < 5; i++)
            word = str_cut(&line, ' ');
        if (kind && snprintf(out, PATH_MAX, "%.*s", STR_ARG(word)) < PATH_MAX)
            return true;
    }
    return false;
}

/* Our own cgroup, as "0::/system.slice/signalbox.service". */
static bool cgroup_find_own(char out[PATH_MAX])
{
    char text[TEXT_BYTES], mount[PATH_MAX];
    struct str rest;

    if (!cgroup_find_mount(mount) || !cgroup_read("/proc/self/cgroup", text))
        return false;
    rest = str_of(text);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        if (str_starts(line, STR("0::/")))
            return snprintf(out, PATH_MAX, "%s%.*s", mount,
                            STR_ARG(str_sub(line, 3, SIZE_MAX))) < PATH_MAX;
    }
    return false;
}

static bool cgroup_is_delegated(const char *path)
{
    char mark = '0';
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    if (geteuid() != 0 && st.st_uid != geteuid())
        return false;
    return (getxattr(path, "trusted.delegate", &mark, 1) == 1 && mark == '1') ||
           (getxattr(path, "user.delegate", &mark, 1) == 1 && mark == '1');
}

void cgroups_init(struct children *all)
{
    char own[PATH_MAX], ours[PATH_MAX + 16];

    all->cgroup[0] = '\0';
    if (!cgroup_find_own(own) || !cgroup_is_delegated(own))
        return;
    snprintf(ours, sizeof(ours), "%s/server", own);
    if ((mkdir(ours, 0755) != 0 && errno != EEXIST) ||
        !cgroup_write(ours, "cgroup.procs", "0")) {
        log_warn(all->log, "child.no_cgroups", LOG_C("cgroup", own),
                 LOG_C("because", strerrordesc_np(errno)));
        return;
    }
    /* One by one: a controller may be missing. */
    all->has_cgroup_limits =
        cgroup_write(own, "cgroup.subtree_control", "+pids");
    all->has_cgroup_limits =
        cgroup_write(own, "cgroup.subtree_control", "+memory") &&
        all->has_cgroup_limits;
    snprintf(all->cgroup, sizeof(all->cgroup), "%s", own);
    log_info(all->log, "child.cgroups", LOG_C("cgroup", own),
             LOG_C("limits", all->has_cgroup_limits ? "yes" : "no"));
}

static void cgroup_set_limit(const char *path, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    if (value > 0 && !cgroup_write(path, name, text))
        errno = 0; /* the limits of processes hold anyway */
}

/* False: the path is too long. */
static bool cgroup_path(const struct children *all, uint64_t number,
                        const char *file, char out[PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s/child-%d-%llu%s", all->cgroup,
                    (int)getpid(), (unsigned long long)number, file) < PATH_MAX;
}

/* An existing cgroup is not ours: its processes would end with the program. */
void cgroup_make(struct children *all, struct child *c,
                 const struct child_limits *limits)
{
    char path[PATH_MAX];

    if (!all->cgroup[0] || !cgroup_path(all, ++all->n_cgroups, "", path) ||
        mkdir(path, 0755) != 0)
        return;
    c->cgroup = all->n_cgroups;
    cgroup_set_limit(path, "memory.max", limits->memory_bytes);
    cgroup_set_limit(path, "pids.max", limits->processes);
}

bool cgroup_procs(const struct child *c, char out[PATH_MAX])
{
    return c->cgroup && cgroup_path(c->all, c->cgroup, "/cgroup.procs", out);
}

/* Remove those that are empty by now. */
static void cgroups_remove_empty(struct children *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n_old_cgroups; i++) {
        char path[PATH_MAX];

        if (cgroup_path(all, all->old_cgroups[i], "", path) &&
            rmdir(path) != 0 && errno == EBUSY)
            all->old_cgroups[n++] = all->old_cgroups[i];
    }
    all->n_old_cgroups = n;
}

void cgroup_end(struct child *c)
{
    struct children *all = c->all;
    char path[PATH_MAX];

    if (!c->cgroup)
        return;
    if (!PLANTED("child.no_cgroup_kill") &&
        cgroup_path(all, c->cgroup, "", path) &&
        !cgroup_write(path, "cgroup.kill", "1"))
        log_debug(all->log, "child.no_cgroup_kill",
                  LOG_C("because", strerrordesc_np(errno)));
    if (all->n_old_cgroups == OLD_CGROUPS)
        cgroups_remove_empty(all);
    if (all->n_old_cgroups < OLD_CGROUPS)
        all->old_cgroups[all->n_old_cgroups++] = c->cgroup;
    c->cgroup = 0;
    cgroups_remove_empty(all);
}

void cgroups_fini(struct children *all)
{
    if (all->cgroup[0])
        cgroups_remove_empty(all);
}
