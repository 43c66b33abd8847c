/* The table of children, and stopping all of them.
 *
 * An id is a running number and a slot of the table. Children are few, and
 * starting one costs a thousand times more than a search, so free slots are
 * searched one by one. */
#include "net/child/internal.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

enum {
    SLOT_MASK = (1 << CHILD_SLOT_BITS) - 1,
    OOM_MORE = 300, /* above our own score; the kernel's scale ends at 1000 */
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

/* A write to a child that has ended must be an error, not our death. If our
 * own parent ignored SIGCHLD, which exec keeps, the status of children would
 * be lost. */
static void children_set_signals(void)
{
    struct sigaction now;

    signal(SIGPIPE, SIG_IGN);
    if (sigaction(SIGCHLD, NULL, &now) == 0 &&
        (now.sa_handler == SIG_IGN || now.sa_flags & SA_NOCLDWAIT))
        signal(SIGCHLD, SIG_DFL);
}

static void on_children_stopped(struct loop_job *job)
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
    struct children *all = mem_new(sizeof(*all));

    all->loop = loop;
    all->log = log;
    all->max_children = max_children < SLOT_MASK ? max_children : SLOT_MASK;
    all->done_job.run = on_children_stopped;
    all->slots = mem_array(all->max_children + 1, sizeof(struct child *));
    orphans_init(all);
    all->oom_score = read_oom_score();
    all->launcher = -1;
    children_set_signals();
    return all;
}

void children_set_launcher(struct children *all, int fd)
{
    all->launcher = fd;
    all->has_launcher = true;
    cgroups_init(all);
}

/* The table. */

static size_t children_free_slot(const struct children *all)
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
    if (children_free_slot(all) == all->max_children)
        return why_err(why, ERR_LIMIT,
                       "%zu programs run already, which is the limit; wait for "
                       "one to end",
                       all->max_children);
    return OK;
}

void children_take_slot(struct children *all, struct child *c)
{
    size_t slot = children_free_slot(all);

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

void children_check_stopped(struct children *all)
{
    if (!all->is_stopping)
        return;
    /* Stuck children are abandoned. The kernel keeps them, and init reaps them
     * after we have ended. */
    if (all->n_stuck && all->stats.running == (int64_t)all->n_stuck)
        for (size_t i = 0; i < all->max_children; i++)
            if (all->slots[i])
                child_abandon(all->slots[i]);
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
