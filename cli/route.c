/* route: show which agent would get a message, and why. The server decides as
 * for a real message, but stores and sends nothing. */
#include "cli/slurp.h"

#include <errno.h>

#include "base/utf8.h"
#include "cli/decision_show.h"
#include "cli/list.h"
#include "model/decision.h"
#include "model/msg.h"

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

static bool route_read_message(struct cli *c, struct buf *text,
                               enum exit_status *status)
{
    enum err e = slurp_words(&c->args, text, MSG_TEXT_MAX + 1);

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
    if (args_has(&c->args, "role")) {
        json_key(o, STR("roles"));
        json_open(o, '[');
        for (size_t i = 0; i < c->args.n_options; i++)
            if (strcmp(c->args.options[i].option->name, "role") == 0)
                json_put_str(o, c->args.options[i].value);
        json_close(o, ']');
    }
    json_close(o, '}');
    return true;
}

static bool put_message(struct cli *c, struct json_out *o,
                        enum exit_status *status)
{
    int64_t max_cost = -1;
    struct buf text;
    bool is_good;

    buf_init(&text, MSG_TEXT_MAX + 128 * 1024);
    is_good = route_read_message(c, &text, status) &&
              cli_max_cost(c, &max_cost, status);
    if (max_cost >= 0)
        json_member_int(o, "max_cost_micros", max_cost);
    json_member_some(o, "text", buf_str(&text));
    json_member_some(o, "conversation_id", args_get(&c->args, "conversation"));
    if (args_has(&c->args, "to")) {
        json_key(o, STR("executor"));
        json_open(o, '{');
        json_member_some(o, "name", args_get(&c->args, "to"));
        json_close(o, '}');
    }
    buf_fini(&text);
    return is_good && route_put_source(c, o, status);
}

static void show_choice(struct cli *c, const struct json *d)
{
    decision_show_choice(c, d);
    decision_show_candidates(c, d);
}

/* Show the nearest candidates of a refusal. */
static enum exit_status show_nearest(struct cli *c, struct client *cl)
{
    const struct json *details =
        cli_member(client_reply(cl)->json, "error.details");

    if (!c->json && client_reply(cl)->err == ERR_NO_ROUTE && details) {
        decision_show_candidates(c, details);
        (void)cli_flush(c, EXIT_DONE);
    }
    return client_fail_to(cl);
}

enum exit_status cli_route(struct cli *c)
{
    static const struct one choice = {.method = "POST",
                                      .path = "/api/route",
                                      .notice = "Choosing",
                                      .put = put_message,
                                      .show = show_choice,
                                      .fail = show_nearest};
    enum exit_status status = EXIT_DONE;

    return decision_limit_is_good(c, &status) ? cli_one(c, &choice, STR(""))
                                              : status;
}
