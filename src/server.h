#ifndef SERVER_H
#define SERVER_H

/* server: builds the rooms bottom-up, runs the loop, takes them down again. */

#include "base/err.h"
#include "config/config.h"

/* Descriptors besides those of connections: what we hold ourselves, and those
 * who are being turned away (net takes care of 64 at a time). */
enum { SERVER_SPARE_FILES = 128 };

/* What the rooms keep, for whoever opens the database without serving: one
 * with a room that is not named is refused as a newer server's. */
struct schema;
extern const struct schema *const server_schemas[];
extern const size_t server_n_schemas;

/* What somebody who starts a server wants to know once it listens. */
struct server_listening {
    const char *url, *tls_url; /* one may be empty */
    const char *folder;        /* of the data */
    const char *first_token;   /* made just now, of the first admin; else
                                * empty */
    const char *page;          /* where a browser on this machine finds the
                                * dashboard; empty: it is switched off */
    bool page_is_private;      /* nobody in between can read what it sends, so
                                * a link to it may carry a token */
};

struct server_opts {
    struct config_source source; /* where the configuration comes from, now
                                  * and at every reload */
    bool json;                   /* say what happens in JSON lines */
    bool from_scratch;           /* a database that is gone is made anew */
    /* Say it in other words than ours; NULL: in ours. */
    void (*on_listening)(void *ctx, const struct server_listening *l);
    void *ctx;
};

/* Serve until SIGINT or SIGTERM. Says on standard output where it listens
 * once it does, and on standard error what is wrong if it cannot.
 * SIGHUP, or a change of the file, loads the configuration again. */
enum exit_status server_run(const struct server_opts *opts);

#endif
