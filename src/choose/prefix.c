/* The text begins with "/agent". */
#include "choose/internal.h"

enum err choose_prefix(const struct choose_view *v, struct msg *m)
{
    (void)v;
    (void)m;
    return ERR_NO_ROUTE;
}
