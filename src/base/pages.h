#ifndef BASE_PAGES_H
#define BASE_PAGES_H

/* pages: large zeroed memory for what is read from one end to the other.
 *
 * Where the system has huge pages to give, it is asked for them: a walk over
 * tens of megabytes in small ones waits for their addresses half of the time.
 * What was never touched costs nothing. Threads: any; nothing here keeps
 * state. */

#include <stddef.h>

/* Aligned to 64 bytes at least; NULL: memory is gone. */
void *pages_new(size_t bytes);
void pages_free(void *p, size_t bytes); /* p may be NULL */

#endif
