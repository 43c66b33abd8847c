#ifndef BASE_RATE_H
#define BASE_RATE_H

/* rate: limits how often each of many callers may do something.
 *
 * Each key has a bucket that fills steadily; its capacity is the burst. The
 * table has a fixed size: a bucket that is full again is forgotten, and a new
 * key that finds only other buckets evicts the fullest one. So a flood of
 * unknown keys costs a table and never memory, and a caller over its limit is
 * the last to be forgotten.
 *
 * Keys are known by a keyed 64-bit hash. Two keys with the same hash share a
 * bucket, but without the seed an attacker cannot produce such keys.
 *
 * The time is an argument, in milliseconds of any clock. While it stands still
 * nothing is added; after it went back it counts from there. Owns its table.
 * Threads: one. */

#include "base/str.h"

struct rates;

/* All keys of a table have the same limit; it may change from call to call. A
 * value that would overflow counts as unlimited. */
struct rate_limit {
    int64_t per_minute; /* added per minute; zero or less: no limit */
    int64_t burst;      /* at least 1 */
};

/* For max_keys, rounded up. Never NULL. */
MUST_USE struct rates *rates_new(size_t max_keys, const uint64_t seed[2]);
void rates_free(struct rates *r);

/* Take one. Zero: taken. Otherwise nothing was taken; retry after that many
 * milliseconds. */
MUST_USE int64_t rates_take(struct rates *r, struct str key,
                            const struct rate_limit *limit, int64_t now_ms);

/* Return the one taken last; it was not used. */
void rates_give_back(struct rates *r, struct str key);

/* The same for n at once; more than the burst counts as the burst. */
MUST_USE int64_t rates_take_many(struct rates *r, struct str key, int64_t n,
                                 const struct rate_limit *limit,
                                 int64_t now_ms);
void rates_give_back_many(struct rates *r, struct str key, int64_t n);

/* The number of buckets kept; some may be full again by now. */
size_t rates_n_keys(const struct rates *r);

#endif
