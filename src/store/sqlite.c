/* Opening and closing the connection that writes.
 *
 * WAL with synchronous=FULL: a commit is one append and one sync, and a power
 * cut loses nothing that was acknowledged. Rejected: NORMAL, which is faster
 * for single commits but loses the last ones; group commit makes FULL fast
 * enough.
 *
 * The file is checked before any change: a file that is not ours, of a newer
 * version or damaged stays as it was found, and the message says which.
 *
 * SQLite uses POSIX locks: closing any descriptor of a file drops the process's
 * locks on it. So nothing here opens the database's files itself while a
 * connection is open, with one exception that is closed last. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    HEADER_BYTES = 100,
    UNDO_BYTES = STORE_UNDO_KB * 1024, /* of a tx: see sqlite_configure */
    INDEX_ROOM_BYTES = 256 * 1024,     /* for a log of 128 MiB */
    LOG_KEPT_BYTES = 16 * 1024 * 1024,
};

static const char *const suffixes[N_DB_FILES] = {
    [DB_MAIN] = "", [DB_LOG] = "-wal", [DB_INDEX] = "-shm"};

int db_exec(sqlite3 *sql, const char *text)
{
    return sqlite3_exec(sql, text, NULL, NULL, NULL);
}

int db_ask(sqlite3 *sql, const char *text, int64_t *out)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(sql, text, -1, &s, NULL);

    *out = 0;
    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* We never query SQLite's memory use, and counting it takes a lock shared by
 * all connections at every allocation. The undo data of a savepoint is in one
 * piece of memory and not, as with temp_store=MEMORY, in hundreds of small
 * ones, which took a sixth of a batch's time. A tx with more changes uses a
 * temporary file. */
static void sqlite_configure(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    (void)sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, UNDO_BYTES);
}

int db_connect(sqlite3 **out, const char *path, int flags)
{
    static uv_once_t once = UV_ONCE_INIT;
    int code;

    uv_once(&once, sqlite_configure);
    code = sqlite3_open_v2(
        path, out, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

    if (code != SQLITE_OK) {
        sqlite3_close(*out);
        *out = NULL;
    }
    return code;
}

enum err db_path(char out[DB_PATH_MAX], struct str folder, const char *name,
                 struct why *why)
{
    int n = snprintf(out, DB_PATH_MAX, "%.*s/%s", STR_ARG(folder), name);

    if (n < 0 || n >= DB_PATH_MAX - 16)
        return why_err(why, ERR_LIMIT,
                       "the path of the data folder is too long: choose "
                       "another with --data");
    return OK;
}

/* The file could not be opened: the kernel's error explains it best. */
static enum err db_open_error(int err, const char *path, struct why *why)
{
    if (err == EACCES || err == EPERM || err == EROFS)
        return why_err(why, ERR_NOT_ALLOWED,
                       "no permission to read and write the database %s: "
                       "change its owner, or choose another folder with "
                       "--data",
                       path);
    if (err == EISDIR)
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is a folder where the database should be: move it "
                       "away, or choose another data folder with --data",
                       path);
    return why_err(why, ERR_IO, "cannot open the database %s: %s", path,
                   err ? strerror(err) : "the reason is not known");
}

static enum err db_damaged_error(const char *path, struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG,
                   "the database %s is damaged: go back to a backup with "
                   "signalbox restore FILE, which keeps this one beside it",
                   path);
}

static enum err db_not_database_error(const char *path, struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG,
                   "%s is not a database: move it away, or go back to a "
                   "backup with signalbox restore FILE",
                   path);
}

enum err db_say(sqlite3 *sql, int code, const char *path, struct why *why)
{
    int err = sql ? sqlite3_system_errno(sql) : errno;

    switch (code & 0xff) {
    case SQLITE_NOTADB: return db_not_database_error(path, why);
    case SQLITE_CORRUPT: return db_damaged_error(path, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return why_err(why, ERR_BUSY,
                       "the database %s is locked by another program: close "
                       "that (fuser %s names it) and try again",
                       path, path);
    case SQLITE_FULL:
        return why_err(why, ERR_NO_SPACE,
                       "no space left for the database %s: free some and try "
                       "again",
                       path);
    case SQLITE_NOMEM: return why_err(why, ERR_NOMEM, "out of memory");
    case SQLITE_CANTOPEN: return db_open_error(err, path, why);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return db_open_error(EACCES, path, why);
    default:
        if (err == ENOSPC || err == EDQUOT)
            return db_say(NULL, SQLITE_FULL, path, why);
        return why_err(why, ERR_IO, "the database %s cannot be used: %s%s%s",
                       path, sqlite3_errstr(code), err ? ": " : "",
                       err ? strerror(err) : "");
    }
}

void db_kill(struct db *db, const char *doing, int code)
{
    int err = (code & 0xff) == SQLITE_IOERR ? db->last_errno : 0;

    if (db->is_dead)
        return;
    db->is_dead = true;
    why_err(&db->why, ERR_IO, "%s the database %s failed: %s%s%s", doing,
            db->files[DB_MAIN].path, sqlite3_errstr(code), err ? ": " : "",
            err ? strerror(err) : "");
}

/* SQLite would create the file readable by other users. */
static enum err db_make_file(const char *path, struct why *why)
{
    int fd = FAULT("store.make")
                 ? (errno = EIO, -1)
                 : open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    else if (errno == ENOSPC || errno == EDQUOT)
        return db_say(NULL, SQLITE_FULL, path, why);
    else if (errno != EEXIST)
        return db_open_error(errno, path, why);
    return OK;
}

bool file_has_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0;
}

/* SQLite would delete the log, and with it acknowledged commits. */
static enum err db_check_orphan_log(const struct db *db, struct why *why)
{
    if (file_has_bytes(db->files[DB_MAIN].path) ||
        !file_has_bytes(db->files[DB_LOG].path))
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "the database %s is gone, but its log %s is there: put the "
                   "database back beside it, or go back to a backup with "
                   "signalbox restore FILE",
                   db->files[DB_MAIN].path, db->files[DB_LOG].path);
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static enum err db_short_error(const char *path, int64_t has, int64_t should,
                               struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG,
                   "the database %s is cut short: it has %lld of %lld bytes: "
                   "go back to a backup with signalbox restore FILE, which "
                   "keeps this one beside it",
                   path, (long long)has, (long long)should);
}

/* Explain damage that SQLite would only call malformed. The file is read
 * through the connection because of the locks. With a log or a journal beside
 * it, the size in the header may differ. */
static enum err db_check_header(struct db *db, struct why *why)
{
    static const char magic[16] = "SQLite format 3";
    const char *path = db->files[DB_MAIN].path;
    unsigned char h[HEADER_BYTES] = {0};
    sqlite3_file *f = NULL;
    int64_t size, should;
    struct stat st;
    char journal[DB_PATH_MAX + 16];
    int n, code;

    sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_FILE_POINTER, &f);
    if (FAULT("store.header") || stat(path, &st) != 0)
        return db_say(db->sql, SQLITE_IOERR_FSTAT, path, why);
    size = st.st_size;
    if (size == 0)
        return OK;
    n = size < HEADER_BYTES ? (int)size : HEADER_BYTES;
    code = f->pMethods->xRead(f, h, n, 0);
    if (code != SQLITE_OK)
        return db_say(db->sql, code, path, why);
    /* An interrupted first start: SQLite will undo it. */
    snprintf(journal, sizeof(journal), "%s-journal", path);
    if (file_has_bytes(journal))
        return OK;
    if (memcmp(h, magic, n < 16 ? (size_t)n : 16) != 0)
        return db_not_database_error(path, why);
    if (file_has_bytes(db->files[DB_LOG].path))
        return OK;
    should = (int64_t)be32(h + 28) *
             (h[16] == 0 && h[17] == 1 ? 65536 : h[16] << 8 | h[17]);
    if (n < HEADER_BYTES)
        should = DB_PAGE_BYTES;
    else if (be32(h + 24) != be32(h + 92)) /* an old SQLite left it unset */
        should = 0;
    return size < should ? db_short_error(path, size, should, why) : OK;
}

/* Set a pragma and check it: several fail silently. */
static int db_set_pragma(sqlite3 *sql, const char *name, const char *value,
                         int64_t want)
{
    char text[96];
    int64_t got = 0;
    int code;

    if (FAULT("store.pragma"))
        return SQLITE_NOMEM;
    snprintf(text, sizeof(text), "PRAGMA %s=%s", name, value);
    code = db_exec(sql, text);
    snprintf(text, sizeof(text), "PRAGMA %s", name);
    if (code == SQLITE_OK)
        code = db_ask(sql, text, &got);
    return code == SQLITE_OK && got != want ? SQLITE_ERROR : code;
}

static int db_set_wal(sqlite3 *sql)
{
    sqlite3_stmt *s = NULL;
    const char *mode;
    int code =
        FAULT("store.wal")
            ? SQLITE_IOERR
            : sqlite3_prepare_v2(sql, "PRAGMA journal_mode=WAL", -1, &s, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    mode = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (code == SQLITE_ROW)
        code = mode && strcmp(mode, "wal") == 0 ? SQLITE_OK : SQLITE_CANTOPEN;
    sqlite3_finalize(s);
    return code;
}

/* SQLite reports the pages of the log after each commit. This hook also keeps
 * SQLite from folding the log in by itself. */
static int db_on_log(void *ctx, sqlite3 *sql, const char *name, int n_pages)
{
    struct db *db = ctx;

    (void)sql;
    (void)name;
    db->log_pages = n_pages;
    return SQLITE_OK;
}

static int db_configure(struct db *db)
{
    const struct store_sabotage *sab = &db->sabotage;
    const char *sync = sab->synchronous ? sab->synchronous : "FULL";
    char pages[16];
    int code = SQLITE_OK;

    if (db->is_new)
        code = db_set_pragma(db->sql, "page_size", "4096", DB_PAGE_BYTES);
    if (code == SQLITE_OK)
        code = db_set_wal(db->sql);
    if (code == SQLITE_OK)
        code = db_set_pragma(db->sql, "synchronous", sync,
                             strcmp(sync, "FULL") == 0     ? 2
                             : strcmp(sync, "NORMAL") == 0 ? 1
                                                           : 0);
    if (code == SQLITE_OK)
        code = db_set_pragma(db->sql, "foreign_keys", "ON", 1);
    if (code == SQLITE_OK)
        code = db_set_pragma(db->sql, "secure_delete", "FAST", 2);
    if (code == SQLITE_OK)
        code = db_set_pragma(db->sql, "cache_size", "-16384", -16384);
    if (code == SQLITE_OK)
        code = db_set_pragma(db->sql, "journal_size_limit", "16777216",
                             LOG_KEPT_BYTES);
    snprintf(pages, sizeof(pages), "%d", sab->max_pages);
    if (code == SQLITE_OK && sab->max_pages)
        code = db_set_pragma(db->sql, "max_page_count", pages, sab->max_pages);
    return code;
}

static int db_prepare_steps(struct db *db)
{
    static const char *const texts[N_DB_STEPS] = {
        [STEP_BEGIN] = "BEGIN IMMEDIATE", [STEP_SAVEPOINT] = "SAVEPOINT tx",
        [STEP_RELEASE] = "RELEASE tx",    [STEP_UNDO] = "ROLLBACK TO tx",
        [STEP_COMMIT] = "COMMIT",         [STEP_ROLLBACK] = "ROLLBACK",
    };
    int code = FAULT("store.steps") ? SQLITE_NOMEM : SQLITE_OK;

    for (int i = 0; i < N_DB_STEPS && code == SQLITE_OK; i++)
        code =
            sqlite3_prepare_v3(db->sql, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &db->steps[i], NULL);
    return code;
}

static enum err db_migrate(struct db *db, const struct store_opts *opts,
                           struct why *why)
{
    const char *path = db->files[DB_MAIN].path;
    int code = FAULT("store.migrate") ? SQLITE_FULL
                                      : db_exec(db->sql, "BEGIN IMMEDIATE");
    enum err e;

    if (code != SQLITE_OK)
        return db_say(db->sql, code, path, why);
    e = schema_migrate(db->sql, opts, path, why);
    if (e)
        return e; /* closing the connection rolls it back */
    code = schema_count_epoch(db->sql, &db->epoch, &db->was_stopped);
    if (code == SQLITE_OK)
        code = FAULT("store.migrate.commit") ? SQLITE_IOERR_FSYNC
                                             : db_exec(db->sql, "COMMIT");
    return code == SQLITE_OK ? OK : db_say(db->sql, code, path, why);
}

/* Fold in the log of an earlier run; then the file must have its full size. */
static enum err db_check_size(struct db *db, struct why *why)
{
    const char *path = db->files[DB_MAIN].path;
    int n_log = -1, n_done = -2;
    int64_t pages = 0;
    struct stat st;
    int code = FAULT("store.fold")
                   ? SQLITE_IOERR_FSYNC
                   : sqlite3_wal_checkpoint_v2(db->sql, "main",
                                               SQLITE_CHECKPOINT_PASSIVE,
                                               &n_log, &n_done);

    if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_FULL)
        return OK;
    if (code == SQLITE_OK)
        code = db_ask(db->sql, "PRAGMA page_count", &pages);
    if (code != SQLITE_OK)
        return db_say(db->sql, code, path, why);
    if (n_log != n_done || stat(path, &st) != 0 ||
        st.st_size >= pages * DB_PAGE_BYTES)
        return OK;
    return db_short_error(path, st.st_size, pages * DB_PAGE_BYTES, why);
}

/* Remember the open files: see db_check_files. */
static enum err db_remember_files(struct db *db, struct why *why)
{
    for (int i = 0; i < N_DB_FILES; i++) {
        struct db_file *f = &db->files[i];
        struct stat st;

        if (FAULT("store.stat") || stat(f->path, &st) != 0)
            return why_err(why, ERR_IO, "%s is not there: %s", f->path,
                           strerror(errno));
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        if (i == DB_MAIN)
            db->data_bytes = st.st_size;
    }
    return OK;
}

void db_check_files(struct db *db)
{
    for (int i = 0; i < N_DB_FILES && !db->is_dead; i++) {
        const struct db_file *f = &db->files[i];
        struct stat st;

        /* A database never shrinks; its log does. */
        if (!FAULT("store.moved") && stat(f->path, &st) == 0 &&
            st.st_dev == f->dev && st.st_ino == f->ino &&
            (i != DB_MAIN || st.st_size >= db->data_bytes)) {
            if (i == DB_MAIN)
                db->data_bytes = st.st_size;
            continue;
        }
        db->is_dead = true;
        why_err(&db->why, ERR_IO,
                "%s was moved, deleted, replaced or cut short while it was in "
                "use; what was written since may not be in the data folder",
                f->path);
    }
}

/* When the log outgrows its index, SQLite extends the index in the middle of a
 * commit, after the sync. Without space for that, it would be unknown whether
 * the commit holds. So space is reserved for a log far longer than we allow. A
 * failure here does no harm. */
static void db_make_index_room(struct db *db)
{
    db->index_fd = open(db->files[DB_INDEX].path, O_RDWR | O_CLOEXEC);
    if (db->index_fd >= 0)
        (void)posix_fallocate(db->index_fd, 0, INDEX_ROOM_BYTES);
}

static int db_sync_folder(struct str path)
{
    char copy[DB_PATH_MAX];
    int fd, rc;

    if ((size_t)snprintf(copy, sizeof(copy), "%.*s", STR_ARG(path)) >=
        sizeof(copy))
        return -1;
    fd = open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    rc = fsync(fd);
    close(fd);
    return rc;
}

/* A new database is durable once its name and that of its folder are. */
static enum err db_sync_names(const struct db *db, struct str folder,
                              struct why *why)
{
    struct str above = str_parent(folder);

    if (FAULT("store.sync_names") || db_sync_folder(folder) != 0)
        return why_err(why, ERR_IO, "the data folder %.*s cannot be synced: %s",
                       STR_ARG(folder), strerror(errno));
    /* The parent need not be readable for us. */
    if (db->is_new && db_sync_folder(above) != 0 && errno == EIO)
        return why_err(why, ERR_IO, "the folder %.*s cannot be synced: %s",
                       STR_ARG(above), strerror(errno));
    return OK;
}

static enum err db_open_files(struct db *db, const struct store_opts *opts,
                              struct why *why)
{
    struct str folder = str_of(opts->folder);
    const char *path = db->files[DB_MAIN].path;
    int busy_ms = db->sabotage.busy_ms ? db->sabotage.busy_ms : DB_BUSY_MS;
    enum err e = OK;
    int code;

    for (int i = 0; i < N_DB_FILES && !e; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s%s", DB_NAME, suffixes[i]);
        e = db_path(db->files[i].path, folder, name, why);
    }
    if (!e)
        e = db_check_orphan_log(db, why);
    if (!e)
        e = db_make_file(path, why);
    if (e)
        return e;
    code = FAULT("store.open")
               ? SQLITE_CANTOPEN
               : db_connect(&db->sql, path, SQLITE_OPEN_READWRITE);
    if (code != SQLITE_OK)
        return db_say(NULL, code, path, why);
    sqlite3_busy_timeout(db->sql, busy_ms);
    e = db_check_header(db, why);
    if (!e)
        e = schema_look(db->sql, path, &db->is_new, why);
    if (e)
        return e;
    code = db_configure(db);
    if (code != SQLITE_OK)
        return db_say(db->sql, code, path, why);
    sqlite3_wal_hook(db->sql, db_on_log, db);
    e = db_migrate(db, opts, why);
    if (!e)
        e = db_check_size(db, why);
    if (!e)
        e = db_remember_files(db, why);
    if (!e)
        e = db_sync_names(db, folder, why);
    if (!e) /* last, because the mark shows that there was a database */
        epoch_mark_write(folder, db->epoch);
    return e;
}

enum err db_open(struct db *db, const struct store_opts *opts, struct why *why)
{
    enum err e;
    int code;

    *db = (struct db){.index_fd = -1, .sabotage = SABOTAGE()};
    e = db_open_files(db, opts, why);
    if (!e) {
        stmts_init(&db->stmts, db->sql);
        db_make_index_room(db);
        code = db_prepare_steps(db);
        if (code != SQLITE_OK)
            e = db_say(db->sql, code, db->files[DB_MAIN].path, why);
    }
    if (e)
        db_close(db);
    return e;
}

void db_close(struct db *db)
{
    int code;

    if (!db->sql)
        return;
    stmts_fini(&db->stmts);
    for (int i = 0; i < N_DB_STEPS; i++)
        sqlite3_finalize(db->steps[i]);
    /* A log that could not be synced must not be folded in: the kernel may read
     * back something that is not on the disk. */
    if (db->is_dead)
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    code = sqlite3_close(db->sql);
    assert(code == SQLITE_OK); /* no statement is left */
    (void)code;
    db->sql = NULL;
    if (db->index_fd >= 0)
        close(db->index_fd);
    db->index_fd = -1;
}
