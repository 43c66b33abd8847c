#ifndef CLI_LEDGER_H
#define CLI_LEDGER_H

/* ledger: what the files of `signalbox ledger` share: balances and what an
 * admin moves (ledger.c), statements (ledger_lines.c), and whether the books
 * are right (ledger_check.c). Threads: the main one. */

#include "cli/list.h"

enum exit_status cli_ledger_statement(struct cli *c, struct str user);
enum exit_status cli_ledger_accounts(struct cli *c, struct str operand);
enum exit_status cli_ledger_check(struct cli *c, struct str operand);

#endif
