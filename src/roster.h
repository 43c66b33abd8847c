#ifndef ROSTER_H
#define ROSTER_H

/* roster: the agents of the configuration, brought to the registry.
 *
 * They are records like all others, so taking over a configuration is a change
 * that must be committed. It is prepared together with the rest of a reload,
 * which is turned down with it; what stands in the way only for a moment
 * (another change of the same agent, a full disk) does not turn it down: it is
 * tried again, more and more seldom, until it is done.
 *
 * Borrows the configuration from open or commit until the next commit.
 * Threads: the loop's. */

#include "config/config.h"
#include "registry/registry.h"

struct roster {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;

    const struct config *config;
    struct registry_change change;
    bool is_prepared; /* change is taken, and not submitted */
    bool is_out;      /* change is with the store */
    bool is_due;      /* there is a configuration that was not taken over */
    bool has_failed;  /* and this was said */
    bool is_opening;  /* roster_open turns the loop */
    bool is_stopped;
    struct timer again;
    int64_t again_ms; /* how long to wait the next time */
};

/* Take over c before anybody calls: turns the loop until it is done, or it is
 * known that it must be tried again. The rooms are filled in. ERR_LIMIT,
 * ERR_NOMEM. */
MUST_USE enum err roster_open(struct roster *r, const struct config *c,
                              struct why *why);

/* What a configuration says of how many there may be. */
struct registry_limits roster_limits(const struct config *c);

/* What a reload can change: prepare, then commit, which cannot fail, or
 * forget. A configuration is judged by its own limits, which are set in the
 * registry by whoever commits it. */
MUST_USE enum err roster_prepare(struct roster *r, const struct config *c,
                                 struct why *why);
void roster_commit(struct roster *r, const struct config *c);
void roster_forget(struct roster *r);

/* Nothing is tried any more; what the store has comes back. Before embed and
 * registry go. Harmless when it was not opened. */
void roster_stop(struct roster *r);

/* After the store has given back everything; harmless likewise. */
void roster_close(struct roster *r);

#endif
