/* learning: show, run, export or reset the data that the router has learned. */
#include "cli/list.h"

enum {
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

static void learning_show(struct cli *c, const struct json *is)
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

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        buf_addf(&c->out, "%10lld  %s\n",
                 (long long)cli_field_int(is, str_of(lines[i].key)),
                 lines[i].words);
}

static const struct one figures = {
    .method = "GET", .path = "/api/learning", .show = learning_show};

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

/* A change, which may read all records. */
#define LEARNING_POST(act, ...)                                                \
    {                                                                          \
        .method = "POST", .path = "/api/learning/" act, .timeout_ms = LONG_MS, \
        .notice = "Working", __VA_ARGS__                                       \
    }

static void show_run(struct cli *c, const struct json *is)
{
    cli_say(c, STR(""), is,
            cli_field_int(is, STR("judged")) == 1
                ? "{judged} decision was judged.\n"
                : "{judged} decisions were judged.\n");
}

static const struct one run = LEARNING_POST("run", .show = show_run);

static void show_rebuilt(struct cli *c, const struct json *is)
{
    cli_say(c, STR(""), is,
            cli_field_int(is, STR("outcomes")) == 1
                ? "Learned data was rebuilt from {outcomes} outcome.\n"
                : "Learned data was rebuilt from {outcomes} outcomes.\n");
}

static const struct one rebuild =
    LEARNING_POST("rebuild", .show = show_rebuilt);

static bool put_reset(struct cli *c, struct json_out *o,
                      enum exit_status *status)
{
    bool is_all = args_has(&c->args, "all");

    if ((c->args.n_operands > 1) == is_all) {
        *status = cli_error(c, ERR_USAGE,
                            "give either an agent or --all: signalbox learning "
                            "reset AGENT, signalbox learning reset --all");
        return false;
    }
    if (is_all)
        json_member_bool(o, "all", true);
    else
        json_member_text(o, "agent", c->args.operands[1]);
    return true;
}

static void show_reset(struct cli *c, const struct json *is)
{
    cli_say(c,
            args_has(&c->args, "all") ? STR("all agents") : c->args.operands[1],
            is, "Learned data of {} was removed.\n");
}

static const struct one reset =
    LEARNING_POST("reset", .put = put_reset, .show = show_reset);

static bool put_void(struct cli *c, struct json_out *o,
                     enum exit_status *status)
{
    bool is_user = args_has(&c->args, "user");

    if (is_user == args_has(&c->args, "owner")) {
        *status = cli_error(c, ERR_USAGE,
                            "give either --user or --owner: signalbox learning "
                            "void --user NAME, signalbox learning void --owner "
                            "NAME");
        return false;
    }
    (void)o;
    return true;
}

static void show_voided(struct cli *c, const struct json *is)
{
    bool is_owner = args_has(&c->args, "owner");
    struct str shown =
        cli_tamed(c, args_get(&c->args, is_owner ? "owner" : "user"));
    int64_t n = cli_field_int(is, STR("voided"));

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

static const struct one voiding = LEARNING_POST(
    "void", .put = put_void, .options = "user owner", .show = show_voided);

const struct sub cli_learning_subs[] = {
    {"show", NULL, "", .one = &figures},
    {"run", NULL, "", .one = &run},
    {"export", NULL, "", .run = learning_export},
    {"reset", "[AGENT]", "all", .one = &reset},
    {"rebuild", NULL, "", .one = &rebuild},
    {"void", NULL, "user owner", .one = &voiding},
    {0},
};
