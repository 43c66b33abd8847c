/* A cgroup for each program, where the server's own was given to it.
 *
 * A service manager gives a cgroup away (systemd: Delegate=yes) by marking it,
 * and by making it the user's. Only then are others made inside: in one that
 * was not given away they would be the manager's to clear up. To own it is not
 * enough: all that a user starts in a session may be in one of these.
 *
 *     the server's own    controllers are passed on; no process is in it
 *         server          we
 *         child-PID-N     one program of the server with that number, and all
 *                         that it starts; another server may be in here too
 *
 * memoryBytes and processes then hold for the program and all that it started
 * together. When the program is over, cgroup.kill ends what is left, whatever
 * session or group it has made; the kernel removes a cgroup only once it is
 * empty, so those that are not yet are tried again with the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fault.h"
#include "child/internal.h"

enum { TEXT_BYTES = 16384 };

static bool write_in(const char *folder, const char *name, const char *text)
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

static bool read_text(const char *path, char out[TEXT_BYTES])
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

/* Where version 2 is mounted: of each line the fifth word, and behind " - " the
 * kind. */
static bool find_mount(char out[PATH_MAX])
{
    char text[TEXT_BYTES];
    struct str rest;

    if (!read_text("/proc/self/mountinfo", text))
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

/* Our own, as "0::/system.slice/signalbox.service". */
static bool find_own(char out[PATH_MAX])
{
    char text[TEXT_BYTES], mount[PATH_MAX];
    struct str rest;

    if (!find_mount(mount) || !read_text("/proc/self/cgroup", text))
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

static bool was_given_away(const char *path)
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
    if (!find_own(own) || !was_given_away(own))
        return;
    snprintf(ours, sizeof(ours), "%s/server", own);
    if ((mkdir(ours, 0755) != 0 && errno != EEXIST) ||
        !write_in(ours, "cgroup.procs", "0")) {
        log_warn(all->log, "child.no_cgroups", LOG_C("cgroup", own),
                 LOG_C("because", strerrordesc_np(errno)));
        return;
    }
    /* One at a time: a controller may be missing. */
    all->has_cgroup_limits = write_in(own, "cgroup.subtree_control", "+pids");
    all->has_cgroup_limits =
        write_in(own, "cgroup.subtree_control", "+memory") &&
        all->has_cgroup_limits;
    snprintf(all->cgroup, sizeof(all->cgroup), "%s", own);
    log_info(all->log, "child.cgroups", LOG_C("cgroup", own),
             LOG_C("limits", all->has_cgroup_limits ? "yes" : "no"));
}

static void set_limit(const char *path, const char *name, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    if (value > 0 && !write_in(path, name, text))
        errno = 0; /* the limits of processes hold all the same */
}

/* False: it is too long. */
static bool path_of(const struct children *all, uint64_t number,
                    const char *file, char out[PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s/child-%d-%llu%s", all->cgroup,
                    (int)getpid(), (unsigned long long)number, file) < PATH_MAX;
}

/* One that is there already is not ours: what it holds would end with the
 * program. */
void cgroup_make(struct children *all, struct child *c,
                 const struct child_limits *limits)
{
    char path[PATH_MAX];

    if (!all->cgroup[0] || !path_of(all, ++all->n_cgroups, "", path) ||
        mkdir(path, 0755) != 0)
        return;
    c->cgroup = all->n_cgroups;
    set_limit(path, "memory.max", limits->memory_bytes);
    set_limit(path, "pids.max", limits->processes);
}

bool cgroup_procs(const struct child *c, char out[PATH_MAX])
{
    return c->cgroup && path_of(c->all, c->cgroup, "/cgroup.procs", out);
}

/* Those that are empty by now. */
static void remove_empty(struct children *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n_old_cgroups; i++) {
        char path[PATH_MAX];

        if (path_of(all, all->old_cgroups[i], "", path) && rmdir(path) != 0 &&
            errno == EBUSY)
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
    if (!PLANTED("child.no_cgroup_kill") && path_of(all, c->cgroup, "", path) &&
        !write_in(path, "cgroup.kill", "1"))
        log_debug(all->log, "child.no_cgroup_kill",
                  LOG_C("because", strerrordesc_np(errno)));
    if (all->n_old_cgroups == OLD_CGROUPS)
        remove_empty(all);
    if (all->n_old_cgroups < OLD_CGROUPS)
        all->old_cgroups[all->n_old_cgroups++] = c->cgroup;
    c->cgroup = 0;
    remove_empty(all);
}

void cgroups_fini(struct children *all)
{
    if (all->cgroup[0])
        remove_empty(all);
}
