#ifndef RECKON_H
#define RECKON_H

/* reckon: the books beside the tasks they are about: ledger_check, told where
 * turns are kept. Threads: any. */

#include "ledger/ledger.h"
#include "store/store.h"

/* As ledger_check_new. */
MUST_USE struct ledger_check *reckon_new(const uint64_t seed[2]);

/* All of it at once, on this thread: for the command line without a server, and
 * for tests. Returns out->err. */
MUST_USE enum err reckon_store(struct store *s, struct ledger_report *out);

#endif
