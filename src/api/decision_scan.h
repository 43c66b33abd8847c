#ifndef API_DECISION_SCAN_H
#define API_DECISION_SCAN_H

/* decision_scan: a page of decisions that no index finds: by agent, layer,
 * verdict, score, time, or words in their text. */

#include "api/internal.h"
#include "base/wordfind.h"

/* The state of a list of decisions; a list without a scan only the first. */
struct decision_scan {
    bool is_whole; /* with all members of each decision */

    struct wordfind words; /* empty: no words */
    struct query wish;     /* its conditions apply to each page */
    int64_t since_ms;      /* the time in them; zero: none */
    struct buf found;      /* the page, as JSON */
    struct json_out out;
    size_t n_found, limit;

    /* The position of the scan. */
    int64_t oldest, below, lower;
    int64_t n_looked, n_passed;
};

extern const struct request_state decision_scan_state;

/* Start below cursor; zero: at the newest. */
void decision_scan_init(struct decision_scan *h, const struct wordfind *words,
                        size_t limit, int64_t cursor);

/* Scan for the request of a decision_scan, with its conditions, and answer. */
void decision_scan_begin(struct request *o);

/* decisions.c: write one decision of a list, and end the page; a zero cursor
 * means no more. */
MUST_USE enum err decisions_put(struct request *o, struct json_out *out,
                                const struct row *row);

#endif
