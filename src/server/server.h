#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

/* server: opens all modules, runs the loop, and closes them again. Threads: the
 * main one. */

#include "base/err.h"
#include "server/config/config.h"

/* Descriptors in addition to those of connections: the server's own, and
 * connections that are being rejected (net has up to 64 of those at a time). */
enum { SERVER_SPARE_FILES = 128 };

/* The schemas of all modules, for commands that open the database. A database
 * with a schema that is not listed is rejected as one of a newer server. */
struct schema;
extern const struct schema *const server_schemas[];
extern const size_t server_n_schemas;

/* Reported once the server listens. */
struct server_listening {
    const char *url, *tls_url; /* one may be empty */
    const char *folder;        /* of the data */
    const char *first_token; /* of the first admin, just created; else empty */
    const char *page;        /* the dashboard's URL for a browser on this
                              * machine; empty: it is off */
    bool page_is_private;    /* its traffic stays on this machine or is
                              * encrypted, so a link may contain a token */
};

struct server_opts {
    struct config_source source; /* for the start and every reload */
    bool json;                   /* print JSON lines */
    bool from_scratch;           /* create a database that is missing from a
                                  * used folder */
    /* Prints the report in place of the server; may be NULL. */
    void (*on_listening)(void *ctx, const struct server_listening *l);
    void *ctx;
};

/* Serve until SIGINT or SIGTERM. Prints its addresses on standard output once
 * it listens, and errors on standard error. SIGHUP, or a change of the file,
 * reloads the configuration. */
enum exit_status server_run(const struct server_opts *opts);

#endif
