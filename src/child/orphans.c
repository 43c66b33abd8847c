/* What a child leaves behind, where orphans come to us: as process 1 of a
 * container, or as a subreaper. Its group was killed before it was reaped, and
 * somebody has to wait for those in it, or they stay zombies for as long as we
 * live. Elsewhere init does that, and there is nothing of ours to wait for.
 *
 * They are waited for by the number of their group, never by "any child",
 * which would take away from libuv and from others what they wait for. The
 * number cannot be another's meanwhile: it is taken as long as one of the group
 * is there, zombies included, and none of them goes but by us, here. Nor is
 * anybody missed: whoever ends hands its children to us before it can be waited
 * for, so while some of the group may still come to us, one of it is ours; but
 * not those whose parent has left the group.
 *
 * Nothing tells when an orphan has ended but SIGCHLD, which is libuv's; so they
 * are looked for now and then until there are none. The timer is always set, a
 * day ahead if there is nothing to do: then setting it needs no memory.
 *
 * Who made a group of its own has left and is not waited for, unless it was
 * found when the child was stopped (strays.c) and comes to us with it. To know
 * it from the children of others one would have to be the only one with
 * children. A container that runs such programs needs an init
 * (docs/operations.md). */
#include "child/internal.h"

#include <errno.h>
#include <sys/wait.h>

enum { REST_MS = 24 * 3600 * 1000 };

static void set_timer(struct children *all, int64_t delay_ms)
{
    if (loop_timer_set(all->loop, &all->orphan_timer, delay_ms) != OK)
        log_warn(all->log, "child.no_timer",
                 LOG_I("groups", (int64_t)all->n_groups));
}

/* False while some of them live. */
static bool wait_for(pid_t group)
{
    siginfo_t info;
    int r;

    do {
        info.si_pid = 0;
        r = waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG);
    } while ((r == 0 && info.si_pid != 0) || (r != 0 && errno == EINTR));
    return r != 0; /* ECHILD: none is left */
}

static void look(struct children *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n_groups; i++)
        if (!wait_for(all->groups[i]))
            all->groups[n++] = all->groups[i];
    all->n_groups = n;
}

static void on_orphan_time(struct timer *t)
{
    struct children *all = LIST_OF(t, struct children, orphan_timer);

    look(all);
    set_timer(all, all->n_groups ? ORPHANS_AGAIN_MS : REST_MS);
}

enum err orphans_init(struct children *all)
{
    all->orphan_timer.fire = on_orphan_time;
    return loop_timer_set(all->loop, &all->orphan_timer, REST_MS);
}

void orphans_fini(struct children *all)
{
    loop_timer_cancel(all->loop, &all->orphan_timer);
}

void orphans_add(struct children *all, pid_t group)
{
    if (wait_for(group))
        return;
    if (all->n_groups == MAX_ORPHAN_GROUPS)
        look(all);
    if (all->n_groups == MAX_ORPHAN_GROUPS) {
        log_warn(all->log, "child.orphans_left", LOG_I("group", group));
        return;
    }
    if (all->n_groups == 0)
        set_timer(all, ORPHANS_AGAIN_MS);
    all->groups[all->n_groups++] = group;
}
