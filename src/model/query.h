#ifndef MODEL_QUERY_H
#define MODEL_QUERY_H

/* query: which records of one table to read, and the rows that were found.
 *
 *     query_init(&q, &task_table, 50);
 *     query_if(&q, TASK_AGENT, IS, value_text(name));
 *     query_if(&q, TASK_SEQ, IS_LESS, value_int(cursor));
 *     query_order(&q, TASK_SEQ, true);
 *
 * A listing goes on behind the last row it has, by the column it is ordered
 * by, which is what a cursor is. A question for one row in no order is a
 * look-up: it is for what a key or an index finds at once, and never waits
 * behind listings. Values are copied into the query and rows live in it.
 * Threads: one at a time; the store has it between read and done. */

#include "base/arena.h"
#include "base/list.h"
#include "model/table.h"

struct row {
    struct row *next;
    struct value *values; /* one for each column of the table */
};

struct query {
    struct arena arena;
    const struct table *table;
    struct condition *conditions, **last_condition;
    int order_by; /* a column; -1: as it comes */
    bool is_descending;
    size_t limit;  /* rows */
    bool is_quick; /* few rows, along a key: whoever asks knows */
    enum err build_error;

    /* What was found. */
    enum err err; /* OK; ERR_LIMIT: rows too large; ERR_TOO_SLOW: given up;
                   * ERR_GONE: forgotten; ERR_BUSY: another program has the
                   * lock; ERR_NOMEM; ERR_OVERLOADED; ERR_STOPPING; ERR_IO */
    struct row *rows;
    size_t n_rows;
    bool has_more; /* the limit cut it off, or a page's worth of bytes did */

    /* The store's. */
    struct list_node node;
    bool is_waiting; /* nobody has begun to read it */
    void (*done)(struct query *q, void *ctx);
    void *ctx;
};

enum {
    QUERY_BYTES_MAX = 80 * 1024 * 1024, /* one row always fits in */
    QUERY_PAGE_BYTES = 4 * 1024 * 1024, /* no further row after this much */
};

void query_init(struct query *q, const struct table *t, size_t limit);
void query_fini(struct query *q);
void query_if(struct query *q, uint8_t column, enum compare compare,
              struct value v);

/* Any one of these columns; at most TABLE_INDEX_COLUMNS of them. */
void query_if_any(struct query *q, const uint8_t *columns, size_t n,
                  enum compare compare, struct value v);
void query_order(struct query *q, uint8_t column, bool is_descending);

/* Whether it is answered in a moment, however much there is: one row by its
 * key, or what was said to be quick. Such are not kept waiting by lists. */
static inline bool query_is_lookup(const struct query *q)
{
    return q->is_quick || (q->limit == 1 && q->order_by < 0);
}

static inline int64_t row_int(const struct row *r, uint8_t column)
{
    return r->values[column].type == VALUE_INT ? r->values[column].i : 0;
}

static inline struct str row_str(const struct row *r, uint8_t column)
{
    return r->values[column].type >= VALUE_TEXT ? r->values[column].s
                                                : (struct str){NULL, 0};
}

static inline bool row_is_null(const struct row *r, uint8_t column)
{
    return r->values[column].type == VALUE_NULL;
}

#define QUERY_EACH(one, q) \
    for (const struct row *one = (q)->rows; one; one = one->next)

#endif
