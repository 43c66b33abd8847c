/* grants: show a shared agent to users and orgs outside its creator's org. */
#include "cli/list.h"
#include "cli/span.h"

const struct arg_option cli_grants_options[] = {
    {"agent", "NAME", "list: only the grants of this agent", false},
    {"user", "NAME", "add: let this user see the agent", false},
    {"org", "ORG", "add: let all members of this org see the agent", false},
    {"expires", "TIME", "add: expires after 12h, 7d, 8w (default: never)",
     false},
    {"limit", "N", "list at most N grants (default 1000)", false},
    CLIENT_OPTIONS,
    {0},
};

/* The receiver of a grant is a user or an org. */
#define RECEIVER "[user {user}][org {org}]"

static const struct grid_column columns[] = {
    {"ID", "id", NULL, KEPT, NULL},
    {"AGENT", "agent", NULL, KEPT, NULL},
    {"FOR", RECEIVER, NULL, KEPT, NULL},
    {"EXPIRES", "expires_ms", as_expiry, KEPT, NULL},
    {"AGE", "created_ms", as_age, KEPT, NULL},
    {"BY", "by", NULL, KEPT, NULL},
    {0},
};

static const struct listing grants = {
    .path = "/api/grants",
    .columns = columns,
    .filters = "agent",
    .preset = 1000,
    .none = "No grants. signalbox grants add AGENT --user NAME shows a shared "
            "agent to\na user outside its org.\n",
};

/* A hint if the grant has no effect because the agent is not shared; no error
 * if the agent cannot be read. */
static void show_effect(struct cli *c, struct client *cl, struct str agent)
{
    struct str visibility;
    struct buf path;

    buf_init(&path, 4096);
    buf_add_str(&path, STR("/api/agents/"));
    client_add_part(&path, agent);
    if (!c->json && !path.over &&
        client_call(cl, &(struct client_request){
                            .method = "GET", .path = buf_str(&path)}) == OK) {
        visibility = cli_field(client_reply(cl)->json, STR("visibility"));
        if (str_eq(visibility, STR("private")))
            buf_add_str(&c->out, STR("The agent is private: the grant takes "
                                     "effect when it is shared.\n"));
        if (str_eq(visibility, STR("public")))
            buf_add_str(&c->out, STR("The agent is public: everybody sees it "
                                     "already.\n"));
    }
    buf_fini(&path);
}

static enum exit_status grant_add(struct cli *c, struct str agent)
{
    struct str expires = args_get(&c->args, "expires");
    enum exit_status status = EXIT_DONE;
    int64_t lasts_ms = 0;
    struct client *cl;
    struct json_out o;
    struct buf body;

    if (args_has(&c->args, "user") && args_has(&c->args, "org"))
        return cli_error(c, ERR_USAGE, "give only one of --user and --org");
    if (!args_has(&c->args, "user") && !args_has(&c->args, "org"))
        return cli_error(c, ERR_USAGE,
                         "a receiver is missing: --user NAME or --org ORG");
    if (expires.n && span_read(expires, &lasts_ms))
        return cli_error(c, ERR_USAGE,
                         "--expires is \"%.*s\"; write a number from 1 to 9999 "
                         "and s, m, h, d or w: 12h, 7d",
                         STR_ARG(str_head(expires, 64)));
    if (!(cl = client_new(c, &status)))
        return status;
    buf_init(&body, 128 * 1024);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_text(&o, "agent", agent);
    json_member_some(&o, "user", args_get(&c->args, "user"));
    json_member_some(&o, "org", args_get(&c->args, "org"));
    if (lasts_ms)
        json_member_int(&o, "expires_in_s", lasts_ms / 1000);
    json_close(&o, '}');
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/grants"),
                                                 .body = buf_str(&body)})) {
        status = client_fail(cl);
    } else {
        if (c->json)
            cli_json_line(&c->out, client_reply(cl)->json);
        else
            cli_say(c, agent, client_reply(cl)->json,
                    "{agent} is visible to " RECEIVER
                    "[ until {expires_ms}]: {id}\n");
        show_effect(c, cl, agent);
    }
    buf_fini(&body);
    client_free(cl);
    return status;
}

static enum exit_status grant_remove(struct cli *c, struct str id)
{
    static const struct one removal = {.method = "DELETE",
                                       .path = "/api/grants/",
                                       .called = "id",
                                       .say = "{} is removed\n",
                                       .gone = "removed"};

    if (!str_starts(id, STR("grant_")))
        return cli_error(c, ERR_USAGE,
                         "the ID of a grant begins with grant_; signalbox "
                         "grants list shows it");
    return cli_one(c, &removal, id);
}

const struct sub cli_grants_subs[] = {
    {"list", NULL, NULL, .list = &grants},
    {"add", "AGENT", "user org expires", .run = grant_add},
    {"remove", "ID", "", .run = grant_remove},
    {0},
};

enum exit_status cli_grants(struct cli *c)
{
    struct str word = c->args.n_operands ? c->args.operands[0] : STR("list");
    struct str_guess g = str_guess(word);

    for (const struct sub *s = cli_grants_subs; s->name; s++)
        str_guess_offer(&g, str_of(s->name),
                        str_distance(word, str_of(s->name)));
    if (!g.name.n && c->args.n_operands == 1)
        return cli_error(c, ERR_USAGE,
                         "unknown command \"grants %.*s\"; to list the grants "
                         "of an agent: signalbox grants --agent %.*s",
                         STR_ARG(str_head(word, 64)),
                         STR_ARG(str_head(word, 64)));
    return cli_sub(c);
}
