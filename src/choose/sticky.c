/* The conversation has an agent already, and it is still there.
 *
 * One that has gone, or that the sender no longer sees, answers for nothing:
 * the layers below choose anew, and the reason says so (choose_agent). Whoever
 * is chosen then has the conversation; nobody was overridden by that, since it
 * was nobody's wish. An agent has its own conversation only where it named
 * itself, so there it stays. */
#include "choose/internal.h"

enum err choose_sticky(const struct choose_view *v, struct msg *m)
{
    const struct agent *a;

    if (!m->call.conversation_id.n)
        return ERR_NO_ROUTE;
    if (!m->known.has_conversation)
        return choose_needs(m, NEEDS_CONVERSATION);
    a = m->known.stuck_to.n ? choose_seen(v, m->known.stuck_to) : NULL;
    if (!a)
        return ERR_NO_ROUTE;
    return choose_take(m, a, "the conversation has it already");
}
