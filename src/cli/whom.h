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

/* A secret of any kind, without blanks around it: the first bytes of the file
 * that an option names, in `room`, else what a variable holds. Empty: neither
 * has any. */
struct secret_room {
    char text[1024];
};
MUST_USE bool whom_read_secret(struct cli *c, const char *option,
                               const char *variable, struct secret_room *room,
                               struct str *out, enum exit_status *status);

MUST_USE bool whom_read_token(struct cli *c, char out[CLIENT_TOKEN_MAX + 1],
                              enum exit_status *status);

#endif
