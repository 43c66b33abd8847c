/* Delegations are looked up by key, by task and, at a start, by state; a tree
 * by its root and by user; notes by their conversation. */
#include "delegation/delegation.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

static const struct column delegation_columns[N_DELEGATION_COLUMNS] = {
    [DELEGATION_KEY] = {.name = "key", .type = COLUMN_TEXT},
    [DELEGATION_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [DELEGATION_ORIGINAL_ID] = {.name = "original_id", .type = COLUMN_TEXT},
    [DELEGATION_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [DELEGATION_TURN] = {.name = "turn", .type = COLUMN_INT},
    [DELEGATION_PARENT_ID] = {.name = "parent_id", .type = COLUMN_TEXT},
    [DELEGATION_ROOT_ID] = {.name = "root_id", .type = COLUMN_TEXT},
    [DELEGATION_MODE] = {.name = "mode", .type = COLUMN_INT},
    [DELEGATION_FLAGS] = {.name = "flags", .type = COLUMN_INT},
    [DELEGATION_STATE] = {.name = "state", .type = COLUMN_INT},
    [DELEGATION_BODY_HASH] = {.name = "body_hash", .type = COLUMN_BLOB},
    [DELEGATION_CREATED_MS] = {.name = "created_ms", .type = COLUMN_INT},
    [DELEGATION_EXPIRES_MS] = {.name = "expires_ms", .type = COLUMN_INT},
    [DELEGATION_CREATOR] = {.name = "creator", .type = COLUMN_TEXT, .since = 2},
    [DELEGATION_OWNER] = {.name = "owner", .type = COLUMN_TEXT, .since = 4},
    [DELEGATION_CONVERSATION] = {.name = "conversation",
                                 .type = COLUMN_TEXT,
                                 .since = 4},
};

static const struct table_index delegation_indexes[] = {
    {.name = "delegation_by_task",
     .columns = {DELEGATION_TASK_ID},
     .n_columns = 1},
    {.name = "delegation_by_root",
     .columns = {DELEGATION_ROOT_ID},
     .n_columns = 1},
    {.name = "delegation_by_state",
     .columns = {DELEGATION_STATE, DELEGATION_EXPIRES_MS},
     .n_columns = 2},
};

const struct table delegation_table = {.name = "delegation",
                                       .columns = delegation_columns,
                                       .n_columns = N_DELEGATION_COLUMNS,
                                       .n_key = 1,
                                       .indexes = delegation_indexes,
                                       .n_indexes = N_OF(delegation_indexes)};

static const struct column tree_columns[N_TREE_COLUMNS] = {
    [TREE_ROOT_ID] = {.name = "root_id", .type = COLUMN_TEXT},
    [TREE_N_TASKS] = {.name = "n_tasks", .type = COLUMN_INT},
    [TREE_UPDATED_MS] = {.name = "updated_ms", .type = COLUMN_INT},
    [TREE_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT, .since = 3},
};

static const struct table_index tree_indexes[] = {
    {.name = "tree_by_use", .columns = {TREE_UPDATED_MS}, .n_columns = 1},
    {.name = "tree_by_user",
     .columns = {TREE_ROOT_USER, TREE_ROOT_ID},
     .n_columns = 2,
     .since = 3},
};

const struct table tree_table = {.name = "tree",
                                 .columns = tree_columns,
                                 .n_columns = N_TREE_COLUMNS,
                                 .n_key = 1,
                                 .indexes = tree_indexes,
                                 .n_indexes = N_OF(tree_indexes)};

static const struct column note_columns[N_NOTE_COLUMNS] = {
    [NOTE_KEY] = {.name = "key", .type = COLUMN_TEXT},
    [NOTE_OWNER] = {.name = "owner", .type = COLUMN_TEXT},
    [NOTE_CONVERSATION] = {.name = "conversation", .type = COLUMN_TEXT},
    [NOTE_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [NOTE_TEXT] = {.name = "text", .type = COLUMN_TEXT},
    [NOTE_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [NOTE_TOLD_SEQ] = {.name = "told_seq", .type = COLUMN_INT},
    [NOTE_TOLD_TURN] = {.name = "told_turn", .type = COLUMN_INT},
};

static const struct table_index note_indexes[] = {
    {.name = "note_by_conversation",
     .columns = {NOTE_OWNER, NOTE_CONVERSATION, NOTE_AGENT},
     .n_columns = 3},
    {.name = "note_by_time", .columns = {NOTE_AT_MS}, .n_columns = 1},
};

const struct table note_table = {.name = "note",
                                 .columns = note_columns,
                                 .n_columns = N_NOTE_COLUMNS,
                                 .n_key = 1,
                                 .indexes = note_indexes,
                                 .n_indexes = N_OF(note_indexes),
                                 .since = 4};

static const struct table *const tables[] = {&delegation_table, &tree_table,
                                             &note_table};

const struct schema delegation_schema = {
    .room = "hire", .tables = tables, .n_tables = N_OF(tables)};
