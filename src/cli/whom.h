#ifndef CLI_WHOM_H
#define CLI_WHOM_H

/* whom: which server a command talks to, whom it trusts there, and as whom it
 * speaks. Each says what is missing or wrong, and *status is then what to end
 * with. Threads: any. */

#include "cli/client.h"

/* Without a slash at the end. */
MUST_USE bool whom_read_url(struct cli *c, char out[CLIENT_URL_MAX + 1],
                            enum exit_status *status);

/* *out is left alone when it is the system's that are trusted. */
MUST_USE bool whom_read_ca(struct cli *c, const char **out,
                           enum exit_status *status);

MUST_USE bool whom_read_token(struct cli *c, char out[CLIENT_TOKEN_MAX + 1],
                              enum exit_status *status);

#endif
