#ifndef BASE_RATE_H
#define BASE_RATE_H

/* rate: how often somebody may do something, for many somebodies.
 *
 * Each key has a bucket that fills steadily and is taken from; what is in it
 * at the most is the burst. Buckets are kept in a table of fixed size: one
 * that is full again says nothing and is forgotten, and when all of them say
 * something the one that is nearest to being full makes room. So a rush of
 * strangers costs a table and never memory; who is over the limit is not
 * forgotten before others. Time is handed in. Owns its table. Threads: one. */

#include "base/str.h"

struct rates;

struct rate_limit {
    int64_t per_s; /* zero: no limit */
    int64_t burst; /* at least 1 */
};

MUST_USE struct rates *rates_new(size_t max_keys, const uint64_t seed[2]);
void rates_free(struct rates *r);

/* Take one. Zero: taken. Else nothing was, and it may be tried again after so
 * many milliseconds. */
int64_t rates_take(struct rates *r, struct str key,
                   const struct rate_limit *limit, int64_t now_ms);

size_t rates_n_keys(const struct rates *r);

#endif
