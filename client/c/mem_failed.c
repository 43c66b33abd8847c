/* A library does not stop the program that links it: base/mem.h. */
#include "base/mem.h"

void *mem_failed(size_t bytes)
{
    (void)bytes;
    return NULL;
}
