#ifndef BASE_PAGES_H
#define BASE_PAGES_H

/* pages: large zeroed memory that is read from one end to the other.
 *
 * It asks the system for huge pages: with small ones a walk over tens of
 * megabytes spends half its time on address translation. Untouched pages cost
 * nothing. Threads: any; no state. */

#include <stddef.h>

/* Aligned to at least 64 bytes. NULL if the allocation fails. */
void *pages_new(size_t bytes);
void pages_free(void *p, size_t bytes); /* p may be NULL */

#endif
