/* What the database must look like, and how it comes to.
 *
 * The database remembers for each room which version of its schema it has.
 * Opening it makes what is newer than that, in one transaction together with
 * the count of this opening: so a crash leaves either the old database or the
 * new one. There is no way back. A database with a room, or a version, that
 * this program does not know was written by a later one, which may rely on
 * things that this one would not keep: it is refused, not guessed at.
 *
 * Turned down: migrations as numbered scripts of SQL. They would have to be
 * written twice for a second kind of database, and could not be checked
 * against the tables that the rooms really use. */
#include "store/internal.h"

#include <assert.h>
#include <stdio.h>

#include "base/fault.h"

enum { DDL_BYTES_MAX = 64 * 1024 };

static unsigned since(unsigned n)
{
    return n ? n : 1;
}

static unsigned column_since(const struct table *t, const struct column *c)
{
    unsigned n = since(c->since);

    return n > since(t->since) ? n : since(t->since);
}

/* Deleting a parent looks for its children: without an index that begins with
 * that column it would look through all of them. */
static bool child_is_found(const struct table *t, size_t column)
{
    bool is_found = column == 0;

    for (size_t i = 0; i < t->n_indexes; i++)
        is_found |= t->indexes[i].columns[0] == column;
    return is_found;
}

/* Our own mistakes, before they are in a file. */
static void check_table(const struct table *t)
{
    assert(t->n_columns > 0 && t->n_columns <= TABLE_COLUMNS_MAX);
    assert(t->n_key > 0 && t->n_key <= t->n_columns);
    assert(!t->is_counted ||
           (t->n_key == 1 && t->columns[0].type == COLUMN_INT));
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct column *c = &t->columns[i];

        assert(i >= t->n_key || c->since <= since(t->since));
        if (c->child_of) {
            assert(c->since <= since(t->since) && c->child_of->n_key == 1);
            assert(child_is_found(t, i));
        }
    }
    for (size_t i = 0; i < t->n_indexes; i++)
        assert(t->indexes[i].n_columns > 0 &&
               t->indexes[i].n_columns <= TABLE_INDEX_COLUMNS);
}

static const char *type_name(enum column_type type)
{
    switch (type) {
    case COLUMN_INT: return "INTEGER";
    case COLUMN_TEXT: return "TEXT";
    case COLUMN_BLOB: return "BLOB";
    }
    return "BLOB";
}

static void write_column(struct buf *b, const struct table *t, size_t i)
{
    const struct column *c = &t->columns[i];
    bool is_number = t->n_key == 1 && i == 0 && c->type == COLUMN_INT;

    buf_addf(b, "\"%s\" %s", c->name, type_name(c->type));
    if (is_number)
        buf_add_str(b, STR(" PRIMARY KEY"));
    if (t->is_counted && i == 0) /* never gives a number twice */
        buf_add_str(b, STR(" AUTOINCREMENT"));
    if (i < t->n_key)
        buf_add_str(b, STR(" NOT NULL"));
    if (c->child_of)
        buf_addf(b, " REFERENCES \"%s\"(\"%s\") ON DELETE CASCADE",
                 c->child_of->name, c->child_of->columns[0].name);
}

static void write_table(struct buf *b, const struct table *t)
{
    bool is_number = t->n_key == 1 && t->columns[0].type == COLUMN_INT;

    buf_addf(b, "CREATE TABLE \"%s\"(", t->name);
    for (size_t i = 0; i < t->n_columns; i++) {
        buf_add_str(b, i ? STR(", ") : STR(""));
        write_column(b, t, i);
    }
    for (size_t i = 0; i < t->n_key && !is_number; i++)
        buf_addf(b, "%s\"%s\"", i ? ", " : ", PRIMARY KEY(",
                 t->columns[i].name);
    /* STRICT: a field holds what its column says, so readers need not ask. */
    buf_addf(b, "%s) STRICT;\n", is_number ? "" : ")");
}

static void write_index(struct buf *b, const struct table *t,
                        const struct table_index *x)
{
    buf_addf(b, "CREATE %sINDEX \"%s\" ON \"%s\"",
             x->is_unique ? "UNIQUE " : "", x->name, t->name);
    for (uint8_t i = 0; i < x->n_columns; i++)
        buf_addf(b, "%s\"%s\"", i ? ", " : "(", t->columns[x->columns[i]].name);
    buf_add_str(b, STR(");\n"));
}

/* What t lacks when its room is at version `have`. */
static void write_missing(struct buf *b, const struct table *t, unsigned have)
{
    bool is_new = since(t->since) > have;

    if (is_new)
        write_table(b, t);
    for (size_t i = 0; i < t->n_columns && !is_new; i++)
        if (column_since(t, &t->columns[i]) > have) {
            buf_addf(b, "ALTER TABLE \"%s\" ADD COLUMN ", t->name);
            write_column(b, t, i);
            buf_add_str(b, STR(";\n"));
        }
    for (size_t i = 0; i < t->n_indexes; i++)
        if (is_new || since(t->indexes[i].since) > have)
            write_index(b, t, &t->indexes[i]);
}

/* Which version of a room the database has; 0: none yet. */
static int find_version(sqlite3 *sql, const char *room, int64_t *have)
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

static int note_version(sqlite3 *sql, const char *room, unsigned version)
{
    char *text = FAULT("store.migrate.note")
                     ? NULL
                     : sqlite3_mprintf("INSERT INTO signalbox_meta "
                                       "VALUES('room', %Q, %u) "
                                       "ON CONFLICT DO UPDATE "
                                       "SET value = excluded.value",
                                       room, version);
    int code = text ? db_exec(sql, text) : SQLITE_NOMEM;

    sqlite3_free(text);
    return code;
}

static int migrate_room(sqlite3 *sql, const struct schema *schema,
                        unsigned have)
{
    struct buf ddl;
    int code = SQLITE_OK;

    buf_init(&ddl, DDL_BYTES_MAX);
    for (size_t i = 0; i < schema->n_tables; i++) {
        check_table(schema->tables[i]);
        write_missing(&ddl, schema->tables[i], have);
    }
    buf_add_char(&ddl, '\0');
    if (ddl.over || FAULT("store.migrate.room"))
        code = SQLITE_NOMEM;
    else if (ddl.n > 1)
        code = db_exec(sql, ddl.p);
    buf_fini(&ddl);
    return code == SQLITE_OK ? note_version(sql, schema->room, schema->version)
                             : code;
}

static enum err say_newer(struct why *why, const char *path, const char *room,
                          int64_t has, int64_t knows)
{
    return why_err(
        why, ERR_BAD_CONFIG,
        "the database %s was used by a newer signalbox: its %s is of version "
        "%lld, this one (%s) knows %s%lld: start the newer one, choose "
        "another folder with --data, or go back to a backup made before",
        path, room, (long long)has, SIGNALBOX_VERSION, knows ? "up to " : "",
        (long long)knows);
}

static const struct schema *find_schema(const struct store_opts *opts,
                                        const char *room)
{
    for (size_t i = 0; i < opts->n_schemas; i++)
        if (strcmp(opts->schemas[i]->room, room) == 0)
            return opts->schemas[i];
    return NULL;
}

/* Is any room of the database newer than we are, or unknown to us? */
static enum err look_for_newer(sqlite3 *sql, const struct store_opts *opts,
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
        const struct schema *ours = room ? find_schema(opts, room) : NULL;
        int64_t has = sqlite3_column_int64(s, 1);
        char what[96];

        snprintf(what, sizeof(what), "part \"%.64s\"", room ? room : "");
        if (!ours || has > ours->version)
            e = say_newer(why, path, what, has, ours ? ours->version : 0);
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
        return say_newer(why, path, "file format", format, DB_FORMAT);
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
    e = look_for_newer(sql, opts, path, why);
    for (size_t i = 0; i < opts->n_schemas && !e; i++) {
        const struct schema *schema = opts->schemas[i];
        int64_t have;

        code = find_version(sql, schema->room, &have);
        if (code == SQLITE_OK && have < schema->version)
            code = migrate_room(sql, schema, (unsigned)have);
        if (code != SQLITE_OK)
            e = db_say(sql, code, path, why);
    }
    return e;
}

int schema_count_epoch(sqlite3 *sql, int64_t *epoch)
{
    int code = FAULT("store.epoch")
                   ? SQLITE_NOMEM
                   : db_exec(sql, "INSERT INTO signalbox_meta "
                                  "VALUES('epoch', '', 1) ON CONFLICT "
                                  "DO UPDATE SET value = value + 1");

    if (code == SQLITE_OK)
        code =
            db_ask(sql, "SELECT value FROM signalbox_meta WHERE kind = 'epoch'",
                   epoch);
    return code;
}
