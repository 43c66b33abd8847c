/* The schema of the database and its migration.
 *
 * The database stores a schema version per module. Opening it creates
 * everything newer, in one transaction with the count of this start: so a crash
 * leaves either the old database or the new one. There is no way back. A
 * database with an unknown module or version was written by a later program,
 * which may rely on things that this one would not keep: it is rejected.
 *
 * Rejected: migrations as numbered SQL scripts. They would have to be written
 * twice for a second kind of database, and could not be checked against the
 * tables that the modules use. */
#include "store/internal.h"

#include <assert.h>
#include <stdio.h>

#include "base/fault.h"

enum { DDL_BYTES_MAX = 64 * 1024 };

static unsigned version_since(unsigned n)
{
    return n ? n : 1;
}

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static unsigned column_since(const struct table *t, const struct column *c)
{
    return larger(version_since(c->since), version_since(t->since));
}

static unsigned schema_version(const struct schema *schema)
{
    unsigned version = 1;

    for (size_t i = 0; i < schema->n_tables; i++) {
        const struct table *t = schema->tables[i];

        version = larger(version, t->since);
        for (size_t k = 0; k < t->n_columns; k++)
            version = larger(version, t->columns[k].since);
        for (size_t k = 0; k < t->n_indexes; k++)
            version = larger(version, t->indexes[k].since);
    }
    return version;
}

/* Deleting a parent searches its children: without an index that begins with
 * that column this scans all of them. */
static bool child_has_index(const struct table *t, size_t column)
{
    bool is_found = column == 0;

    for (size_t i = 0; i < t->n_indexes; i++)
        is_found |= t->indexes[i].columns[0] == column;
    return is_found;
}

/* Assert that the description is valid before it is in a file. */
static void table_check(const struct table *t)
{
    assert(t->n_columns > 0 && t->n_columns <= TABLE_COLUMNS_MAX);
    assert(t->n_key > 0 && t->n_key <= t->n_columns);
    assert(!t->is_counted ||
           (t->n_key == 1 && t->columns[0].type == COLUMN_INT));
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];

        assert(c->name && (i == 0 || c->since >= c[-1].since));
        assert(i >= t->n_key || c->since <= version_since(t->since));
        if (c->child_of) {
            assert(c->since <= version_since(t->since) &&
                   c->child_of->n_key == 1);
            assert(child_has_index(t, i));
        }
    }
    for (size_t i = 0; i < t->n_indexes; i++)
        assert(t->indexes[i].n_columns > 0 &&
               t->indexes[i].n_columns <= TABLE_INDEX_COLUMNS);
}

static const char *column_type_name(enum column_type type)
{
    switch (type) {
    case COLUMN_INT: return "INTEGER";
    case COLUMN_TEXT: return "TEXT";
    case COLUMN_BLOB: return "BLOB";
    }
    return "BLOB";
}

static void ddl_write_column(struct buf *b, const struct table *t, size_t i)
{
    const struct column *c = &t->columns[i];
    bool is_number = t->n_key == 1 && i == 0 && c->type == COLUMN_INT;

    buf_addf(b, "\"%s\" %s", c->name, column_type_name(c->type));
    if (is_number)
        buf_add_str(b, STR(" PRIMARY KEY"));
    if (t->is_counted && i == 0) /* never reuses a number */
        buf_add_str(b, STR(" AUTOINCREMENT"));
    if (i < t->n_key)
        buf_add_str(b, STR(" NOT NULL"));
    if (c->child_of)
        buf_addf(b, " REFERENCES \"%s\"(\"%s\") ON DELETE CASCADE",
                 c->child_of->name, c->child_of->columns[0].name);
}

static void ddl_write_table(struct buf *b, const struct table *t)
{
    bool is_number = t->n_key == 1 && t->columns[0].type == COLUMN_INT;

    buf_addf(b, "CREATE TABLE \"%s\"(", t->name);
    for (size_t i = 0; i < t->n_columns; i++) {
        buf_add_str(b, i ? STR(", ") : STR(""));
        ddl_write_column(b, t, i);
    }
    for (size_t i = 0; i < t->n_key && !is_number; i++)
        buf_addf(b, "%s\"%s\"", i ? ", " : ", PRIMARY KEY(",
                 t->columns[i].name);
    /* STRICT: values have the type of their column, so readers need no check.
     */
    buf_addf(b, "%s) STRICT;\n", is_number ? "" : ")");
}

static void ddl_write_index(struct buf *b, const struct table *t,
                            const struct table_index *x)
{
    buf_addf(b, "CREATE %sINDEX \"%s\" ON \"%s\"",
             x->is_unique ? "UNIQUE " : "", x->name, t->name);
    for (uint8_t i = 0; i < x->n_columns; i++)
        buf_addf(b, "%s\"%s\"", i ? ", " : "(", t->columns[x->columns[i]].name);
    buf_add_str(b, STR(");\n"));
}

/* Write the DDL for everything in t that is newer than version `have`. */
static void ddl_write_missing(struct buf *b, const struct table *t,
                              unsigned have)
{
    bool is_new = version_since(t->since) > have;

    if (is_new)
        ddl_write_table(b, t);
    for (size_t i = 0; i < t->n_columns && !is_new; i++)
        if (column_since(t, &t->columns[i]) > have) {
            buf_addf(b, "ALTER TABLE \"%s\" ADD COLUMN ", t->name);
            ddl_write_column(b, t, i);
            buf_add_str(b, STR(";\n"));
        }
    for (size_t i = 0; i < t->n_indexes; i++)
        if (is_new || version_since(t->indexes[i].since) > have)
            ddl_write_index(b, t, &t->indexes[i]);
}

/* The version of a module in the database; 0: none yet. */
static int schema_find_version(sqlite3 *sql, const char *room, int64_t *have)
{
    sqlite3_stmt *s = NULL;
    int code;

    *have = 0;
    if (FAULT("store.migrate.find"))
        return SQLITE_NOMEM;
    code = sqlite3_prepare_v2(sql,
                              "SELECT value FROM signalbox_meta "
                              "WHERE kind = 'room' AND name = ?1",
                              -1, &s, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(s, 1, room, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *have = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int schema_write_version(sqlite3 *sql, const struct schema *schema)
{
    char *text = FAULT("store.migrate.note")
                     ? NULL
                     : sqlite3_mprintf("INSERT INTO signalbox_meta "
                                       "VALUES('room', %Q, %u) "
                                       "ON CONFLICT DO UPDATE "
                                       "SET value = excluded.value",
                                       schema->room, schema_version(schema));
    int code = text ? db_exec(sql, text) : SQLITE_NOMEM;

    sqlite3_free(text);
    return code;
}

static int schema_migrate_module(sqlite3 *sql, const struct schema *schema,
                                 unsigned have)
{
    struct buf ddl;
    int code = SQLITE_OK;

    buf_init(&ddl, DDL_BYTES_MAX);
    for (size_t i = 0; i < schema->n_tables; i++) {
        table_check(schema->tables[i]);
        ddl_write_missing(&ddl, schema->tables[i], have);
    }
    buf_add_char(&ddl, '\0');
    if (ddl.over || FAULT("store.migrate.room"))
        code = SQLITE_NOMEM;
    else if (ddl.n > 1)
        code = db_exec(sql, ddl.p);
    buf_fini(&ddl);
    return code == SQLITE_OK ? schema_write_version(sql, schema) : code;
}

static enum err schema_newer_error(struct why *why, const char *path,
                                   const char *room, int64_t has, int64_t knows)
{
    return why_err(
        why, ERR_BAD_CONFIG,
        "the database %s was used by a newer signalbox: its %s is of version "
        "%lld, this one (%s) knows %s%lld: start the newer one, choose "
        "another folder with --data, or go back to a backup made before",
        path, room, (long long)has, SIGNALBOX_VERSION, knows ? "up to " : "",
        (long long)knows);
}

static const struct schema *schema_find(const struct store_opts *opts,
                                        const char *room)
{
    for (size_t i = 0; i < opts->n_schemas; i++)
        if (strcmp(opts->schemas[i]->room, room) == 0)
            return opts->schemas[i];
    return NULL;
}

/* Reject modules of the database that are newer or unknown. */
static enum err schema_check_newer(sqlite3 *sql, const struct store_opts *opts,
                                   const char *path, struct why *why)
{
    sqlite3_stmt *s = NULL;
    enum err e = OK;
    int code = sqlite3_prepare_v2(sql,
                                  "SELECT name, value FROM signalbox_meta "
                                  "WHERE kind = 'room' ORDER BY name",
                                  -1, &s, NULL);

    while (!e && code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *room = (const char *)sqlite3_column_text(s, 0);
        const struct schema *ours = room ? schema_find(opts, room) : NULL;
        int64_t has = sqlite3_column_int64(s, 1);
        char what[96];
        unsigned knows = ours ? schema_version(ours) : 0;

        snprintf(what, sizeof(what), "part \"%.64s\"", room ? room : "");
        if (!ours || has > knows)
            e = schema_newer_error(why, path, what, has, knows);
        code = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return e || code == SQLITE_DONE ? e : db_say(sql, code, path, why);
}

enum err schema_look(sqlite3 *sql, const char *path, bool *is_new,
                     struct why *why)
{
    int64_t n_tables = 0, id = 0, format = 0;
    int code = FAULT("store.look.nomem")
                   ? SQLITE_NOMEM
                   : db_ask(sql, "PRAGMA application_id", &id);

    if (code == SQLITE_OK)
        code = db_ask(sql, "PRAGMA user_version", &format);
    if (code == SQLITE_OK)
        code = db_ask(sql, "SELECT count(*) FROM sqlite_schema", &n_tables);
    if (code != SQLITE_OK)
        return db_say(sql, code, path, why);
    *is_new = n_tables == 0 && (id == 0 || id == DB_APPLICATION_ID);
    if (*is_new)
        return OK;
    if (id != DB_APPLICATION_ID)
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is a database of another program: move it away, or "
                       "choose another folder with --data",
                       path);
    if (format > DB_FORMAT)
        return schema_newer_error(why, path, "file format", format, DB_FORMAT);
    return OK;
}

enum err schema_migrate(sqlite3 *sql, const struct store_opts *opts,
                        const char *path, struct why *why)
{
    char text[96];
    enum err e;
    int code;

    snprintf(text, sizeof(text),
             "PRAGMA application_id=%d; PRAGMA user_version=%d",
             DB_APPLICATION_ID, DB_FORMAT);
    code = FAULT("store.migrate.begin") ? SQLITE_NOMEM : db_exec(sql, text);
    if (code == SQLITE_OK)
        code = db_exec(sql, "CREATE TABLE IF NOT EXISTS signalbox_meta("
                            "kind TEXT NOT NULL, name TEXT NOT NULL, "
                            "value INTEGER NOT NULL, "
                            "PRIMARY KEY(kind, name)) STRICT");
    if (code != SQLITE_OK)
        return db_say(sql, code, path, why);
    e = schema_check_newer(sql, opts, path, why);
    for (size_t i = 0; i < opts->n_schemas && !e; i++) {
        const struct schema *schema = opts->schemas[i];
        int64_t have;

        code = schema_find_version(sql, schema->room, &have);
        if (code == SQLITE_OK && have < schema_version(schema))
            code = schema_migrate_module(sql, schema, (unsigned)have);
        if (code != SQLITE_OK)
            e = db_say(sql, code, path, why);
    }
    return e;
}

int schema_count_epoch(sqlite3 *sql, int64_t *epoch, int64_t *was_stopped)
{
    int code = FAULT("store.epoch")
                   ? SQLITE_NOMEM
                   : db_ask(sql,
                            "SELECT count(*) > 1 AND min(value) = max(value) "
                            "FROM signalbox_meta "
                            "WHERE kind IN ('epoch', 'stopped')",
                            was_stopped);

    if (code == SQLITE_OK)
        code = db_exec(sql, "INSERT INTO signalbox_meta VALUES('epoch', '', 1) "
                            "ON CONFLICT DO UPDATE SET value = value + 1");
    if (code == SQLITE_OK)
        code =
            db_ask(sql, "SELECT value FROM signalbox_meta WHERE kind = 'epoch'",
                   epoch);
    return code;
}

int schema_note_stop(sqlite3 *sql)
{
    return db_exec(sql, "INSERT OR REPLACE INTO signalbox_meta "
                        "SELECT 'stopped', '', value FROM signalbox_meta "
                        "WHERE kind = 'epoch'");
}
