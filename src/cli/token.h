#ifndef CLI_TOKEN_H
#define CLI_TOKEN_H

/* token: what `token create` is asked for, with a server and without. */

#include "base/json.h"
#include "cli/cli.h"
#include "model/caller.h"

struct token_wish {
    struct str user, label; /* empty: not given */
    unsigned scopes;        /* zero: all of the role */
    int64_t lasts_ms;       /* zero: for ever */
    enum role role;         /* offline: to be made so; zero: not to be made */
};

/* Show the answer of POST /api/tokens, or what looks like it. */
void cli_show_token(struct cli *c, const struct json *t);

#endif
