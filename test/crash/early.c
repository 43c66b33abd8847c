/* signalbox_early: the server with one fault, that it reports a batch before
 * it is committed, and some milliseconds before, so that a kill can come in
 * between. Tests that promise to notice such a thing are run on it. */
#include "store/internal.h"

__attribute__((constructor)) static void arm(void)
{
    store_sabotage(&(struct store_sabotage){.acks_early = true, .early_ms = 3});
}
