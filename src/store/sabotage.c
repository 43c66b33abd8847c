/* How tests make the store worse than it is. Like the plan of faults this has
 * a place of its own: handing it through store_open would put it into the
 * contract. Not in the program that is shipped. */
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
