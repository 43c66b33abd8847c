/* Delegations are looked up by key, by task and, at a start, by state; a tree
 * by its root and by user; notes by their conversation. */
#include "delegation/internal.h"

#define N_OF(array) (sizeof(array) / sizeof(*(array)))

#define BOTH(field) MEMBER(struct delegation, field), .part = DELEGATION_PLAIN
#define READ(field) MEMBER(struct delegation, field), .part = DELEGATION_BY_RULE

static const struct column delegation_columns[] = {
    DELEGATION_COLUMNS(COLUMN_ROW)};

static const struct table_index delegation_indexes[] = {
    {.name = "delegation_by_task", INDEX_ON(DELEGATION_TASK_ID)},
    {.name = "delegation_by_root", INDEX_ON(DELEGATION_ROOT_ID)},
    {.name = "delegation_by_state",
     INDEX_ON(DELEGATION_STATE, DELEGATION_EXPIRES_MS)},
};

const struct table delegation_table = {.name = "delegation",
                                       .columns = delegation_columns,
                                       .n_columns = N_DELEGATION_COLUMNS,
                                       .n_key = 1,
                                       .indexes = delegation_indexes,
                                       .n_indexes = N_OF(delegation_indexes)};

static const struct column tree_columns[] = {TREE_COLUMNS(COLUMN_ROW)};

static const struct table_index tree_indexes[] = {
    {.name = "tree_by_use", INDEX_ON(TREE_UPDATED_MS)},
    {.name = "tree_by_user",
     INDEX_ON(TREE_ROOT_USER, TREE_ROOT_ID),
     .since = 3},
};

const struct table tree_table = {.name = "tree",
                                 .columns = tree_columns,
                                 .n_columns = N_TREE_COLUMNS,
                                 .n_key = 1,
                                 .indexes = tree_indexes,
                                 .n_indexes = N_OF(tree_indexes)};

static const struct column note_columns[] = {NOTE_COLUMNS(COLUMN_ROW)};

static const struct table_index note_indexes[] = {
    {.name = "note_by_conversation",
     INDEX_ON(NOTE_OWNER, NOTE_CONVERSATION, NOTE_AGENT)},
    {.name = "note_by_time", INDEX_ON(NOTE_AT_MS)},
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
