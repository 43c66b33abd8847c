#ifndef SERVER_BUILD_H
#define SERVER_BUILD_H

/* build: the modules of the server (internal.h), from the store up to the hub.
 * The configuration, log, data folder, loop and signals exist before them.
 * Threads: the loop's. */

#include "server/internal.h"

/* Open all modules; the last one listens. server_close must follow, also after
 * an error. */
MUST_USE enum err server_build(struct server *s, struct why *why);

/* Accept no new requests; open ones may continue for grace_ms. When the last
 * connection is closed, s->is_over is set and the loop stops. A second call may
 * shorten the grace. */
void server_stop(struct server *s, int64_t grace_ms);

/* Call `each` for every name that rules or settings mention and that another
 * user holds, and for every name of agents.list that is registered. */
void server_names_taken(const struct server *s,
                        void (*each)(void *ctx, const struct name_taken *t),
                        void *ctx);

/* Log them after a start, a reload, and a change of the rules. The registry
 * logs those of agents.list. */
void server_log_names(struct server *s);

/* Close all modules except net, whose connections need one more turn of the
 * loop. */
void server_close(struct server *s);

#endif
