#ifndef CLI_VERDICTS_H
#define CLI_VERDICTS_H

/* verdicts: corrections of a decision, for the command `decisions`: "override
 * ID AGENT" and "feedback ID VERDICT". */

#include "cli/client.h"

/* Their options. --agent also filters the list. */
#define VERDICT_OPTIONS                                                        \
    {"agent", "AGENT",                                                         \
     "list: only this agent; feedback: the agent that would be right", false}, \
        {"comment", "TEXT", "override, feedback: the reason, for the feed",    \
         false},                                                               \
    {                                                                          \
        "send", NULL, "override: send the agent a message that was refused",   \
            false                                                              \
    }

enum exit_status cli_override(struct cli *c, struct str id);
enum exit_status cli_feedback(struct cli *c, struct str id);

#endif
