/* escalations: messages that wait for a person's decision. */
#include "cli/list.h"

const struct arg_option cli_escalations_options[] = {
    {"status", "STATUS",
     "only this status: open (default), approved, rejected, redirected, "
     "expired, resolved, all",
     false},
    {"kind", "KIND", "only this kind: rule, dead, late, expired", false},
    {"agent", "AGENT", "only messages for this agent", false},
    {"limit", "N", "list at most N escalations (default 50)", false},
    {"comment", "TEXT", "the reason for the decision", false},
    CLIENT_OPTIONS,
    {0},
};

static const char *escalation_status_colour(struct str status)
{
    if (str_eq(status, STR("open")))
        return "\033[33m";
    if (str_eq(status, STR("rejected")) || str_eq(status, STR("expired")))
        return "\033[31m";
    return "\033[32m";
}

static const struct grid_column columns[] = {
    {"ID", "id", NULL, KEPT, NULL},
    {"STATUS", "status", NULL, "status", escalation_status_colour},
    {"KIND", "kind", NULL, DROPPED, NULL},
    {"FROM", "from", NULL, DROPPED, NULL},
    {"TO", "agent", NULL, "!status", NULL},
    {"REFERENCE", "reference", NULL, DROPPED, NULL},
    {"AGE", "at_ms", as_age, KEPT, NULL},
    {"REASON", "reason", NULL, KEPT, NULL},
    {0},
};

static const struct listing escalations = {
    .path = "/api/escalations",
    .columns = columns,
    .filters = "status:open kind agent",
    .narrow = 132,
    .preset = 50,
    .none = "No open escalations.\n",
    .none_matches = "No escalation matches.\n",
};

static const struct field fields[] = {
    {"reason", "reason", NULL},
    {"kind", "kind", NULL},
    {"rule", "rule", NULL},
    {"from", "from", NULL},
    {"to", "agent", NULL},
    {"type", "type", NULL},
    {"reference", "reference", NULL},
    {"priority", "priority", NULL},
    {"task", "task_id", NULL},
    {"backup", "offer", NULL},
    {"created", "at_ms", as_ago},
    {"expires", "expires_ms", as_ago},
    {"decided", "decided_ms", as_ago},
    {"by", "by", NULL},
    {"comment", "comment", NULL},
    {"redirected to", "redirected_to", NULL},
    {0},
};

static void show_message(struct cli *c, const struct json *x)
{
    cli_section(c, "Message", json_str_or(cli_member(x, "task.text"), STR("")));
}

static const struct one escalation = {.method = "GET",
                                      .path = "/api/escalations/",
                                      .called = "ID",
                                      .say = "{id}  {status}\n",
                                      .fields = fields,
                                      .show = show_message};

#define DECISION(verb)                                                 \
    &(const struct one)                                                \
    {                                                                  \
        .method = "POST", .path = "/api/escalations/", .called = "ID", \
        .action = "/" verb, .second = "agent", .options = "comment",   \
        .say = "{} is {status}\n"                                      \
    }

const struct sub cli_escalations_subs[] = {
    {"list", NULL, NULL, .list = &escalations},
    {"show", "ID", "", .one = &escalation, .alone = "esc_"},
    {"approve", "ID", "comment", .one = DECISION("approve")},
    {"reject", "ID", "comment", .one = DECISION("reject")},
    {"redirect", "ID AGENT", "comment", .one = DECISION("redirect")},
    {0},
};
