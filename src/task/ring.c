/* A ring of blocks. Rejected: one circular buffer. With blocks an idle task
 * uses 256 bytes, a busy one grows to its limit without copying, an event is
 * always contiguous, and dropping the oldest events frees a block. The first
 * block is small and the following ones double, so ten thousand tasks with only
 * a status cost little.
 *
 * A position is an offset in bytes since the beginning, not a pointer, so a
 * reader that falls behind can detect it. */
#include "task/internal.h"

#include <stdlib.h>

struct block {
    struct list_node node;
    uint64_t from; /* the offset of its first byte */
    uint32_t used, cap;
    char bytes[];
};

/* Precedes the agent and the text of an event. */
struct head {
    int64_t number, at_ms;
    uint32_t text_bytes;
    uint8_t kind, status, agent_bytes;
};

enum { BLOCK_FIRST = 256, BLOCK_MOST = 16 * 1024 };

void ring_init(struct ring *r)
{
    list_init(&r->blocks);
    r->end = 0;
    r->bytes = 0;
}

static struct block *ring_first_block(const struct ring *r)
{
    struct list_node *n = list_first(&r->blocks);

    return n ? LIST_OF(n, struct block, node) : NULL;
}

static struct block *ring_last_block(const struct ring *r)
{
    return list_is_empty(&r->blocks)
               ? NULL
               : LIST_OF(r->blocks.head.prev, struct block, node);
}

static void ring_drop_block(struct ring *r, size_t *total)
{
    struct block *b = ring_first_block(r);

    list_remove(&b->node);
    r->bytes -= b->cap;
    *total -= b->cap;
    free(b);
}

void ring_fini(struct ring *r, size_t *total)
{
    while (!list_is_empty(&r->blocks))
        ring_drop_block(r, total);
}

static struct block *ring_add_block(struct ring *r, size_t need, size_t limit,
                                    size_t *total)
{
    const struct block *last = ring_last_block(r);
    size_t cap = last ? (size_t)last->cap * 2 : BLOCK_FIRST;
    struct block *b;

    if (cap > BLOCK_MOST)
        cap = BLOCK_MOST;
    if (cap > limit / 4)
        cap = limit / 4;
    if (cap < need)
        cap = need;
    while (r->bytes + cap > limit && !list_is_empty(&r->blocks))
        ring_drop_block(r, total);
    b = mem_resize(NULL, 1, sizeof(*b) + cap);
    *b = (struct block){.from = r->end, .cap = (uint32_t)cap};
    list_append(&r->blocks, &b->node);
    r->bytes += cap;
    *total += cap;
    return b;
}

static char *ring_append_bytes(char *to, struct str s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    return to + s.n;
}

bool ring_add(struct ring *r, const struct ring_event *ev, size_t *total)
{
    struct head h = {.number = ev->number,
                     .at_ms = ev->at_ms,
                     .text_bytes = (uint32_t)ev->text.n,
                     .kind = (uint8_t)ev->kind,
                     .status = (uint8_t)ev->status,
                     .agent_bytes = (uint8_t)ev->agent.n};
    size_t limit =
        *total > TASK_RINGS_BYTES ? TASK_RING_BYTES_MIN : TASK_RING_BYTES;
    size_t need = sizeof(h) + ev->agent.n + ev->text.n;
    struct block *b;
    char *p;

    if (need > limit)
        return false;
    /* The limit may have fallen since the ring grew. */
    while (r->bytes > limit)
        ring_drop_block(r, total);
    b = ring_last_block(r);
    if (!b || b->cap - b->used < need)
        b = ring_add_block(r, need, limit, total);
    p = ring_append_bytes(b->bytes + b->used,
                          (struct str){(const char *)&h, sizeof(h)});
    p = ring_append_bytes(p, ev->agent);
    ring_append_bytes(p, ev->text);
    b->used += (uint32_t)need;
    r->end += need;
    return true;
}

uint64_t ring_start(const struct ring *r)
{
    const struct block *b = ring_first_block(r);

    return b ? b->from : r->end;
}

/* From the end, where readers usually are. */
static const struct block *ring_block_at(const struct ring *r, uint64_t at)
{
    const struct block *b = ring_last_block(r);

    while (b && b->from > at)
        b = LIST_OF(b->node.prev, struct block, node);
    return b;
}

bool ring_read(const struct ring *r, uint64_t *at, struct ring_event *out)
{
    const struct block *b;
    struct head h;
    const char *p;

    if (*at < ring_start(r))
        *at = ring_start(r);
    if (*at >= r->end)
        return false;
    b = ring_block_at(r, *at);
    p = b->bytes + (*at - b->from);
    memcpy(&h, p, sizeof(h));
    *out = (struct ring_event){
        .number = h.number,
        .at_ms = h.at_ms,
        .kind = (enum task_event_kind)h.kind,
        .status = (enum task_status)h.status,
        .agent = {p + sizeof(h), h.agent_bytes},
        .text = {p + sizeof(h) + h.agent_bytes, h.text_bytes}};
    *at += sizeof(h) + h.agent_bytes + h.text_bytes;
    return true;
}

bool ring_check(const struct ring *r)
{
    uint64_t at = ring_start(r);
    int64_t number = 0;
    struct ring_event ev;
    size_t bytes = 0;

    for (struct list_node *n = list_first(&r->blocks); n;
         n = list_next(&r->blocks, n)) {
        const struct block *b = LIST_OF(n, struct block, node);

        if (b->from != at || b->used > b->cap)
            return false;
        at += b->used;
        bytes += b->cap;
    }
    if (at != r->end || bytes != r->bytes || bytes > TASK_RING_BYTES)
        return false;
    for (at = ring_start(r); ring_read(r, &at, &ev); number = ev.number)
        if (ev.number <= number)
            return false;
    return at == r->end;
}
