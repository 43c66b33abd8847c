/* users: list, create, change and remove users. Each command is one request. */
#include "cli/list.h"
#include "cli/offline.h"
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

static const struct grid_column columns[] = {
    {"NAME", "name", NULL, KEPT, NULL},
    {"ROLE", "role", NULL, KEPT, NULL},
    {"ORG", "org", NULL, KEPT, NULL},
    {"OWNER", "owner", NULL, KEPT, NULL},
    {"AGE", "created_ms", as_age, KEPT, NULL},
    {0},
};

static const struct listing users = {
    .path = "/api/users",
    .columns = columns,
    .preset = 1000,
    .offline = cli_users_offline,
};

/* The option's value; null if the other option removes it. */
static void put_or_null(struct cli *c, struct json_out *o, const char *given,
                        const char *none)
{
    if (args_has(&c->args, given) || args_has(&c->args, none))
        json_member_str(o, given, args_get(&c->args, given));
}

/* The members that create and set share. */
static bool put_user(struct cli *c, struct json_out *o,
                     enum exit_status *status)
{
    bool is_new = str_eq(c->args.operands[0], STR("create"));
    struct str role = args_get(&c->args, "role");

    if (role.n && !role_of(role)) {
        *status = cli_error(c, ERR_USAGE,
                            "--role is \"%.*s\"; it must be user, agent or "
                            "admin",
                            STR_ARG(str_head(role, 64)));
        return false;
    }
    if (is_new)
        json_member_text(o, "name", c->args.operands[1]);
    json_member_some(o, "role",
                     is_new && !role.n ? role_name(ROLE_USER) : role);
    put_or_null(c, o, "org", "no-org");
    put_or_null(c, o, "owner", "no-owner");
    return true;
}

static bool put_changes(struct cli *c, struct json_out *o,
                        enum exit_status *status)
{
    static const char *const what[] = {"role", "org", "no-org", "owner",
                                       "no-owner"};
    bool changes = false;

    for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++)
        changes |= args_has(&c->args, what[i]);
    if (args_has(&c->args, "org") && args_has(&c->args, "no-org"))
        *status = cli_error(c, ERR_USAGE, "give either --org or --no-org");
    else if (args_has(&c->args, "owner") && args_has(&c->args, "no-owner"))
        *status = cli_error(c, ERR_USAGE, "give either --owner or --no-owner");
    else if (!changes)
        *status = cli_error(c, ERR_USAGE,
                            "nothing to change: give --role ROLE, --org ORG, "
                            "--no-org, --owner NAME or --no-owner");
    else
        return put_user(c, o, status);
    return false;
}

#define USER_IS(done) \
    "{name} is " done ", with role {role}[ in {org}][, for {owner}]\n"

static const struct one creation = {.method = "POST",
                                    .path = "/api/users",
                                    .put = put_user,
                                    .say = USER_IS("created")};
static const struct one change = {.method = "PATCH",
                                  .path = "/api/users/",
                                  .called = "name",
                                  .put = put_changes,
                                  .say = USER_IS("changed")};
static const struct one removal = {
    .method = "DELETE",
    .path = "/api/users/",
    .called = "name",
    .say = "{} is removed, with all their tokens\nTheir agents and grants "
           "remain: signalbox agents --creator {}\n",
    .gone = "removed"};

const struct sub cli_users_subs[] = {
    {"list", NULL, "offline config data", .list = &users},
    {"create", "NAME", "role org owner", .one = &creation},
    {"set", "NAME", "role org no-org owner no-owner", .one = &change},
    {"remove", "NAME", "", .one = &removal},
    {0},
};
