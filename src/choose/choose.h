#ifndef CHOOSE_CHOOSE_H
#define CHOOSE_CHOOSE_H

/* choose: from speak, to task.
 *
 * Decides who gets a message. Layers are asked in order and the first that
 * answers decides; so far there is one, `explicit`: the message names its
 * executor. Same inputs, same choice. Owns nothing. Threads: any. */

#include "model/msg.h"

/* Fill m->choice. Whom the eyes do not see is not there. ERR_AGENT_NOT_FOUND:
 * the one named is not there, m->why offers the nearest names; ERR_NO_ROUTE: no
 * layer answered, m->why says what to do. */
MUST_USE enum err choose_agent(const struct agents *all,
                               const struct eyes *eyes, struct msg *m);

#endif
