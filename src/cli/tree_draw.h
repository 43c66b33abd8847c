#ifndef CLI_TREE_DRAW_H
#define CLI_TREE_DRAW_H

/* tree_draw: what GET /api/tasks/ID/tree answers, drawn for people:
 *
 *     AGENT                     STATUS     WAITED  WORKED  COST  BRANCH
 *     concierge                 completed  12ms    4.2s    0.05    0.17
 *     ├─ translator, legal      completed  3ms     1.8s     0.1    0.12
 *     │  └─ speller             completed  2ms     0.6s    0.02       -
 *     └─ checker                failed     2ms     1.0s       -       -
 *           timeout: no answer within a second
 *
 *     4 tasks, none open, 4.2s, paid 0.17
 *
 * What costs nothing has no columns for it, and the ids of the tasks stand at
 * the end where there is room; where there is very little, columns are left
 * out. Pure. Threads: any. */

#include "base/buf.h"
#include "base/json.h"

struct tree_paper {
    unsigned width; /* columns; zero: as many as it takes */
    bool unicode;   /* else in ASCII */
    bool colour;
};

/* What is missing in the answer is left out. */
void tree_draw(struct buf *out, const struct json *answer,
               const struct tree_paper *paper);

#endif
