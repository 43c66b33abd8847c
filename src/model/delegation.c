#include "model/delegation.h"

static const struct str modes[] = {[DELEGATION_TWO_PHASE] = STR("two_phase"),
                                   [DELEGATION_SYNC] = STR("sync"),
                                   [DELEGATION_ASYNC] = STR("async"),
                                   [DELEGATION_MESSAGE] = STR("message")};

struct str delegation_mode_name(enum delegation_mode m)
{
    return modes[m];
}
