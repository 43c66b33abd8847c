/* A further turn of a task: whoever has the task has the turn, whatever is said
 * in it. */
#include "choose/internal.h"

enum err choose_turn(const struct choose_view *v, struct msg *m)
{
    const struct agent *a = choose_seen(v, m->known.stuck_to);

    if (!a)
        return choose_nobody(v, m, m->known.stuck_to);
    m->choice.layer = LAYER_STICKY;
    return choose_take(m, a, "it is a further turn of this agent's task");
}
