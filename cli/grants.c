/* grants: show a shared agent to users and orgs outside its creator's org. */
#include "cli/list.h"
#include "cli/remove.h"
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

/* "user anna", "org acme". */
static void grant_add_receiver(struct buf *out, const struct json *grant)
{
    struct str org = cli_field(grant, STR("org"));

    if (org.n)
        buf_addf(out, "org %.*s", STR_ARG(org));
    else
        buf_addf(out, "user %.*s", STR_ARG(cli_field(grant, STR("user"))));
}

static void add_grant(struct listing *l, const struct json *item)
{
    int64_t expires_ms = cli_field_int(item, STR("expires_ms"));
    struct span_text left = span_left(expires_ms - l->now_ms);
    struct span_text age =
        span_write(l->now_ms - cli_field_int(item, STR("created_ms")));
    struct buf receiver;

    buf_init(&receiver, 1024);
    grant_add_receiver(&receiver, item);
    grid_add(&l->grid, (struct str[]){
                           cli_field(item, STR("id")),
                           cli_field(item, STR("agent")),
                           buf_str(&receiver),
                           !expires_ms               ? STR("never")
                           : expires_ms <= l->now_ms ? STR("expired")
                                                     : str_of(left.text),
                           str_of(age.text),
                           cli_field(item, STR("by")),
                       });
    buf_fini(&receiver);
}

static enum exit_status grants_list(struct cli *c, struct str operand)
{
    static const struct grid_head heads[] = {{"ID", NULL},  {"AGENT", NULL},
                                             {"FOR", NULL}, {"EXPIRES", NULL},
                                             {"AGE", NULL}, {"BY", NULL}};
    struct list_kind grants = {
        .heads = heads,
        .n_heads = 6,
        .add = add_grant,
        .most = 100000,
        .preset = 1000,
        .none = "No grants. signalbox grants add AGENT --user NAME shows a "
                "shared agent to\na user outside its org.\n",
        .tells_of_further = true};
    enum exit_status status;
    struct buf path;

    (void)operand;
    buf_init(&path, 16 * 1024);
    buf_add_str(&path, STR("/api/grants"));
    if (args_has(&c->args, "agent"))
        client_add_query(&path, "agent", args_get(&c->args, "agent"));
    grants.path = buf_str(&path);
    status = cli_list(c, &grants);
    buf_fini(&path);
    return status;
}

static void grant_put_body(struct cli *c, struct buf *body, struct str agent,
                           int64_t lasts_ms)
{
    struct str user = args_get(&c->args, "user");
    struct str org = args_get(&c->args, "org");
    struct json_out o = json_out(body);

    json_open(&o, '{');
    json_member_text(&o, "agent", agent);
    json_key(&o, user.n ? STR("user") : STR("org"));
    json_put_str(&o, user.n ? user : org);
    if (lasts_ms)
        json_member_int(&o, "expires_in_s", lasts_ms / 1000);
    json_close(&o, '}');
}

static void show_grant(struct cli *c, const struct json *grant)
{
    int64_t expires_ms = cli_field_int(grant, STR("expires_ms"));
    struct buf receiver;

    if (c->json) {
        cli_json_line(&c->out, grant);
        return;
    }
    buf_init(&receiver, 1024);
    grant_add_receiver(&receiver, grant);
    buf_addf(&c->out, "%.*s is visible to %.*s",
             STR_ARG(cli_tamed(c, cli_field(grant, STR("agent")))),
             STR_ARG(cli_tamed(c, buf_str(&receiver))));
    if (expires_ms)
        buf_addf(&c->out, " until %s", cli_time(expires_ms).text);
    buf_addf(&c->out, ": %.*s\n",
             STR_ARG(cli_tamed(c, cli_field(grant, STR("id")))));
    buf_fini(&receiver);
}

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
    grant_put_body(c, &body, agent, lasts_ms);
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/grants"),
                                                 .body = buf_str(&body)})) {
        status = client_fail(cl);
    } else {
        show_grant(c, client_reply(cl)->json);
        show_effect(c, cl, agent);
    }
    buf_fini(&body);
    client_free(cl);
    return status;
}

static enum exit_status grant_remove(struct cli *c, struct str id)
{
    static const struct removal grant = {"/api/grants/", "id", "removed", NULL};

    if (!str_starts(id, STR("grant_")))
        return cli_error(c, ERR_USAGE,
                         "the ID of a grant begins with grant_; signalbox "
                         "grants list shows it");
    return cli_remove(c, &grant, id);
}

const struct sub cli_grants_subs[] = {
    {"list", NULL, "agent limit", grants_list},
    {"add", "AGENT", "user org expires", grant_add},
    {"remove", "ID", "", grant_remove},
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
    return cli_sub(c, cli_grants_subs);
}
