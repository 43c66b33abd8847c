/* One allocation for each entry instead of one ring of bytes: entries then
 * never lie across an end, and an idle server holds only what it has. */
#include "watch/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

static void drop_first(struct ring *r)
{
    struct held *h = r->slots[r->first];

    r->slots[r->first] = NULL;
    r->first = (r->first + 1) % FEED_RING_ENTRIES;
    r->n--;
    r->bytes -= h->bytes;
    r->from = h->e.seq + 1;
    free(h);
}

void feed_ring_fini(struct ring *r)
{
    while (r->n)
        drop_first(r);
}

struct held *feed_hold(const struct feed_entry *e)
{
    size_t bytes = sizeof(struct held) + feed_entry_bytes(e);
    struct held *h = FAULT("watch.ring") ? NULL : malloc(bytes);
    char *at;

    if (!h)
        return NULL;
    at = h->text;
    h->bytes = bytes;
    h->e = (struct feed_entry){
        .seq = e->seq,
        .at_ms = e->at_ms,
        .type = str_pack(&at, e->type),
        .task_id = str_pack(&at, e->task_id),
        .conversation_id = str_pack(&at, e->conversation_id),
        .agent = str_pack(&at, e->agent),
        .requester = str_pack(&at, e->requester),
        .root_user = str_pack(&at, e->root_user),
        .data = str_pack(&at, e->data),
        .is_for_seers = e->is_for_seers,
    };
    return h;
}

void feed_ring_add(struct ring *r, const struct feed_entry *e)
{
    struct held *h = feed_hold(e);

    if (!h) {
        feed_ring_fini(r);
        r->from = e->seq + 1;
        return;
    }
    while (r->n == FEED_RING_ENTRIES ||
           (r->n && r->bytes + h->bytes > FEED_RING_BYTES))
        drop_first(r);
    r->slots[(r->first + r->n) % FEED_RING_ENTRIES] = h;
    r->n++;
    r->bytes += h->bytes;
}

static bool holds(const struct condition *c, const struct feed_entry *e)
{
    int64_t field;

    if (c->n_columns != 1 || c->value.type != VALUE_INT)
        return false;
    if (c->columns[0] == FEED_SEQ)
        field = e->seq;
    else if (c->columns[0] == FEED_AT_MS)
        field = e->at_ms;
    else
        return false;
    return c->compare == IS_LESS      ? field < c->value.i
           : c->compare == IS_AT_MOST ? field <= c->value.i
                                      : false;
}

static bool all_hold(const struct condition *c, const struct feed_entry *e)
{
    for (; c; c = c->next)
        if (!holds(c, e))
            return false;
    return true;
}

void feed_ring_trim(struct ring *r, const struct condition *conditions)
{
    while (r->n && all_hold(conditions, feed_ring_at(r, 0)))
        drop_first(r);
}

size_t feed_ring_after(const struct ring *r, int64_t after)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (feed_ring_at(r, middle)->seq <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
