/* token: list, create and revoke tokens. In a pipe `token create` prints only
 * the secret, so that SIGNALBOX_TOKEN=$(signalbox token create) works. */
#include "cli/token.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/list.h"
#include "cli/offline.h"
#include "cli/remove.h"
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

static void add_scopes(struct buf *out, const struct json *scopes)
{
    size_t n = 0;

    if (!scopes || scopes->type != JSON_ARR)
        return;
    JSON_EACH(s, scopes)
    buf_addf(out, "%s%.*s", n++ ? "," : "", STR_ARG(json_str_or(s, STR("?"))));
}

void cli_show_token(struct cli *c, const struct json *t)
{
    int64_t expires_ms = json_int_or(json_get(t, STR("expires_ms")), 0);
    struct str secret = cli_tamed(c, cli_field(t, STR("token")));
    size_t from;

    if (c->json) {
        cli_json_line(&c->out, t);
        return;
    }
    buf_addf(&c->out, "%.*s\n", STR_ARG(secret));
    from = c->out.n;
    if (c->on_terminal) {
        buf_addf(&c->out, "\n%.*s for %.*s: ", STR_ARG(cli_field(t, STR("id"))),
                 STR_ARG(cli_field(t, STR("user"))));
        add_scopes(&c->out, json_get(t, STR("scopes")));
        if (expires_ms)
            buf_addf(&c->out, "; until %s", cli_time(expires_ms).text);
        buf_add_str(&c->out, STR(".\nIt is not shown again. To use it:  export "
                                 "SIGNALBOX_TOKEN=sbx_...\n"));
    }
    if (c->out.n > from)
        c->out.n = from + str_tame_text(c->out.p + from, c->out.n - from);
}

static void put_wish(struct buf *body, const struct token_wish *w)
{
    struct json_out o = json_out(body);

    json_open(&o, '{');
    json_member_some(&o, "user", w->user);
    json_member_some(&o, "label", w->label);
    if (w->scopes) {
        json_key(&o, STR("scopes"));
        json_open(&o, '[');
        for (unsigned s = 1; s < SCOPE_ALL; s <<= 1)
            if (w->scopes & s)
                json_put_str(&o, scope_name((enum scope)s));
        json_close(&o, ']');
    }
    if (w->lasts_ms)
        json_member_int(&o, "expires_in_s", w->lasts_ms / 1000);
    json_close(&o, '}');
}

static enum exit_status create_online(struct cli *c, const struct token_wish *w)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    struct buf body;

    if (!cl)
        return status;
    buf_init(&body, 64 * 1024);
    put_wish(&body, w);
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/tokens"),
                                                 .body = buf_str(&body)}))
        status = client_fail(cl);
    else
        cli_show_token(c, client_reply(cl)->json);
    buf_fini(&body);
    client_free(cl);
    return status;
}

static enum exit_status token_create(struct cli *c, struct str operand)
{
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
    return create_online(c, &w);
}

/* The others. */

static void tokens_add_row(struct listing *l, const struct json *item)
{
    int64_t expires_ms = json_int_or(json_get(item, STR("expires_ms")), 0);
    struct span_text age = span_write(
        l->now_ms - json_int_or(json_get(item, STR("created_ms")), 0));
    struct span_text left = span_write(expires_ms - l->now_ms);
    struct str ends = !expires_ms               ? STR("never")
                      : expires_ms <= l->now_ms ? STR("expired")
                                                : str_of(left.text);
    struct buf scopes;

    buf_init(&scopes, 1024);
    add_scopes(&scopes, json_get(item, STR("scopes")));
    grid_add(&l->grid, (struct str[]){
                           cli_field(item, STR("id")),
                           cli_field(item, STR("user")),
                           str_of(age.text),
                           ends,
                           cli_field(item, STR("label")),
                           buf_str(&scopes),
                       });
    buf_fini(&scopes);
}

static enum exit_status tokens_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"ID", NULL},    {"USER", NULL},
                                             {"AGE", NULL},   {"EXPIRES", NULL},
                                             {"LABEL", NULL}, {"SCOPES", NULL}};
    static const struct list_kind tokens = {.path = STR("/api/tokens"),
                                            .heads = heads,
                                            .n_heads = 6,
                                            .add = tokens_add_row,
                                            .most = 200000,
                                            .preset = 1000};

    (void)operand;
    return cli_list(c, &tokens);
}

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

/* Ask twice, the second time with the consequences. */
static bool token_confirm(struct cli *c)
{
    if (args_has(&c->args, "yes"))
        return true;
    return !c->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) &&
           says_yes("This is the last token that can act as an admin.") &&
           says_yes("Without it there is no way to manage users, tokens and "
                    "escalations, until\nsignalbox token create --offline "
                    "creates another in the data folder.\nRevoke it anyway?");
}

/* True if the server only asks for confirmation. */
static bool asks_for_confirmation(const struct client_reply *r)
{
    const struct json *error = r->json ? json_get(r->json, STR("error")) : NULL;
    const struct json *details = error ? json_get(error, STR("details")) : NULL;

    return r->err == ERR_PRECONDITION && details &&
           json_get(details, STR("confirm"));
}

static enum exit_status revoke_by(struct client *cl, struct cli *c,
                                  struct str id)
{
    static const struct removal token = {"/api/tokens/", "id", "revoked", NULL};
    struct client_request rq = {.method = "DELETE"};
    enum exit_status status = EXIT_DONE;
    struct buf path;

    buf_init(&path, 4096);
    buf_add_str(&path, str_of(token.folder));
    client_add_part(&path, id);
    rq.path = buf_str(&path);
    if (path.over) {
        status = cli_error(c, ERR_USAGE, "the id is too long");
    } else if (client_call(cl, &rq) == OK) {
        cli_show_removed(c, &token, id);
    } else if (!asks_for_confirmation(client_reply(cl))) {
        status = client_fail(cl);
    } else if (!token_confirm(c)) {
        status = cli_error(c, ERR_PRECONDITION,
                           "not revoked: this is the last token that can act "
                           "as an admin. Create another first, or use --yes");
    } else {
        buf_add_str(&path, STR("?confirm=last_admin_token"));
        rq.path = buf_str(&path);
        if (client_call(cl, &rq) == OK)
            cli_show_removed(c, &token, id);
        else
            status = client_fail(cl);
    }
    buf_fini(&path);
    return status;
}

static enum exit_status revoke_token(struct cli *c, struct str id)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;

    if (str_starts(id, STR("sbx_")))
        return cli_error(c, ERR_USAGE,
                         "this is the token itself; its ID begins with tok_, "
                         "and signalbox token list shows it");
    cl = client_new(c, &status);
    if (!cl)
        return status;
    status = revoke_by(cl, c, id);
    client_free(cl);
    return status;
}

const struct sub cli_token_subs[] = {
    {"list", NULL, "limit", tokens_list},
    {"create", NULL, "user label scopes expires offline config data role",
     token_create},
    {"revoke", "ID", "yes", revoke_token},
    {0},
};

enum exit_status cli_token(struct cli *c)
{
    return cli_sub(c, cli_token_subs);
}
