#ifndef BASE_BUF_H
#define BASE_BUF_H

/* buf: bytes that grow up to a limit given at the start.
 *
 * An addition that does not fit is dropped as a whole and sets `over`; writers
 * continue, and the caller checks `over` once, at the end. Failing to allocate
 * more than MEM_SMALL_BYTES is treated the same. Owns its bytes. Threads: one
 * at a time. */

#include "base/str.h"

struct buf {
    char *p;
    size_t n;     /* bytes used */
    size_t cap;   /* bytes allocated */
    size_t limit; /* maximum of n */
    bool over;    /* something did not fit */
};

void buf_init(struct buf *b, size_t limit);
void buf_fini(struct buf *b);

/* Make it empty and reset `over`, but keep the memory. */
void buf_clear(struct buf *b);

/* Make room for n > 0 more bytes and return a pointer to it, or set `over` and
 * return NULL. buf_commit says how many bytes were really written. */
MUST_USE char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

void buf_add(struct buf *b, const void *p, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_add_i64(struct buf *b, int64_t v);

/* Remove n bytes from the front. */
void buf_drop(struct buf *b, size_t n);

/* Free the unused capacity. */
void buf_shrink(struct buf *b);

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->n};
}

static inline void buf_add_str(struct buf *b, struct str s)
{
    buf_add(b, s.p, s.n);
}

static inline void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

#endif
