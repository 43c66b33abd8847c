/* route: show which agent would get a message, and why. The server decides as
 * for a real message, but stores and sends nothing. */
#include "cli/slurp.h"

#include <errno.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/decision_show.h"
#include "model/decision.h"
#include "model/msg.h"

enum { BODY_MAX = 7 * 1024 * 1024 };

const struct arg_option cli_route_options[] = {
    {"limit", "N", "show at most N candidates, up to 32 (default 10)", false},
    DECISION_SHOW_OPTIONS,
    {"to", "AGENT", "as if the message named this agent", false},
    {"conversation", "ID", "as if it belonged to this conversation", false},
    {"max-cost", "AMOUNT", "as if this were its cost limit, like 0.05", false},
    {"channel", "NAME", "as if it came from telegram, discord, ...", false},
    {"account", "ID", "the receiving account on that channel", false},
    {"peer", "KIND:ID", "the sender or group there: group:-1005678", false},
    {"parent", "KIND:ID", "the parent, if the peer is a thread", false},
    {"guild", "ID", "the guild", false},
    {"team", "ID", "the team", false},
    {"role", "ID", "a role of the sender; may be repeated", true},
    CLIENT_OPTIONS,
    {0},
};

static enum err route_read_words(struct cli *c, struct buf *text)
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

static bool route_read_message(struct cli *c, struct buf *text,
                               enum exit_status *status)
{
    enum err e = route_read_words(c, text);

    if (!e && text->n && text->p[text->n - 1] == '\n')
        text->n--;
    if (e == ERR_IO)
        *status =
            cli_error(c, e, "cannot read the message: %s", strerror(errno));
    else if (e || text->over || text->n > MSG_TEXT_MAX)
        *status = cli_error(c, ERR_LIMIT,
                            "the message is longer than 1 MiB, the limit");
    else if (!text->n)
        *status = cli_error(c, ERR_USAGE,
                            "a message is missing: signalbox route \"why is "
                            "my query slow?\"");
    else if (!utf8_is_valid(buf_str(text)))
        *status = cli_error(c, ERR_USAGE, "the message is not valid UTF-8");
    else
        return true;
    return false;
}

/* "group:-1005678". False: the error has been printed. */
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

/* The channel options. False: the error has been printed. */
static bool route_put_source(struct cli *c, struct json_out *o,
                             enum exit_status *status)
{
    static const char *const of_channel[] = {"account", "peer", "parent",
                                             "guild",   "team", "role"};

    for (size_t i = 0; i < sizeof(of_channel) / sizeof(of_channel[0]); i++)
        if (args_has(&c->args, of_channel[i]) &&
            !args_has(&c->args, "channel")) {
            *status = cli_error(c, ERR_USAGE,
                                "--%s needs --channel, the name of the "
                                "platform",
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

static bool route_put_body(struct cli *c, struct buf *body, struct str text,
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
    if (!route_put_source(c, &o, status))
        return false;
    json_close(&o, '}');
    return true;
}

/* Show the nearest candidates of a refusal. */
static enum exit_status route_fail(struct cli *c, struct client *cl,
                                   int64_t limit)
{
    const struct json *error = json_get(client_reply(cl)->json, STR("error"));
    const struct json *details = json_get(error, STR("details"));

    if (!c->json && client_reply(cl)->err == ERR_NO_ROUTE && details) {
        decision_show_candidates(c, details, limit);
        (void)cli_flush(c, EXIT_DONE);
    }
    return client_fail_to(cl);
}

static enum exit_status route_request(struct cli *c, struct str body,
                                      int64_t limit)
{
    enum exit_status status = EXIT_DONE;
    struct client *cl = client_new(c, &status);

    if (!cl)
        return status;
    if (client_call(cl, &(struct client_request){.method = "POST",
                                                 .path = STR("/api/route"),
                                                 .body = body,
                                                 .notice = "Choosing"}))
        status = route_fail(c, cl, limit);
    else if (c->json)
        cli_json_line(&c->out, client_reply(cl)->json);
    else {
        decision_show_choice(c, client_reply(cl)->json);
        decision_show_candidates(c, client_reply(cl)->json, limit);
    }
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
    if (route_read_message(c, &text, &status) &&
        route_put_body(c, &body, buf_str(&text), &status))
        status = route_request(c, buf_str(&body), limit);
    buf_fini(&text);
    buf_fini(&body);
    return status;
}
