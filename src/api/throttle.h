#ifndef API_THROTTLE_H
#define API_THROTTLE_H

/* throttle: how often a user and an address may call, and how many open
 * requests and connections a user may hold.
 *
 * A user has one rate limit across all tokens and connections. An address (an
 * IPv6 /64) has one for all its requests, counted before the token is checked,
 * and a small one for invalid tokens: guessing a token is hopeless, and this
 * keeps it cheap and quiet. A valid token does not count for that one, and is
 * accepted however exhausted it is: an attacker cannot lock out others behind
 * the same address.
 *
 * Exempt addresses have no limit of their own; their users do.
 *
 * Waiting requests, streams and hub connections cannot be evicted for new ones
 * (net/server/evict.c). So a user may hold at most twice as many as are still
 * free, and some are reserved for admins.
 *
 * Owns its tables, of fixed size. Threads: loop thread only. */

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

MUST_USE struct throttle *throttle_new(const uint64_t seed[2]);
void throttle_free(struct throttle *t);

/* Apply new limits. */
void throttle_set(struct throttle *t, const struct throttle_limits *limits);

/* Each returns the milliseconds that the caller should stay away; zero: it may
 * continue. addr is as addr_bytes writes it. */

/* A request has come. */
MUST_USE int64_t throttle_request(struct throttle *t, const uint8_t addr[16],
                                  int64_t now_ms);

/* It came with an invalid token. */
MUST_USE int64_t throttle_bad_token(struct throttle *t, const uint8_t addr[16],
                                    int64_t now_ms);

/* It came with a valid token. A user above their own limit does not use up the
 * limit of their address. */
MUST_USE int64_t throttle_caller(struct throttle *t, const uint8_t addr[16],
                                 const struct caller *c, int64_t now_ms);

/* A message on an authenticated connection, for the same limit of the user. The
 * message is delayed and not rejected, so it is not counted as rejected. */
MUST_USE int64_t throttle_message(struct throttle *t, const struct caller *c,
                                  int64_t now_ms);

/* Hold one more open request or connection, until it is released. NULL: the
 * user holds their share already, or no memory; THROTTLE_HELD_WORDS is the
 * message. */
struct throttle_share;
MUST_USE struct throttle_share *throttle_hold(struct throttle *t,
                                              const struct caller *c);
void throttle_release(struct throttle *t, struct throttle_share *p);

#define THROTTLE_HELD_WORDS                                                \
    "the server has few connections left, and your share of them is used " \
    "up; close some of yours, or wait until some are answered"

/* The number of rejections by that limit. */
int64_t throttle_total(const struct throttle *t, enum throttle_by by);

#endif
