#ifndef CLI_FINDING_H
#define CLI_FINDING_H

/* finding: one thing that was looked at, how it is, and what to do about it.
 * Whoever looks fills one and knows nothing of how it is shown. */

#include "cli/cli.h"

enum mark { GOOD, DOUBTFUL, BAD, NOTED /* perhaps as it should be */ };

struct finding {
    enum mark mark;
    char text[sizeof(struct why)];
    char advice[320]; /* what to do; empty when nothing is, or text says it */
};

void found(struct finding *f, enum mark mark, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void advise(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A line for it, and one for the advice; its name has up to nine letters. */
void finding_show(struct cli *c, const char *name, const struct finding *f);

/* The same as an object. */
void finding_put(struct json_out *o, const char *name, const struct finding *f);

#endif
