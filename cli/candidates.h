#ifndef CLI_CANDIDATES_H
#define CLI_CANDIDATES_H

/* candidates: the agents that could have got a message, for people. Each line
 * has an agent, its score, and a bar with a figure for each of the four
 * signals. If routing.threshold is "auto", the candidate's floor is beside the
 * semantic signal; if it is a number, a line marks where the scores fall below
 * it.
 *
 *       #  AGENT     SCORE  SEMANTIC    FLOOR  PERFORMANCE  KEYWORD
 *     > 1  engineer  0.467  ▇▇▁▁▁ .362  .241   ▇▇▁▁▁ .500   ▇▇▇▇▇ 1.00
 *
 * Reads a decision as the API writes it, `candidates` and `threshold`. All of
 * it comes from outside: control characters are replaced. Keeps nothing.
 * Threads: any. */

#include "base/buf.h"
#include "base/json.h"

enum {
    CANDIDATES_NAME_COLUMNS = 28, /* longer names are cut */
    CANDIDATES_NAME_LEAST = 8,    /* columns, in a narrow terminal */
    CANDIDATES_BAR_CELLS = 5,
};

struct candidates_opts {
    size_t limit;      /* lines at most */
    unsigned width;    /* of a line; zero: no limit */
    struct str chosen; /* the agent to mark; empty: none */
    bool explains;     /* print the parts of `semantic` under each line */
    bool colour, unicode;
};

/* Returns the number of candidates; writes nothing if there are none. */
size_t candidates_write(struct buf *out, const struct json *decision,
                        const struct candidates_opts *opts);

/* ".362", and "1.00". */
struct candidates_figure {
    char text[16];
};
struct candidates_figure candidates_figure(double v);

#endif
