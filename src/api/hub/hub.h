#ifndef API_HUB_HUB_H
#define API_HUB_HUB_H

/* hub: the WebSocket at /hub, and the JSON-RPC 2.0 methods on it: one table of
 * methods, one file per noun.
 *
 * A connection belongs to the user of its token. With agent.register it becomes
 * the connection of that agent: tasks come to it as task.execute, and it
 * answers with task.chunk and task.result. A user sends with message.send and
 * gets the chunks and the results of their tasks pushed. An agent delegates
 * with agent.send_task and agent.delegate, and gets results as
 * delegation.result.
 *
 *     bytes -> wire_read -> each message: row of the table -> an answer
 *
 * Answers to the messages of a batch are collected and leave as one array when
 * the last one is there. A connection has a limit of open requests and of
 * messages per second; its user has a limit of requests, over HTTP and here
 * together (rate.perUser). A message above a rate is not rejected here: it is
 * owed, and the connection is not read until it is paid. A connection that does
 * not read its messages is not read either. A second connection of the same
 * agent takes over from the first. Child processes that speak our dialect call
 * the same table through deliver's on_call.
 *
 * Owns: its connections. Borrows the API. Threads: loop
 * thread only. */

#include "access/access.h"
#include "api/api.h"
#include "base/log.h"
#include "base/loop.h"
#include "net/server/net.h"
#include "registry/registry.h"
#include "walk/walk.h"
#include "watch/watch.h"

struct hub;

struct hub_settings {
    int64_t heartbeat_ms;       /* ws.timeoutMs: told to agents */
    int64_t max_message_bytes;  /* ws.maxMessageBytes: told to agents too */
    size_t max_open;            /* open requests of one connection */
    size_t max_listening;       /* tasks that one connection listens to */
    struct rate_limit messages; /* of one connection */
};

/* Borrows the modules, the throttle and the scratch arena of the API, which
 * must outlive it. */
MUST_USE struct hub *hub_new(struct api *api,
                             const struct hub_settings *settings);
void hub_free(struct hub *h);
void hub_set(struct hub *h, const struct hub_settings *s);

/* Turn an authenticated request for /hub into a WebSocket. ERR_UPGRADE,
 * ERR_BAD_REQUEST, ERR_OVERLOADED, ERR_STOPPING, with words: the caller must
 * answer. OK: it is answered and belongs to the hub. */
MUST_USE enum err hub_take(struct hub *h, uint64_t id,
                           const struct http_request *rq,
                           const struct caller *caller, struct why *why);

/* For access_opts: close the connections of that token (1008). */
void hub_on_revoked(struct hub *h, const struct id *token_id);

/* For deliver_opts, through walk_hub. */
void hub_on_recorded(struct hub *h, uint64_t receipt, enum err e);
void hub_on_call(struct hub *h, uint64_t line, struct str agent,
                 const struct wire_message *m);

/* For walk_hub: report a finished delegation to its requester, if it is
 * connected; and a chunk of a streamed one. */
void hub_on_delegated(struct hub *h, const struct delegation *d,
                      const struct task *t);
void hub_on_delegated_chunk(struct hub *h, const struct delegation *d,
                            struct str agent, struct str text);

/* Accept no new connections and no new work. net_stop closes the existing
 * ones. */
void hub_stop(struct hub *h);

struct hub_stats {
    int64_t connections, agents; /* now; agents is a part of connections */
    int64_t messages_total, errors_total; /* received; answers with an error */
    int64_t pushed_total;                 /* notifications to users */
    int64_t rate_limited_total; /* times a connection was slowed down */
    int64_t foreign_total;      /* answers without a request: ignored */
};
struct hub_stats hub_stats(const struct hub *h);

#endif
