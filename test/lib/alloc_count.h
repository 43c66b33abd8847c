#ifndef ALLOC_COUNT_H
#define ALLOC_COUNT_H

/* alloc_count: how often this program has asked for memory, whichever part of
 * it did. alloc_count.c is linked into the programs that count. */

extern volatile long alloc_n; /* compilers think malloc changes nothing */

#endif
