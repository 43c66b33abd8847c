/* The message names its executor. */
#include "choose/layers/internal.h"

enum err choose_explicit(const struct choose_view *v, struct msg *m)
{
    const struct agent *a;

    if (!m->call.executor.n)
        return ERR_NO_ROUTE;
    a = choose_seen(v, m->call.executor);
    if (!a)
        return choose_not_found(v, m, m->call.executor);
    return choose_named(v, m, a, "the message names it as its executor");
}
