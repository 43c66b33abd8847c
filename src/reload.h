#ifndef RELOAD_H
#define RELOAD_H

/* reload: a new configuration for a house that stands, when its file changes
 * or somebody asks for it. Threads: the loop's. */

#include "house.h"

/* Load it and take it over, or say what is wrong with it and keep the one
 * before: then it is false, and s->reload.report has the words. `changed` gets
 * the names of the settings that are others now, as a JSON list; it may be
 * NULL. */
bool reload_now(struct server *s, struct json_out *changed);

/* Do so when the file has changed, from now on; folder_watch was initialised.
 * Where its folder cannot be watched, that is logged. */
void reload_watch(struct server *s);
void reload_stop(struct server *s);

/* Every line of it, as a line of the log. */
void reload_log_report(struct server *s, enum log_level level,
                       const struct config_report *report);

#endif
