/* Capacity doubles up to the limit, so n bytes cost at most n copies. If a
 * large realloc fails, writers see what they see at the limit: `over` is set
 * and the bytes so far stay. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { SMALLEST_BYTES = 64 };

void buf_init(struct buf *b, size_t limit)
{
    *b = (struct buf){.limit = limit};
}

void buf_fini(struct buf *b)
{
    free(b->p);
    *b = (struct buf){.limit = b->limit};
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->over = false;
}

static bool buf_grow(struct buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : SMALLEST_BYTES;
    char *p;

    while (cap < need && cap < b->limit)
        cap = cap > b->limit / 2 ? b->limit : cap * 2;
    if (cap > b->limit)
        cap = b->limit;
    if (cap <= MEM_SMALL_BYTES)
        p = mem_resize(b->p, 1, cap);
    else
        p = FAULT("buf.grow") ? NULL : realloc(b->p, cap);
    if (!p)
        return false;
    b->p = p;
    b->cap = cap;
    return true;
}

char *buf_reserve(struct buf *b, size_t n)
{
    assert(n > 0);
    if (n > b->limit - b->n || (n > b->cap - b->n && !buf_grow(b, b->n + n))) {
        b->over = true;
        return NULL;
    }
    return b->p + b->n;
}

void buf_commit(struct buf *b, size_t n)
{
    assert(n <= b->cap - b->n);
    b->n += n;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    char *to;

    if (n == 0)
        return;
    to = buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    b->n += n;
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    assert(n >= 0);
    if ((size_t)n < sizeof(small)) {
        buf_add(b, small, (size_t)n);
    } else {
        /* vsnprintf also writes a NUL, which does not count. */
        char *to = buf_reserve(b, (size_t)n + 1);

        if (to) {
            vsnprintf(to, (size_t)n + 1, fmt, again);
            b->n += (size_t)n;
        }
    }
    va_end(again);
}

void buf_add_i64(struct buf *b, int64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        digits[--at] = '-';
    buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_drop(struct buf *b, size_t n)
{
    assert(n <= b->n);
    b->n -= n;
    if (n && b->n)
        memmove(b->p, b->p + n, b->n);
}

void buf_shrink(struct buf *b)
{
    if (b->n == 0) {
        free(b->p);
        b->p = NULL;
        b->cap = 0;
    } else if (b->n < b->cap) {
        char *p = realloc(b->p, b->n);

        if (p) {
            b->p = p;
            b->cap = b->n;
        }
    }
}
