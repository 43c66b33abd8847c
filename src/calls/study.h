#ifndef CALLS_STUDY_H
#define CALLS_STUDY_H

/* study: a question about many decisions, while they are read. What is asked
 * and the reading are analytics.c's, what each table shows study_tables.c's. */

#include "calls/internal.h"
#include "learn/analytics.h"
#include "learn/thresholds.h"

struct study_kind {
    struct str name;
    const char *const *columns; /* NULL: it is many tables */
    void (*write)(struct open *o, struct sheet *s);
    int64_t span_ms;  /* of a row, where there is one for each time */
    bool is_replay;   /* of what other thresholds would have made of them */
    bool is_of_one;   /* of those by `at`, and of no others */
    bool is_of_alpha; /* of what other values of alpha would have made */
    bool is_without;  /* they are decided again without each of their signals */
};

struct study {
    struct arena arena;            /* of one replay */
    struct analytics *analytics;   /* NULL: none */
    struct thresholds *thresholds; /* likewise */
    const struct study_kind *kind;
    int64_t since_ms, until_ms;
    int64_t span_ms;          /* of a row of the times; zero: there are none */
    double at;                /* a threshold; NaN: none was given */
    int64_t n_read, n_unread; /* unread: of a version that we do not know */
    int64_t last_seq;         /* those below it are read next; zero: all */
    int64_t low, high;        /* while it is looked for where `until` is */
    bool is_csv, is_cut;
    bool is_short; /* of memory: a table is not there */
};

/* All that is counted in one reading, as members of an object. */
void study_write_all(struct open *o, struct json_out *out);

/* NULL: there is none of that name. */
const struct study_kind *study_kind_of(struct str name);

/* Their names, as a sentence has them. */
extern const char study_names[];

#endif
