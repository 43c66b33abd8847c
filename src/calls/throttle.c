/* Buckets are base/rate.h's. What is added here is who shares one.
 *
 * Turned down: refusing good tokens as well while bad ones come too fast, so
 * that who guesses cannot tell them apart. A token is 256 random bits
 * (access/token.c), so nobody comes across a good one; but whoever tries would
 * shut out everybody behind the same address. */
#include "calls/throttle.h"

#include <stdlib.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/map.h"

enum {
    USERS_MAX = 32 * 1024, /* whose bucket is not full at the same time */
    ADDRESSES_MAX = 64 * 1024,
    FAILURES_MAX = 16 * 1024,
    HOLDERS_MAX = 1024 * 1024,
    HELD_FACTOR = 2,     /* of what is free */
    HELD_KEPT_BACK = 16, /* one part in so many, for admins */
};

/* What one user holds. */
struct throttle_place {
    size_t n;
    size_t name_bytes;
    char name[];
};

struct throttle {
    struct throttle_limits limits;
    struct rates *users, *addresses, *failures;
    struct map holders; /* name -> struct throttle_place */
    size_t n_held;
    int64_t totals[N_THROTTLES];
};

struct throttle *throttle_new(const uint64_t seed[2])
{
    struct throttle *t = FAULT("throttle.new") ? NULL : calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    map_init(&t->holders, HOLDERS_MAX, seed);
    t->users = rates_new(USERS_MAX, seed);
    t->addresses = rates_new(ADDRESSES_MAX, seed);
    t->failures = rates_new(FAILURES_MAX, seed);
    if (t->users && t->addresses && t->failures)
        return t;
    throttle_free(t);
    return NULL;
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

static bool is_exempt(const struct throttle *t, const uint8_t addr[ADDR_BYTES])
{
    return guard_ranges_have(t->limits.exempt, t->limits.n_exempt, addr, 0);
}

static int64_t count(struct throttle *t, enum throttle_by by, int64_t wait_ms)
{
    t->totals[by] += wait_ms > 0;
    return wait_ms;
}

/* Everybody of the same network has the same key. */
struct key {
    uint8_t bytes[ADDR_BYTES];
};

static struct key key_of(const uint8_t addr[ADDR_BYTES])
{
    struct key k;

    addr_network(addr, k.bytes);
    if (PLANTED("throttle.one_address"))
        k = (struct key){{0}};
    return k;
}

static struct str key_str(const struct key *k)
{
    return (struct str){(const char *)k->bytes, sizeof(k->bytes)};
}

int64_t throttle_request(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                         int64_t now_ms)
{
    struct key k;

    if (t->limits.address.per_minute <= 0 || is_exempt(t, addr))
        return 0;
    k = key_of(addr);
    return count(
        t, THROTTLE_ADDRESS,
        rates_take(t->addresses, key_str(&k), &t->limits.address, now_ms));
}

int64_t throttle_bad_token(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                           int64_t now_ms)
{
    struct key k;

    if (t->limits.failures.per_minute <= 0 || is_exempt(t, addr))
        return 0;
    k = key_of(addr);
    return count(
        t, THROTTLE_FAILURES,
        rates_take(t->failures, key_str(&k), &t->limits.failures, now_ms));
}

static int64_t take_user(struct throttle *t, const struct caller *c,
                         int64_t now_ms)
{
    struct str who =
        PLANTED("throttle.one_user") ? STR("everybody") : caller_name(c);

    return rates_take(t->users, who, &t->limits.user, now_ms);
}

int64_t throttle_message(struct throttle *t, const struct caller *c,
                         int64_t now_ms)
{
    return take_user(t, c, now_ms);
}

int64_t throttle_caller(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                        const struct caller *c, int64_t now_ms)
{
    int64_t wait_ms = take_user(t, c, now_ms);
    struct key k = key_of(addr);

    if (wait_ms && !is_exempt(t, addr))
        rates_give_back(t->addresses, key_str(&k));
    return count(t, THROTTLE_USER, wait_ms);
}

/* Places. */

static bool may_hold(const struct throttle *t, const struct throttle_place *p,
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

static struct throttle_place *place_new(struct throttle *t, struct str name)
{
    struct throttle_place *p =
        FAULT("throttle.place") ? NULL : calloc(1, sizeof(*p) + name.n);

    if (!p)
        return NULL;
    p->name_bytes = name.n;
    if (name.n)
        memcpy(p->name, name.p, name.n);
    if (map_put(&t->holders, (struct str){p->name, name.n}, p) == OK)
        return p;
    free(p);
    return NULL;
}

struct throttle_place *throttle_hold(struct throttle *t, const struct caller *c)
{
    struct throttle_place *p = map_get(&t->holders, caller_name(c));

    if (!may_hold(t, p, c)) {
        t->totals[THROTTLE_HELD]++;
        return NULL;
    }
    if (!p)
        p = place_new(t, caller_name(c));
    if (!p)
        return NULL;
    p->n++;
    t->n_held++;
    return p;
}

void throttle_release(struct throttle *t, struct throttle_place *p)
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
