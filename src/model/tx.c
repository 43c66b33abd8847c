/* Operations are linked, and applied, in the order in which they were appended.
 * If the arena is full an operation goes to a scratch inside the tx: builders
 * need no error handling, and the store checks build_error once. */
#include "model/tx.h"

#include <assert.h>

#include "base/fault.h"
#include "model/value.h"

void tx_init(struct tx *tx)
{
    *tx = (struct tx){.result = TX_REFUSED, .err = ERR_INTERNAL};
    tx->last = &tx->first;
    arena_init(&tx->arena, TX_BYTES_MAX);
}

void tx_fini(struct tx *tx)
{
    arena_fini(&tx->arena);
    tx->first = NULL;
    tx->last = &tx->first;
}

static struct tx_op *tx_append(struct tx *tx, enum tx_kind kind,
                               const struct table *t)
{
    struct tx_op *op =
        FAULT("model.tx_op") ? NULL : arena_alloc(&tx->arena, sizeof(*op));

    if (!op) {
        tx->build_error = ERR_NOMEM;
        op = &tx->spare;
        *op = (struct tx_op){0};
    } else {
        *tx->last = op;
        tx->last = &op->next;
        tx->n_ops++;
    }
    op->tx = tx;
    op->kind = kind;
    op->table = t;
    op->last_set = &op->sets;
    op->last_condition = &op->conditions;
    return op;
}

struct tx_op *tx_insert(struct tx *tx, const struct table *t)
{
    return tx_append(tx, TX_INSERT, t);
}

struct tx_op *tx_put(struct tx *tx, const struct table *t)
{
    assert(!t->is_counted);
    return tx_append(tx, TX_PUT, t);
}

struct tx_op *tx_update(struct tx *tx, const struct table *t)
{
    return tx_append(tx, TX_UPDATE, t);
}

struct tx_op *tx_amend(struct tx *tx, const struct table *t)
{
    return tx_append(tx, TX_AMEND, t);
}

struct tx_op *tx_delete(struct tx *tx, const struct table *t)
{
    return tx_append(tx, TX_DELETE, t);
}

struct tx_op *tx_expect(struct tx *tx, const struct table *t)
{
    return tx_append(tx, TX_EXPECT, t);
}

struct tx_op *tx_add(struct tx *tx, const struct table *t, uint8_t column,
                     int64_t delta, int64_t floor)
{
    struct tx_op *op = tx_append(tx, TX_ADD, t);

    assert(column < t->n_columns && t->columns[column].type == COLUMN_INT);
    op->add_column = column;
    op->delta = delta;
    op->floor = floor;
    return op;
}

struct tx_op *tx_prune(struct tx *tx, const struct table *t, size_t limit)
{
    struct tx_op *op = tx_append(tx, TX_PRUNE, t);

    op->limit = limit;
    return op;
}

static bool tx_has_set(const struct tx_op *op, uint8_t column)
{
    return op->has_set >> column & 1;
}

static void tx_set_field(struct tx_op *op, uint8_t column, bool is_new_only,
                         struct value v)
{
    struct tx *tx = op->tx;
    struct tx_set *s = tx_has_set(op, column) ? op->sets : NULL;

    assert(value_fits(op->table, column, v));
    if (!value_keep(&tx->arena, &v)) {
        tx->build_error = ERR_NOMEM;
        return;
    }
    while (s && s->column != column)
        s = s->next;
    if (!s) {
        s = arena_alloc(&tx->arena, sizeof(*s));
        if (!s) {
            tx->build_error = ERR_NOMEM;
            return;
        }
        *op->last_set = s;
        op->last_set = &s->next;
        op->has_set |= 1ULL << column;
    }
    s->column = column;
    s->is_new_only = is_new_only;
    s->value = v;
}

void tx_set(struct tx_op *op, uint8_t column, struct value v)
{
    tx_set_field(op, column, false, v);
}

void tx_set_new(struct tx_op *op, uint8_t column, struct value v)
{
    assert(op->kind == TX_PUT);
    tx_set_field(op, column, true, v);
}

void tx_if(struct tx_op *op, uint8_t column, enum compare compare,
           struct value v)
{
    assert(op->kind != TX_INSERT);
    if (!condition_add(&op->tx->arena, &op->last_condition, op->table, &column,
                       1, compare, v))
        op->tx->build_error = ERR_NOMEM;
}

struct value tx_value(const struct tx_op *op, uint8_t column)
{
    const struct tx_set *s = tx_has_set(op, column) ? op->sets : NULL;

    while (s && s->column != column)
        s = s->next;
    return s ? s->value : value_null();
}
