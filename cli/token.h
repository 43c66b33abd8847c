#ifndef CLI_TOKEN_H
#define CLI_TOKEN_H

/* token: the request of `token create`, with a server or offline. */

#include "base/json.h"
#include "cli/cli.h"
#include "model/caller.h"

struct token_wish {
    struct str user, label; /* empty: not given */
    unsigned scopes;        /* zero: all of the role */
    int64_t lasts_ms;       /* zero: never expires */
    enum role role;         /* offline: role of a new user; zero: none */
};

/* Show the answer of POST /api/tokens, or JSON in the same format. */
void cli_show_token(struct cli *c, const struct json *t);

#endif
