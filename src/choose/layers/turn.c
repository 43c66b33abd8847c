/* A further turn of a task goes to the task's agent, whatever its text says. */
#include "choose/layers/internal.h"

enum err choose_turn(const struct choose_view *v, struct msg *m)
{
    const struct agent *a = choose_seen(v, m->known.stuck_to);

    if (!a)
        return choose_not_found(v, m, m->known.stuck_to);
    m->choice.layer = LAYER_STICKY;
    return choose_take(m, a, "it is a further turn of this agent's task");
}
