#ifndef CLI_OFFLINE_H
#define CLI_OFFLINE_H

/* offline: users and tokens in the data folder, without a server. The folder is
 * locked meanwhile. It needs no token: a user with access to the folder can do
 * anything anyway. The store runs inline, and a change is the same as a
 * server's. Threads: the main one. */

#include "cli/cli.h"
#include "cli/list.h"
#include "cli/token.h"

/* The options that it takes. */
#define OFFLINE_OPTIONS                                                  \
    {"offline", NULL, "without a server, on the data folder", false},    \
        {"config", "FILE", "with --offline: the server's configuration", \
         false},                                                         \
    {                                                                    \
        "data", "FOLDER", "with --offline: the data folder", false       \
    }

/* True with --offline. False with *status set if its options are given without
 * it; the error has been printed. */
MUST_USE bool cli_is_offline(struct cli *c, enum exit_status *status);

/* Make a token. */
enum exit_status cli_token_offline(struct cli *c, const struct token_wish *w);

/* The users, in the format of GET /api/users: a list_source. */
enum exit_status cli_users_offline(struct cli *c, int64_t limit,
                                   bool (*each)(void *ctx,
                                                const struct json *item),
                                   void *ctx, bool *more);

/* Run `with` on the store of the data folder. */
struct store;
enum exit_status cli_store_offline(struct cli *c,
                                   enum exit_status (*with)(struct cli *c,
                                                            struct store *s));

#endif
