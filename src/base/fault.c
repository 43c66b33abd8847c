#include "base/fault.h"

#ifdef WITH_FAULTS
#include <stddef.h>
#include <string.h>

static const char *armed_name;
static long countdown;
static const char *fired_name;

void fault_arm_at(const char *where, long nth)
{
    armed_name = where;
    countdown = nth;
    fired_name = NULL;
}

void fault_arm(long nth)
{
    fault_arm_at(NULL, nth);
}

bool fault_fired(void)
{
    return fired_name != NULL;
}

const char *fault_name(void)
{
    return fired_name;
}

bool fault_hit(const char *where)
{
    if (countdown == 0 || (armed_name && strcmp(armed_name, where) != 0))
        return false;
    if (--countdown > 0)
        return false;
    fired_name = where;
    return true;
}

bool fault_hit_named(const char *where)
{
    return armed_name && fault_hit(where);
}

bool fault_is_planted(const char *where)
{
    if (countdown == 0 || !armed_name || strcmp(armed_name, where) != 0)
        return false;
    fired_name = where;
    return true;
}
#else
typedef int fault_is_off;
#endif
