#ifndef CLI_DECISIONS_H
#define CLI_DECISIONS_H

/* decisions stats: statistics about many decisions, as tables. */

#include "cli/client.h"

#define DECISIONS_STATS_OPTIONS                                                \
    {"window", "SPAN", "stats: the period, like 12h or 30d (default 7d)",      \
     false},                                                                   \
        {"at", "THRESHOLD", "stats changes: the threshold, like 0.35", false}, \
    {                                                                          \
        "csv", NULL, "stats: print the table as CSV", false                    \
    }

enum exit_status cli_decisions_stats(struct cli *c, struct str what);

#endif
