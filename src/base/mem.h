#ifndef BASE_MEM_H
#define BASE_MEM_H

/* mem: allocations that do not fail.
 *
 * A size that is fixed, or that a limit keeps small, is allocated here. When
 * the system has no memory for it, mem_failed decides: the server stops, since
 * it loses nothing when it stops, and recovery is tested better than any path
 * that runs without memory. A library never stops the program that links it:
 * it has its own mem_failed, which returns NULL, and arena, buf and map treat
 * that as a cap that is reached.
 *
 * A size that comes from outside (a body, a file, an index) is not allocated
 * here: it has a limit and its failure is an error.
 *
 * Free the memory with free(). Threads: any. */

#include "base/str.h"

enum { MEM_SMALL_BYTES = 1024 * 1024 }; /* above it, a failure is an error */

/* Zeroed bytes. */
MUST_USE void *mem_new(size_t bytes);

/* n * size zeroed bytes. */
MUST_USE void *mem_array(size_t n, size_t size);

/* Resize p, which may be NULL, to n * size bytes. New bytes are not zeroed. */
MUST_USE void *mem_resize(void *p, size_t n, size_t size);

/* A copy of n bytes with a NUL behind it. */
MUST_USE char *mem_copy(const void *p, size_t n);

/* Called without memory for `bytes` more. Returns NULL or does not return.
 * Stands in a file of its own, so that a library can define another. */
void *mem_failed(size_t bytes);

#endif
