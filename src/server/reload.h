#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

/* reload: replaces the configuration of a running server when its file changes
 * or on request. Threads: the loop's. */

#include "server/internal.h"

/* Load a configuration and apply it. False: it has problems, which are in
 * s->reload.report, and the one in force is unchanged. `changed` gets the names
 * of the changed settings as a JSON list; may be NULL. */
bool reload_now(struct server *s, struct json_out *changed);

/* Reload from now on whenever the file changes. folder_watch is initialized. If
 * the folder cannot be watched, that is logged. */
void reload_watch(struct server *s);
void reload_stop(struct server *s);

/* Log each line of the report. */
void reload_log_report(struct server *s, enum log_level level,
                       const struct config_report *report);

#endif
