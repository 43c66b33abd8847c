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
#include "base/map.h"
#include "base/mem.h"

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
    size_t n;
    size_t name_bytes;
    char name[];
};

struct throttle {
    struct throttle_limits limits;
    struct rates *users, *addresses, *failures;
    struct map holders; /* name -> struct throttle_share */
    size_t n_held;
    int64_t totals[N_THROTTLES];
};

struct throttle *throttle_new(const uint64_t seed[2])
{
    struct throttle *t = mem_new(sizeof(*t));

    map_init(&t->holders, HOLDERS_MAX, seed);
    t->users = rates_new(USERS_MAX, seed);
    t->addresses = rates_new(ADDRESSES_MAX, seed);
    t->failures = rates_new(FAILURES_MAX, seed);
    return t;
}

void throttle_free(struct throttle *t)
{
    const struct map_slot *slot;
    size_t at = 0;

    if (!t)
        return;
    while ((slot = map_next(&t->holders, &at)))
        free(slot->value);
    map_fini(&t->holders);
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

static bool throttle_may_hold(const struct throttle *t,
                              const struct throttle_share *p,
                              const struct caller *c)
{
    size_t most = t->limits.max_held, held = p ? p->n : 0;

    if (!most || PLANTED("throttle.no_places"))
        return true;
    if (caller_is_admin(c))
        return t->n_held < most;
    most -= most / HELD_KEPT_BACK;
    return t->n_held < most && held + 1 <= HELD_FACTOR * (most - t->n_held);
}

struct throttle_share *throttle_hold(struct throttle *t, const struct caller *c)
{
    struct str name = caller_name(c);
    struct throttle_share *p = map_get(&t->holders, name);

    if (!throttle_may_hold(t, p, c)) {
        t->totals[THROTTLE_HELD]++;
        return NULL;
    }
    if (!p) {
        p = mem_new(sizeof(*p) + name.n);
        p->name_bytes = name.n;
        if (name.n)
            memcpy(p->name, name.p, name.n);
        if (map_put(&t->holders, (struct str){p->name, name.n}, p) != OK) {
            free(p);
            return NULL;
        }
    }
    p->n++;
    t->n_held++;
    return p;
}

void throttle_release(struct throttle *t, struct throttle_share *p)
{
    if (!p)
        return;
    t->n_held--;
    if (--p->n)
        return;
    map_take(&t->holders, (struct str){p->name, p->name_bytes});
    free(p);
}

int64_t throttle_total(const struct throttle *t, enum throttle_by by)
{
    return t->totals[by];
}
