#ifndef CLI_DECISION_SHOW_H
#define CLI_DECISION_SHOW_H

/* decision_show: a decision for people, be it one that was made or one that
 * would be. Takes it as the API writes it. Threads: the main one. */

#include "cli/client.h"

/* Read by decision_show_candidates, beside --limit. */
#define DECISION_SHOW_OPTIONS                                              \
    {                                                                      \
        "explain", NULL, "show what the semantic signal is made of", false \
    }

/* Who it is, by which layer, how sure, and the reason. */
void decision_show_choice(struct cli *c, const struct json *d);

/* Up to `limit` of those that could have been it, the best first, below an
 * empty line; nothing where there are none. */
void decision_show_candidates(struct cli *c, const struct json *d,
                              int64_t limit);

/* That limit, from --limit. An error has been said already. */
MUST_USE bool decision_show_limit(struct cli *c, int64_t *limit,
                                  enum exit_status *status);

#endif
