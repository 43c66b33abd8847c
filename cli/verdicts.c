/* decisions override and decisions feedback. */
#include "cli/verdicts.h"

enum { BODY_MAX = 64 * 1024 };

static void verdict_show(struct cli *c, const struct json *v)
{
    struct str to = cli_field(v, STR("overridden_to"));
    struct str note = cli_field(v, STR("note"));
    struct str agent = cli_field(v, STR("agent"));
    struct str task_id = cli_field(v, STR("task_id"));

    if (c->json) {
        cli_json_line(&c->out, v);
        return;
    }
    if (!agent.n)
        agent = STR("no agent");
    buf_add_str(&c->out, json_bool_or(json_get(v, STR("recorded")), true)
                             ? STR("It went to ")
                             : STR("Already recorded: it went to "));
    if (to.n)
        buf_addf(&c->out, "%.*s and should have gone to %.*s.",
                 STR_ARG(cli_tamed(c, agent)), STR_ARG(cli_tamed(c, to)));
    else
        buf_addf(
            &c->out, "%.*s, and that was %s.", STR_ARG(cli_tamed(c, agent)),
            str_eq(cli_field(v, STR("verdict")), STR("positive")) ? "right"
                                                                  : "wrong");
    if (task_id.n)
        buf_addf(&c->out, " The message was sent %s: %.*s.",
                 json_bool_or(json_get(v, STR("sent")), true) ? "there"
                                                              : "before",
                 STR_ARG(cli_tamed(c, task_id)));
    if (json_bool_or(json_get(v, STR("switched")), false))
        buf_addf(&c->out, " That agent now has the conversation %.*s.",
                 STR_ARG(cli_tamed(c, cli_field(v, STR("conversation_id")))));
    if (note.n)
        buf_addf(&c->out, " Note: %.*s.", STR_ARG(cli_tamed(c, note)));
    buf_add_char(&c->out, '\n');
}

static enum exit_status verdict_post(struct cli *c, struct str id,
                                     const char *what, struct str agent,
                                     struct str verdict)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl;
    struct buf path, body;
    struct json_out o;

    if (!str_starts(id, STR("dec_")))
        return cli_error(c, ERR_USAGE,
                         "the ID of a decision begins with dec_; signalbox "
                         "decisions list shows it");
    if (!(cl = client_new(c, &status)))
        return status;
    buf_init(&path, 4096);
    buf_add_str(&path, STR("/api/decisions/"));
    client_add_part(&path, id);
    buf_addf(&path, "/%s", what);
    buf_init(&body, BODY_MAX);
    o = json_out(&body);
    json_open(&o, '{');
    json_member_some(&o, "agent", agent);
    json_member_some(&o, "verdict", verdict);
    json_member_some(&o, "comment", args_get(&c->args, "comment"));
    if (args_has(&c->args, "send"))
        json_member_bool(&o, "send", true);
    json_close(&o, '}');
    if (path.over || body.over)
        status = cli_error(c, ERR_USAGE, "an argument is too long");
    else if (client_call(cl, &(struct client_request){.method = "POST",
                                                      .path = buf_str(&path),
                                                      .body = buf_str(&body)}))
        status = client_fail(cl);
    else
        verdict_show(c, client_reply(cl)->json);
    buf_fini(&body);
    buf_fini(&path);
    client_free(cl);
    return status;
}

enum exit_status cli_override(struct cli *c, struct str id)
{
    struct str agent = c->args.operands[2];

    if (!agent.n)
        return cli_error(c, ERR_USAGE,
                         "name the agent that should have got it: "
                         "signalbox decisions override ID AGENT");
    return verdict_post(c, id, "override", agent, STR(""));
}

enum exit_status cli_feedback(struct cli *c, struct str id)
{
    struct str verdict = c->args.operands[2];

    if (!str_eq(verdict, STR("right")) && !str_eq(verdict, STR("wrong")))
        return cli_error(c, ERR_USAGE,
                         "the verdict must be right or wrong: "
                         "signalbox decisions feedback ID wrong");
    return verdict_post(c, id, "feedback", args_get(&c->args, "agent"),
                        verdict);
}
