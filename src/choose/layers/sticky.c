/* The conversation already has an agent, which still exists.
 *
 * An agent that has gone, or that the sender no longer sees, is skipped: the
 * layers below choose again, and the reason says so (choose_agent). The
 * conversation then belongs to the new agent. This is no override, since the
 * user did not ask for it. An agent has a conversation with itself only if it
 * named itself, so there it stays. */
#include "choose/layers/internal.h"

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
