#ifndef CALLS_HUNT_H
#define CALLS_HUNT_H

/* hunt: a page of decisions that must be looked for, since no index knows them:
 * by agent, layer, verdict, score, time, or words in their text. */

#include "base/wordfind.h"
#include "calls/internal.h"

struct hunt {
    struct wordfind words; /* of no bytes: none are looked for */
    struct query wish;     /* its conditions are those of each page */
    int64_t since_ms;      /* one of them; zero: none */
    struct buf found;      /* as JSON */
    struct json_out out;
    size_t n_found, limit;

    /* Where it is: between the oldest and what lies behind it. */
    int64_t oldest, below, lower;
    int64_t n_looked, n_passed;
};

/* cursor: those below it; zero: from the newest. NULL: no memory. */
MUST_USE struct hunt *hunt_new(const struct wordfind *words, size_t limit,
                               int64_t cursor);

/* Looks, and answers o, whose hunt is there with its wish. */
void hunt_begin(struct open *o);

/* decisions.c: one of a list, and the end of it; cursor is zero: no more. */
MUST_USE enum err decisions_put(struct open *o, struct json_out *out,
                                const struct row *row);
void decisions_end_page(struct open *o, struct json_out *out, int64_t cursor);

#endif
