#ifndef BASE_ARENA_H
#define BASE_ARENA_H

/* arena: memory that is freed all at once.
 *
 * Everything that belongs to a message is allocated from its arena and freed
 * with the message; nothing is freed alone. Blocks grow with use, so a small
 * message costs one malloc. Threads: one at a time. */

#include "base/str.h"

struct arena {
    struct arena_block *head;
    char *next, *end; /* free bytes of the current block */
    size_t used;      /* bytes handed out, padding included */
    size_t cap;       /* limit on `used` */
};

void arena_init(struct arena *a, size_t cap);
void arena_fini(struct arena *a);

/* The same, but the first n bytes come from the caller, aligned for any type,
 * so a small arena needs no malloc. */
void arena_init_in(struct arena *a, size_t cap, void *bytes, size_t n);

/* Forget everything but keep one block, so that a loop need not allocate
 * again. */
void arena_reset(struct arena *a);

/* Zeroed and aligned for any type; NULL once the cap is reached, or if there is
 * no memory for an arena of more than MEM_SMALL_BYTES. */
MUST_USE void *arena_alloc(struct arena *a, size_t size);

/* Whether that many more bytes are within the cap: if arena_alloc then returns
 * NULL, there is no memory. */
bool arena_fits(const struct arena *a, size_t size);

/* n * size bytes, or NULL if that overflows. */
MUST_USE void *arena_array(struct arena *a, size_t n, size_t size);

/* A copy of s with a NUL at the end, or NULL once the cap is reached. */
MUST_USE char *arena_strdup(struct arena *a, struct str s);

/* Copy a str; `to` may point to the source itself: arena_keep(a, *s, s). An
 * empty str takes no memory. False, with *to empty, once the cap is reached. */
MUST_USE bool arena_keep(struct arena *a, struct str from, struct str *to);

#endif
