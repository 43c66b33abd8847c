#ifndef BASE_SHARE_H
#define BASE_SHARE_H

/* share: how much of a common capacity each user, agent or address holds.
 *
 * A share is found by its key, and exists from its first use to its last: so
 * there are never more shares than uses, and nothing has to be cleaned up. The
 * caller decides what a use is and how many uses a share may have. The struct
 * of a caller begins with a struct share and may count more. Threads: one at a
 * time. */

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

/* One more use; a caller that has the share already may count n up itself. A
 * share with one use is new, and the rest of its struct is zeroed. NULL: the
 * map cannot grow (map_put). */
MUST_USE void *share_take(struct shares *all, struct str key);

/* One use less; the last one frees the share. NULL is fine. */
void share_give(struct shares *all, void *share);

/* The free part of a capacity, without the reserve: one part in `reserve_part`;
 * zero: there is none. */
size_t share_free(size_t most, size_t used, size_t reserve_part);

/* Whether one may hold that much: at most a multiple of what is free (a
 * "dynamic threshold", as switches use it to share packet memory). So the more
 * is taken, the less each may hold, which leaves capacity for the next: with k
 * shares that are as large as they may be, 1 / (1 + factor * k) stays free. */
bool share_is_fair(size_t held, size_t factor, size_t free);

/* For tests: whether there are n uses in all. */
bool shares_check(const struct shares *all, size_t n);

#endif
