/* decisions: list them, show one with its outcome, and correct one. */
#include "cli/decisions.h"

#include "cli/decision_show.h"
#include "cli/list.h"
#include "model/decision.h"

const struct arg_option cli_decisions_options[] = {
    {"text", "WORDS", "only messages with these words", false},
    {"layer", "LAYER", "only this layer: semantic, default, ...", false},
    {"agent", "AGENT",
     "list: only this agent; feedback: the agent that would be right", false},
    {"comment", "TEXT", "override, feedback: the reason, for the feed", false},
    {"send", NULL, "override: send the agent a message that was refused",
     false},
    {"verdict", "VERDICT",
     "only this verdict: open, positive, negative, neutral", false},
    {"type", "N", "only this query type; 0: without a type", false},
    {"overridden", NULL, "only overridden decisions", false},
    {"since", "WHEN", "only from this time on: a span like 7d, or Unix ms",
     false},
    {"until", "WHEN", "only before this time, in the same format", false},
    {"requester", "USER", "only messages from this user; for admins", false},
    {"conversation", "ID", "only this conversation", false},
    {"task", "ID", "only this task", false},
    {"min-score", "SCORE", "only this score or higher", false},
    {"max-score", "SCORE", "only this score or lower", false},
    {"limit", "N",
     "list at most N decisions (default 20), or N candidates (default 10)",
     false},
    DECISION_SHOW_OPTIONS,
    DECISIONS_STATS_OPTIONS,
    CLIENT_OPTIONS,
    {0},
};

/* The list. */

static const char *verdict_colour(struct str verdict)
{
    if (str_eq(verdict, STR("positive")))
        return "\033[32m";
    if (str_eq(verdict, STR("negative")))
        return "\033[31m";
    return str_eq(verdict, STR("neutral")) ? "\033[33m" : "\033[2m";
}

/* The layer, and "unsure" if the band says so. A list has no room for bands
 * that need no attention. */
static void as_layer(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, json_str_or(cell->v, STR("")));
    if (json_bool_or(json_get(cell->item, STR("unsure")), false) ||
        str_eq(cli_field(cell->item, STR("band")), STR("unsure")))
        buf_add_str(out, STR(", unsure"));
}

/* A narrow window has no column for layers, so an unsure agent gets a "?". */
static void as_chosen(const struct cell *cell, struct buf *out)
{
    if (str_eq(cli_field(cell->item, STR("layer")), STR("none"))) {
        buf_add_str(out, STR("no agent"));
        return;
    }
    buf_add_str(out, json_str_or(cell->v, STR("")));
    if (cell->is_narrow &&
        json_bool_or(json_get(cell->item, STR("unsure")), false))
        buf_add_str(out, STR(" ?"));
}

static void as_message(const struct cell *cell, struct buf *out)
{
    buf_add_str(out, json_get(cell->item, STR("unreadable"))
                         ? STR("(recorded by another version; cannot be read)")
                         : json_str_or(cell->v, STR("")));
}

static const struct grid_column columns[] = {
    {"ID", "id", NULL, KEPT, NULL},
    {"LAYER", "layer", as_layer, DROPPED, NULL},
    {"AGENT", "agent", as_chosen, KEPT, NULL},
    {"SCORE", "score", as_score, DROPPED, NULL},
    {"VERDICT", "verdict", NULL, KEPT, verdict_colour},
    {"AGE", "at_ms", as_age, KEPT, NULL},
    {"MESSAGE", "text", as_message, KEPT, NULL},
    {0},
};

static const struct listing decisions = {
    .path = "/api/decisions",
    .columns = columns,
    .filters = "layer verdict agent requester text=q "
               "conversation=conversation_id task=task_id type overridden "
               "since until min-score max-score",
    .narrow = 100,
    .preset = 20,
    .none = "No decisions.\n",
};

/* One decision. */

static void as_answer(const struct cell *cell, struct buf *out)
{
    if (json_int_or(cell->v, -1) >= 0)
        buf_addf(out, "%lld characters", (long long)json_int_or(cell->v, 0));
}

static void as_latency(const struct cell *cell, struct buf *out)
{
    if (json_int_or(cell->v, -1) >= 0)
        buf_addf(out, "%.1f s", (double)json_int_or(cell->v, 0) / 1000);
}

static const struct field origin[] = {
    {"from", "requester", NULL},
    {"org", "org", NULL},
    {"made", "at_ms", as_ago},
    {"task", "task_id", NULL},
    {"conversation", "conversation_id", NULL},
    {"answer", "answer_chars", as_answer},
    {"latency", "latency_ms", as_latency},
    {"error", "error_code", NULL},
    {0},
};
static const struct field outcome[] = {
    {"judged", "verdict_ms", as_ago},
    {"overridden", "[to {overridden_to} by {overridden_by}]", NULL},
    {"override", "overridden_ms", as_ago},
    {0},
};

static void show_decision(struct cli *c, const struct json *d)
{
    struct str verdict = cli_tamed(c, cli_field(d, STR("verdict")));
    const char *colour = c->colour ? verdict_colour(verdict) : "";

    cli_say(c, STR(""), d, "{id}  ");
    decision_show_choice(c, d);
    cli_fields(c, d, origin);
    buf_addf(&c->out, "  %-13s %s%.*s%s\n", "verdict", colour, STR_ARG(verdict),
             *colour ? "\033[0m" : "");
    cli_fields(c, d, outcome);
    decision_show_candidates(c, d);
    cli_section(c, "Message", cli_field(d, STR("text")));
}

static enum exit_status decision_show_by_id(struct cli *c, struct str id)
{
    static const struct one decision = {.method = "GET",
                                        .path = "/api/decisions/",
                                        .called = "ID",
                                        .show = show_decision};
    enum exit_status status = EXIT_DONE;

    return decision_limit_is_good(c, &status) ? cli_one(c, &decision, id)
                                              : status;
}

/* Corrections. */

static void show_verdict(struct cli *c, const struct json *v)
{
    bool is_new = json_bool_or(json_get(v, STR("recorded")), true);
    bool is_right = str_eq(cli_field(v, STR("verdict")), STR("positive"));

    cli_say(c, STR(""), v,
            is_new ? "It went to " : "Already recorded: it went to ");
    cli_say(c, STR(""), v,
            cli_field(v, STR("agent")).n ? "{agent}" : "no agent");
    if (cli_field(v, STR("overridden_to")).n)
        cli_say(c, STR(""), v, " and should have gone to {overridden_to}.");
    else
        buf_addf(&c->out, ", and that was %s.", is_right ? "right" : "wrong");
    cli_say(c, STR(""), v,
            json_bool_or(json_get(v, STR("sent")), true)
                ? "[ The message was sent there: {task_id}.]"
                : "[ The message was sent before: {task_id}.]");
    if (json_bool_or(json_get(v, STR("switched")), false))
        cli_say(c, STR(""), v,
                " That agent now has the conversation {conversation_id}.");
    cli_say(c, STR(""), v, "[ Note: {note}.]\n");
}

/* The second operand is an agent or a verdict. */
static bool put_verdict(struct cli *c, struct json_out *o,
                        enum exit_status *status)
{
    struct str operand = c->args.operands[2];
    bool is_feedback = str_eq(c->args.operands[0], STR("feedback"));

    if (is_feedback && !str_eq(operand, STR("right")) &&
        !str_eq(operand, STR("wrong")))
        *status = cli_error(c, ERR_USAGE,
                            "the verdict must be right or wrong: "
                            "signalbox decisions feedback ID wrong");
    else if (!operand.n)
        *status = cli_error(c, ERR_USAGE,
                            "name the agent that should have got it: "
                            "signalbox decisions override ID AGENT");
    else if (!str_starts(c->args.operands[1], STR("dec_")))
        *status = cli_error(c, ERR_USAGE,
                            "the ID of a decision begins with dec_; signalbox "
                            "decisions list shows it");
    else {
        if (args_has(&c->args, "send"))
            json_member_bool(o, "send", true);
        return true;
    }
    return false;
}

static const struct one override = {.method = "POST",
                                    .path = "/api/decisions/",
                                    .called = "ID",
                                    .action = "/override",
                                    .put = put_verdict,
                                    .second = "agent",
                                    .options = "comment",
                                    .show = show_verdict};
static const struct one feedback = {.method = "POST",
                                    .path = "/api/decisions/",
                                    .called = "ID",
                                    .action = "/feedback",
                                    .put = put_verdict,
                                    .second = "verdict",
                                    .options = "agent comment",
                                    .show = show_verdict};

const struct sub cli_decisions_subs[] = {
    {"list", NULL, NULL, .list = &decisions},
    {"show", "ID", "limit explain", .run = decision_show_by_id,
     .alone = "dec_"},
    {"stats", "[WHAT]", "window at csv", .run = cli_decisions_stats},
    {"override", "ID AGENT", "comment send", .one = &override},
    {"feedback", "ID VERDICT", "agent comment", .one = &feedback},
    {0},
};
