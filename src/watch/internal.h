#ifndef WATCH_INTERNAL_H
#define WATCH_INTERNAL_H

/* What the files of watch share: the ring of the newest entries. */

#include "watch/watch.h"

/* An entry with its strings behind it, in one piece. */
struct held {
    struct feed_entry e;
    size_t bytes; /* of the whole piece */
    char text[];
};

/* A copy; NULL: memory is gone. */
struct held *feed_hold(const struct feed_entry *e);

/* Every entry whose seq is `from` or more is in it, in order. Dropping from
 * the front is therefore always allowed, and adding always at the end. */
struct ring {
    struct held *slots[FEED_RING_ENTRIES];
    size_t first, n;
    size_t bytes;
    int64_t from;
};

void feed_ring_fini(struct ring *r);

/* Copy e, whose seq is above all others. The oldest make room for it; when
 * there is no memory even so, all of them and e go, and only `from` moves. */
void feed_ring_add(struct ring *r, const struct feed_entry *e);

/* Drop from the front as long as all of these hold. */
void feed_ring_trim(struct ring *r, const struct condition *conditions);

/* Which one is the first with a seq above `after`; r->n when none is. */
size_t feed_ring_after(const struct ring *r, int64_t after);

static inline const struct feed_entry *feed_ring_at(const struct ring *r,
                                                    size_t i)
{
    return &r->slots[(r->first + i) % FEED_RING_ENTRIES]->e;
}

#endif
