#ifndef CLI_FINDING_H
#define CLI_FINDING_H

/* finding: the result of one check: its mark, a description, and advice. The
 * check fills it and does not know how it is shown. */

#include "cli/cli.h"

enum mark { GOOD, DOUBTFUL, BAD, NOTED /* may be intended */ };

struct finding {
    enum mark mark;
    char text[sizeof(struct why)];
    char advice[320]; /* what to do; may be empty */
};

void finding_set(struct finding *f, enum mark mark, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void finding_advise(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* One line, and one for the advice; the name has up to nine letters. */
void finding_show(struct cli *c, const char *name, const struct finding *f);

/* The same as an object. */
void finding_put(struct json_out *o, const char *name, const struct finding *f);

#endif
