/* Read-only connections.
 *
 * Each query is one statement and reads one state of the database: everything
 * committed before it began, and nothing after. It never blocks the writer. It
 * only prevents the log from restarting, so it has a time limit.
 *
 * A reader never folds the log in, not even when it closes last: SQLite before
 * 3.51.3 loses data when two connections do. */
#include "store/internal.h"

#include "base/fault.h"

enum { OPS_BETWEEN_LOOKS = 1000 }; /* of SQLite's machine: some 20 us */

/* Called by SQLite now and then; nonzero interrupts the statement. */
static int reader_on_progress(void *ctx)
{
    const struct reader *r = ctx;

    return atomic_load(r->is_stopping) || atomic_load(&r->is_given_up) ||
           uv_hrtime() >= r->deadline_ns;
}

enum err reader_open(struct reader *r, const char *path,
                     atomic_bool *is_stopping, struct why *why)
{
    struct store_sabotage sabotage = SABOTAGE();
    int code;

    *r = (struct reader){.is_stopping = is_stopping};
    r->limit_ms = sabotage.read_ms < 0   ? 0
                  : sabotage.read_ms > 0 ? sabotage.read_ms
                                         : DB_READ_MS;
    code = FAULT("store.reader.open")
               ? SQLITE_CANTOPEN
               : db_connect(&r->sql, path, SQLITE_OPEN_READONLY);
    if (code != SQLITE_OK)
        return db_say(NULL, code, path, why);
    sqlite3_busy_timeout(r->sql, DB_BUSY_MS);
    sqlite3_wal_autocheckpoint(r->sql, 0);
    sqlite3_db_config(r->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_progress_handler(r->sql, OPS_BETWEEN_LOOKS, reader_on_progress, r);
    code = db_exec(r->sql, "PRAGMA cache_size=-8192; "
                           "PRAGMA temp_store=MEMORY; PRAGMA query_only=ON");
    stmts_init(&r->stmts, r->sql);
    if (code == SQLITE_OK)
        return OK;
    reader_close(r);
    return db_say(NULL, code, path, why);
}

void reader_close(struct reader *r)
{
    if (!r->sql)
        return;
    stmts_fini(&r->stmts);
    sqlite3_close(r->sql);
    r->sql = NULL;
}

static enum err value_keep_bytes(struct arena *a, sqlite3_stmt *s, int i,
                                 struct value *v)
{
    const void *p = v->type == VALUE_TEXT
                        ? (const void *)sqlite3_column_text(s, i)
                        : sqlite3_column_blob(s, i);

    v->s = (struct str){p, (size_t)sqlite3_column_bytes(s, i)};
    if (!p && v->s.n)
        return ERR_NOMEM;
    v->s.p = arena_strdup(a, v->s);
    return v->s.p ? OK : ERR_NOMEM;
}

static enum err value_keep_column(struct arena *a, sqlite3_stmt *s, int i,
                                  struct value *v)
{
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_NULL: *v = value_null(); return OK;
    case SQLITE_INTEGER: *v = value_int(sqlite3_column_int64(s, i)); return OK;
    case SQLITE_TEXT: v->type = VALUE_TEXT; return value_keep_bytes(a, s, i, v);
    case SQLITE_BLOB: v->type = VALUE_BLOB; return value_keep_bytes(a, s, i, v);
    default: return ERR_IO; /* a fraction, which we never write */
    }
}

/* The arena bytes of the row, or a little less. */
static size_t row_bytes(sqlite3_stmt *s, size_t n_columns)
{
    size_t n = sizeof(struct row) + n_columns * sizeof(struct value);

    for (size_t i = 0; i < n_columns; i++)
        if (sqlite3_column_type(s, (int)i) >= SQLITE_TEXT &&
            sqlite3_column_type(s, (int)i) <= SQLITE_BLOB)
            n += (size_t)sqlite3_column_bytes(s, (int)i) + 32;
    return n;
}

static enum err query_take_row(struct query *q, sqlite3_stmt *s,
                               struct row ***last)
{
    size_t n = q->table->n_columns;
    struct row *row;
    enum err e = OK;

    row = FAULT("store.row") ? NULL : arena_alloc(&q->arena, sizeof(*row));
    if (!row)
        return ERR_NOMEM;
    row->values = arena_array(&q->arena, n, sizeof(*row->values));
    if (!row->values)
        return ERR_NOMEM;
    for (size_t i = 0; i < n && !e; i++)
        e = value_keep_column(&q->arena, s, (int)i, &row->values[i]);
    if (e)
        return e;
    **last = row;
    *last = &row->next;
    q->n_rows++;
    return OK;
}

static enum err reader_err(const struct reader *r, int code)
{
    switch (code & 0xff) {
    case SQLITE_NOMEM: return ERR_NOMEM;
    case SQLITE_TOOBIG: return ERR_LIMIT;
    case SQLITE_BUSY: return ERR_BUSY;
    case SQLITE_INTERRUPT:
        return atomic_load(r->is_stopping)    ? ERR_STOPPING
               : atomic_load(&r->is_given_up) ? ERR_GONE
                                              : ERR_TOO_SLOW;
    default: return ERR_IO;
    }
}

/* Take rows until the page is full. */
static enum err reader_take_rows(struct reader *r, struct query *q,
                                 sqlite3_stmt *s)
{
    size_t before = q->arena.used;
    struct row **last = &q->rows;
    int code;
    enum err e = OK;

    while (!e &&
           (code = FAULT("store.read.io") ? SQLITE_IOERR : sqlite3_step(s)) !=
               SQLITE_DONE) {
        if (code != SQLITE_ROW)
            return reader_err(r, code);
        q->has_more =
            q->n_rows >= q->limit || q->arena.used - before >= QUERY_PAGE_BYTES;
        if (q->has_more)
            return OK;
        if (row_bytes(s, q->table->n_columns) <= q->arena.cap - q->arena.used)
            e = query_take_row(q, s, &last);
        else if (q->n_rows == 0)
            e = ERR_LIMIT;
        else
            return q->has_more = true, OK;
    }
    return e;
}

void reader_find(struct reader *r, struct query *q)
{
    sqlite3_stmt *s = NULL;
    int code;

    q->rows = NULL;
    q->n_rows = 0;
    q->has_more = false;
    q->err = q->build_error;
    if (q->err)
        return;
    r->deadline_ns = uv_hrtime() + (uint64_t)r->limit_ms * 1000000;
    code = stmts_for_query(&r->stmts, q, &s);
    q->err =
        code == SQLITE_OK ? reader_take_rows(r, q, s) : reader_err(r, code);
    if (s)
        sqlite3_reset(s);
    if (q->err) {
        q->rows = NULL;
        q->n_rows = 0;
        q->has_more = false;
    }
}
