/* Names of what a delegation can be. */
#include "model/delegation.h"

static const struct str modes[] = {[DELEGATION_TWO_PHASE] = STR("two_phase"),
                                   [DELEGATION_SYNC] = STR("sync"),
                                   [DELEGATION_ASYNC] = STR("async"),
                                   [DELEGATION_MESSAGE] = STR("message")};
static const struct str states[] = {[DELEGATION_OPEN] = STR("open"),
                                    [DELEGATION_READY] = STR("ready"),
                                    [DELEGATION_HAD] = STR("had")};

struct str delegation_mode_name(enum delegation_mode m)
{
    return modes[m];
}

enum delegation_mode delegation_mode_of(struct str name)
{
    for (int i = DELEGATION_TWO_PHASE; i <= DELEGATION_MESSAGE; i++)
        if (str_eq(modes[i], name))
            return (enum delegation_mode)i;
    return 0;
}

struct str delegation_state_name(enum delegation_state s)
{
    return states[s];
}
