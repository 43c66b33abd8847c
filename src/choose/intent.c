/* A language model's word. */
#include "choose/internal.h"

enum err choose_intent(const struct choose_view *v, struct msg *m)
{
    (void)v;
    (void)m;
    return ERR_NO_ROUTE;
}
