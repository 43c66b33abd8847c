/* The tables. Accounts are few and change often. Entries only grow; queries
 * find them by account, newest first, and by task. */
#include "ledger/ledger.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column account_columns[N_ACCOUNT_COLUMNS] = {
    [ACCOUNT_NAME] = {.name = "name", .type = COLUMN_TEXT},
    [ACCOUNT_BALANCE] = {.name = "balance", .type = COLUMN_INT},
    [ACCOUNT_UPDATED_MS] = {.name = "updated_ms", .type = COLUMN_INT},
};

const struct table account_table = {.name = "account",
                                    .columns = account_columns,
                                    .n_columns = N_ACCOUNT_COLUMNS,
                                    .n_key = 1};

static const struct column reservation_columns[N_RESERVATION_COLUMNS] = {
    [RESERVATION_OF] = {.name = "of", .type = COLUMN_TEXT},
    [RESERVATION_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [RESERVATION_TURN] = {.name = "turn", .type = COLUMN_INT},
    [RESERVATION_PRICE] = {.name = "price", .type = COLUMN_INT},
    [RESERVATION_PAYER] = {.name = "payer", .type = COLUMN_TEXT},
    [RESERVATION_STATE] = {.name = "state", .type = COLUMN_INT},
    [RESERVATION_CREATED_MS] = {.name = "created_ms", .type = COLUMN_INT},
    [RESERVATION_CLOSED_MS] = {.name = "closed_ms", .type = COLUMN_INT},
};

static const struct table_index reservation_indexes[] = {
    {.name = "reservation_by_end",
     .columns = {RESERVATION_CLOSED_MS},
     .n_columns = 1},
    {.name = "reservation_by_payer",
     .columns = {RESERVATION_PAYER, RESERVATION_STATE},
     .n_columns = 2},
};

const struct table reservation_table = {.name = "reservation",
                                        .columns = reservation_columns,
                                        .n_columns = N_RESERVATION_COLUMNS,
                                        .n_key = 1,
                                        .indexes = reservation_indexes,
                                        .n_indexes = N_OF(reservation_indexes)};

static const struct column entry_columns[N_ENTRY_COLUMNS] = {
    [ENTRY_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [ENTRY_POSTING] = {.name = "posting", .type = COLUMN_TEXT},
    [ENTRY_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [ENTRY_KIND] = {.name = "kind", .type = COLUMN_INT},
    [ENTRY_ACCOUNT] = {.name = "account", .type = COLUMN_TEXT},
    [ENTRY_AMOUNT] = {.name = "amount", .type = COLUMN_INT},
    [ENTRY_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [ENTRY_TURN] = {.name = "turn", .type = COLUMN_INT},
    [ENTRY_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [ENTRY_SKILL] = {.name = "skill", .type = COLUMN_TEXT},
    [ENTRY_BY] = {.name = "by", .type = COLUMN_TEXT},
    [ENTRY_NOTE] = {.name = "note", .type = COLUMN_TEXT},
    [ENTRY_BECAME] = {.name = "became", .type = COLUMN_INT, .since = 2},
};

static const struct table_index entry_indexes[] = {
    {.name = "entry_by_turn",
     .columns = {ENTRY_TASK_ID, ENTRY_TURN},
     .n_columns = 2,
     .since = 2},
    {.name = "entry_by_task", .columns = {ENTRY_TASK_ID}, .n_columns = 1},
    {.name = "entry_by_account", .columns = {ENTRY_ACCOUNT}, .n_columns = 1},
};

const struct table entry_table = {.name = "entry",
                                  .columns = entry_columns,
                                  .n_columns = N_ENTRY_COLUMNS,
                                  .n_key = 1,
                                  .is_counted = true,
                                  .indexes = entry_indexes,
                                  .n_indexes = N_OF(entry_indexes)};

static const struct column posting_columns[N_POSTING_COLUMNS] = {
    [POSTING_ID] = {.name = "id", .type = COLUMN_TEXT},
    [POSTING_KIND] = {.name = "kind", .type = COLUMN_INT},
    [POSTING_ACCOUNT] = {.name = "account", .type = COLUMN_TEXT},
    [POSTING_AMOUNT] = {.name = "amount", .type = COLUMN_INT},
    [POSTING_BY] = {.name = "by", .type = COLUMN_TEXT},
    [POSTING_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [POSTING_NOTE] = {.name = "note", .type = COLUMN_TEXT},
};

const struct table posting_table = {.name = "posting",
                                    .columns = posting_columns,
                                    .n_columns = N_POSTING_COLUMNS,
                                    .n_key = 1};

static const struct column spent_columns[N_SPENT_COLUMNS] = {
    [SPENT_OF] = {.name = "of", .type = COLUMN_TEXT},
    [SPENT_AMOUNT] = {.name = "amount", .type = COLUMN_INT},
    [SPENT_UPDATED_MS] = {.name = "updated_ms", .type = COLUMN_INT},
};

static const struct table_index spent_indexes[] = {
    {.name = "spent_by_use", .columns = {SPENT_UPDATED_MS}, .n_columns = 1},
};

const struct table spent_table = {.name = "spent",
                                  .columns = spent_columns,
                                  .n_columns = N_SPENT_COLUMNS,
                                  .n_key = 1,
                                  .indexes = spent_indexes,
                                  .n_indexes = N_OF(spent_indexes)};

static const struct column budget_columns[N_BUDGET_COLUMNS] = {
    [BUDGET_KEY] = {.name = "key", .type = COLUMN_TEXT},
    [BUDGET_KIND] = {.name = "kind", .type = COLUMN_INT},
    [BUDGET_NAME] = {.name = "name", .type = COLUMN_TEXT},
    [BUDGET_PERIOD] = {.name = "period", .type = COLUMN_INT},
    [BUDGET_LIMIT] = {.name = "limit", .type = COLUMN_INT},
    [BUDGET_BY] = {.name = "by", .type = COLUMN_TEXT},
    [BUDGET_UPDATED_MS] = {.name = "updated_ms", .type = COLUMN_INT},
    [BUDGET_WARNED] = {.name = "warned", .type = COLUMN_TEXT},
};

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
