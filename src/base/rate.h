#ifndef BASE_RATE_H
#define BASE_RATE_H

/* rate: how often somebody may do something, for many somebodies.
 *
 * Each key has a bucket that fills steadily and is taken from; what is in it
 * at the most is the burst. Buckets are kept in a table of fixed size: one
 * that is full again says nothing and is forgotten, and where a new key finds
 * only others that say something, the one that is nearest to being full makes
 * room. So a rush of strangers costs a table and never memory, and who is over
 * the limit is not forgotten before others.
 *
 * Keys are known by a keyed hash of 64 bits: two that share one would share a
 * bucket, which nobody can bring about who does not know the seed.
 *
 * Time is handed in, in milliseconds of any clock. While it stands still
 * nothing comes in; after it went back it counts from there. Owns its table.
 * Threads: one. */

#include "base/str.h"

struct rates;

/* All keys of a table have the same one; it may change from call to call.
 * What would overflow counts as endless. */
struct rate_limit {
    int64_t per_minute; /* what comes in; zero or less: no limit */
    int64_t burst;      /* at least 1 */
};

/* Room for max_keys, rounded up. NULL: memory is gone. */
MUST_USE struct rates *rates_new(size_t max_keys, const uint64_t seed[2]);
void rates_free(struct rates *r);

/* Take one. Zero: taken. Else nothing was, and it may be tried again after so
 * many milliseconds. */
MUST_USE int64_t rates_take(struct rates *r, struct str key,
                            const struct rate_limit *limit, int64_t now_ms);

/* Buckets that are kept; some may be full again since. */
/* The last one was not made use of after all. */
void rates_give_back(struct rates *r, struct str key);

size_t rates_n_keys(const struct rates *r);

#endif
