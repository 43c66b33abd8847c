#ifndef API_ANALYTICS_QUERY_H
#define API_ANALYTICS_QUERY_H

/* analytics_query: a query over many decisions, while they are read.
 * analytics.c reads the request and the decisions, analytics_tables.c writes
 * the tables. */

#include "api/internal.h"
#include "learn/fold/analytics.h"
#include "learn/fold/thresholds.h"

struct analytics_kind {
    struct str name;
    const char *const *columns; /* NULL: several tables */
    void (*write)(struct request *o, struct sheet *s);
    int64_t span_ms;  /* of a row, for tables by time */
    bool is_replay;   /* decisions again with other thresholds */
    bool is_of_one;   /* only with the threshold `at` */
    bool is_of_alpha; /* decisions again with other values of alpha */
    bool is_without;  /* decisions again without each signal */
};

struct analytics_query {
    struct arena arena;            /* for one replay */
    struct analytics *analytics;   /* NULL: none */
    struct thresholds *thresholds; /* NULL: none */
    const struct analytics_kind *kind;
    int64_t since_ms, until_ms;
    int64_t span_ms;          /* of a row; zero: no table by time */
    double at;                /* a threshold; NaN: not given */
    int64_t n_read, n_unread; /* unread: recorded by an unknown version */
    int64_t last_seq;         /* the next page is below it; zero: the newest */
    int64_t low, high;        /* bounds of the search for `until` */
    bool is_csv, is_cut;
    bool is_short; /* a table is missing for lack of memory */
};

static inline struct analytics_query *analytics_of(const struct request *o)
{
    return o->own;
}

/* Write all tables of one pass, as members of an object. */
void analytics_write_all(struct request *o, struct json_out *out);

/* The kind of that name, or NULL. */
const struct analytics_kind *analytics_kind_of(struct str name);

/* The error message that lists the names. */
extern const char analytics_names[];

#endif
