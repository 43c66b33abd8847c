/* Another user, if one is configured, and fewer capabilities.
 *
 * The launcher looks the user up, not the server: a name service may take
 * time. A program that runs as root, here or in a user namespace, keeps root's
 * rights over files, and loses those that would let it out: tracing, mounting,
 * modules, raw devices, opening by handle. */
#include "net/child/launch.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/child/internal.h"

#include "base/mem.h"

enum { GROUPS_MAX = 1024 };

static const int kept[] = {CAP_CHOWN,           CAP_DAC_OVERRIDE, CAP_FOWNER,
                           CAP_FSETID,          CAP_SETGID,       CAP_SETUID,
                           CAP_NET_BIND_SERVICE};

static void launch_add_env(struct launch *l, const char *name,
                           const char *value)
{
    struct launch_list *env = &l->said[TAG_ENV];
    size_t n = strlen(name);
    char **list, *text;

    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->list[i], name, n) == 0 && env->list[i][n] == '=')
            return;
    list = mem_array(env->n + 2, sizeof(*list));
    if (asprintf(&text, "%s=%s", name, value) < 0)
        launch_fail(STEP_LAUNCH, ENOMEM);
    memcpy(list, env->list, env->n * sizeof(*list));
    list[env->n] = text;
    env->list = list;
    env->n++;
    if (strcmp(name, "HOME") == 0)
        l->home = text + 5;
}

void launch_find_user(struct launch *l)
{
    const char *name = launch_first(l, TAG_USER);
    struct passwd *p;

    if (!name)
        return;
    errno = 0;
    p = getpwnam(name);
    if (!p)
        launch_fail(STEP_USER, errno && errno != EPERM ? errno : ENOENT);
    l->has_user = true;
    l->uid = p->pw_uid;
    l->gid = p->pw_gid;
    l->groups = mem_array(GROUPS_MAX, sizeof(*l->groups));
    l->n_groups = GROUPS_MAX;
    if (getgrouplist(name, p->pw_gid, l->groups, &l->n_groups) < 0)
        launch_fail(STEP_USER, E2BIG);
    launch_add_env(l, "HOME", p->pw_dir);
    launch_add_env(l, "USER", p->pw_name);
    launch_add_env(l, "LOGNAME", p->pw_name);
}

/* Only for root: other users have no capabilities, and exec gives them none. */
static void drop_capabilities(struct launch *l)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct now[2] = {{0}, {0}};
    uint64_t keep = 0;

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        keep |= 1ULL << kept[i];
    for (int i = 0; i < 64; i++)
        if (!(keep >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 &&
            errno != EINVAL && errno != EPERM)
            launch_fail(STEP_USER, errno);
    if (syscall(SYS_capget, &head, now) != 0)
        launch_fail(STEP_USER, errno);
    for (int i = 0; i < 2; i++) {
        unsigned half = (unsigned)(keep >> 32 * i);

        now[i].permitted &= half;
        now[i].effective = now[i].permitted;
        now[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &head, now) != 0)
        launch_fail(STEP_USER, errno);
    l->held |= CHILD_HOLDS_CAPS;
}

void launch_become_user(struct launch *l)
{
    uid_t ours = getuid();

    if (l->has_user) {
        if (setgroups((size_t)l->n_groups, l->groups) != 0 ||
            setresgid(l->gid, l->gid, l->gid) != 0 ||
            setresuid(l->uid, l->uid, l->uid) != 0)
            launch_fail(STEP_USER, errno);
        if (l->uid != ours)
            l->held |= CHILD_HOLDS_USER;
    }
    if (geteuid() == 0)
        drop_capabilities(l);
    else
        l->held |= CHILD_HOLDS_CAPS;
}
