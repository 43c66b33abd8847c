/* A warning may name any other agent, since a reader of the configuration sees
 * all of it. */
#include "lab/advice_config.h"

void advice_config(const struct config *c, size_t i, struct advice *out)
{
    struct advice_against against = {
        .models = c->models.list,
        .n_models = c->models.n,
        .guard = {c->outgoing.allow.list, c->outgoing.allow.n},
    };
    struct agent a = c->agents.list[i];

    a.is_configured = true;
    for (size_t k = 0; k < c->agents.n && !against.close.n; k++)
        if (k != i && !c->agents.list[k].routing.is_unroutable &&
            advice_is_same_description(&a, &c->agents.list[k]))
            against.close = c->agents.list[k].name;
    advice_of(&a, &against, out);
}
