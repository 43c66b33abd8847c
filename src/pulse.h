#ifndef PULSE_H
#define PULSE_H

/* pulse: that agents come and go, and how they are, told in the feed as
 * agent.state {from, to, why}, for whoever sees the agent.
 *
 * ACTIVE, IDLE and BUSY follow from what an agent is given, which the feed
 * tells anyway: for this they are one, well. So an entry is written when an
 * agent comes, goes, fails, is slow or is well again, and not when it says the
 * same once more. Who stirs is looked at a moment later: what was back by then
 * was never away. One is told of PULSE_PER_SPAN times in PULSE_SPAN_MS at most,
 * all together PULSE_PER_LOOK times in PULSE_LOOK_MS; who is left waits for a
 * later look, which sees how they are by then.
 *
 * Owns what it has told, and what is on its way to the store. Threads: the
 * loop's. */

#include "base/log.h"
#include "base/loop.h"
#include "model/agent.h"
#include "store/store.h"

struct pulse;

enum {
    PULSE_LOOK_MS = 1000,
    PULSE_PER_LOOK = 20,
    PULSE_SPAN_MS = 20 * 1000,
    PULSE_PER_SPAN = 2,
    PULSE_WATCHED_MAX = 16 * 1024, /* agents that stirred, at the same time */
};

struct pulse_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    uint64_t seed[2];
    /* How the agent of that name is, and its name as it is written, until the
     * next call; zero: there is none. */
    enum agent_state (*state_of)(void *ctx, struct str name,
                                 struct str *written);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct pulse *pulse_new(const struct pulse_opts *opts);

/* After the store has given back everything. NULL is fine. */
void pulse_free(struct pulse *p);

/* The state of that agent may be another in a moment: called before it is. */
void pulse_stir(struct pulse *p, struct str agent);

/* From here on nothing is told: all of them go, because the server does. */
void pulse_stop(struct pulse *p);

#endif
