/* Whoever is there for everything that nobody else was chosen for. */
#include "choose/internal.h"

enum err choose_default(const struct choose_view *v, struct msg *m)
{
    struct str name = v->settings->default_agent;
    const struct agent *a = name.n ? choose_seen(v, name) : NULL;

    if (!a)
        return ERR_NO_ROUTE;
    return choose_take(m, a,
                       "nothing spoke clearly for anybody else, and it is the "
                       "default agent");
}
