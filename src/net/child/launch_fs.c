/* Landlock: all paths are closed except these.
 *
 *     read, execute   /usr, /etc and the like, the folders of the command, the
 *                     list of `read`; the server's own folder if there is no
 *                     workspace
 *     write as well   the workspace, the list of `write`, /tmp
 *     devices         null, zero, random, terminals of its own
 *
 * Landlock cannot close a folder inside an open one. If a folder of the first
 * kind contains a closed path, its entries are opened one by one, without that
 * one. The server rejects a workspace that contains the data.
 *
 * Landlock also keeps the program from tracing processes outside its domain,
 * which closes their environ, mem and the like in /proc; from version 6 on,
 * from signals and abstract sockets outside it too. */
#include "net/child/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/paths.h"
#include "net/child/internal.h"

/* Newer than the headers of some systems. */
#define FS_REFER     (1ULL << 13)
#define FS_TRUNCATE  (1ULL << 14)
#define FS_IOCTL_DEV (1ULL << 15)
#define SCOPE_ALL    3ULL /* abstract sockets and signals */

enum {
    ABI_REFER = 2,
    ABI_TRUNCATE = 3,
    ABI_NET = 4,
    ABI_IOCTL = 5,
    ABI_SCOPE = 6,
    SPLIT_DEPTH = 16
};

struct ruleset_attr {
    uint64_t handled_access_fs, handled_access_net, scoped;
};

#define READS                                                    \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
     LANDLOCK_ACCESS_FS_READ_DIR)
#define ON_FILES                                                  \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
     LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
/* No devices are created anywhere. */
#define WRITES                                                               \
    (READS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |          \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |            \
     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER | \
     FS_TRUNCATE | FS_IOCTL_DEV)
#define DEVICES                                                   \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | \
     LANDLOCK_ACCESS_FS_WRITE_FILE | FS_IOCTL_DEV)
#define ABI_1 ((1ULL << 13) - 1)

static const char *const system_paths[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/proc",
    "/sys",
    "/var/lib/ca-certificates",
    "/var/cache/fontconfig",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/nscd",
    "/run/current-system",
    "/run/wrappers",
};

static const char *const device_paths[] = {
    "/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
    "/dev/urandom", "/dev/tty",  "/dev/ptmx"};

/* Root can read these, and programs do not need them. */
static const char *const secret_paths[] = {"/etc/shadow",      "/etc/shadow-",
                                           "/etc/gshadow",     "/etc/gshadow-",
                                           "/etc/ssl/private", "/etc/sudoers"};

/* The files in the home that git cannot do without: it ends if it sees a file
 * that it cannot open. */
static const char *const home_paths[] = {".gitconfig", ".config/git/config",
                                         ".config/git/ignore",
                                         ".config/git/attributes"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct rules {
    int fd;
    uint64_t handled;
    struct launch_list closed; /* without links */
};

static bool rules_is_closed(const struct rules *r, const char *real)
{
    for (size_t i = 0; i < r->closed.n; i++)
        if (path_is_within(real, r->closed.list[i]))
            return true;
    return false;
}

static bool rules_hold_closed(const struct rules *r, const char *real)
{
    for (size_t i = 0; i < r->closed.n; i++)
        if (path_is_within(r->closed.list[i], real))
            return true;
    return false;
}

static void add_rule(struct rules *r, const char *path, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    struct stat st;

    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return;
    if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
        rule.allowed_access &= ON_FILES;
    rule.allowed_access &= r->handled;
    if (rule.allowed_access &&
        syscall(SYS_landlock_add_rule, r->fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
                0) != 0 &&
        errno != EBADFD)
        launch_fail(STEP_LAUNCH, errno);
    close(rule.parent_fd);
}

/* Links inside are left out: they may lead anywhere. */
static void rules_open_path(struct rules *r, const char *path, uint64_t access,
                            int depth)
{
    char real[PATH_MAX], below[PATH_MAX];
    struct dirent *e;
    DIR *d;

    if (!launch_real(path, real) || rules_is_closed(r, real))
        return;
    if (!rules_hold_closed(r, real)) {
        add_rule(r, real, access);
        return;
    }
    d = depth < SPLIT_DEPTH ? opendir(real) : NULL;
    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            e->d_type == DT_LNK ||
            snprintf(below, sizeof(below), "%s/%s", real[1] ? real : "",
                     e->d_name) >= PATH_MAX)
            continue;
        rules_open_path(r, below, access, depth + 1);
    }
    if (d)
        closedir(d);
}

static void rules_open_list(struct rules *r, const struct launch_list *l,
                            uint64_t access)
{
    for (size_t i = 0; i < l->n; i++)
        rules_open_path(r, l->list[i], access, 0);
}

static void rules_open_home(struct rules *r, const struct launch *l)
{
    char path[PATH_MAX];

    for (size_t i = 0; l->home && i < COUNT(home_paths); i++)
        if (snprintf(path, sizeof(path), "%s/%s", l->home, home_paths[i]) <
            PATH_MAX)
            rules_open_path(r, path, READS, 0);
}

/* Whether something closed is visible in the folder, in a path that was
 * mounted back there. */
static bool rules_show_closed(const struct rules *r, const char *folder)
{
    char real[PATH_MAX];

    for (size_t i = 0; launch_real(folder, real) && i < r->closed.n; i++)
        if (path_is_within(r->closed.list[i], real) &&
            access(r->closed.list[i], F_OK) == 0)
            return true;
    return false;
}

/* A /tmp of its own is open as a whole, even if the data folder lies below the
 * one that it covers. A shared one is open only if it contains nothing
 * closed. */
static void rules_open_tmp(struct rules *r, const struct launch *l)
{
    for (size_t i = 0; i < LAUNCH_TMP_PATHS; i++)
        if (l->is_tmp_covered[i] && !rules_show_closed(r, launch_tmp_paths[i]))
            add_rule(r, launch_tmp_paths[i], WRITES);
        else if (l->is_tmp_covered[i] ||
                 !rules_hold_closed(r, launch_tmp_paths[i]))
            rules_open_path(r, launch_tmp_paths[i], WRITES, 0);
    if (l->tmp && l->tmp[0] == '/' && !rules_hold_closed(r, l->tmp))
        rules_open_path(r, l->tmp, WRITES, 0);
}

/* The server has checked the workspace and the lists of read and write against
 * the data folder, which is the first closed path. If they contain other
 * closed paths, such as the configuration file, that is the operator's
 * choice. */
static void rules_refuse_data(const struct launch *l,
                              const struct launch_list *list)
{
    const char *data = launch_first(l, TAG_CLOSED);
    char real[PATH_MAX];

    for (size_t i = 0; data && i < list->n; i++)
        if (launch_real(list->list[i], real) &&
            (path_is_within(data, real) || path_is_within(real, data)))
            launch_fail(STEP_PATHS, EPERM);
}

static void add_all(struct launch *l, struct rules *r)
{
    static const enum launch_tag tags[] = {TAG_FOLDER, TAG_READ, TAG_WRITE};
    char here[PATH_MAX];

    for (size_t i = 0; i < COUNT(tags); i++)
        rules_refuse_data(l, &l->said[tags[i]]);
    for (size_t i = 0; i < l->said[TAG_CLOSED].n; i++)
        launch_add(&r->closed, l->said[TAG_CLOSED].list[i]);
    for (size_t i = 0; i < COUNT(secret_paths); i++)
        launch_add(&r->closed, secret_paths[i]);
    for (size_t i = 0; i < COUNT(device_paths); i++)
        add_rule(r, device_paths[i], DEVICES);
    if (l->has_own_terminals)
        add_rule(r, "/dev/pts", DEVICES);
    for (size_t i = 0; i < l->said[TAG_OTHER].n; i++)
        launch_add(&r->closed, l->said[TAG_OTHER].list[i]);
    rules_open_list(r, &l->programs_at, READS);
    for (size_t i = 0; i < COUNT(system_paths); i++)
        rules_open_path(r, system_paths[i], READS, 0);
    rules_open_home(r, l);
    rules_open_tmp(r, l);
    if (launch_here(l, here))
        rules_open_path(r, here, READS, 0);
    rules_open_list(r, &l->said[TAG_OWN], WRITES);
    for (size_t i = 0; i < l->said[TAG_READ].n; i++)
        add_rule(r, l->said[TAG_READ].list[i], READS);
    for (size_t i = 0; i < l->said[TAG_WRITE].n; i++)
        add_rule(r, l->said[TAG_WRITE].list[i], WRITES);
    for (size_t i = 0; i < l->said[TAG_FOLDER].n; i++)
        add_rule(r, l->said[TAG_FOLDER].list[i], WRITES);
}

static int version_in_use(const struct launch *l)
{
    const char *most = launch_first(l, TAG_MAX_ABI);
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
                           LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 0)
        return 0;
    if (most && abi > strtol(most, NULL, 10))
        abi = (int)strtol(most, NULL, 10);
    return abi < ABI_SCOPE ? abi : ABI_SCOPE;
}

void launch_restrict_paths(struct launch *l)
{
    struct ruleset_attr attr = {.handled_access_fs = ABI_1};
    struct rules r = {.fd = -1};
    size_t size = sizeof(uint64_t);

    l->abi = version_in_use(l);
    if (l->abi < 1)
        return;
    if (l->abi >= ABI_REFER)
        attr.handled_access_fs |= FS_REFER;
    if (l->abi >= ABI_TRUNCATE)
        attr.handled_access_fs |= FS_TRUNCATE;
    if (l->abi >= ABI_NET)
        size += sizeof(uint64_t);
    if (l->abi >= ABI_IOCTL)
        attr.handled_access_fs |= FS_IOCTL_DEV;
    if (l->abi >= ABI_SCOPE) {
        attr.scoped = SCOPE_ALL;
        size += sizeof(uint64_t);
    }
    r.handled = attr.handled_access_fs;
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (r.fd < 0)
        launch_fail(STEP_LAUNCH, errno);
    add_all(l, &r);
    if (syscall(SYS_landlock_restrict_self, r.fd, 0) != 0)
        launch_fail(STEP_LAUNCH, errno);
    close(r.fd);
    l->held |= CHILD_HOLDS_PATHS;
}
