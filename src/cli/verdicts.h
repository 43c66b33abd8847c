#ifndef CLI_VERDICTS_H
#define CLI_VERDICTS_H

/* verdicts: what a person says of a decision, for the command `decisions`:
 * "override ID AGENT" and "feedback ID VERDICT". */

#include "cli/client.h"

/* The options they take beside those of every command. --agent is also what
 * lists are narrowed by. */
#define VERDICT_OPTIONS                                                      \
    {"agent", "AGENT",                                                       \
     "only those of this agent; with feedback: who would have been right",   \
     false},                                                                 \
        {"comment", "TEXT", "with override and feedback: why, for the feed", \
         false},                                                             \
    {                                                                        \
        "send", NULL,                                                        \
            "with override: send a message that was refused to that agent",  \
            false                                                            \
    }

enum exit_status cli_override(struct cli *c, struct str id);
enum exit_status cli_feedback(struct cli *c, struct str id);

#endif
