#ifndef SERVER_CONFIGURED_AGENTS_H
#define SERVER_CONFIGURED_AGENTS_H

/* configured_agents: puts the agents of the configuration into the registry.
 *
 * They are records like all others, so applying a configuration is a change
 * that must be committed. It is prepared together with the rest of a reload,
 * and an error rejects the reload. A temporary obstacle (another change of the
 * same agent, a full disk) does not: the change is retried with growing pauses
 * until it succeeds.
 *
 * Borrows the configuration from open or commit until the next commit.
 * Threads: the loop's. */

#include "registry/registry.h"
#include "server/config/config.h"

struct configured_agents {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct registry *registry;

    const struct config *config;
    struct registry_change change;
    bool is_prepared; /* change is prepared and not submitted */
    bool is_out;      /* change is in the store */
    bool is_due;      /* config is not applied yet */
    bool has_failed;  /* and that has been logged */
    bool is_opening;  /* configured_agents_open runs the loop */
    bool is_stopped;
    struct timer again;
    int64_t again_ms; /* the next pause before a retry */
};

/* Apply c before the server listens: runs the loop until it is done, or must be
 * retried. The caller has set the first four members. ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err configured_agents_open(struct configured_agents *r,
                                         const struct config *c,
                                         struct why *why);

/* The registry's limits in a configuration. */
struct registry_limits configured_agents_limits(const struct config *c);

/* A reload: prepare, then commit, which cannot fail, or forget. The agents are
 * checked against the limits of the same configuration; the caller sets those
 * in the registry before it commits. */
MUST_USE enum err configured_agents_prepare(struct configured_agents *r,
                                            const struct config *c,
                                            struct why *why);
void configured_agents_commit(struct configured_agents *r,
                              const struct config *c);
void configured_agents_forget(struct configured_agents *r);

/* Stop retrying; the store still finishes a submitted change. Called before
 * embed and registry are closed. Harmless if it was not opened. */
void configured_agents_stop(struct configured_agents *r);

/* Called after the store has finished all changes. Harmless likewise. */
void configured_agents_close(struct configured_agents *r);

#endif
