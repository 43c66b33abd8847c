#ifndef CALLS_THROTTLE_H
#define CALLS_THROTTLE_H

/* throttle: how often a user and an address may call, and how many connections
 * a user may keep at work.
 *
 * Three limits of calls. A user has one bucket, however many tokens and
 * connections. An address (of v6 its /64) has one for everything that comes
 * from it, counted before the token is looked at, and a small one for tokens
 * that are not good: trying them out is hopeless, and this way cheap and not
 * loud. A good token draws nothing from that one and is taken however empty it
 * is: whoever guesses shuts out nobody behind the same address.
 *
 * Addresses that are exempt have no limit of their own; their users have.
 *
 * Requests that wait for an answer, streams and connections to the hub cannot
 * make room for others (net/evict.c). So a user may hold at most twice as many
 * of them as are still free, and admins may use what is kept back for them.
 *
 * Owns its tables, of fixed size. Threads: the loop's. */

#include "base/guard.h"
#include "base/rate.h"
#include "model/caller.h"

struct throttle;

struct throttle_limits {
    struct rate_limit user, address, failures; /* zeroed: none */
    const struct guard_range *exempt;          /* borrowed; without ports */
    size_t n_exempt;
    size_t max_held; /* by all users together; zero: no limit */
};

enum throttle_by {
    THROTTLE_NONE,
    THROTTLE_USER,
    THROTTLE_ADDRESS,
    THROTTLE_FAILURES,
    THROTTLE_HELD,
    N_THROTTLES,
};

/* NULL: memory is gone. */
MUST_USE struct throttle *throttle_new(const uint64_t seed[2]);
void throttle_free(struct throttle *t);

/* From now on. */
void throttle_set(struct throttle *t, const struct throttle_limits *limits);

/* Each says for how many milliseconds the caller should stay away; zero: it
 * may go on. `addr` is as addr_bytes writes it. */

/* A request has come. */
MUST_USE int64_t throttle_request(struct throttle *t, const uint8_t addr[16],
                                  int64_t now_ms);

/* It came with a token that is not good. */
MUST_USE int64_t throttle_bad_token(struct throttle *t, const uint8_t addr[16],
                                    int64_t now_ms);

/* It came with a good one. Who is over a limit of their own does not use up
 * that of the others at the same address. */
MUST_USE int64_t throttle_caller(struct throttle *t, const uint8_t addr[16],
                                 const struct caller *c, int64_t now_ms);

/* A message on a connection that came with a good one: out of the same bucket.
 * Nobody is turned down by it, so it does not count as such. */
MUST_USE int64_t throttle_message(struct throttle *t, const struct caller *c,
                                  int64_t now_ms);

/* One more request or connection that stays open, until it is released. NULL:
 * the user holds a share already, or memory is gone; THROTTLE_HELD_WORDS says
 * what to do. */
struct throttle_place;
MUST_USE struct throttle_place *throttle_hold(struct throttle *t,
                                              const struct caller *c);
void throttle_release(struct throttle *t, struct throttle_place *p);

#define THROTTLE_HELD_WORDS                                              \
    "the server has so few connections left that your share of them is " \
    "used up; close some of yours, or wait until some have their answer"

/* How many were turned down, by what. */
int64_t throttle_total(const struct throttle *t, enum throttle_by by);

#endif
