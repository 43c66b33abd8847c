/* Sizes below two huge pages use the allocator: there is little to gain, and
 * sanitizers then watch the edges. A larger mapping is made one huge page too
 * long and trimmed to begin at a huge page boundary. */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"

enum { ALIGN = 64, HUGE = 2 * 1024 * 1024, LARGE = 2 * HUGE, PAGE = 4096 };

static size_t pages_rounded(size_t bytes)
{
    size_t to = bytes < LARGE ? ALIGN : PAGE;

    return (bytes + to - 1) / to * to;
}

static void *pages_map(size_t bytes)
{
    char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before, after;

    if (p == MAP_FAILED)
        return NULL;
    before = (HUGE - (uintptr_t)p % HUGE) % HUGE;
    after = HUGE - before;
    if (before > 0)
        munmap(p, before);
    if (after > 0)
        munmap(p + before + bytes, after);
    /* If the system refuses, the pages stay small. */
    madvise(p + before, bytes, MADV_HUGEPAGE);
    return p + before;
}

void *pages_new(size_t bytes)
{
    size_t n = pages_rounded(bytes);
    void *p;

    if (n < bytes || n > SIZE_MAX - HUGE || FAULT("pages.new"))
        return NULL;
    if (n >= LARGE)
        return pages_map(n);
    p = aligned_alloc(ALIGN, n ? n : ALIGN);
    if (p)
        memset(p, 0, n);
    return p;
}

void pages_free(void *p, size_t bytes)
{
    if (p && pages_rounded(bytes) >= LARGE)
        munmap(p, pages_rounded(bytes));
    else
        free(p);
}
