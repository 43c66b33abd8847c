/* learning: what was learnt from what came of decisions. */
#include "cli/client.h"

enum {
    BODY_MAX = 8 * 1024,
    LONG_MS = 10 * 60 * 1000, /* for what goes through all records */
};

const struct arg_option cli_learning_options[] = {
    {"all", NULL, "with reset: all that was learnt, of every agent", false},
    {"user", "NAME", "with void: the verdicts that this user gave", false},
    {"owner", "NAME",
     "with void: also those about the agents that this user created", false},
    CLIENT_OPTIONS,
    {0},
};

static void show_figures(struct cli *c, const struct json *is)
{
    static const struct {
        const char *key, *words;
    } lines[] = {
        {"agents", "agents of whom something is known"},
        {"types", "types of query"},
        {"agent_types", "agents with a type"},
        {"examples", "examples from corrections"},
        {"applied", "outcomes it was learnt from"},
        {"not_written", "of them whose effect is not on the disk yet"},
        {"judged", "decisions judged since the server started"},
        {"runs", "runs of the job since then"},
    };

    if (c->json) {
        cli_json_line(&c->out, is);
        return;
    }
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        buf_addf(&c->out, "%10lld  %s\n",
                 (long long)cli_field_int(is, str_of(lines[i].key)),
                 lines[i].words);
}

static enum exit_status figures(struct cli *c, struct str operand)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);

    (void)operand;
    if (!cl)
        return status;
    if (client_call(cl, &(struct client_request){.method = "GET",
                                                 .path = STR("/api/learning")}))
        status = client_fail(cl);
    else
        show_figures(c, client_reply(cl)->json);
    client_free(cl);
    return status;
}

static enum exit_status export_all(struct cli *c, struct str operand)
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
                                         .notice = "all that was learnt"}))
        status = client_fail(cl);
    else
        cli_text(c, client_reply(cl)->text);
    client_free(cl);
    return status;
}

/* What is asked for with a POST. For people *n is the figure of that name,
 * for them to be told. */
static enum exit_status post(struct cli *c, struct str path, struct str body,
                             struct str key, int64_t *n)
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
                                                 .notice = "the server"})) {
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

static enum exit_status run(struct cli *c, struct str operand)
{
    int64_t n;
    enum exit_status status =
        post(c, STR("/api/learning/run"), STR(""), STR("judged"), &n);

    (void)operand;
    if (!status && !c->json)
        buf_addf(&c->out, "%lld decision%s judged.\n", (long long)n,
                 n == 1 ? " was" : "s were");
    return status;
}

static enum exit_status rebuild(struct cli *c, struct str operand)
{
    int64_t n;
    enum exit_status status =
        post(c, STR("/api/learning/rebuild"), STR(""), STR("outcomes"), &n);

    (void)operand;
    if (!status && !c->json)
        buf_addf(&c->out,
                 "What was learnt is made anew, from %lld outcome%s.\n",
                 (long long)n, n == 1 ? "" : "s");
    return status;
}

static enum exit_status reset(struct cli *c, struct str agent)
{
    bool is_all = args_has(&c->args, "all");
    enum exit_status status;
    struct json_out o;
    struct buf body;
    int64_t n;

    if ((c->args.n_operands > 1) == is_all)
        return cli_error(c, ERR_USAGE,
                         "say which: signalbox learning reset AGENT, or "
                         "signalbox learning reset --all");
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    if (!is_all)
        json_member_text(&o, "agent", agent);
    else
        json_member_bool(&o, "all", true);
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the name is too long")
                       : post(c, STR("/api/learning/reset"), buf_str(&body),
                              STR(""), &n);
    if (!status && !c->json)
        buf_addf(&c->out, "What was learnt of %.*s is forgotten.\n",
                 STR_ARG(is_all ? STR("all") : cli_tamed(c, agent)));
    buf_fini(&body);
    return status;
}

static void show_voided(struct cli *c, struct str name, bool is_owner,
                        int64_t n)
{
    struct str shown = cli_tamed(c, name);

    if (n)
        buf_addf(&c->out,
                 "%lld verdict%s of %.*s%s %s voided, and learning is built "
                 "without %s.\n",
                 (long long)n, n == 1 ? "" : "s", STR_ARG(shown),
                 is_owner ? " or about the agents of that owner" : "",
                 n == 1 ? "is" : "are", n == 1 ? "it" : "them");
    else
        buf_addf(&c->out, "%.*s gave no verdicts%s. Nothing has changed.\n",
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
                         "say whose: signalbox learning void --user NAME, or "
                         "signalbox learning void --owner NAME");
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "user", user);
    json_member_some(&o, "owner", owner);
    json_close(&o, '}');
    status = body.over ? cli_error(c, ERR_USAGE, "the name is too long")
                       : post(c, STR("/api/learning/void"), buf_str(&body),
                              STR("voided"), &n);
    if (!status && !c->json)
        show_voided(c, user.n ? user : owner, owner.n > 0, n);
    buf_fini(&body);
    return status;
}

const struct sub cli_learning_subs[] = {
    {"show", NULL, "", figures},
    {"run", NULL, "", run},
    {"export", NULL, "", export_all},
    {"reset", "[AGENT]", "all", reset},
    {"rebuild", NULL, "", rebuild},
    {"void", NULL, "user owner", void_verdicts},
    {0},
};

enum exit_status cli_learning(struct cli *c)
{
    return cli_sub(c, cli_learning_subs);
}
