/* The promises of store.h, kept by SQLite with its threads. */
#include "test/lib/store_conform.h"

static void stage_opts(struct store_opts *opts)
{
    (void)opts;
}
