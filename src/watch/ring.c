/* One allocation for each entry instead of one ring of bytes: no entry lies
 * across an end, and an idle server holds only its entries. */
#include "watch/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/record.h"

static void feed_ring_drop_first(struct ring *r)
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
        feed_ring_drop_first(r);
}

struct held *feed_hold(const struct feed_entry *e)
{
    size_t bytes = sizeof(struct held) + feed_entry_bytes(e);
    struct held *h = mem_new(bytes);
    char *at = h->text;

    h->bytes = bytes;
    h->e = *e;
    record_pack(&h->e, &feed_table, 1, &at);
    return h;
}

void feed_ring_add(struct ring *r, const struct feed_entry *e)
{
    struct held *h = feed_hold(e);

    while (r->n == FEED_RING_ENTRIES ||
           (r->n && r->bytes + h->bytes > FEED_RING_BYTES))
        feed_ring_drop_first(r);
    r->slots[(r->first + r->n) % FEED_RING_ENTRIES] = h;
    r->n++;
    r->bytes += h->bytes;
}

static bool condition_holds(const struct condition *c,
                            const struct feed_entry *e)
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

static bool conditions_hold(const struct condition *c,
                            const struct feed_entry *e)
{
    for (; c; c = c->next)
        if (!condition_holds(c, e))
            return false;
    return true;
}

void feed_ring_trim(struct ring *r, const struct condition *conditions)
{
    while (r->n && conditions_hold(conditions, feed_ring_at(r, 0)))
        feed_ring_drop_first(r);
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
