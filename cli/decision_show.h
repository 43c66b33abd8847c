#ifndef CLI_DECISION_SHOW_H
#define CLI_DECISION_SHOW_H

/* decision_show: print a decision, a recorded one or a preview. Takes it as the
 * API writes it. Threads: the main one. */

#include "cli/client.h"

/* Read by decision_show_candidates, beside --limit. */
#define DECISION_SHOW_OPTIONS                                           \
    {                                                                   \
        "explain", NULL, "show the parts of the semantic signal", false \
    }

/* The agent, the layer, the confidence and the reason. */
void decision_show_choice(struct cli *c, const struct json *d);

/* An empty line and the candidates, best first, as many as --limit says;
 * nothing if there are none. */
void decision_show_candidates(struct cli *c, const struct json *d);

/* Check --limit. False: the error has been printed. */
MUST_USE bool decision_limit_is_good(struct cli *c, enum exit_status *status);

#endif
