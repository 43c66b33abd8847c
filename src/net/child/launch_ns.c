/* Namespaces: processes, mounts and System V IPC of its own.
 *
 * With root's rights directly, else inside a user namespace that maps the user
 * to itself. A container may allow neither, and in a chroot no user namespace
 * can be made; then there is none, and the other protections remain.
 *
 * In the mount namespace
 *
 *     /proc                       shows the namespace's own processes
 *     /tmp, /var/tmp, /dev/shm    empty, the program's own; removed with it
 *     /run                        empty: through the sockets of other services
 *                                 (D-Bus, Docker, a user's systemd) programs
 *                                 could be started outside, and Landlock does
 *                                 not close sockets
 *     /dev/pts                    the program's own terminals
 *     the closed paths            hidden: an empty folder, or an empty file
 *
 * Paths that the program may use are mounted back where one of these covers
 * them. A folder that it may use as a whole stays as it is. */
#include "net/child/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/paths.h"
#include "net/child/internal.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 0x00000004
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* The parts of /run that name lookup needs, and where some systems have their
 * programs. */
static const char *const run_paths[] = {
    "/run/systemd/resolve", "/run/resolvconf",
    "/run/NetworkManager",  "/run/nscd",
    "/run/current-system",  "/run/wrappers"};

static const enum launch_tag usable_tags[] = {TAG_FOLDER, TAG_READ, TAG_WRITE,
                                              TAG_OWN};

static const enum launch_tag written_tags[] = {TAG_FOLDER, TAG_WRITE, TAG_OWN};

/* struct mount_attr, which the headers of some systems lack. */
struct mount_change {
    uint64_t set, clear, propagation, userns_fd;
};

enum { CALL_MOUNT_SETATTR = 442, MOUNT_READ_ONLY = 1 };

enum { RUN_PATHS = sizeof(run_paths) / sizeof(run_paths[0]), BACK_MAX = 512 };

/* Entering. */

static bool id_map_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t n = strlen(text);
    bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;

    if (fd >= 0)
        close(fd);
    return ok;
}

static bool map_user(uid_t uid, gid_t gid)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "%u %u 1", (unsigned)uid, (unsigned)uid);
    snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)gid, (unsigned)gid);
    return id_map_write("/proc/self/uid_map", users) &&
           id_map_write("/proc/self/setgroups", "deny") &&
           id_map_write("/proc/self/gid_map", groups);
}

/* Whether a user namespace can be made and mapped: AppArmor, or a container
 * without capabilities, may allow only the first. Another process tries it,
 * because it cannot be undone. */
static bool can_map_user(int flags, uid_t uid, gid_t gid)
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER | flags) == 0 && map_user(uid, gid) ? 0
                                                                        : 1);
    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return status == 0;
}

bool launch_enter(struct launch *l)
{
    int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (launch_first(l, TAG_NO_NAMESPACES))
        return false;
    if (unshare(flags) == 0) {
        l->held |= CHILD_HOLDS_PIDS;
        return true;
    }
    /* A user namespace has no other users. */
    if (l->has_user || !can_map_user(flags, uid, gid))
        return false;
    if (unshare(CLONE_NEWUSER | flags) != 0 || !map_user(uid, gid))
        launch_fail(STEP_LAUNCH, errno);
    l->held |= CHILD_HOLDS_PIDS;
    return true;
}

/* Mounting. */

/* A path that is mounted back. */
struct back {
    char path[PATH_MAX];
    int tree;
    bool is_folder;
};

static struct back backs[BACK_MAX];

enum back_access { FOR_READING, FOR_WRITING };

/* False: it exists and cannot be mounted. Landlock opens all of /tmp for
 * writing, including mounts there. So the mount itself is read-only if the
 * program may only read. */
static bool back_take(size_t *n, const char *path, const char *cover,
                      enum back_access access)
{
    struct mount_change read_only = {.set = MOUNT_READ_ONLY};
    struct back *b = &backs[*n];
    struct stat st;

    if (*n == BACK_MAX)
        return false;
    if (!launch_real(path, b->path) || !path_is_within(b->path, cover) ||
        strcmp(b->path, cover) == 0 || stat(b->path, &st) != 0)
        return true;
    b->is_folder = S_ISDIR(st.st_mode);
    b->tree = (int)syscall(SYS_open_tree, AT_FDCWD, b->path,
                           OPEN_TREE_CLONE | AT_RECURSIVE | O_CLOEXEC);
    if (b->tree < 0)
        return false;
    ++*n;
    return access == FOR_WRITING || syscall(CALL_MOUNT_SETATTR, b->tree, "",
                                            AT_EMPTY_PATH | AT_RECURSIVE,
                                            &read_only, sizeof(read_only)) == 0;
}

/* Paths for writing come last: they may lie in one for reading. */
static bool backs_take_all(const struct launch *l, const char *cover, size_t *n)
{
    char here[PATH_MAX];
    bool ok = true;

    *n = 0;
    for (size_t i = 0; i < l->programs_at.n; i++)
        ok = back_take(n, l->programs_at.list[i], cover, FOR_READING) && ok;
    for (size_t i = 0; i < RUN_PATHS; i++)
        ok = back_take(n, run_paths[i], cover, FOR_READING) && ok;
    if (launch_here(l, here))
        ok = back_take(n, here, cover, FOR_READING) && ok;
    for (size_t i = 0; i < l->said[TAG_READ].n; i++)
        ok = back_take(n, l->said[TAG_READ].list[i], cover, FOR_READING) && ok;
    for (size_t t = 0; t < sizeof(written_tags) / sizeof(*written_tags); t++)
        for (size_t i = 0; i < l->said[written_tags[t]].n; i++)
            ok = back_take(n, l->said[written_tags[t]].list[i], cover,
                           FOR_WRITING) &&
                 ok;
    return ok;
}

static bool make_place(const struct back *b)
{
    char path[PATH_MAX];
    struct stat st;
    int fd;

    if (stat(b->path, &st) == 0)
        return true; /* in another one that was mounted before */
    memcpy(path, b->path, sizeof(path));
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return false;
        *p = '/';
    }
    if (b->is_folder)
        return mkdir(path, 0755) == 0 || errno == EEXIST;
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool back_mount(size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!make_place(&backs[i]) ||
            syscall(SYS_move_mount, backs[i].tree, "", AT_FDCWD, backs[i].path,
                    MOVE_MOUNT_F_EMPTY_PATH) != 0)
            return false;
    return true;
}

static void close_backs(size_t n)
{
    for (size_t i = 0; i < n; i++)
        close(backs[i].tree);
}

/* Whether the program may use the whole folder, or one that contains it. */
static bool launch_may_use(const struct launch *l, const char *folder)
{
    char real[PATH_MAX];

    for (size_t t = 0; t < sizeof(usable_tags) / sizeof(*usable_tags); t++)
        for (size_t i = 0; i < l->said[usable_tags[t]].n; i++)
            if (launch_real(l->said[usable_tags[t]].list[i], real) &&
                path_is_within(folder, real))
                return true;
    if (launch_here(l, real))
        return path_is_within(folder, real);
    return false;
}

enum covered { COVERED, IS_ABSENT, IS_OPEN };

/* IS_OPEN: the program may use all of it, or it could not be covered. Links
 * are followed: /var/tmp may be a link to /tmp. */
static enum covered path_cover(const struct launch *l, const char *path,
                               const char *how)
{
    char folder[PATH_MAX];
    struct stat st;
    bool is_whole;
    size_t n;

    if (lstat(path, &st) != 0)
        return IS_ABSENT;
    if (!launch_real(path, folder) || !folder[1] || stat(folder, &st) != 0 ||
        !S_ISDIR(st.st_mode) || launch_may_use(l, folder))
        return IS_OPEN;
    if (!backs_take_all(l, folder, &n) ||
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, how) != 0) {
        close_backs(n);
        return IS_OPEN;
    }
    is_whole = back_mount(n);
    close_backs(n);
    if (!is_whole && umount2(folder, MNT_DETACH) != 0)
        launch_fail(STEP_LAUNCH, errno);
    return is_whole ? COVERED : IS_OPEN;
}

static void cover_tmp(struct launch *l)
{
    bool is_own = true;

    for (size_t i = 0; i < LAUNCH_TMP_PATHS; i++) {
        enum covered c = path_cover(l, launch_tmp_paths[i], "mode=1777");

        l->is_tmp_covered[i] = c == COVERED;
        is_own = is_own && c != IS_OPEN;
    }
    if (is_own)
        l->held |= CHILD_HOLDS_TMP;
    l->shares_tmp = !is_own;
    if (l->shares_tmp)
        launch_find_programs(l); /* without those that agents may change */
}

/* If it exists: below a cover it is hidden already. */
static bool path_hide(const char *path)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    struct stat st;

    if (stat(path, &st) != 0)
        return true;
    if (S_ISDIR(st.st_mode))
        return mount("tmpfs", path, "tmpfs", flags, "size=4k,mode=0") == 0;
    return mount("/dev/null", path, NULL, MS_BIND, NULL) == 0;
}

/* Terminals of its own: those in the host's /dev/pts belong to people who are
 * logged in as the same user. If /dev/ptmx is a link into /dev/pts, it already
 * leads to the new one. */
static bool cover_terminals(void)
{
    struct stat st;

    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620") != 0)
        return false;
    if (lstat("/dev/ptmx", &st) == 0 && !S_ISLNK(st.st_mode))
        mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL);
    return true;
}

void launch_mount(struct launch *l)
{
    const struct launch_list *closed = &l->said[TAG_CLOSED];
    bool is_hidden = true;

    /* Else all mounts would be visible outside. In a chroot this may be
     * impossible. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        l->shares_tmp = true;
        launch_find_programs(l);
        return;
    }
    cover_tmp(l);
    if (path_cover(l, "/run", "mode=755") != IS_OPEN)
        l->held |= CHILD_HOLDS_RUN;
    l->has_own_terminals = cover_terminals();
    for (size_t i = 0; i < closed->n; i++)
        is_hidden = path_hide(closed->list[i]) && is_hidden;
    if (is_hidden)
        l->held |= CHILD_HOLDS_MOUNTS;
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) == 0)
        l->held |= CHILD_HOLDS_PROC;
}
