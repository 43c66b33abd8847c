#ifndef CLI_OFFLINE_H
#define CLI_OFFLINE_H

/* offline: users and tokens in the data folder itself, which is held
 * meanwhile, so that no server can be using it: whoever may read and write
 * that folder may do anything anyway. The store runs inline, and a change is
 * the same that a server makes. Threads: the main one. */

#include "cli/cli.h"
#include "cli/list.h"
#include "cli/token.h"

/* The options that it takes. */
#define OFFLINE_OPTIONS                                                      \
    {"offline", NULL, "without a server, in the data folder itself", false}, \
        {"config", "FILE", "with --offline: the server's configuration",     \
         false},                                                             \
    {                                                                        \
        "data", "FOLDER", "with --offline: where the data is kept", false    \
    }

/* Whether it was asked for. False with *status set, and an error said, when
 * its options stand without it. */
MUST_USE bool cli_is_offline(struct cli *c, enum exit_status *status);

/* Make a token. */
enum exit_status cli_token_offline(struct cli *c, const struct token_wish *w);

/* The users, as GET /api/users tells them: a list_source. */
enum exit_status cli_users_offline(struct cli *c, int64_t limit,
                                   bool (*each)(void *ctx,
                                                const struct json *item),
                                   void *ctx, bool *more);

/* The store of the data folder, for something else. */
struct store;
enum exit_status cli_store_offline(struct cli *c,
                                   enum exit_status (*with)(struct cli *c,
                                                            struct store *s));

#endif
