/* The fault point fails only for a test that names it: in the server a failed
 * allocation ends the process, so a sweep over all faults must skip it. Tests
 * of the libraries sweep it by name. */
#include "base/mem.h"

#include <stdlib.h>

#include "base/fault.h"

void *mem_new(size_t bytes)
{
    return mem_array(1, bytes);
}

void *mem_array(size_t n, size_t size)
{
    void *p = FAULT_NAMED("mem") ? NULL : calloc(n ? n : 1, size ? size : 1);

    return p ? p : mem_failed(n * size);
}

void *mem_resize(void *p, size_t n, size_t size)
{
    size_t bytes;
    void *moved = NULL;

    if (!__builtin_mul_overflow(n, size, &bytes) && !FAULT_NAMED("mem"))
        moved = realloc(p, bytes ? bytes : 1);
    return moved ? moved : mem_failed(n * size);
}

char *mem_copy(const void *p, size_t n)
{
    char *copy = n < SIZE_MAX ? mem_new(n + 1) : NULL;

    if (copy && n)
        memcpy(copy, p, n);
    return copy;
}
