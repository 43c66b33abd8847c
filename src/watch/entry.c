/* The feed is one table, appended at its end and read by its key. Its one
 * index is for retention, which selects by time; clocks jump, so the key's
 * order is not quite that of time. An index by requester would cost every
 * entry, and readers scan a stretch of the key anyway (feed.c). */
#include "watch/watch.h"

#include <assert.h>

#include "model/record.h"

#define READ(field) MEMBER(struct feed_entry, field)
#define BOTH(field) READ(field), .part = 1

static const struct column feed_columns[] = {FEED_COLUMNS(COLUMN_ROW)};

static const struct table_index feed_indexes[] = {
    {.name = "feed_by_time", INDEX_ON(FEED_AT_MS)},
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

static const struct column cursor_columns[] = {CURSOR_COLUMNS(COLUMN_ROW)};

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
    return record_bytes(e, &feed_table, 1);
}

void feed_append(struct tx *tx, const struct feed_entry *e)
{
    struct tx_op *op = tx_insert(tx, &feed_table);

    /* Names are limited where they come in, and data is ours. */
    assert(e->type.n && feed_entry_bytes(e) <= FEED_ENTRY_MAX);
    record_to_tx(op, e, 1);
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
    *e = (struct feed_entry){.is_for_seers = !row_is_null(r, FEED_AUDIENCE)};
    record_from_row(e, &feed_table, r);
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
