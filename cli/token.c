/* token: list, create and revoke tokens. In a pipe `token create` prints only
 * the secret, so that SIGNALBOX_TOKEN=$(signalbox token create) works. */
#include "cli/token.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/list.h"
#include "cli/offline.h"
#include "cli/span.h"
#include "model/caller.h"

const struct arg_option cli_token_options[] = {
    {"user", "NAME", "create it for this user (default: yourself)", false},
    {"label", "TEXT", "a label for the list", false},
    {"scopes", "LIST", "its scopes: send,read (default: all of the role)",
     false},
    {"expires", "TIME", "expires after 12h, 30d, 8w (default: never)", false},
    OFFLINE_OPTIONS,
    {"role", "admin",
     "with --offline, if there is no admin: make --user an admin", false},
    {"yes", NULL, "revoke the last token of an admin without asking", false},
    {"limit", "N", "list at most N tokens (default 1000)", false},
    CLIENT_OPTIONS,
    {0},
};

static bool token_read_scopes(struct cli *c, unsigned *out,
                              enum exit_status *status)
{
    struct str rest = args_get(&c->args, "scopes");

    *out = 0;
    while (rest.n) {
        struct str word = str_trim(str_cut(&rest, ','));
        struct str_guess g = str_guess(word);

        if (scope_of(word)) {
            *out |= scope_of(word);
            continue;
        }
        for (unsigned s = 1; s < SCOPE_ALL; s <<= 1)
            str_guess_offer(&g, scope_name((enum scope)s),
                            str_distance(word, scope_name((enum scope)s)));
        word = str_head(word, 64);
        *status =
            g.name.n ? cli_error(c, ERR_USAGE,
                                 "unknown scope \"%.*s\"; did you mean %.*s?",
                                 STR_ARG(word), STR_ARG(g.name))
                     : cli_error(c, ERR_USAGE,
                                 "unknown scope \"%.*s\"; known: send, read, "
                                 "agents, escalations, ledger, admin, creator, "
                                 "metrics",
                                 STR_ARG(word));
        return false;
    }
    return true;
}

static bool token_read_options(struct cli *c, struct token_wish *w,
                               enum exit_status *status)
{
    struct str expires = args_get(&c->args, "expires");

    *w = (struct token_wish){.user = args_get(&c->args, "user"),
                             .label = args_get(&c->args, "label")};
    if (!token_read_scopes(c, &w->scopes, status))
        return false;
    if (args_has(&c->args, "role")) {
        w->role = role_of(args_get(&c->args, "role"));
        if (w->role != ROLE_ADMIN) {
            *status = cli_error(c, ERR_USAGE, "--role can only be admin here");
            return false;
        }
    }
    if (!expires.n || span_read(expires, &w->lasts_ms) == OK)
        return true;
    *status = cli_error(c, ERR_USAGE,
                        "--expires is \"%.*s\"; write a number and s, m, h, d "
                        "or w: 12h, 30d",
                        STR_ARG(str_head(expires, 64)));
    return false;
}

void cli_show_token(struct cli *c, const struct json *t)
{
    if (c->json)
        cli_json_line(&c->out, t);
    else
        cli_say(c, STR(""), t, "{token}\n");
    if (c->on_terminal && !c->json)
        cli_say(c, STR(""), t,
                "\n{id} for {user}: {scopes}[; until {expires_ms}].\n"
                "It is not shown again. To use it:  export "
                "SIGNALBOX_TOKEN=sbx_...\n");
}

static bool put_token(struct cli *c, struct json_out *o,
                      enum exit_status *status)
{
    struct token_wish w;

    if (!token_read_options(c, &w, status))
        return false;
    if (w.scopes) {
        json_key(o, STR("scopes"));
        json_open(o, '[');
        for (unsigned s = 1; s < SCOPE_ALL; s <<= 1)
            if (w.scopes & s)
                json_put_str(o, scope_name((enum scope)s));
        json_close(o, ']');
    }
    if (w.lasts_ms)
        json_member_int(o, "expires_in_s", w.lasts_ms / 1000);
    return true;
}

static enum exit_status token_create(struct cli *c, struct str operand)
{
    static const struct one creation = {.method = "POST",
                                        .path = "/api/tokens",
                                        .put = put_token,
                                        .options = "user label",
                                        .show = cli_show_token};
    enum exit_status status;
    struct token_wish w;

    (void)operand;
    if (!token_read_options(c, &w, &status))
        return status;
    if (cli_is_offline(c, &status))
        return cli_token_offline(c, &w);
    if (status)
        return status;
    if (w.role)
        return cli_error(c, ERR_USAGE,
                         "--role needs --offline; with a server use signalbox "
                         "users create NAME --role admin");
    return cli_one(c, &creation, operand);
}

/* The others. */

static const struct grid_column columns[] = {
    {"ID", "id", NULL, KEPT, NULL},
    {"USER", "user", NULL, KEPT, NULL},
    {"AGE", "created_ms", as_age, KEPT, NULL},
    {"EXPIRES", "expires_ms", as_expiry, KEPT, NULL},
    {"LABEL", "label", NULL, KEPT, NULL},
    {"SCOPES", "scopes", as_commas, KEPT, NULL},
    {0},
};

static const struct listing tokens = {
    .path = "/api/tokens", .columns = columns, .preset = 1000, .most = 200000};

/* True if the user answers "yes". */
static bool says_yes(const char *question)
{
    char line[64];

    fprintf(stderr, "%s Type yes to continue: ", question);
    fflush(stderr);
    if (!fgets(line, sizeof(line), stdin))
        return false;
    return str_eq(str_trim(str_sub(str_of(line), 0, strcspn(line, "\r\n"))),
                  STR("yes"));
}

/* The server asks for confirmation before an admin's last token goes. */
static enum exit_status revoke_anyway(struct cli *c, struct client *cl)
{
    static const struct one revocation = {.method = "DELETE",
                                          .path = "/api/tokens/",
                                          .called = "id",
                                          .action = "?confirm=last_admin_token",
                                          .say = "{} is revoked\n",
                                          .gone = "revoked"};
    const struct client_reply *r = client_reply(cl);

    if (r->err != ERR_PRECONDITION ||
        !cli_member(r->json, "error.details.confirm"))
        return client_fail(cl);
    /* Ask twice, the second time with the consequences. */
    if (!args_has(&c->args, "yes") &&
        (c->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) ||
         !says_yes("This is the last token that can act as an admin.") ||
         !says_yes("Without it there is no way to manage users, tokens and "
                   "escalations, until\nsignalbox token create --offline "
                   "creates another in the data folder.\nRevoke it anyway?")))
        return cli_error(c, ERR_PRECONDITION,
                         "not revoked: this is the last token that can act "
                         "as an admin. Create another first, or use --yes");
    return cli_one_by(c, cl, &revocation, c->args.operands[1]);
}

static enum exit_status revoke_token(struct cli *c, struct str id)
{
    static const struct one revocation = {.method = "DELETE",
                                          .path = "/api/tokens/",
                                          .called = "id",
                                          .say = "{} is revoked\n",
                                          .gone = "revoked",
                                          .fail = revoke_anyway};

    if (str_starts(id, STR("sbx_")))
        return cli_error(c, ERR_USAGE,
                         "this is the token itself; its ID begins with tok_, "
                         "and signalbox token list shows it");
    return cli_one(c, &revocation, id);
}

const struct sub cli_token_subs[] = {
    {"list", NULL, NULL, .list = &tokens},
    {"create", NULL, "user label scopes expires offline config data role",
     .run = token_create},
    {"revoke", "ID", "yes", .run = revoke_token},
    {0},
};
