#include "test/lib/alloc_count.h"

#include <stddef.h>
#include <stdlib.h>

volatile long alloc_n;

/* The sanitizers have an allocator of their own, and tell anyone who asks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void __sanitizer_malloc_hook(const volatile void *p, size_t n);
void __sanitizer_malloc_hook(const volatile void *p, size_t n)
{
    (void)p;
    (void)n;
    alloc_n++;
}
#else
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    alloc_n++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    alloc_n++;
    return __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
    alloc_n++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    alloc_n++;
    return __libc_memalign(align, n);
}
#endif
