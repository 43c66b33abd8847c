#ifndef WALK_LATE_RESULT_H
#define WALK_LATE_RESULT_H

/* late_result: results of tasks that are over.
 *
 * Such a task is not in memory, so the store is read to find its agent: that
 * agent is told that the task is over, and all others that there is no such
 * task. A late result is reported in the feed, once per task and at most
 * LATE_RESULTS_TOLD_PER_MINUTE times a minute, because only the agents decide
 * how often that happens. One agent can use at most half of any limit here.
 *
 * Owns its reads and its writes under way. Threads: loop thread only. */

#include "walk/walk.h"

struct late_results;

enum {
    LATE_RESULTS_ASKED_MAX = 64, /* at the same time */
    LATE_RESULTS_TOLD_PER_MINUTE = 60,
    LATE_RESULTS_REMEMBERED = 64, /* tasks that were reported last */
    /* For one agent. */
    LATE_RESULTS_ASKED_OF_ONE = LATE_RESULTS_ASKED_MAX / 2,
    LATE_RESULTS_TOLD_OF_ONE = LATE_RESULTS_TOLD_PER_MINUTE / 2,
};

MUST_USE struct late_results *late_results_new(struct walk *w);

/* Call after the store has given everything back. */
void late_results_free(struct late_results *s);

#endif
