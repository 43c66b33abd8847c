#ifndef RUNNING_H
#define RUNNING_H

/* running: what the house runs with, told to those who may know it, and how
 * they have it read again. For calls_house; ctx is the struct server. Threads:
 * the loop's. */

#include "house.h"

/* As members of an open object; nothing in it is a secret. */
void running_write(void *ctx, struct json_out *o);

/* What SIGHUP does. What is others now, what waits for a restart and what was
 * warned of, as members; or ERR_BAD_CONFIG with the problems, and the one
 * before stays as it was. */
MUST_USE enum err running_reload(void *ctx, struct json_out *o,
                                 struct why *why);

#endif
