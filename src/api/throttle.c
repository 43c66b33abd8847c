/* Decides who shares a rate limit of base/rate.h.
 *
 * Rejected: rejecting valid tokens too while invalid ones come too fast, so
 * that an attacker cannot tell them apart. A token has 256 random bits
 * (access/token.c), so guessing is hopeless anyway, but an attacker could lock
 * out everyone behind the same address. */
#include "api/throttle.h"

#include <stdlib.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/share.h"

enum {
    USERS_MAX = 32 * 1024, /* buckets that are not full, at the same time */
    ADDRESSES_MAX = 64 * 1024,
    FAILURES_MAX = 16 * 1024,
    HOLDERS_MAX = 1024 * 1024,
    HELD_FACTOR = 2,     /* share: at most this many times what is free */
    HELD_KEPT_BACK = 16, /* one part in 16 is reserved for admins */
};

/* The connections that one user holds. */
struct throttle_share {
    struct share share;
};

struct throttle {
    struct throttle_limits limits;
    struct rates *users, *addresses, *failures;
    struct shares holders; /* struct throttle_share, by name */
    size_t n_held;
    int64_t totals[N_THROTTLES];
};

struct throttle *throttle_new(const uint64_t seed[2])
{
    struct throttle *t = mem_new(sizeof(*t));

    shares_init(&t->holders, sizeof(struct throttle_share), HOLDERS_MAX, seed);
    t->users = rates_new(USERS_MAX, seed);
    t->addresses = rates_new(ADDRESSES_MAX, seed);
    t->failures = rates_new(FAILURES_MAX, seed);
    return t;
}

void throttle_free(struct throttle *t)
{
    if (!t)
        return;
    shares_fini(&t->holders);
    rates_free(t->users);
    rates_free(t->addresses);
    rates_free(t->failures);
    free(t);
}

void throttle_set(struct throttle *t, const struct throttle_limits *limits)
{
    t->limits = *limits;
}

static bool throttle_is_exempt(const struct throttle *t,
                               const uint8_t addr[ADDR_BYTES])
{
    return guard_ranges_have(t->limits.exempt, t->limits.n_exempt, addr, 0);
}

static int64_t throttle_count(struct throttle *t, enum throttle_by by,
                              int64_t wait_ms)
{
    t->totals[by] += wait_ms > 0;
    return wait_ms;
}

/* All addresses of a network share a key. */
struct key {
    uint8_t bytes[ADDR_BYTES];
};

static struct key address_key(const uint8_t addr[ADDR_BYTES])
{
    struct key k;

    addr_network(addr, k.bytes);
    if (PLANTED("throttle.one_address"))
        k = (struct key){{0}};
    return k;
}

static struct str address_key_str(const struct key *k)
{
    return (struct str){(const char *)k->bytes, sizeof(k->bytes)};
}

int64_t throttle_request(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                         int64_t now_ms)
{
    struct key k;

    if (t->limits.address.per_minute <= 0 || throttle_is_exempt(t, addr))
        return 0;
    k = address_key(addr);
    return throttle_count(t, THROTTLE_ADDRESS,
                          rates_take(t->addresses, address_key_str(&k),
                                     &t->limits.address, now_ms));
}

int64_t throttle_bad_token(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                           int64_t now_ms)
{
    struct key k;

    if (t->limits.failures.per_minute <= 0 || throttle_is_exempt(t, addr))
        return 0;
    k = address_key(addr);
    return throttle_count(t, THROTTLE_FAILURES,
                          rates_take(t->failures, address_key_str(&k),
                                     &t->limits.failures, now_ms));
}

static int64_t throttle_take_user(struct throttle *t, const struct caller *c,
                                  int64_t now_ms)
{
    struct str who =
        PLANTED("throttle.one_user") ? STR("everybody") : caller_name(c);

    return rates_take(t->users, who, &t->limits.user, now_ms);
}

int64_t throttle_message(struct throttle *t, const struct caller *c,
                         int64_t now_ms)
{
    return throttle_take_user(t, c, now_ms);
}

int64_t throttle_caller(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                        const struct caller *c, int64_t now_ms)
{
    int64_t wait_ms = throttle_take_user(t, c, now_ms);
    struct key k = address_key(addr);

    if (wait_ms && !throttle_is_exempt(t, addr))
        rates_give_back(t->addresses, address_key_str(&k));
    return throttle_count(t, THROTTLE_USER, wait_ms);
}

/* Held connections. */

static bool throttle_may_hold(const struct throttle *t, const struct caller *c)
{
    const struct share *p = share_find(&t->holders, caller_name(c));
    size_t most = t->limits.max_held;

    if (!most || PLANTED("throttle.no_places"))
        return true;
    if (caller_is_admin(c))
        return t->n_held < most;
    return share_is_fair((p ? p->n : 0) + 1, HELD_FACTOR,
                         share_free(most, t->n_held, HELD_KEPT_BACK));
}

struct throttle_share *throttle_hold(struct throttle *t, const struct caller *c)
{
    struct throttle_share *p;

    if (!throttle_may_hold(t, c)) {
        t->totals[THROTTLE_HELD]++;
        return NULL;
    }
    p = share_take(&t->holders, caller_name(c));
    t->n_held += p != NULL;
    return p;
}

void throttle_release(struct throttle *t, struct throttle_share *p)
{
    if (!p)
        return;
    t->n_held--;
    share_give(&t->holders, p);
}

int64_t throttle_total(const struct throttle *t, enum throttle_by by)
{
    return t->totals[by];
}
