#ifndef MODEL_TX_H
#define MODEL_TX_H

/* tx: one change of the durable records, across rooms, all or nothing.
 *
 * Rooms append operations; walk.c submits the whole to the store. Each
 * operation carries conditions, its guards; one guard that does not hold and
 * nothing of the tx happens. So two changes that were prepared at the same
 * time cannot both win.
 *
 *     op = tx_update(tx, &task_table);
 *     tx_if(op, TASK_ID, IS, value_text(id));
 *     tx_if(op, TASK_VERSION, IS, value_int(3));
 *     tx_set(op, TASK_STATUS, value_int(TASK_COMPLETED));
 *     tx_set(op, TASK_VERSION, value_int(4));
 *
 * Everything is copied into the tx, so nothing need outlive the call. Whoever
 * builds need not look for errors: a tx that ran out of memory says so when it
 * is submitted. Threads: one at a time; the store has it between submit and
 * done. */

#include "base/arena.h"
#include "base/list.h"
#include "model/table.h"

enum tx_kind {
    TX_INSERT, /* guard: no row with that key, or like it in a unique index;
                * the row it belongs to (child_of) is there */
    TX_PUT,    /* insert; or change the row that has that key, if it fits */
    TX_UPDATE, /* guard: exactly one row fits */
    TX_AMEND,  /* update what fits, none or all; no guard: for what is worth
                * noting down, and nothing hangs on */
    TX_DELETE, /* guard: exactly one row fits */
    TX_EXPECT, /* changes nothing; guard: some row fits */
    TX_ADD,    /* to a number; guard: one row fits and stays at its floor, and
                * the sum is a number of 64 bits; fields may be set too */
    TX_PRUNE,  /* delete what fits, none or up to a limit; no guard */
};

struct tx_set {
    struct tx_set *next;
    uint8_t column;
    bool is_new_only; /* TX_PUT: a row that is there already keeps its own */
    struct value value;
};

struct tx_op {
    struct tx_op *next;
    struct tx *tx;
    enum tx_kind kind;
    const struct table *table;
    struct tx_set *sets, **last_set;
    uint64_t has_set; /* a bit for each column that is among them */
    struct condition *conditions, **last_condition;
    uint8_t add_column; /* TX_ADD */
    int64_t delta, floor;
    size_t limit; /* TX_PRUNE */

    /* Filled in by the store when it is committed. */
    int64_t seq;   /* TX_INSERT into a counted table: the key it got */
    size_t n_rows; /* TX_PRUNE: how many went */
};

enum tx_result {
    TX_COMMITTED,    /* durable; nothing short of losing the disk undoes it */
    TX_GUARD_FAILED, /* nothing happened; failed_op says whose guard it was */
    TX_REFUSED,      /* nothing happened, and it may be tried again; err says
                      * why: ERR_NO_SPACE, ERR_NOMEM, ERR_BUSY (the database is
                      * locked by another program), ERR_OVERLOADED, ERR_LIMIT,
                      * ERR_STOPPING */
    TX_FATAL,        /* the store has failed: whether it happened will be known
                      * after a restart. Tell nobody that it did */
};

struct tx {
    struct arena arena;
    struct tx_op *first, **last;
    size_t n_ops;
    enum err build_error; /* ERR_NOMEM: something could not be appended */
    struct tx_op spare;   /* where it went instead */

    /* The outcome. */
    enum tx_result result;
    enum err err;                  /* when it was not committed */
    const struct tx_op *failed_op; /* TX_GUARD_FAILED */

    /* The store's, between submit and done. */
    struct list_node node;
    void (*done)(struct tx *tx, void *ctx);
    void *ctx;
};

enum { TX_BYTES_MAX = 80 * 1024 * 1024 };

void tx_init(struct tx *tx);
void tx_fini(struct tx *tx);

/* Append an operation. Never NULL: what does not fit in memory goes to a
 * place where it does no harm, and build_error is set. */
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

/* Give a field its value. A field set twice has the later one. */
void tx_set(struct tx_op *op, uint8_t column, struct value v);

/* The same for TX_PUT, and only if the row is not there yet: when it was made,
 * who made it. */
void tx_set_new(struct tx_op *op, uint8_t column, struct value v);

/* The operation is for rows where this holds. Of TX_PUT it is the guard for a
 * row that is there already; TX_INSERT takes none. */
void tx_if(struct tx_op *op, uint8_t column, enum compare compare,
           struct value v);

/* What the operation sets the column to; VALUE_NULL when it does not. */
struct value tx_value(const struct tx_op *op, uint8_t column);

#define TX_EACH(op, tx) for (struct tx_op *op = (tx)->first; op; op = op->next)

#endif
