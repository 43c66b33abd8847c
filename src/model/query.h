#ifndef MODEL_QUERY_H
#define MODEL_QUERY_H

/* query: reads records of one table.
 *
 *     query_init(&q, &task_table, 50);
 *     query_if(&q, TASK_AGENT, IS, value_text(name));
 *     query_if(&q, TASK_SEQ, IS_LESS, value_int(cursor));
 *     query_order(&q, TASK_SEQ, true);
 *
 * A listing continues after its last row, by the column it is ordered by: that
 * value is the cursor. A query for one row without an order is a lookup: it
 * must be answered by a key or an index, and never waits for listings. Values
 * are copied into the query, and rows live in it. Threads: one at a time; the
 * store's between read and done. */

#include "base/arena.h"
#include "base/list.h"
#include "model/table.h"

struct row {
    struct row *next;
    struct value *values; /* one per column of the table */
};

struct query {
    struct arena arena;
    const struct table *table;
    struct condition *conditions, **last_condition;
    int order_by; /* a column; -1: any order */
    bool is_descending;
    size_t limit;  /* rows */
    bool is_quick; /* the caller knows that it reads few rows along a key */
    enum err build_error;

    /* The result. */
    enum err err; /* OK; ERR_LIMIT: rows too large; ERR_TOO_SLOW: aborted;
                   * ERR_GONE: forgotten; ERR_BUSY: another program has the
                   * lock; ERR_NOMEM; ERR_OVERLOADED; ERR_STOPPING; ERR_IO */
    struct row *rows;
    size_t n_rows;
    bool has_more; /* cut off by the limit, or by the bytes of a page */

    /* The store's. */
    struct list_node node;
    bool is_waiting; /* reading has not begun */
    void (*done)(struct query *q, void *ctx);
    void *ctx;
};

enum {
    QUERY_BYTES_MAX = 80 * 1024 * 1024, /* one row always fits */
    QUERY_PAGE_BYTES = 4 * 1024 * 1024, /* a page ends after this many */
};

void query_init(struct query *q, const struct table *t, size_t limit);
void query_fini(struct query *q);
void query_if(struct query *q, uint8_t column, enum compare compare,
              struct value v);

/* Any of these columns matches; at most TABLE_INDEX_COLUMNS. */
void query_if_any(struct query *q, const uint8_t *columns, size_t n,
                  enum compare compare, struct value v);
void query_order(struct query *q, uint8_t column, bool is_descending);

/* Whether it is answered quickly at any table size: one row by its key, or a
 * query marked as quick. Lookups do not wait for listings. */
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
