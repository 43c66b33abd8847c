/* Planted mistakes for tests. Global like the fault plan: a parameter of
 * store_open would make them part of the contract. Not in release builds. */
#include "store/internal.h"

#ifdef WITH_FAULTS
static struct store_sabotage now;

void store_sabotage(const struct store_sabotage *how)
{
    now = how ? *how : (struct store_sabotage){0};
}

struct store_sabotage store_sabotage_get(void)
{
    return now;
}
#else
typedef int sabotage_is_off;
#endif
