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

/* The words of the lists in task.h. */
#define READ(field) MEMBER(struct task, field)
#define ONCE(field) MEMBER(struct task, field), .part = TASK_ONCE
#define TURN(field) MEMBER(struct task, field), .part = TASK_PER_TURN
#define END(field)  MEMBER(struct task, field), .part = TASK_AT_END

static const struct column task_columns[] = {TASK_COLUMNS(COLUMN_ROW)};

/* The lists of a user have an index. The list of an admin by agent or status
 * scans the tasks from the newest, half a second for a million of them. */
static const struct table_index task_indexes[] = {
    {.name = "task_by_id", INDEX_ON(TASK_ID), .is_unique = true},
    {.name = "task_by_end", INDEX_ON(TASK_FINISHED_MS)},
    {.name = "task_by_requester_conversation",
     INDEX_ON(TASK_REQUESTER, TASK_CONVERSATION_ID)},
    {.name = "task_by_requester", INDEX_ON(TASK_REQUESTER)},
    {.name = "task_by_root_user", INDEX_ON(TASK_ROOT_USER)},
    {.name = "task_by_session", INDEX_ON(TASK_SESSION), .since = 7},
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

static const struct column turn_columns[] = {TURN_COLUMNS(COLUMN_ROW)};

const struct table turn_table = {
    .name = "turn",
    .columns = turn_columns,
    .n_columns = N_TURN_COLUMNS,
    .n_key = 2,
};

static const struct column conversation_columns[] = {
    CONVERSATION_COLUMNS(COLUMN_ROW)};

static const struct table_index conversation_indexes[] = {
    {.name = "conversation_by_use", INDEX_ON(CONVERSATION_USED_MS)},
};

const struct table conversation_table = {
    .name = "conversation",
    .columns = conversation_columns,
    .n_columns = N_CONVERSATION_COLUMNS,
    .n_key = 2,
    .indexes = conversation_indexes,
    .n_indexes = N_OF(conversation_indexes),
};

static const struct column key_columns[] = {KEY_COLUMNS(COLUMN_ROW)};

static const struct table_index key_indexes[] = {
    {.name = "idempotency_key_by_end", INDEX_ON(KEY_EXPIRES_MS)},
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
    .tables = tables,
    .n_tables = N_OF(tables),
};
