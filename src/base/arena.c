/* A chain of blocks, each twice as large as the last up to a maximum; to
 * allocate is to move a pointer. Each allocation is zeroed, not each block, so
 * the block that arena_reset keeps need not be wiped. Under AddressSanitizer a
 * poisoned gap follows every allocation. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_GAPS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_GAPS 1
#endif
#endif

#ifdef WITH_GAPS
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 16 };
#define FORBID(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ALLOW(p, n)  ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
enum { GAP_BYTES = 0 };
#define FORBID(p, n) ((void)(p), (void)(n))
#define ALLOW(p, n)  ((void)(p), (void)(n))
#endif

enum { FIRST_BLOCK_BYTES = 1024, LARGEST_BLOCK_BYTES = 256 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *a, size_t cap)
{
    *a = (struct arena){.cap = cap};
}

void arena_init_in(struct arena *a, size_t cap, void *bytes, size_t n)
{
    *a = (struct arena){.next = bytes, .end = (char *)bytes + n, .cap = cap};
}

static void arena_free_block(struct arena_block *b)
{
    ALLOW(b->bytes, b->size);
    free(b);
}

void arena_fini(struct arena *a)
{
    while (a->head) {
        struct arena_block *b = a->head;

        a->head = b->next;
        arena_free_block(b);
    }
    arena_init(a, a->cap);
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->head;

    if (!keep)
        return;
    while (keep->next) {
        struct arena_block *b = keep->next;

        keep->next = b->next;
        arena_free_block(b);
    }
    a->next = keep->bytes;
    a->end = keep->bytes + keep->size;
    a->used = 0;
    FORBID(keep->bytes, keep->size);
}

static bool arena_add_block(struct arena *a, size_t need)
{
    size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK_BYTES;
    struct arena_block *b;

    if (size > LARGEST_BLOCK_BYTES)
        size = LARGEST_BLOCK_BYTES;
    if (size < need)
        size = need;
    /* An arena that grows large holds a body, a page of rows or the like; its
     * failure is an error. */
    if (a->used + sizeof(*b) + size <= MEM_SMALL_BYTES)
        b = mem_resize(NULL, 1, sizeof(*b) + size);
    else
        b = FAULT("arena.block") ? NULL : malloc(sizeof(*b) + size);
    if (!b)
        return false;
    b->next = a->head;
    b->size = size;
    a->head = b;
    a->next = b->bytes;
    a->end = b->bytes + size;
    FORBID(b->bytes, b->size);
    return true;
}

/* The bytes that an allocation takes. An empty one takes some too, since NULL
 * would mean failure. */
static size_t arena_whole(size_t size)
{
    size_t mask = alignof(max_align_t) - 1;

    if (size > SIZE_MAX - mask - GAP_BYTES)
        return SIZE_MAX;
    return ((size ? size : 1) + GAP_BYTES + mask) & ~mask;
}

bool arena_fits(const struct arena *a, size_t size)
{
    size_t whole = arena_whole(size);

    return whole < SIZE_MAX && whole <= a->cap - a->used;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t whole = arena_whole(size);
    void *p;

    if (!arena_fits(a, size))
        return NULL;
    if (whole > (size_t)(a->end - a->next) && !arena_add_block(a, whole))
        return NULL;
    p = a->next;
    a->next += whole;
    a->used += whole;
    ALLOW(p, size);
    memset(p, 0, size);
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t all;

    if (__builtin_mul_overflow(n, size, &all))
        return NULL;
    return arena_alloc(a, all);
}

char *arena_strdup(struct arena *a, struct str s)
{
    char *copy = s.n < SIZE_MAX ? arena_alloc(a, s.n + 1) : NULL;

    if (copy && s.n)
        memcpy(copy, s.p, s.n);
    return copy;
}

bool arena_keep(struct arena *a, struct str from, struct str *to)
{
    const char *copy = from.n ? arena_strdup(a, from) : "";

    *to = (struct str){copy, copy ? from.n : 0};
    return copy != NULL;
}
