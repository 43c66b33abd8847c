/* The tables. Only queries that exist have an index, because each index costs
 * time in every acceptance.
 *
 * - A task by its id, which is the only key that clients have.
 * - Tasks by their end: a start loads NULL, retention deletes a range.
 * - Tasks by the users who may see them and by conversation, for listings. Each
 *   index is followed by the key, so it is walked in the order of the list.
 * - Tasks by the session id that agents use: an agent may refer to a task long
 *   after its end.
 *
 * Earlier turns are keyed by their task and deleted with it. */
#include "task/internal.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column task_columns[N_TASK_COLUMNS] = {
    [TASK_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [TASK_ID] = {.name = "id", .type = COLUMN_TEXT},
    [TASK_PLACE] = {.name = "place", .type = COLUMN_INT},
    [TASK_MESSAGE_ID] = {.name = "message_id", .type = COLUMN_TEXT},
    [TASK_CONVERSATION_ID] = {.name = "conversation_id", .type = COLUMN_TEXT},
    [TASK_REQUESTER] = {.name = "requester", .type = COLUMN_TEXT},
    [TASK_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT},
    [TASK_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [TASK_SKILL] = {.name = "skill", .type = COLUMN_TEXT},
    [TASK_ORDER_KEY] = {.name = "order_key", .type = COLUMN_TEXT},
    [TASK_PRIORITY] = {.name = "priority", .type = COLUMN_INT},
    [TASK_STATUS] = {.name = "status", .type = COLUMN_INT},
    [TASK_VERSION] = {.name = "version", .type = COLUMN_INT},
    [TASK_TURN] = {.name = "turn", .type = COLUMN_INT},
    [TASK_ATTEMPT] = {.name = "attempt", .type = COLUMN_INT},
    [TASK_TEXT] = {.name = "text", .type = COLUMN_TEXT},
    [TASK_METADATA] = {.name = "metadata", .type = COLUMN_TEXT},
    [TASK_SOURCE] = {.name = "source", .type = COLUMN_TEXT},
    [TASK_CREATED_MS] = {.name = "created_ms", .type = COLUMN_INT},
    [TASK_UPDATED_MS] = {.name = "updated_ms", .type = COLUMN_INT},
    [TASK_DEADLINE_MS] = {.name = "deadline_ms", .type = COLUMN_INT},
    [TASK_FINISHED_MS] = {.name = "finished_ms", .type = COLUMN_INT},
    [TASK_BUDGET_MS] = {.name = "budget_ms", .type = COLUMN_INT},
    [TASK_PARENT_ID] = {.name = "parent_id", .type = COLUMN_TEXT},
    [TASK_DEPTH] = {.name = "depth", .type = COLUMN_INT},
    [TASK_OWNER_NODE] = {.name = "owner_node", .type = COLUMN_TEXT},
    [TASK_EPOCH] = {.name = "epoch", .type = COLUMN_INT},
    [TASK_LEASE_UNTIL_MS] = {.name = "lease_until_ms", .type = COLUMN_INT},
    [TASK_RESULT_TEXT] = {.name = "result_text", .type = COLUMN_TEXT},
    [TASK_RESULT_METADATA] = {.name = "result_metadata", .type = COLUMN_TEXT},
    [TASK_ERROR_CODE] = {.name = "error_code", .type = COLUMN_TEXT},
    [TASK_ERROR] = {.name = "error", .type = COLUMN_TEXT},
    [TASK_ENVELOPE] = {.name = "envelope", .type = COLUMN_INT, .since = 4},
    [TASK_BY_AGENT] = {.name = "by_agent", .type = COLUMN_TEXT, .since = 5},
    [TASK_ROOT_ID] = {.name = "root_id", .type = COLUMN_TEXT, .since = 5},
    [TASK_CHAIN] = {.name = "chain", .type = COLUMN_TEXT, .since = 5},
    [TASK_PRICE_MICROS] = {.name = "price_micros",
                           .type = COLUMN_INT,
                           .since = 5},
    [TASK_PAYEE] = {.name = "payee", .type = COLUMN_TEXT, .since = 5},
    [TASK_TRACE] = {.name = "trace", .type = COLUMN_TEXT, .since = 5},
    [TASK_STARTED_MS] = {.name = "started_ms", .type = COLUMN_INT, .since = 5},
    [TASK_DECISION_ID] = {.name = "decision_id",
                          .type = COLUMN_TEXT,
                          .since = 6},
    [TASK_SESSION] = {.name = "session", .type = COLUMN_TEXT, .since = 7},
    [TASK_PAYER_ORG] = {.name = "payer_org", .type = COLUMN_TEXT, .since = 8},
    [TASK_PRICED_AGENT] = {.name = "priced_agent",
                           .type = COLUMN_TEXT,
                           .since = 8},
    [TASK_TREE] = {.name = "tree", .type = COLUMN_TEXT, .since = 9},
    [TASK_CEILING_MICROS] = {.name = "ceiling_micros",
                             .type = COLUMN_INT,
                             .since = 9},
    [TASK_TALK] = {.name = "talk", .type = COLUMN_TEXT, .since = 10},
    [TASK_INTERRUPTED] = {.name = "interrupted",
                          .type = COLUMN_INT,
                          .since = 11},
};

/* The lists of a user have an index. The list of an admin by agent or status
 * scans the tasks from the newest, half a second for a million of them. */
static const struct table_index task_indexes[] = {
    {.name = "task_by_id",
     .columns = {TASK_ID},
     .n_columns = 1,
     .is_unique = true},
    {.name = "task_by_end", .columns = {TASK_FINISHED_MS}, .n_columns = 1},
    {.name = "task_by_requester_conversation",
     .columns = {TASK_REQUESTER, TASK_CONVERSATION_ID},
     .n_columns = 2},
    {.name = "task_by_requester", .columns = {TASK_REQUESTER}, .n_columns = 1},
    {.name = "task_by_root_user", .columns = {TASK_ROOT_USER}, .n_columns = 1},
    {.name = "task_by_session",
     .columns = {TASK_SESSION},
     .n_columns = 1,
     .since = 7},
};

const struct table task_table = {
    .name = "task",
    .columns = task_columns,
    .n_columns = N_TASK_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = task_indexes,
    .n_indexes = N_OF(task_indexes),
};

static const struct column turn_columns[N_TURN_COLUMNS] = {
    [TURN_TASK_SEQ] = {.name = "task_seq",
                       .type = COLUMN_INT,
                       .child_of = &task_table},
    [TURN_NUMBER] = {.name = "number", .type = COLUMN_INT},
    [TURN_MESSAGE_ID] = {.name = "message_id", .type = COLUMN_TEXT},
    [TURN_SKILL] = {.name = "skill", .type = COLUMN_TEXT},
    [TURN_TEXT] = {.name = "text", .type = COLUMN_TEXT},
    [TURN_METADATA] = {.name = "metadata", .type = COLUMN_TEXT},
    [TURN_SOURCE] = {.name = "source", .type = COLUMN_TEXT},
    [TURN_STATUS] = {.name = "status", .type = COLUMN_INT},
    [TURN_ATTEMPT] = {.name = "attempt", .type = COLUMN_INT},
    [TURN_BEGAN_MS] = {.name = "began_ms", .type = COLUMN_INT},
    [TURN_FINISHED_MS] = {.name = "finished_ms", .type = COLUMN_INT},
    [TURN_RESULT_TEXT] = {.name = "result_text", .type = COLUMN_TEXT},
    [TURN_RESULT_METADATA] = {.name = "result_metadata", .type = COLUMN_TEXT},
    [TURN_ERROR_CODE] = {.name = "error_code", .type = COLUMN_TEXT},
    [TURN_ERROR] = {.name = "error", .type = COLUMN_TEXT},
    [TURN_PRICE_MICROS] = {.name = "price_micros",
                           .type = COLUMN_INT,
                           .since = 5},
};

const struct table turn_table = {
    .name = "turn",
    .columns = turn_columns,
    .n_columns = N_TURN_COLUMNS,
    .n_key = 2,
};

static const struct column conversation_columns[N_CONVERSATION_COLUMNS] = {
    [CONVERSATION_OWNER] = {.name = "owner", .type = COLUMN_TEXT},
    [CONVERSATION_ID] = {.name = "id", .type = COLUMN_TEXT},
    [CONVERSATION_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [CONVERSATION_CREATED_MS] = {.name = "created_ms", .type = COLUMN_INT},
    [CONVERSATION_USED_MS] = {.name = "used_ms", .type = COLUMN_INT},
    [CONVERSATION_DECISION_ID] = {.name = "decision_id",
                                  .type = COLUMN_TEXT,
                                  .since = 2},
    [CONVERSATION_MEANT_MS] = {.name = "meant_ms",
                               .type = COLUMN_INT,
                               .since = 3},
    [CONVERSATION_PRICE_MICROS] = {.name = "price_micros",
                                   .type = COLUMN_INT,
                                   .since = 9},
};

static const struct table_index conversation_indexes[] = {
    {.name = "conversation_by_use",
     .columns = {CONVERSATION_USED_MS},
     .n_columns = 1},
};

const struct table conversation_table = {
    .name = "conversation",
    .columns = conversation_columns,
    .n_columns = N_CONVERSATION_COLUMNS,
    .n_key = 2,
    .indexes = conversation_indexes,
    .n_indexes = N_OF(conversation_indexes),
};

static const struct column key_columns[N_KEY_COLUMNS] = {
    [KEY_PRINCIPAL] = {.name = "principal", .type = COLUMN_TEXT},
    [KEY_KEY] = {.name = "key", .type = COLUMN_TEXT},
    [KEY_BODY_HASH] = {.name = "body_hash", .type = COLUMN_BLOB},
    [KEY_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [KEY_MESSAGE_ID] = {.name = "message_id", .type = COLUMN_TEXT},
    [KEY_CONVERSATION_ID] = {.name = "conversation_id", .type = COLUMN_TEXT},
    [KEY_EXPIRES_MS] = {.name = "expires_ms", .type = COLUMN_INT},
    [KEY_DECISION_ID] = {.name = "decision_id",
                         .type = COLUMN_TEXT,
                         .since = 2},
};

static const struct table_index key_indexes[] = {
    {.name = "idempotency_key_by_end",
     .columns = {KEY_EXPIRES_MS},
     .n_columns = 1},
};

const struct table key_table = {
    .name = "idempotency_key",
    .columns = key_columns,
    .n_columns = N_KEY_COLUMNS,
    .n_key = 2,
    .indexes = key_indexes,
    .n_indexes = N_OF(key_indexes),
};

static const struct table *const tables[] = {
    &task_table,
    &turn_table,
    &conversation_table,
    &key_table,
};

const struct schema task_schema = {
    .room = "task",
    .version = 11,
    .tables = tables,
    .n_tables = N_OF(tables),
};
