#ifndef WATCH_INTERNAL_H
#define WATCH_INTERNAL_H

/* The ring of the newest entries, which the files of watch share. */

#include "watch/watch.h"

/* An entry with its strings behind it, in one allocation. */
struct held {
    struct feed_entry e;
    size_t bytes; /* of the whole allocation */
    char text[];
};

/* A copy. The caller owns it and calls free(). */
struct held *feed_hold(const struct feed_entry *e);

/* Every entry whose seq is `from` or higher is in it, in order. So entries may
 * always be dropped from the front, and are only added at the end. */
struct ring {
    struct held *slots[FEED_RING_ENTRIES];
    size_t first, n;
    size_t bytes;
    int64_t from;
};

void feed_ring_fini(struct ring *r);

/* Copy e, whose seq is above all others. The oldest entries make room for
 * it. */
void feed_ring_add(struct ring *r, const struct feed_entry *e);

/* Drop entries from the front as long as all conditions hold. */
void feed_ring_trim(struct ring *r, const struct condition *conditions);

/* The index of the first entry with a seq above `after`; r->n: there is
 * none. */
size_t feed_ring_after(const struct ring *r, int64_t after);

static inline const struct feed_entry *feed_ring_at(const struct ring *r,
                                                    size_t i)
{
    return &r->slots[(r->first + i) % FEED_RING_ENTRIES]->e;
}

#endif
