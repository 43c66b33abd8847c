#ifndef BASE_ARENA_H
#define BASE_ARENA_H

/* arena: memory with one death.
 *
 * Everything belonging to a message is allocated from its arena and goes when
 * the message goes; nothing in it is freed alone. Blocks grow with use, so a
 * small message costs one malloc. Threads: one at a time. */

#include "base/str.h"

struct arena {
    struct arena_block *head;
    char *next, *end; /* free bytes of the current block */
    size_t used;      /* bytes handed out, padding included */
    size_t cap;       /* refuses to hand out more than this */
};

void arena_init(struct arena *a, size_t cap);
void arena_fini(struct arena *a);

/* The same, and the first n bytes that it hands out are the caller's, aligned
 * for any type: what is small needs no malloc then. */
void arena_init_in(struct arena *a, size_t cap, void *bytes, size_t n);

/* Forget everything but keep one block, so that a loop need not allocate. */
void arena_reset(struct arena *a);

/* Zeroed and aligned for any type; NULL once the cap is reached. */
MUST_USE void *arena_alloc(struct arena *a, size_t size);

/* n * size, without the overflow. */
MUST_USE void *arena_array(struct arena *a, size_t n, size_t size);

/* A copy of s with a NUL behind it, or NULL once the cap is reached. */
MUST_USE char *arena_strdup(struct arena *a, struct str s);

/* The same as a str, which may be the one that is copied: arena_keep(a, *s, s).
 * An empty one takes no memory. False, and *to is empty, once the cap is
 * reached. */
MUST_USE bool arena_keep(struct arena *a, struct str from, struct str *to);

#endif
