#ifndef CLI_TOKEN_H
#define CLI_TOKEN_H

/* token: what `token create` is asked for, with a server and without. */

#include "base/json.h"
#include "cli/cli.h"

struct token_wish {
    struct str user, label; /* empty: not given */
    unsigned scopes;        /* zero: all of the role */
    int64_t lasts_ms;       /* zero: for ever */
};

/* Show the answer of POST /api/tokens, or what looks like it. */
void cli_show_token(struct cli *c, const struct json *t);

/* Make it in the data folder, which no server may be using. */
enum exit_status cli_token_offline(struct cli *c, const struct token_wish *w);

#endif
