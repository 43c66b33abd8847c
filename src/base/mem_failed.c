#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void *mem_failed(size_t bytes)
{
    fprintf(stderr,
            "signalbox: no memory for %zu bytes: stopping. Accepted work is "
            "safe and goes on after a restart.\n",
            bytes);
    abort();
}
