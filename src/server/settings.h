#ifndef SERVER_SETTINGS_H
#define SERVER_SETTINGS_H

/* settings: each module's settings from a configuration, at the start and at
 * every reload; a module never sees the whole configuration. The results borrow
 * from c, which must live until the next reload. Threads: the loop's. */

#include "choose/route.h"
#include "learn/learning.h"
#include "server/internal.h"

struct net_opts settings_net(const struct server *s, const struct config *c);
struct walk_opts settings_walk(struct server *s, const struct config *c);
struct api_settings settings_api(const struct server *s,
                                 const struct config *c);
struct deliver_settings settings_deliver(const struct config *c);
struct hub_settings settings_hub(const struct config *c);
struct traces_settings settings_traces(const struct config *c);
struct route_settings settings_route(const struct config *c);
struct learning_settings settings_learning(const struct config *c);

/* Set the ranking of the registry. */
void settings_rank(struct server *s, const struct config *c);

#endif
