/* learning: show, run, export or reset the data that the router has learned. */
#include "cli/one.h"

enum {
    BODY_MAX = 8 * 1024,
    LONG_MS = 10 * 60 * 1000, /* for calls that read all records */
};

const struct arg_option cli_learning_options[] = {
    {"all", NULL, "reset: forget every agent", false},
    {"user", "NAME", "void: the verdicts of this user", false},
    {"owner", "NAME",
     "void: the verdicts of this user, and those about their agents", false},
    CLIENT_OPTIONS,
    {0},
};

static void learning_show(struct cli *c, const struct one *o,
                          const struct json *is)
{
    static const struct {
        const char *key, *words;
    } lines[] = {
        {"agents", "agents with learned data"},
        {"types", "query types"},
        {"agent_types", "pairs of agent and query type"},
        {"examples", "examples from corrections"},
        {"applied", "outcomes learned from"},
        {"not_written", "of these not on disk yet"},
        {"judged", "decisions judged since the server started"},
        {"runs", "runs of the job since then"},
    };

    (void)o;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        buf_addf(&c->out, "%10lld  %s\n",
                 (long long)cli_field_int(is, str_of(lines[i].key)),
                 lines[i].words);
}

static enum exit_status learning_figures(struct cli *c, struct str operand)
{
    (void)operand;
    return cli_one(c, &(struct one){.method = "GET",
                                    .folder = "/api/learning",
                                    .show = learning_show});
}

static enum exit_status learning_export(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);

    (void)operand;
    if (!cl)
        return status;
    if (client_call(
            cl, &(struct client_request){.method = "GET",
                                         .path = STR("/api/learning/export"),
                                         .timeout_ms = LONG_MS,
                                         .wants_text = true,
                                         .notice = "Exporting"}))
        status = client_fail(cl);
    else
        cli_text(c, client_reply(cl)->text);
    client_free(cl);
    return status;
}

/* Send a POST; print its answer with --json. *n is the answer's number `key`.
 */
static enum exit_status learning_post(struct cli *c, struct str path,
                                      struct str body, struct str key,
                                      int64_t *n)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);
    const struct json *is;

    if (!cl)
        return status;
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = path,
                                                 .body = body,
                                                 .timeout_ms = LONG_MS,
                                                 .notice = "Working"})) {
        status = client_fail(cl);
    } else {
        is = client_reply(cl)->json;
        *n = cli_field_int(is, key);
        if (c->json && is)
            cli_json_line(&c->out, is);
    }
    client_free(cl);
    return status;
}

static enum exit_status learning_run_command(struct cli *c, struct str operand)
{
    int64_t n;
    enum exit_status status =
        learning_post(c, STR("/api/learning/run"), STR(""), STR("judged"), &n);

    (void)operand;
    if (!status && !c->json)
        buf_addf(&c->out, "%lld decision%s judged.\n", (long long)n,
                 n == 1 ? " was" : "s were");
    return status;
}

static enum exit_status learning_rebuild_command(struct cli *c,
                                                 struct str operand)
{
    int64_t n;
    enum exit_status status = learning_post(c, STR("/api/learning/rebuild"),
                                            STR(""), STR("outcomes"), &n);

    (void)operand;
    if (!status && !c->json)
        buf_addf(&c->out, "Learned data was rebuilt from %lld outcome%s.\n",
                 (long long)n, n == 1 ? "" : "s");
    return status;
}

static enum exit_status learning_reset(struct cli *c, struct str agent)
{
    bool is_all = args_has(&c->args, "all");
    enum exit_status status;
    struct json_out o;
    struct buf body;
    int64_t n;

    if ((c->args.n_operands > 1) == is_all)
        return cli_error(c, ERR_USAGE,
                         "give either an agent or --all: signalbox learning "
                         "reset AGENT, signalbox learning reset --all");
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    if (!is_all)
        json_member_text(&o, "agent", agent);
    else
        json_member_bool(&o, "all", true);
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the name is too long")
                       : learning_post(c, STR("/api/learning/reset"),
                                       buf_str(&body), STR(""), &n);
    if (!status && !c->json)
        buf_addf(&c->out, "Learned data of %.*s was removed.\n",
                 STR_ARG(is_all ? STR("all agents") : cli_tamed(c, agent)));
    buf_fini(&body);
    return status;
}

static void show_voided(struct cli *c, struct str name, bool is_owner,
                        int64_t n)
{
    struct str shown = cli_tamed(c, name);

    if (n)
        buf_addf(&c->out,
                 "%lld verdict%s of %.*s%s %s voided, and learned data was "
                 "rebuilt without %s.\n",
                 (long long)n, n == 1 ? "" : "s", STR_ARG(shown),
                 is_owner ? " or about the agents of that owner" : "",
                 n == 1 ? "was" : "were", n == 1 ? "it" : "them");
    else
        buf_addf(&c->out, "%.*s gave no verdicts%s. Nothing changed.\n",
                 STR_ARG(shown),
                 is_owner ? ", and there are none about agents of that owner"
                          : "");
}

static enum exit_status void_verdicts(struct cli *c, struct str operand)
{
    struct str user = args_get(&c->args, "user");
    struct str owner = args_get(&c->args, "owner");
    enum exit_status status;
    struct json_out o;
    struct buf body;
    int64_t n;

    (void)operand;
    if ((user.n > 0) == (owner.n > 0))
        return cli_error(c, ERR_USAGE,
                         "give either --user or --owner: signalbox learning "
                         "void --user NAME, signalbox learning void --owner "
                         "NAME");
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "user", user);
    json_member_some(&o, "owner", owner);
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the name is too long")
                       : learning_post(c, STR("/api/learning/void"),
                                       buf_str(&body), STR("voided"), &n);
    if (!status && !c->json)
        show_voided(c, user.n ? user : owner, owner.n > 0, n);
    buf_fini(&body);
    return status;
}

const struct sub cli_learning_subs[] = {
    {"show", NULL, "", learning_figures},
    {"run", NULL, "", learning_run_command},
    {"export", NULL, "", learning_export},
    {"reset", "[AGENT]", "all", learning_reset},
    {"rebuild", NULL, "", learning_rebuild_command},
    {"void", NULL, "user owner", void_verdicts},
    {0},
};

enum exit_status cli_learning(struct cli *c)
{
    return cli_sub(c, cli_learning_subs);
}
