#ifndef CLI_TREE_DRAW_H
#define CLI_TREE_DRAW_H

/* tree_draw: draw the answer of GET /api/tasks/ID/tree for people:
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
 * A tree without costs has no cost columns. Task ids come last if there is
 * room; a narrow terminal gets fewer columns. Pure. Threads: any. */

#include "base/buf.h"
#include "base/json.h"

struct tree_paper {
    unsigned width; /* columns; zero: no limit */
    bool unicode;   /* else in ASCII */
    bool colour;
};

/* Fields that the answer does not have are left out. */
void tree_draw(struct buf *out, const struct json *answer,
               const struct tree_paper *paper);

#endif
