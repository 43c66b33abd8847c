#ifndef ROOMS_H
#define ROOMS_H

/* rooms: from the store up to the hub, all that stands in the house (house.h)
 * once its ground is there: configuration, log, data folder, loop and signals.
 * Threads: the loop's. */

#include "house.h"

/* One upon the other; the last of them listens. rooms_close takes down what
 * there is, however far this got. */
MUST_USE enum err rooms_open(struct server *s, struct why *why);

/* No new calls; those that are open may go on for so long. s->is_over, and the
 * loop is stopped, when nobody is connected any more. A second time may say a
 * shorter one. */
void rooms_stop(struct server *s, int64_t grace_ms);

/* Every name that rules or settings mention and that a stranger holds, and of
 * agents.list every one that somebody registered. */
void rooms_names_taken(const struct server *s,
                       void (*each)(void *ctx, const struct name_taken *t),
                       void *ctx);

/* The same to the log: after a start, a reload, and other rules. Those of
 * agents.list are the registry's to tell. */
void rooms_log_names(struct server *s);

/* All but net, whose connections need one more turn of the loop. */
void rooms_close(struct server *s);

#endif
