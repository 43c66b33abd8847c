#ifndef SERVER_ADMIN_CONFIG_H
#define SERVER_ADMIN_CONFIG_H

/* admin_config: the running configuration for admins, and reloading it. Used
 * through api_config, with the struct server as ctx. Threads: the loop's. */

#include "server/internal.h"

/* Write the members into the open object. They contain no secret. */
void admin_config_write(void *ctx, struct json_out *o);

/* Reload, as on SIGHUP. Writes the changed settings, those that wait for a
 * restart, and the warnings. ERR_BAD_CONFIG: writes the problems; the
 * configuration in force is unchanged. */
MUST_USE enum err admin_config_reload(void *ctx, struct json_out *o,
                                      struct why *why);

#endif
