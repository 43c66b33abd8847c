#ifndef SETTINGS_H
#define SETTINGS_H

/* settings: what each room is given of a configuration, at the start and at
 * every reload: a room never sees the whole. What is borrowed from c must live
 * until the next. Threads: the loop's. */

#include "house.h"
#include "lessons/lessons.h"
#include "route/route.h"

struct net_opts settings_net(const struct server *s, const struct config *c);
struct walk_opts settings_walk(struct server *s, const struct config *c);
struct calls_settings settings_calls(const struct server *s,
                                     const struct config *c);
struct deliver_settings settings_deliver(const struct config *c);
struct hub_settings settings_hub(const struct config *c);
struct traces_settings settings_traces(const struct config *c);
struct route_settings settings_route(const struct config *c);
struct lessons_settings settings_lessons(const struct config *c);
void settings_rank(struct server *s, const struct config *c);

#endif
