#ifndef MODEL_TX_H
#define MODEL_TX_H

/* tx: one change of the durable records, across modules, all or nothing.
 *
 * Modules append operations, and the one that began the tx submits it. Each
 * operation has conditions, its guards; if one guard fails, nothing of the tx
 * happens. So of two changes prepared at the same time at most one wins.
 *
 *     op = tx_update(tx, &task_table);
 *     tx_if(op, TASK_ID, IS, value_text(id));
 *     tx_if(op, TASK_VERSION, IS, value_int(3));
 *     tx_set(op, TASK_STATUS, value_int(TASK_COMPLETED));
 *     tx_set(op, TASK_VERSION, value_int(4));
 *
 * Everything is copied into the tx, so nothing must outlive the call. Builders
 * need not check for errors: a tx that ran out of memory fails when it is
 * submitted. Threads: one at a time; the store's between submit and done. */

#include "base/arena.h"
#include "base/list.h"
#include "model/table.h"

enum tx_kind {
    TX_INSERT, /* guard: no row with that key or with equal values in a
                * unique index; the row it belongs to (child_of) exists */
    TX_PUT,    /* insert, or change the row with that key if it matches */
    TX_UPDATE, /* guard: exactly one row matches */
    TX_AMEND,  /* update all rows that match, maybe none; no guard: for notes
                * that nothing depends on */
    TX_DELETE, /* guard: exactly one row matches */
    TX_EXPECT, /* changes nothing; guard: some row matches */
    TX_ADD,    /* to a number; guard: one row matches, stays at or above its
                * floor, and the sum fits 64 bits; may set fields too */
    TX_PRUNE,  /* delete rows that match, up to a limit; no guard */
};

struct tx_set {
    struct tx_set *next;
    uint8_t column;
    bool is_new_only; /* TX_PUT: an existing row keeps its value */
    struct value value;
};

struct tx_op {
    struct tx_op *next;
    struct tx *tx;
    enum tx_kind kind;
    const struct table *table;
    struct tx_set *sets, **last_set;
    uint64_t has_set; /* a bit for each column in it */
    struct condition *conditions, **last_condition;
    uint8_t add_column; /* TX_ADD */
    int64_t delta, floor;
    size_t limit; /* TX_PRUNE */

    /* Filled by the store at the commit. */
    int64_t seq;   /* TX_INSERT into a counted table: the new key */
    size_t n_rows; /* TX_PRUNE: number of deleted rows */
};

enum tx_result {
    TX_COMMITTED,    /* durable; only losing the disk undoes it */
    TX_GUARD_FAILED, /* nothing happened; failed_op has the failed guard */
    /* nothing happened, and it may be retried; err is ERR_NO_SPACE,
     * ERR_NOMEM, ERR_BUSY (another program has locked the database),
     * ERR_OVERLOADED, ERR_LIMIT or ERR_STOPPING */
    TX_REFUSED,
    TX_FATAL, /* the store has failed: a restart will show whether it
               * happened. Do not report success */
};

struct tx {
    struct arena arena;
    struct tx_op *first, **last;
    size_t n_ops;
    enum err build_error; /* ERR_NOMEM: an operation was lost */
    struct tx_op spare;   /* takes lost operations */

    /* The outcome. */
    enum tx_result result;
    enum err err;                  /* if it was not committed */
    const struct tx_op *failed_op; /* TX_GUARD_FAILED */

    /* The store's, between submit and done. */
    struct list_node node;
    void (*done)(struct tx *tx, void *ctx);
    void *ctx;
};

enum { TX_BYTES_MAX = 80 * 1024 * 1024 };

void tx_init(struct tx *tx);
void tx_fini(struct tx *tx);

/* Append an operation. Never NULL: if the arena is full, build_error is set and
 * the operation has no effect. */
struct tx_op *tx_insert(struct tx *tx, const struct table *t);
struct tx_op *tx_put(struct tx *tx, const struct table *t);
struct tx_op *tx_update(struct tx *tx, const struct table *t);
struct tx_op *tx_amend(struct tx *tx, const struct table *t);
struct tx_op *tx_delete(struct tx *tx, const struct table *t);
struct tx_op *tx_expect(struct tx *tx, const struct table *t);

/* column += delta, if the sum is at least `floor`. */
struct tx_op *tx_add(struct tx *tx, const struct table *t, uint8_t column,
                     int64_t delta, int64_t floor);
struct tx_op *tx_prune(struct tx *tx, const struct table *t, size_t limit);

/* Set a field. The last value of a field wins. */
void tx_set(struct tx_op *op, uint8_t column, struct value v);

/* The same for TX_PUT, only if the row is new: creation time, creator. */
void tx_set_new(struct tx_op *op, uint8_t column, struct value v);

/* Restrict the operation to rows that match. For TX_PUT it guards an existing
 * row; TX_INSERT takes no conditions. */
void tx_if(struct tx_op *op, uint8_t column, enum compare compare,
           struct value v);

/* The value that the operation gives the column; VALUE_NULL if none. */
struct value tx_value(const struct tx_op *op, uint8_t column);

#define TX_EACH(op, tx) for (struct tx_op *op = (tx)->first; op; op = op->next)

#endif
