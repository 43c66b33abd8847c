/* Processes that a child leaves behind, if orphans become our children: as
 * process 1 of a container, or as a subreaper. The child's group was killed
 * before the child was reaped, and its members must be waited for, or they
 * stay zombies for as long as we live. Elsewhere init does that.
 *
 * They are waited for by the number of their group, never by "any child",
 * which would take processes away from libuv and other code. The number cannot
 * be reused meanwhile: it is taken as long as a process of the group exists,
 * zombies included, and only this code reaps those. No process is missed
 * either: a process that ends passes its children to us before it can be
 * waited for. So while more of the group may come, one of its processes is
 * ours. The exception are processes whose parent has left the group.
 *
 * Only SIGCHLD reports the end of an orphan, and that is libuv's. So a timer
 * looks for them until there are none. The timer is always set, a day ahead if
 * there is nothing to do: then setting it needs no memory.
 *
 * A process that made a group of its own is not waited for, unless strays.c
 * found it when the child was stopped and it becomes ours. It could be told
 * from the children of other code only if we were the only code with children.
 * A container with such programs needs an init (docs/operations.md). */
#include "net/child/internal.h"

#include <errno.h>
#include <sys/wait.h>

enum { REST_MS = 24 * 3600 * 1000 };

/* False while some of them live. */
static bool orphans_wait_for(pid_t group)
{
    siginfo_t info;
    int r;

    do {
        info.si_pid = 0;
        r = waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG);
    } while ((r == 0 && info.si_pid != 0) || (r != 0 && errno == EINTR));
    return r != 0; /* ECHILD: there are no more */
}

static void orphans_reap(struct children *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n_groups; i++)
        if (!orphans_wait_for(all->groups[i]))
            all->groups[n++] = all->groups[i];
    all->n_groups = n;
}

static void on_orphan_time(struct timer *t)
{
    struct children *all = LIST_OF(t, struct children, orphan_timer);

    orphans_reap(all);
    loop_timer_set(all->loop, &all->orphan_timer,
                   all->n_groups ? ORPHANS_AGAIN_MS : REST_MS);
}

void orphans_init(struct children *all)
{
    all->orphan_timer.fire = on_orphan_time;
    loop_timer_set(all->loop, &all->orphan_timer, REST_MS);
}

void orphans_fini(struct children *all)
{
    loop_timer_cancel(all->loop, &all->orphan_timer);
}

void orphans_add(struct children *all, pid_t group)
{
    if (orphans_wait_for(group))
        return;
    if (all->n_groups == MAX_ORPHAN_GROUPS)
        orphans_reap(all);
    if (all->n_groups == MAX_ORPHAN_GROUPS) {
        log_warn(all->log, "child.orphans_left", LOG_I("group", group));
        return;
    }
    if (all->n_groups == 0)
        loop_timer_set(all->loop, &all->orphan_timer, ORPHANS_AGAIN_MS);
    all->groups[all->n_groups++] = group;
}
