/* holds: the held messages, their conditions and deadlines. */
#include "cli/list.h"

const struct arg_option cli_holds_options[] = {
    {"agent", "AGENT", "only messages for this agent", false},
    {"rule", "RULE", "only messages that this rule holds", false},
    {"reference", "REFERENCE", "only messages with this reference", false},
    {"limit", "N", "list at most N messages (default 50)", false},
    CLIENT_OPTIONS,
    {0},
};

static const struct grid_column columns[] = {
    {"TASK", "task_id", NULL, KEPT, NULL},
    {"FROM", "from", NULL, DROPPED, NULL},
    {"TO", "agent", NULL, KEPT, NULL},
    {"REFERENCE", "reference", NULL, DROPPED, NULL},
    {"AGE", "since_ms", as_age, DROPPED, NULL},
    {"LEFT", "held_until_ms", as_left, KEPT, NULL},
    {"WAITS FOR", "waits_for", as_words, DROPPED, NULL},
    {"REASON", "reason", NULL, KEPT, NULL},
    {0},
};

static const struct listing holds = {
    .path = "/api/holds",
    .columns = columns,
    .filters = "agent rule reference",
    .narrow = 160,
    .preset = 50,
    .none = "No held messages.\n",
};

enum exit_status cli_holds(struct cli *c)
{
    return cli_list(c, &holds);
}
