#ifndef CLI_ENDPOINT_H
#define CLI_ENDPOINT_H

/* endpoint: the server that a command talks to, its authorities, and the token.
 * Each function prints its own errors and sets *status to the exit status.
 * Threads: any. */

#include "cli/client.h"

/* The URL, without a slash at the end. */
MUST_USE bool endpoint_read_url(struct cli *c, char out[CLIENT_URL_MAX + 1],
                                enum exit_status *status);

/* *out does not change if the system's authorities are trusted. */
MUST_USE bool endpoint_read_ca(struct cli *c, const char **out,
                               enum exit_status *status);

/* A secret without surrounding blanks: the first bytes of the file that the
 * option names, stored in `room`, or else the variable. Empty: neither is set.
 */
struct secret_room {
    char text[1024];
};
MUST_USE bool endpoint_read_secret(struct cli *c, const char *option,
                                   const char *variable,
                                   struct secret_room *room, struct str *out,
                                   enum exit_status *status);

MUST_USE bool endpoint_read_token(struct cli *c, char out[CLIENT_TOKEN_MAX + 1],
                                  enum exit_status *status);

#endif
