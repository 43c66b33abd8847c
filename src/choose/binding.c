/* Where the message came from. */
#include "choose/internal.h"

enum err choose_by_binding(const struct choose_view *v, struct msg *m)
{
    (void)v;
    (void)m;
    return ERR_NO_ROUTE;
}
