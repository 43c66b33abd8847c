#ifndef CLI_LEDGER_H
#define CLI_LEDGER_H

/* ledger: shared by the files of `signalbox ledger`: balances and transfers
 * (ledger.c), statements (ledger_lines.c), and the audit (ledger_check.c).
 * Threads: the main one. */

#include "cli/list.h"

sub_run cli_ledger_statement, cli_ledger_check;
extern const struct listing cli_ledger_accounts;

#endif
