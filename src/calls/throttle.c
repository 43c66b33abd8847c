/* Buckets are base/rate.h's. What is added here is who shares one, and which
 * tokens were good from where: a table of hashes in which a later one takes
 * the place of an earlier, so that it needs no time and no upkeep. Whoever was
 * pushed out of it is only treated like somebody new.
 *
 * Turned down: letting every good token through however many bad ones come. It
 * would answer each guess, and only its tone would change. Shutting out the
 * whole address instead would let any stranger behind it shut out the rest. */
#include "calls/throttle.h"

#include <stdlib.h>

#include "base/addr.h"
#include "base/fault.h"
#include "base/map.h"

enum {
    USERS_MAX = 32 * 1024, /* whose bucket is not full at the same time */
    ADDRESSES_MAX = 64 * 1024,
    FAILURES_MAX = 16 * 1024,
    KNOWN_MAX = 8 * 1024, /* a power of two */
};

struct throttle {
    struct throttle_limits limits;
    struct rates *users, *addresses, *failures;
    uint64_t seed[2];
    uint64_t known[KNOWN_MAX]; /* address and token, hashed */
    int64_t totals[N_THROTTLES];
};

struct throttle *throttle_new(const uint64_t seed[2])
{
    struct throttle *t = FAULT("throttle.new") ? NULL : calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->seed[0] = seed[0];
    t->seed[1] = seed[1];
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
    if (!t)
        return;
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
    for (size_t i = 0; i < t->limits.n_exempt; i++)
        if (addr_is_within(addr, t->limits.exempt[i].addr,
                           t->limits.exempt[i].prefix))
            return true;
    return false;
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

/* Whether the token was good from there before; from now on it was. */
static bool is_known(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                     const struct id *token_id, bool is_taken)
{
    struct key network = key_of(addr);
    size_t n = strlen(token_id->text);
    char both[sizeof(network) + ID_BYTES];
    uint64_t hash, *slot;

    memcpy(both, &network, sizeof(network));
    memcpy(both + sizeof(network), token_id->text, n);
    hash = hash_bytes((struct str){both, sizeof(network) + n}, t->seed);
    slot = &t->known[hash & (KNOWN_MAX - 1)];
    if (*slot == hash)
        return true;
    if (is_taken)
        *slot = hash;
    return false;
}

/* Whether bad tokens from there stand in the way of this good one. */
static int64_t wait_for_failures(struct throttle *t,
                                 const uint8_t addr[ADDR_BYTES],
                                 const struct id *token_id, int64_t now_ms)
{
    struct key k = key_of(addr);
    int64_t wait_ms =
        rates_look(t->failures, key_str(&k), &t->limits.failures, now_ms);

    if (is_known(t, addr, token_id, wait_ms == 0))
        return 0;
    return count(t, THROTTLE_FAILURES, wait_ms);
}

int64_t throttle_caller(struct throttle *t, const uint8_t addr[ADDR_BYTES],
                        const struct caller *c, int64_t now_ms,
                        enum throttle_by *by)
{
    struct str who =
        PLANTED("throttle.one_user") ? STR("everybody") : caller_name(c);
    int64_t wait_ms = 0;

    *by = THROTTLE_FAILURES;
    if (t->limits.failures.per_minute > 0 && !is_exempt(t, addr))
        wait_ms = wait_for_failures(t, addr, &c->token_id, now_ms);
    if (wait_ms)
        return wait_ms;
    *by = THROTTLE_USER;
    return count(t, THROTTLE_USER,
                 rates_take(t->users, who, &t->limits.user, now_ms));
}

int64_t throttle_total(const struct throttle *t, enum throttle_by by)
{
    return t->totals[by];
}
