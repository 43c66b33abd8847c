/* The room: a table of children, and the end of all of them.
 *
 * An id is a running number over a place in the table. Children are few and
 * starting one costs a thousand times more than looking for a free place, so
 * places are looked for one by one. */
#include "child/internal.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    SLOT_MASK = (1 << CHILD_SLOT_BITS) - 1,
    OOM_MORE = 300, /* than ours; the kernel's scale ends at 1000 */
    OOM_MOST = 1000,
};

static int read_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    char text[16] = {0};
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    long ours = n > 0 ? strtol(text, NULL, 10) : 0;

    if (fd >= 0)
        close(fd);
    return ours + OOM_MORE < OOM_MOST ? (int)ours + OOM_MORE : OOM_MOST;
}

/* A write to a child that has gone is an error, not our death. And where our
 * own parent has ignored SIGCHLD, which exec keeps, children would vanish
 * without anybody having heard how they ended. */
static void set_signals(void)
{
    struct sigaction now;

    signal(SIGPIPE, SIG_IGN);
    if (sigaction(SIGCHLD, NULL, &now) == 0 &&
        (now.sa_handler == SIG_IGN || now.sa_flags & SA_NOCLDWAIT))
        signal(SIGCHLD, SIG_DFL);
}

static void on_stopped(struct loop_job *job)
{
    struct children *all = LIST_OF(job, struct children, done_job);
    void (*done)(void *ctx) = all->done;

    all->done = NULL;
    if (done)
        done(all->done_ctx);
}

struct children *children_new(struct loop *loop, struct log *log,
                              size_t max_children)
{
    struct children *all =
        FAULT("children.new") ? NULL : calloc(1, sizeof(*all));

    if (!all)
        return NULL;
    all->loop = loop;
    all->log = log;
    all->max_children = max_children < SLOT_MASK ? max_children : SLOT_MASK;
    all->done_job.run = on_stopped;
    all->slots = FAULT("children.slots")
                     ? NULL
                     : calloc(all->max_children + 1, sizeof(struct child *));
    if (!all->slots || orphans_init(all) != OK) {
        free(all->slots);
        free(all);
        return NULL;
    }
    all->oom_score = read_oom_score();
    all->launcher = -1;
    set_signals();
    return all;
}

void children_set_launcher(struct children *all, int fd)
{
    all->launcher = fd;
    all->has_launcher = true;
    cgroups_init(all);
}

/* The table. */

static size_t free_slot(const struct children *all)
{
    size_t i = 0;

    while (i < all->max_children && all->slots[i])
        i++;
    return i;
}

enum err children_has_slot(const struct children *all, struct why *why)
{
    if (all->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (free_slot(all) == all->max_children)
        return why_err(why, ERR_LIMIT,
                       "%zu programs run already, which is the limit; wait for "
                       "one to end",
                       all->max_children);
    return OK;
}

void children_take_slot(struct children *all, struct child *c)
{
    size_t slot = free_slot(all);

    assert(slot < all->max_children);
    all->slots[slot] = c;
    c->id = ++all->n_ids << CHILD_SLOT_BITS | slot;
    all->stats.running++;
    all->stats.started_total++;
}

void children_give_slot(struct children *all, struct child *c)
{
    size_t slot = c->id & SLOT_MASK;

    if (c->id == 0 || all->slots[slot] != c)
        return;
    all->slots[slot] = NULL;
    all->stats.running--;
}

struct child *children_find(const struct children *all, uint64_t id)
{
    size_t slot = id & SLOT_MASK;
    struct child *c = slot < all->max_children ? all->slots[slot] : NULL;

    return c && c->id == id && c->state != CHILD_IS_STUCK ? c : NULL;
}

/* Stopping. */

/* What is stuck is nobody's business any more; the kernel keeps it, and when
 * we have ended init reaps it. */
static void abandon_all(struct children *all)
{
    for (size_t i = 0; i < all->max_children; i++)
        if (all->slots[i])
            child_abandon(all->slots[i]);
}

void children_check_stopped(struct children *all)
{
    if (!all->is_stopping)
        return;
    if (all->n_stuck && all->stats.running == (int64_t)all->n_stuck)
        abandon_all(all);
    if (all->n_children == 0 && all->done)
        loop_at_end(all->loop, &all->done_job);
}

void children_stop(struct children *all, void (*done)(void *ctx), void *ctx)
{
    if (all->is_stopping)
        return;
    all->is_stopping = true;
    all->done = done;
    all->done_ctx = ctx;
    for (size_t i = 0; i < all->max_children; i++)
        if (all->slots[i])
            child_stop(all, all->slots[i]->id);
    children_check_stopped(all);
}

void children_free(struct children *all)
{
    if (!all)
        return;
    assert(all->n_children == 0);
    loop_not_at_end(&all->done_job);
    orphans_fini(all);
    cgroups_fini(all);
    if (all->launcher >= 0)
        close(all->launcher);
    free(all->slots);
    free(all);
}

struct child_stats children_stats(const struct children *all)
{
    return all->stats;
}
