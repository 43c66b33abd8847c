/* users: list, create, change and remove users. Each command is one request. */
#include "cli/list.h"
#include "cli/offline.h"
#include "cli/remove.h"
#include "cli/span.h"
#include "model/caller.h"

const struct arg_option cli_users_options[] = {
    {"role", "ROLE", "user (default), agent or admin", false},
    {"org", "ORG", "the user's org", false},
    {"no-org", NULL, "remove the user from its org", false},
    {"owner", "NAME", "for role agent: the user that it acts for", false},
    {"no-owner", NULL, "remove the owner", false},
    {"limit", "N", "list at most N users (default 1000)", false},
    OFFLINE_OPTIONS,
    CLIENT_OPTIONS,
    {0},
};

static void add_user(struct listing *l, const struct json *item)
{
    struct span_text age = span_write(
        l->now_ms - json_int_or(json_get(item, STR("created_ms")), 0));
    struct str cells[] = {cli_field(item, STR("name")),
                          cli_field(item, STR("role")),
                          cli_field(item, STR("org")),
                          cli_field(item, STR("owner")), str_of(age.text)};

    grid_add(&l->grid, cells);
}

static enum exit_status users_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"NAME", NULL},
                                             {"ROLE", NULL},
                                             {"ORG", NULL},
                                             {"OWNER", NULL},
                                             {"AGE", NULL}};
    static const struct list_kind users = {.path = STR("/api/users"),
                                           .heads = heads,
                                           .n_heads = 5,
                                           .add = add_user,
                                           .most = 100000,
                                           .preset = 1000,
                                           .offline = cli_users_offline};
    enum exit_status status;

    (void)operand;
    if (!cli_is_offline(c, &status) && status)
        return status;
    return cli_list(c, &users);
}

static bool role_is_good(struct cli *c, enum exit_status *status)
{
    struct str role = args_get(&c->args, "role");

    if (!role.n || role_of(role))
        return true;
    *status = cli_error(c, ERR_USAGE,
                        "--role is \"%.*s\"; it must be user, agent or admin",
                        STR_ARG(str_head(role, 64)));
    return false;
}

/* The option's value; null if the other option removes it. */
static void put_or_null(struct cli *c, struct json_out *o, const char *given,
                        const char *none)
{
    struct str value = args_get(&c->args, given);

    if (!value.n && !args_has(&c->args, none))
        return;
    json_member_str(o, given, value);
}

static void user_put_body(struct cli *c, struct buf *body, struct str name)
{
    struct str role = args_get(&c->args, "role");
    struct json_out o = json_out(body);

    json_open(&o, '{');
    json_member_some(&o, "name", name);
    if (!role.n && name.n)
        role = role_name(ROLE_USER);
    json_member_some(&o, "role", role);
    put_or_null(c, &o, "org", "no-org");
    put_or_null(c, &o, "owner", "no-owner");
    json_close(&o, '}');
}

static void show_user(struct cli *c, const struct json *user, const char *did)
{
    struct str org = cli_tamed(c, cli_field(user, STR("org")));
    struct str owner = cli_tamed(c, cli_field(user, STR("owner")));

    if (c->json) {
        cli_json_line(&c->out, user);
        return;
    }
    buf_addf(&c->out, "%.*s is %s, with role %.*s",
             STR_ARG(cli_tamed(c, cli_field(user, STR("name")))), did,
             STR_ARG(cli_tamed(c, cli_field(user, STR("role")))));
    if (org.n)
        buf_addf(&c->out, " in %.*s", STR_ARG(org));
    if (owner.n)
        buf_addf(&c->out, ", for %.*s", STR_ARG(owner));
    buf_add_char(&c->out, '\n');
}

/* POST or PATCH. */
static enum exit_status user_change(struct cli *c, const char *method,
                                    struct str name, const char *did)
{
    bool is_new = strcmp(method, "POST") == 0;
    enum exit_status status = EXIT_DONE;
    struct buf path, body;
    struct client *cl = client_new(c, &status);

    if (!cl)
        return status;
    buf_init(&path, 4096);
    buf_init(&body, 64 * 1024);
    buf_add_str(&path, STR("/api/users"));
    if (!is_new) {
        buf_add_char(&path, '/');
        client_add_part(&path, name);
    }
    user_put_body(c, &body, is_new ? name : (struct str){0});
    if (path.over)
        status = cli_error(c, ERR_USAGE, "the name is too long");
    else if (client_call(cl, &(struct client_request){.method = method,
                                                      .path = buf_str(&path),
                                                      .body = buf_str(&body)}))
        status = client_fail(cl);
    else
        show_user(c, client_reply(cl)->json, did);
    buf_fini(&path);
    buf_fini(&body);
    client_free(cl);
    return status;
}

static enum exit_status user_create(struct cli *c, struct str name)
{
    enum exit_status status;

    if (!role_is_good(c, &status))
        return status;
    return user_change(c, "POST", name, "created");
}

static bool says_what(struct cli *c)
{
    static const char *const what[] = {"role", "org", "no-org", "owner",
                                       "no-owner"};

    for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++)
        if (args_has(&c->args, what[i]))
            return true;
    return false;
}

static enum exit_status user_set(struct cli *c, struct str name)
{
    enum exit_status status;

    if (!role_is_good(c, &status))
        return status;
    if (args_has(&c->args, "org") && args_has(&c->args, "no-org"))
        return cli_error(c, ERR_USAGE, "give either --org or --no-org");
    if (args_has(&c->args, "owner") && args_has(&c->args, "no-owner"))
        return cli_error(c, ERR_USAGE, "give either --owner or --no-owner");
    if (!says_what(c))
        return cli_error(c, ERR_USAGE,
                         "nothing to change: give --role ROLE, --org ORG, "
                         "--no-org, --owner NAME or --no-owner");
    return user_change(c, "PATCH", name, "changed");
}

static enum exit_status user_remove(struct cli *c, struct str name)
{
    static const struct removal user = {
        "/api/users/", "name", "removed",
        ", with all their tokens\nTheir agents and "
        "grants remain: signalbox agents "
        "--creator NAME"};

    return cli_remove(c, &user, name);
}

const struct sub cli_users_subs[] = {
    {"list", NULL, "limit offline config data", users_list},
    {"create", "NAME", "role org owner", user_create},
    {"set", "NAME", "role org no-org owner no-owner", user_set},
    {"remove", "NAME", "", user_remove},
    {0},
};

enum exit_status cli_users(struct cli *c)
{
    return cli_sub(c, cli_users_subs);
}
