#ifndef CLI_DECISIONS_H
#define CLI_DECISIONS_H

/* decisions stats: what many decisions say together, as tables. */

#include "cli/client.h"

#define DECISIONS_STATS_OPTIONS                                           \
    {"window", "SPAN",                                                    \
     "with stats: of so long, like 12h or 30d; 7d if not "                \
     "given",                                                             \
     false},                                                              \
        {"at", "THRESHOLD", "with stats changes: by this one, like 0.35", \
         false},                                                          \
    {                                                                     \
        "csv", NULL, "with stats: write the table as CSV", false          \
    }

enum exit_status cli_decisions_stats(struct cli *c, struct str what);

#endif
