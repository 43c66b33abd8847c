#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

/* record: moves a record between its struct and its row.
 *
 * The columns of the table name the members (MEMBER in table.h), so a field is
 * described once. A column without a member is left to the owner of the table,
 * and so is every field with a meaning of its own. Threads: any. */

#include "model/query.h"
#include "model/tx.h"

/* Fill the members of *record that have a column; the others stay. NULL is an
 * empty string or zero. Strings are borrowed from the row. */
void record_from_row(void *record, const struct table *t, const struct row *r);

/* Set the columns of these parts from the members of *record, or to NULL. */
void record_to_tx(struct tx_op *op, const void *record, unsigned parts);
void record_clear(struct tx_op *op, unsigned parts);

/* record_bytes: the length of all strings of these parts together. record_pack:
 * copy these strings to *at, which moves behind them, and let the members point
 * to the copies. */
size_t record_bytes(const void *record, const struct table *t, unsigned parts);
void record_pack(void *record, const struct table *t, unsigned parts,
                 char **at);

/* Pack into one allocation, which the caller frees. NULL if memory runs out:
 * texts may be larger than MEM_SMALL_BYTES. *record is then unchanged. */
MUST_USE char *record_keep(void *record, const struct table *t, unsigned parts);

#endif
