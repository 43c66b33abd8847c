/* route: who would get a message, and why. The server decides as it would if it
 * were sent, keeps nothing and gives it to nobody; here it is shown. */
#include "cli/slurp.h"

#include <errno.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/decision_show.h"
#include "model/decision.h"
#include "model/msg.h"

enum { BODY_MAX = 7 * 1024 * 1024 };

const struct arg_option cli_route_options[] = {
    {"limit", "N", "show at most so many, up to 32; 10 if not given", false},
    DECISION_SHOW_OPTIONS,
    {"to", "AGENT", "as if it named this agent", false},
    {"conversation", "ID", "as if it were said in this conversation", false},
    {"max-cost", "AMOUNT", "as if it might cost so much, like 0.05", false},
    {"channel", "NAME", "as if it came from there: telegram, discord, ...",
     false},
    {"account", "ID", "the account there that it was sent to", false},
    {"peer", "KIND:ID", "who or where it was said: group:-1005678", false},
    {"parent", "KIND:ID", "what that is a thread of", false},
    {"guild", "ID", "the guild", false},
    {"team", "ID", "the team", false},
    {"role", "ID", "a role of who said it; may be repeated", true},
    CLIENT_OPTIONS,
    {0},
};

/* What is asked. */

static enum err gather(struct cli *c, struct buf *text)
{
    const struct args *a = &c->args;

    if (a->n_operands == 1 && str_eq(a->operands[0], STR("-")))
        return slurp(STDIN_FILENO, text, MSG_TEXT_MAX + 1);
    for (size_t i = 0; i < a->n_operands; i++) {
        if (i)
            buf_add_char(text, ' ');
        buf_add_str(text, a->operands[i]);
    }
    return OK;
}

static bool read_text(struct cli *c, struct buf *text, enum exit_status *status)
{
    enum err e = gather(c, text);

    if (!e && text->n && text->p[text->n - 1] == '\n')
        text->n--;
    if (e == ERR_IO)
        *status =
            cli_error(c, e, "cannot read the message: %s", strerror(errno));
    else if (e || text->over || text->n > MSG_TEXT_MAX)
        *status = cli_error(c, ERR_LIMIT,
                            "the message is longer than 1 MiB, which is the "
                            "limit");
    else if (!text->n)
        *status = cli_error(c, ERR_USAGE,
                            "say what would be sent: signalbox route \"why is "
                            "my query slow?\"");
    else if (!utf8_is_valid(buf_str(text)))
        *status = cli_error(c, ERR_USAGE, "the message is not text in UTF-8");
    else
        return true;
    return false;
}

/* "group:-1005678". False: that is none, which was said. */
static bool put_peer(struct cli *c, struct json_out *o, const char *option,
                     const char *key, enum exit_status *status)
{
    struct str id = args_get(&c->args, option), kind = str_cut(&id, ':');

    if (!args_has(&c->args, option))
        return true;
    if (!kind.n || !id.n) {
        *status = cli_error(c, ERR_USAGE,
                            "--%s must be KIND:ID, like group:-1005678 or "
                            "direct:anna",
                            option);
        return false;
    }
    json_key(o, str_of(key));
    json_open(o, '{');
    json_member_some(o, "kind", kind);
    json_member_some(o, "id", id);
    json_close(o, '}');
    return true;
}

static void put_roles(const struct cli *c, struct json_out *o)
{
    if (!args_has(&c->args, "role"))
        return;
    json_key(o, STR("roles"));
    json_open(o, '[');
    for (size_t i = 0; i < c->args.n_options; i++)
        if (strcmp(c->args.options[i].option->name, "role") == 0)
            json_put_str(o, c->args.options[i].value);
    json_close(o, ']');
}

/* Where it would have come from. False: an error has been said. */
static bool put_source(struct cli *c, struct json_out *o,
                       enum exit_status *status)
{
    static const char *const of_channel[] = {"account", "peer", "parent",
                                             "guild",   "team", "role"};

    for (size_t i = 0; i < sizeof(of_channel) / sizeof(of_channel[0]); i++)
        if (args_has(&c->args, of_channel[i]) &&
            !args_has(&c->args, "channel")) {
            *status = cli_error(c, ERR_USAGE,
                                "--%s needs --channel: say which platform it "
                                "is on",
                                of_channel[i]);
            return false;
        }
    if (!args_has(&c->args, "channel"))
        return true;
    json_key(o, STR("source"));
    json_open(o, '{');
    json_member_some(o, "channel", args_get(&c->args, "channel"));
    json_member_some(o, "accountId", args_get(&c->args, "account"));
    if (!put_peer(c, o, "peer", "peer", status) ||
        !put_peer(c, o, "parent", "parentPeer", status))
        return false;
    json_member_some(o, "guildId", args_get(&c->args, "guild"));
    json_member_some(o, "teamId", args_get(&c->args, "team"));
    put_roles(c, o);
    json_close(o, '}');
    return true;
}

static bool put_body(struct cli *c, struct buf *body, struct str text,
                     enum exit_status *status)
{
    struct json_out o = json_out(body);
    int64_t max_cost = -1;

    if (!cli_max_cost(c, &max_cost, status))
        return false;
    json_open(&o, '{');
    if (max_cost >= 0)
        json_member_int(&o, "max_cost_micros", max_cost);
    json_member_some(&o, "text", text);
    json_member_some(&o, "conversation_id", args_get(&c->args, "conversation"));
    if (args_has(&c->args, "to")) {
        json_key(&o, STR("executor"));
        json_open(&o, '{');
        json_member_some(&o, "name", args_get(&c->args, "to"));
        json_close(&o, '}');
    }
    if (!put_source(c, &o, status))
        return false;
    json_close(&o, '}');
    return true;
}

/* What came of it. */

/* Who came nearest, where that was not near enough. */
static enum exit_status fail(struct cli *c, struct client *cl, int64_t limit)
{
    const struct json *error = json_get(client_reply(cl)->json, STR("error"));
    const struct json *details = json_get(error, STR("details"));

    if (!c->json && client_reply(cl)->err == ERR_NO_ROUTE && details) {
        decision_show_candidates(c, details, limit);
        (void)cli_flush(c, EXIT_DONE);
    }
    return client_fail_to(cl);
}

static void show(struct cli *c, const struct json *d, int64_t limit)
{
    if (c->json) {
        cli_json_line(&c->out, d);
        return;
    }
    decision_show_choice(c, d);
    decision_show_candidates(c, d, limit);
}

static enum exit_status ask(struct cli *c, struct str body, int64_t limit)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);

    if (!cl)
        return status;
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/route"),
                                                 .body = body,
                                                 .notice = "Choosing"}))
        status = fail(c, cl, limit);
    else
        show(c, client_reply(cl)->json, limit);
    client_free(cl);
    return status;
}

enum exit_status cli_route(struct cli *c)
{
    enum exit_status status = EXIT_DONE;
    struct buf text, body;
    int64_t limit;

    if (!decision_show_limit(c, &limit, &status))
        return status;
    buf_init(&text, MSG_TEXT_MAX + 128 * 1024);
    buf_init(&body, BODY_MAX);
    if (read_text(c, &text, &status) &&
        put_body(c, &body, buf_str(&text), &status))
        status = ask(c, buf_str(&body), limit);
    buf_fini(&text);
    buf_fini(&body);
    return status;
}
