/* The feed is one table, appended at its end and read by its key. Its one
 * index is for retention, which selects by time; clocks jump, so the key's
 * order is not quite that of time. An index by requester would cost every
 * entry, and readers scan a stretch of the key anyway (feed.c). */
#include "watch/watch.h"

#include <assert.h>

static const struct column feed_columns[N_FEED_COLUMNS] = {
    [FEED_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [FEED_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
    [FEED_TYPE] = {.name = "type", .type = COLUMN_TEXT},
    [FEED_TASK_ID] = {.name = "task_id", .type = COLUMN_TEXT},
    [FEED_CONVERSATION_ID] = {.name = "conversation_id", .type = COLUMN_TEXT},
    [FEED_AGENT] = {.name = "agent", .type = COLUMN_TEXT},
    [FEED_REQUESTER] = {.name = "requester", .type = COLUMN_TEXT},
    [FEED_ROOT_USER] = {.name = "root_user", .type = COLUMN_TEXT},
    [FEED_DATA] = {.name = "data", .type = COLUMN_TEXT},
    [FEED_AUDIENCE] = {.name = "audience", .type = COLUMN_TEXT, .since = 3},
};

static const struct table_index feed_indexes[] = {
    {.name = "feed_by_time", .columns = {FEED_AT_MS}, .n_columns = 1},
};

const struct table feed_table = {
    .name = "feed",
    .columns = feed_columns,
    .n_columns = N_FEED_COLUMNS,
    .n_key = 1,
    .is_counted = true,
    .indexes = feed_indexes,
    .n_indexes = sizeof(feed_indexes) / sizeof(*feed_indexes),
};

static const struct column cursor_columns[N_CURSOR_COLUMNS] = {
    [CURSOR_CHANNEL] = {.name = "channel", .type = COLUMN_TEXT},
    [CURSOR_PLACE] = {.name = "place", .type = COLUMN_TEXT},
    [CURSOR_SEQ] = {.name = "seq", .type = COLUMN_INT},
    [CURSOR_AT_MS] = {.name = "at_ms", .type = COLUMN_INT},
};

const struct table cursor_table = {
    .name = "cursor",
    .columns = cursor_columns,
    .n_columns = N_CURSOR_COLUMNS,
    .n_key = 2,
    .since = 2,
};

static const struct table *const watch_tables[] = {&feed_table, &cursor_table};

const struct schema watch_schema = {
    .room = "watch",
    .tables = watch_tables,
    .n_tables = sizeof(watch_tables) / sizeof(*watch_tables),
};

size_t feed_entry_bytes(const struct feed_entry *e)
{
    return e->type.n + e->task_id.n + e->conversation_id.n + e->agent.n +
           e->requester.n + e->root_user.n + e->data.n;
}

void feed_append(struct tx *tx, const struct feed_entry *e)
{
    struct tx_op *op = tx_insert(tx, &feed_table);

    /* Names are limited where they come in, and data is ours. */
    assert(e->type.n && feed_entry_bytes(e) <= FEED_ENTRY_MAX);
    tx_set(op, FEED_AT_MS, value_int(e->at_ms));
    tx_set(op, FEED_TYPE, value_text(e->type));
    tx_set(op, FEED_TASK_ID, value_text_or_null(e->task_id));
    tx_set(op, FEED_CONVERSATION_ID, value_text_or_null(e->conversation_id));
    tx_set(op, FEED_AGENT, value_text_or_null(e->agent));
    tx_set(op, FEED_REQUESTER, value_text_or_null(e->requester));
    tx_set(op, FEED_ROOT_USER, value_text_or_null(e->root_user));
    tx_set(op, FEED_DATA, value_text_or_null(e->data));
    if (e->is_for_seers)
        tx_set(op, FEED_AUDIENCE, value_text(STR("*")));
}

void feed_append_data(struct tx *tx, struct buf *data,
                      const struct feed_entry *e)
{
    struct feed_entry entry = *e;

    entry.data = buf_str(data);
    if (data->over)
        tx->build_error = ERR_NOMEM;
    else
        feed_append(tx, &entry);
    buf_fini(data);
}

void feed_from_row(struct feed_entry *e, const struct row *r)
{
    *e = (struct feed_entry){
        .seq = row_int(r, FEED_SEQ),
        .at_ms = row_int(r, FEED_AT_MS),
        .type = row_str(r, FEED_TYPE),
        .task_id = row_str(r, FEED_TASK_ID),
        .conversation_id = row_str(r, FEED_CONVERSATION_ID),
        .agent = row_str(r, FEED_AGENT),
        .requester = row_str(r, FEED_REQUESTER),
        .root_user = row_str(r, FEED_ROOT_USER),
        .data = row_str(r, FEED_DATA),
        .is_for_seers = !row_is_null(r, FEED_AUDIENCE),
    };
    if (!e->data.n)
        e->data = STR("{}");
}

bool feed_is_for(const struct feed_entry *e, const struct caller *c)
{
    struct str name = caller_name(c);

    if (caller_is_admin(c))
        return true;
    return name.n && (str_eq(e->requester, name) || str_eq(e->root_user, name));
}

void feed_query_for(struct query *q, const struct caller *c)
{
    static const uint8_t whose[] = {FEED_REQUESTER, FEED_ROOT_USER,
                                    FEED_AUDIENCE};

    if (!caller_is_admin(c))
        query_if_any(q, whose, 3, IS_OR_ALL, value_text(caller_name(c)));
}
