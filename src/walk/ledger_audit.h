#ifndef WALK_LEDGER_AUDIT_H
#define WALK_LEDGER_AUDIT_H

/* ledger_audit: compares the ledger with the tasks it charges for:
 * ledger_check, told where turns are stored. Threads: any. */

#include "ledger/ledger.h"
#include "store/store.h"

/* As ledger_check_new. */
MUST_USE struct ledger_check *ledger_audit_new(const uint64_t seed[2]);

/* Run the whole check on this thread: for the command line without a server,
 * and for tests. Returns out->err. */
MUST_USE enum err ledger_audit_store(struct store *s,
                                     struct ledger_report *out);

#endif
