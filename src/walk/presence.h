#ifndef WALK_PRESENCE_H
#define WALK_PRESENCE_H

/* presence: reports in the feed that agents come, go and change their state, as
 * agent.state {from, to, why}, for users who see the agent.
 *
 * ACTIVE, IDLE and BUSY follow from the tasks an agent is given, which the feed
 * reports anyway, so they count as one state here: well. An entry is written
 * when an agent comes, goes, fails, is slow or recovers, but not when it
 * registers again. A changed agent is looked at a moment later, so a short
 * reconnect is not reported. One agent is reported at most PRESENCE_PER_SPAN
 * times in PRESENCE_SPAN_MS, all together at most PRESENCE_PER_LOOK times in
 * PRESENCE_LOOK_MS; the rest wait for a later look, which reports their state
 * at that time.
 *
 * Owns the reported states and the writes under way. Threads: loop thread
 * only. */

#include "base/log.h"
#include "base/loop.h"
#include "model/agent.h"
#include "store/store.h"

struct presence;

enum {
    PRESENCE_LOOK_MS = 1000,
    PRESENCE_PER_LOOK = 20,
    PRESENCE_SPAN_MS = 20 * 1000,
    PRESENCE_PER_SPAN = 2,
    PRESENCE_WATCHED_MAX = 16 * 1024, /* changed agents, at the same time */
};

struct presence_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    uint64_t seed[2];
    /* The state of an agent, and its name as it is written, valid until the
     * next call; zero: there is none. */
    enum agent_state (*state_of)(void *ctx, struct str name,
                                 struct str *written);
    void *ctx;
};

/* opts are copied. */
MUST_USE struct presence *presence_new(const struct presence_opts *opts);

/* Call after the store has given everything back. NULL is fine. */
void presence_free(struct presence *p);

/* The state of that agent is about to change. Call before the change. */
void presence_stir(struct presence *p, struct str agent);

/* Report nothing any more: the server stops, and all agents go with it. */
void presence_stop(struct presence *p);

#endif
