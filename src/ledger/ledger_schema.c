/* The tables. Accounts are few and change often. Entries only grow; queries
 * find them by account, newest first, and by task. */
#include "ledger/ledger.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column account_columns[] = {ACCOUNT_COLUMNS(COLUMN_ROW)};

const struct table account_table = {.name = "account",
                                    .columns = account_columns,
                                    .n_columns = N_ACCOUNT_COLUMNS,
                                    .n_key = 1};

static const struct column reservation_columns[] = {
    RESERVATION_COLUMNS(COLUMN_ROW)};

static const struct table_index reservation_indexes[] = {
    {.name = "reservation_by_end", INDEX_ON(RESERVATION_CLOSED_MS)},
    {.name = "reservation_by_payer",
     INDEX_ON(RESERVATION_PAYER, RESERVATION_STATE)},
};

const struct table reservation_table = {.name = "reservation",
                                        .columns = reservation_columns,
                                        .n_columns = N_RESERVATION_COLUMNS,
                                        .n_key = 1,
                                        .indexes = reservation_indexes,
                                        .n_indexes = N_OF(reservation_indexes)};

#define READ(field) MEMBER(struct ledger_entry, field)

static const struct column entry_columns[] = {ENTRY_COLUMNS(COLUMN_ROW)};

static const struct table_index entry_indexes[] = {
    {.name = "entry_by_turn", INDEX_ON(ENTRY_TASK_ID, ENTRY_TURN), .since = 2},
    {.name = "entry_by_task", INDEX_ON(ENTRY_TASK_ID)},
    {.name = "entry_by_account", INDEX_ON(ENTRY_ACCOUNT)},
};

const struct table entry_table = {.name = "entry",
                                  .columns = entry_columns,
                                  .n_columns = N_ENTRY_COLUMNS,
                                  .n_key = 1,
                                  .is_counted = true,
                                  .indexes = entry_indexes,
                                  .n_indexes = N_OF(entry_indexes)};

static const struct column posting_columns[] = {POSTING_COLUMNS(COLUMN_ROW)};

const struct table posting_table = {.name = "posting",
                                    .columns = posting_columns,
                                    .n_columns = N_POSTING_COLUMNS,
                                    .n_key = 1};

static const struct column spent_columns[] = {SPENT_COLUMNS(COLUMN_ROW)};

static const struct table_index spent_indexes[] = {
    {.name = "spent_by_use", INDEX_ON(SPENT_UPDATED_MS)},
};

const struct table spent_table = {.name = "spent",
                                  .columns = spent_columns,
                                  .n_columns = N_SPENT_COLUMNS,
                                  .n_key = 1,
                                  .indexes = spent_indexes,
                                  .n_indexes = N_OF(spent_indexes)};

#define BOTH(field) MEMBER(struct ledger_budget, field), .part = 1

static const struct column budget_columns[] = {BUDGET_COLUMNS(COLUMN_ROW)};

const struct table budget_table = {.name = "budget",
                                   .columns = budget_columns,
                                   .n_columns = N_BUDGET_COLUMNS,
                                   .n_key = 1,
                                   .since = 3};

static const struct table *const tables[] = {&account_table, &reservation_table,
                                             &entry_table,   &spent_table,
                                             &posting_table, &budget_table};

const struct schema ledger_schema = {
    .room = "ledger", .tables = tables, .n_tables = N_OF(tables)};
