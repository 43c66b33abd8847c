#ifndef BASE_BUF_H
#define BASE_BUF_H

/* buf: bytes that grow up to a limit given when the buf is made.
 *
 * What does not fit is not added at all and sets `over`; writers go on and
 * the caller looks at `over` once, at the end. Running out of memory counts
 * the same. Owns its bytes. Threads: one at a time. */

#include "base/str.h"

struct buf {
    char *p;
    size_t n;     /* bytes in it */
    size_t cap;   /* bytes allocated */
    size_t limit; /* never more than this many bytes */
    bool over;    /* something did not fit */
};

void buf_init(struct buf *b, size_t limit);
void buf_fini(struct buf *b);

/* Empty, with `over` forgotten; the memory is kept for the next use. */
void buf_clear(struct buf *b);

/* Make room for n > 0 more bytes and return where they go, or NULL (and
 * `over`). The bytes count once buf_commit says how many were really written.
 */
MUST_USE char *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

void buf_add(struct buf *b, const void *p, size_t n);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_add_i64(struct buf *b, int64_t v);

/* Drop n bytes from the front. */
void buf_drop(struct buf *b, size_t n);

/* Give memory beyond what is in it back to the system. */
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
