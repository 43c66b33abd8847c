#include "model/query.h"

#include <assert.h>

#include "model/value.h"

void query_init(struct query *q, const struct table *t, size_t limit)
{
    *q = (struct query){
        .table = t, .limit = limit, .order_by = -1, .err = ERR_INTERNAL};
    q->last_condition = &q->conditions;
    arena_init(&q->arena, QUERY_BYTES_MAX);
}

void query_fini(struct query *q)
{
    arena_fini(&q->arena);
    q->rows = NULL;
    q->n_rows = 0;
}

void query_if_any(struct query *q, const uint8_t *columns, size_t n,
                  enum compare compare, struct value v)
{
    if (!condition_add(&q->arena, &q->last_condition, q->table, columns, n,
                       compare, v))
        q->build_error = ERR_NOMEM;
}

void query_if(struct query *q, uint8_t column, enum compare compare,
              struct value v)
{
    query_if_any(q, &column, 1, compare, v);
}

void query_order(struct query *q, uint8_t column, bool is_descending)
{
    assert(column < q->table->n_columns);
    q->order_by = column;
    q->is_descending = is_descending;
}
