#ifndef CLI_CANDIDATES_H
#define CLI_CANDIDATES_H

/* candidates: who could have got a message, for people: a line for each agent
 * with its score, and a bar with its figure for each of the four signals that
 * made it. Where routing.threshold is "auto", the semantic signal has the
 * candidate's floor beside it; where it is a number, a line says where the
 * scores that are enough end.
 *
 *       #  AGENT     SCORE  SEMANTIC    FLOOR  PERFORMANCE  KEYWORD
 *     > 1  engineer  0.467  ▇▇▁▁▁ .362  .241   ▇▇▁▁▁ .500   ▇▇▇▇▇ 1.00
 *
 * Taken from a decision as the API writes it, `candidates` and `threshold`.
 * Everything in it comes from outside: what could steer a terminal or break a
 * line is replaced. Keeps nothing. Threads: any. */

#include "base/buf.h"
#include "base/json.h"

enum {
    CANDIDATES_NAME_COLUMNS = 28, /* longer names are cut */
    CANDIDATES_NAME_LEAST = 8,    /* columns, where a line is short */
    CANDIDATES_BAR_CELLS = 5,
};

struct candidates_opts {
    size_t limit;      /* lines at most */
    unsigned width;    /* of a line; zero: as long as they are */
    struct str chosen; /* that one stands out; empty: nobody */
    bool explains;     /* what `semantic` was made of, under each */
    bool colour, unicode;
};

/* How many there are, and nothing is written where that is none. */
size_t candidates_write(struct buf *out, const struct json *decision,
                        const struct candidates_opts *opts);

/* ".362", and "1.00". */
struct candidates_figure {
    char text[16];
};
struct candidates_figure candidates_figure(double v);

#endif
