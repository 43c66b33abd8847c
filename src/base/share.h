#ifndef BASE_SHARE_H
#define BASE_SHARE_H

/* share: how much each user, agent or address holds of what all have in common.
 *
 * A share is found by its key, and exists from its first use to its last: so
 * there are never more shares than uses, and nothing has to be cleaned up. What
 * is a use, how many one may have, and what else is counted in the struct that
 * begins with the share, is up to the caller. Threads: one at a time. */

#include "base/map.h"

struct share {
    size_t n; /* uses */
    struct str key;
};

struct shares {
    struct map by_key;
    size_t share_bytes;
};

/* share_bytes: size of the struct that begins with a struct share. limit:
 * shares at most. */
void shares_init(struct shares *all, size_t share_bytes, size_t limit,
                 const uint64_t seed[2]);
void shares_fini(struct shares *all); /* frees those that are left */

/* NULL: that key has no share now. */
void *share_find(const struct shares *all, struct str key);

/* One more use; who has the share may also count n up. A share with one use is
 * new, and zeroed behind its struct
 * share. NULL: the map cannot grow (map_put). */
MUST_USE void *share_take(struct shares *all, struct str key);

/* One use less; the last one frees the share. NULL is fine. */
void share_give(struct shares *all, void *share);

/* What is free for one who may not use the reserve, one part in
 * `reserve_part` of all; zero: there is no reserve. */
size_t share_free(size_t most, size_t used, size_t reserve_part);

/* Whether one may hold that much: at most a multiple of what is free (a
 * "dynamic threshold", as switches use it to share packet memory). So the more
 * is taken, the less each may hold, which leaves capacity for the next: with k
 * shares that are as large as they may be, 1 / (1 + factor * k) stays free. */
bool share_is_fair(size_t held, size_t factor, size_t free);

/* For tests: whether there are n uses in all. */
bool shares_check(const struct shares *all, size_t n);

#endif
