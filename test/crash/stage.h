#ifndef CRASH_STAGE_H
#define CRASH_STAGE_H

/* The play that driver.c performs and check_driver.c knows by heart.
 *
 * Tx number n (1, 2, …) rewrites one of a few slots: the slot's row, one to
 * three parts of random sizes, and a line in the book. Everything about it
 * follows from n alone, and the store promises that txs happen in the order
 * they were submitted: so whatever the book says was the last tx, all the
 * rest of the database is known to the byte. */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/tx.h"

enum { STAGE_SLOTS = 24, STAGE_PARTS = 3, STAGE_PART_MAX = 6000 };

extern const struct schema stage_schema;
extern const struct table slot_table, part_table, book_table;

enum slot_column { SLOT_ID, SLOT_TX, SLOT_PARTS };
enum part_column { PART_SLOT, PART_NUMBER, PART_BYTES };
enum book_column { BOOK_SEQ, BOOK_TX, BOOK_SLOT };

int64_t stage_slot(int64_t n);
int64_t stage_parts(int64_t n);
void stage_part(int64_t n, int64_t number, struct buf *out);

/* Tx n as operations; `before` is the last tx before it on the same slot, 0
 * when there was none. */
void stage_tx(struct tx *tx, int64_t n, int64_t before);

/* One that must fail: it writes to a slot's part and to the book, and then has
 * a guard that does not hold. */
void stage_doomed(struct tx *tx, int64_t n);

#endif
