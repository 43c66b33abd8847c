#ifndef SERVER_H
#define SERVER_H

/* server: builds the rooms bottom-up, runs the loop until it is told to stop,
 * and takes the rooms down again. Threads: the main one. */

#include "base/err.h"
#include "config.h"

struct server_opts {
    struct config_source source; /* read again on every reload */
    bool json;                   /* what is printed at the start is JSON */
};

/* Returns when the server has stopped, with the status to exit with. Borrows
 * opts for the call. */
enum exit_status server_run(const struct server_opts *opts);

#endif
