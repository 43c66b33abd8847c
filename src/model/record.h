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

/* Copy the strings of these parts into one allocation and point the members at
 * it. The caller frees it. Texts may be larger than MEM_SMALL_BYTES, so this
 * can fail: NULL, and *record is unchanged. */
MUST_USE char *record_keep(void *record, const struct table *t, unsigned parts);

/* The same for any n strings. */
MUST_USE char *strs_keep(struct str *const *strs, size_t n);

#endif
