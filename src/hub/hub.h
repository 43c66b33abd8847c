#ifndef HUB_HUB_H
#define HUB_HUB_H

/* hub: the WebSocket at /hub, and what may be asked on it: JSON-RPC 2.0, one
 * table of methods, one file per noun.
 *
 * A connection is somebody with a token. By agent.register it becomes that
 * agent's line: work comes to it as task.execute, and it answers with
 * task.chunk and task.result. Whoever joins with a user's token sends with
 * message.send and gets the chunks and the result of their tasks pushed. An
 * agent has others do something by agent.send_task and agent.delegate, and is
 * told what came of it by delegation.result.
 *
 *     bytes -> wire_read -> each message: row of the table -> answer, now or
 *                                                             later
 *
 * Answers to the messages of a batch are gathered and leave as one array, once
 * the last of them is there. A connection may have so many requests open at
 * once, and say so many messages a second; its user may make so many requests,
 * over HTTP and here together (rate.perUser). Here nobody is refused for that:
 * what was too many is owed, and no more is read until it is paid. Who does not
 * read what it is sent is not read from either. A second connection of the same
 * agent takes over from the first. Children that speak our dialect ask the same
 * table by deliver's on_call.
 *
 * Owns: its connections. Borrows the rooms it asks. Threads: the loop's. */

#include "access/access.h"
#include "base/log.h"
#include "base/loop.h"
#include "calls/throttle.h"
#include "net/net.h"
#include "registry/registry.h"
#include "walk.h"
#include "watch/watch.h"

struct hub;

struct hub_settings {
    int64_t heartbeat_ms;      /* ws.timeoutMs: told to agents */
    int64_t max_message_bytes; /* ws.maxMessageBytes: told to agents too */
    size_t max_open;      /* requests of one connection, not answered yet */
    size_t max_listening; /* tasks that one connection hears of at once */
    struct rate_limit messages; /* of one connection */
};

struct hub_opts {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct walk *walk;
    struct store *store;
    struct access *access;
    struct registry *registry;
    struct throttle *throttle; /* the users' buckets, shared with HTTP */
    uint64_t seed[2];
    struct hub_settings settings;
};

/* NULL: memory is gone. */
MUST_USE struct hub *hub_new(const struct hub_opts *opts);
void hub_free(struct hub *h);
void hub_set(struct hub *h, const struct hub_settings *s);

/* A request for /hub by somebody whose token is good: become a WebSocket.
 * ERR_UPGRADE, ERR_BAD_REQUEST, ERR_OVERLOADED, ERR_STOPPING with words: it
 * was not answered. OK: it was, and is the hub's. */
MUST_USE enum err hub_take(struct hub *h, uint64_t id,
                           const struct http_request *rq,
                           const struct caller *caller, struct why *why);

/* For access_opts: connections of that token are closed (1008). */
void hub_on_revoked(struct hub *h, const struct id *token_id);

/* For deliver_opts, by way of the walk. */
void hub_on_recorded(struct hub *h, uint64_t receipt, enum err e);
void hub_on_call(struct hub *h, uint64_t line, struct str agent,
                 const struct wire_message *m);

/* A delegation is over, and who asked for it is told, if it is there; and words
 * of one that is streamed. */
void hub_on_delegated(struct hub *h, const struct delegation *d,
                      const struct task *t);
void hub_on_delegated_chunk(struct hub *h, const struct delegation *d,
                            struct str agent, struct str text);

/* No new connections and no new work; net_stop says goodbye to those there
 * are. */
void hub_stop(struct hub *h);

struct hub_stats {
    int64_t connections, agents;          /* now; agents: of them */
    int64_t messages_total, errors_total; /* in; answers that were errors */
    int64_t pushed_total;                 /* chunks and results, to users */
    int64_t rate_limited_total;           /* times a peer was slowed down */
    int64_t foreign_total; /* answers to what was never asked: ignored */
};
struct hub_stats hub_stats(const struct hub *h);

/* The same for /metrics. */
void hub_metrics(const struct hub *h, struct buf *out);

/* The table, for the tests that walk it; false past the end. */
struct hub_method {
    struct str name;
    bool is_for_agents; /* only once it is registered */
    unsigned scope;     /* zero: any token */
};
bool hub_method(size_t i, struct hub_method *out);

#endif
