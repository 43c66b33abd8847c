/* Copies of the whole database.
 *
 * Another process makes a backup while the server writes: it reads one state of
 * the database, from the first page to the last, and never writes or folds in
 * the log (SQLite before 3.51.3 loses data when two processes do). The server's
 * log grows meanwhile; that is the price. The copy is one file without a log.
 *
 * Copies are written under another name, checked, synced and then renamed:
 * under its final name a file is complete or absent.
 *
 * Restore has one trap. SQLite applies any log beside a database, even one of
 * another database, and the log of the old one would ruin the new one. So the
 * old log is first folded into the old database and removed from the folder,
 * durably, before the new database gets its name.
 *
 * An epoch must never repeat. The count of starts goes back with the database,
 * so the larger count is written into the new one before it gets its name. If
 * the old database cannot be read, a mark beside it has the count. Without
 * either, most likely in a new folder, a margin is added that exceeds the
 * starts between two backups. Rejected: the time of day, because epochs are
 * multiplied elsewhere and must stay small. */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"

enum {
    PAGES_PER_STEP = 1024,
    COPIED_PERMILLE = 800,              /* the rest is the check */
    LOOK_BYTES_MAX = 256 * 1024 * 1024, /* about a second */
    EPOCH_MARGIN = 1000,
};

struct progress {
    store_progress *tell;
    void *ctx;
};

static void progress_report(const struct progress *p, int permille)
{
    if (p->tell)
        p->tell(p->ctx, permille);
}

/* A copy of the database `from` at `path`; messages name it `shown`. */
struct copying {
    const char *from, *path, *shown;
    bool is_restore; /* `from` should be a backup */
    struct progress progress;
};

static enum err backup_errno_error(struct why *why, const char *doing,
                                   const char *path)
{
    int err = errno;
    enum err e = err == ENOSPC || err == EDQUOT ? ERR_NO_SPACE
                 : err == EACCES || err == EPERM || err == EROFS
                     ? ERR_NOT_ALLOWED
                 : err == ENOENT || err == ENOTDIR ? ERR_NOT_FOUND
                                                   : ERR_IO;

    return why_err(why, e, "cannot %s %s: %s", doing, path, strerror(err));
}

static enum err backup_path(char out[DB_PATH_MAX], struct str path,
                            const char *suffix, struct why *why)
{
    int n = snprintf(out, DB_PATH_MAX, "%.*s%s", STR_ARG(path), suffix);

    if (n < 0 || n >= DB_PATH_MAX - 64)
        return why_err(why, ERR_LIMIT, "the path %.64s… is too long", out);
    return OK;
}

static bool backup_path_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* Open a database to read it without a change. */
static int backup_open_source(sqlite3 **sql, const char *path, int flags)
{
    int code = FAULT("store.backup.source")
                   ? SQLITE_CANTOPEN
                   : db_connect(sql, path, SQLITE_OPEN_READONLY | flags);

    if (code != SQLITE_OK)
        return code;
    sqlite3_busy_timeout(*sql, DB_BUSY_MS);
    sqlite3_wal_autocheckpoint(*sql, 0);
    sqlite3_db_config(*sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return SQLITE_OK;
}

/* Copy all pages. The caller has begun a read of `from`, which keeps one state
 * of it regardless of writes meanwhile. */
static int copy_pages(sqlite3 *to, sqlite3 *from, const struct progress *p)
{
    sqlite3_backup *b = FAULT("store.backup.begin")
                            ? NULL
                            : sqlite3_backup_init(to, "main", from, "main");
    int code = SQLITE_OK;

    if (!b)
        return SQLITE_NOMEM;
    while (code == SQLITE_OK) {
        int all;

        code = FAULT("store.backup.step")
                   ? SQLITE_FULL
                   : sqlite3_backup_step(b, PAGES_PER_STEP);
        all = sqlite3_backup_pagecount(b);
        if (all > 0)
            progress_report(p,
                            (int)((int64_t)(all - sqlite3_backup_remaining(b)) *
                                  COPIED_PERMILLE / all));
    }
    sqlite3_backup_finish(b);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The error for a file to restore. The hints for a server's own database would
 * mislead here. */
static enum err backup_source_error(sqlite3 *sql, int code, const char *path,
                                    struct why *why)
{
    int err = sql ? sqlite3_system_errno(sql) : errno;
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is a folder: name a file that signalbox backup has "
                       "made",
                       path);
    switch (code & 0xff) {
    case SQLITE_NOTADB:
        return why_err(why, ERR_BAD_CONFIG,
                       "%s is not a backup: name a file that signalbox backup "
                       "has made",
                       path);
    case SQLITE_CORRUPT:
        return why_err(why, ERR_BAD_CONFIG,
                       "the backup %s is damaged: name another", path);
    case SQLITE_CANTOPEN:
        if (err == EACCES || err == EPERM)
            return why_err(why, ERR_NOT_ALLOWED, "no permission to read %s",
                           path);
        break;
    default: break;
    }
    return db_say(sql, code, path, why);
}

static enum err copy_source_error(const struct copying *c, sqlite3 *sql,
                                  int code, struct why *why)
{
    return c->is_restore ? backup_source_error(sql, code, c->from, why)
                         : db_say(sql, code, c->from, why);
}

static enum err copy_target_error(const struct copying *c, sqlite3 *sql,
                                  int code, struct why *why)
{
    if ((code & 0xff) == SQLITE_FULL)
        return why_err(why, ERR_NO_SPACE,
                       "no space left for %s: free some and try again",
                       c->shown);
    return db_say(sql, code, c->shown, why);
}

/* Check that it is a database of ours and not empty. */
static enum err copy_check_source(const struct copying *c, sqlite3 *sql,
                                  struct why *why)
{
    bool is_empty = false;
    int64_t id = 0;
    enum err e = schema_look(sql, c->from, &is_empty, why);
    int code;

    if (!e && is_empty)
        return why_err(why, ERR_BAD_CONFIG, "%s is empty%s", c->from,
                       c->is_restore ? ": name a file that signalbox backup "
                                       "has made"
                                     : ": there is nothing to copy");
    if (e != ERR_BAD_CONFIG || !c->is_restore)
        return e;
    code = db_ask(sql, "PRAGMA application_id", &id);
    if (code != SQLITE_OK)
        return backup_source_error(sql, code, c->from, why);
    if (id != DB_APPLICATION_ID)
        return why_err(why, e,
                       "%s is a database of another program, and no backup: "
                       "name a file that signalbox backup has made",
                       c->from);
    return why_err(why, e,
                   "the backup %s is of a newer signalbox: restore it with "
                   "that, or name an older one",
                   c->from);
}

/* SQLite's message about the damage, without its headline, as one line. */
static void damage_text(const char *message, char out[100])
{
    struct str rest = str_of(message ? message : "no reason given");
    struct str line = str_cut(&rest, '\n');

    while (rest.n && str_starts(line, STR("***")))
        line = str_cut(&rest, '\n');
    snprintf(out, 100, "%.*s", STR_ARG(str_head(line, 99)));
    str_tame(out, strlen(out));
}

/* Check every page and every index. */
static enum err database_check(sqlite3 *sql, const char *text, const char *path,
                               bool is_backup, struct why *why)
{
    char damage[100];
    sqlite3_stmt *s = NULL;
    const char *message = NULL;
    enum err e = OK;
    int code = FAULT("store.backup.check")
                   ? SQLITE_CORRUPT
                   : sqlite3_prepare_v2(sql, text, -1, &s, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        message = (const char *)sqlite3_column_text(s, 0);
        damage_text(message, damage);
        if (strcmp(damage, "ok") != 0)
            e = why_err(why, ERR_BAD_CONFIG,
                        is_backup ? "the backup %s is damaged (%s): name "
                                    "another"
                                  : "the database %s is damaged (%s): go back "
                                    "to an earlier backup with signalbox "
                                    "restore FILE",
                        path, damage);
    } else {
        e = is_backup ? backup_source_error(sql, code, path, why)
                      : db_say(sql, code, path, why);
    }
    sqlite3_finalize(s);
    return e;
}

static enum err path_sync(const char *path, int flags, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    enum err e = OK;

    if (fd < 0 || FAULT("store.backup.sync") || fsync(fd) != 0)
        e = backup_errno_error(why, "sync", path);
    if (fd >= 0)
        close(fd);
    return e;
}

static enum err path_sync_folder(const char *path, struct why *why)
{
    struct str folder = str_parent(str_of(path));
    char copy[DB_PATH_MAX];

    snprintf(copy, sizeof(copy), "%.*s", STR_ARG(folder));
    return path_sync(copy, O_DIRECTORY, why);
}

/* Copy the present state of `from` into the empty file. */
static enum err copy_fill(const struct copying *c, sqlite3 *from,
                          struct why *why)
{
    sqlite3 *to = NULL;
    enum err e = OK;
    int code = FAULT("store.backup.target")
                   ? SQLITE_CANTOPEN
                   : db_connect(&to, c->path, SQLITE_OPEN_READWRITE);

    /* It is synced once, at the end; until then no program knows its name. */
    if (code == SQLITE_OK)
        code = db_exec(to, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF");
    if (code == SQLITE_OK)
        code = copy_pages(to, from, &c->progress);
    /* The header of the copy says that it has a log. It needs none. */
    if (code == SQLITE_OK)
        code = db_exec(to, "PRAGMA journal_mode=DELETE");
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        e = copy_source_error(c, to, code, why);
    else if (code != SQLITE_OK)
        e = copy_target_error(c, to, code, why);
    if (!e)
        e = database_check(to, "PRAGMA integrity_check(1)", c->from,
                           c->is_restore, why);
    sqlite3_close(to);
    return e;
}

/* Copy, check and sync; on error there is no file at c->path. */
static enum err database_copy(const struct copying *c, struct why *why)
{
    sqlite3 *from = NULL;
    int64_t n;
    int code = backup_open_source(&from, c->from, 0);
    enum err e;

    if (code != SQLITE_OK)
        return copy_source_error(c, NULL, code, why);
    e = copy_check_source(c, from, why);
    if (!e) {
        code = db_exec(from, "BEGIN");
        if (code == SQLITE_OK)
            code = db_ask(from, "SELECT count(*) FROM sqlite_schema", &n);
        if (code != SQLITE_OK)
            e = copy_source_error(c, from, code, why);
    }
    if (!e) {
        int fd =
            FAULT("store.backup.make")
                ? (errno = EACCES, -1)
                : open(c->path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

        if (fd < 0)
            e = backup_errno_error(why, "make", c->shown);
        else
            close(fd);
    }
    if (!e) {
        e = copy_fill(c, from, why);
        if (!e)
            e = path_sync(c->path, 0, why);
        if (e)
            unlink(c->path);
    }
    sqlite3_close(from);
    return e;
}

/* Rename the copy, unless the name exists by now. */
static enum err backup_rename(const char *from, const char *to, struct why *why)
{
    int rc = FAULT("store.backup.rename")
                 ? (errno = EIO, -1)
                 : renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

    if (rc != 0 && errno == EINVAL) /* a file system without that flag */
        rc = rename(from, to);
    if (rc != 0 && errno == EEXIST)
        return why_err(why, ERR_BUSY,
                       "%s is there already: choose another name", to);
    if (rc != 0)
        return backup_errno_error(why, "name the backup", to);
    return path_sync_folder(to, why);
}

enum err store_backup(struct str folder, struct str file,
                      store_progress *progress, void *ctx, struct why *why)
{
    char from[DB_PATH_MAX], to[DB_PATH_MAX], unnamed[DB_PATH_MAX], suffix[32];
    struct copying c = {.from = from,
                        .path = unnamed,
                        .shown = to,
                        .progress = {progress, ctx}};
    enum err e;

    snprintf(suffix, sizeof(suffix), ".tmp-%ld", (long)getpid());
    e = db_path(from, folder, DB_NAME, why);
    if (!e)
        e = backup_path(to, file, "", why);
    if (!e)
        e = backup_path(unnamed, file, suffix, why);
    if (e)
        return e;
    if (!backup_path_exists(from))
        return why_err(why, ERR_NOT_FOUND,
                       "there is no database in %.*s: name the data folder "
                       "with --data",
                       STR_ARG(folder));
    if (backup_path_exists(to))
        return why_err(why, ERR_BUSY,
                       "%s is there already: choose another name", to);
    e = database_copy(&c, why);
    if (e)
        return e;
    e = backup_rename(unnamed, to, why);
    if (e)
        unlink(unnamed);
    else
        progress_report(&c.progress, 1000);
    return e;
}

/* Restore. */

/* Fold the old log into the old database, so that it is one file. An unreadable
 * database stays as it is, with its log. */
static enum err restore_fold_old_log(const char *path, struct why *why)
{
    sqlite3 *sql = NULL;
    int64_t n;
    int code = FAULT("store.restore.fold")
                   ? SQLITE_IOERR
                   : db_connect(&sql, path, SQLITE_OPEN_READWRITE);
    bool is_broken;
    enum err e = OK;

    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(sql, DB_BUSY_MS);
        code = db_ask(sql, "SELECT count(*) FROM sqlite_schema", &n);
    }
    if (code == SQLITE_OK)
        code = sqlite3_wal_checkpoint_v2(sql, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                         NULL, NULL);
    is_broken =
        (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
    if (code != SQLITE_OK && !is_broken)
        e = db_say(sql, code, path, why);
    if (sql && code != SQLITE_OK)
        sqlite3_db_config(sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(sql);
    return e;
}

/* Add a second name, so that the file is never without one. */
static enum err restore_keep_file(const char *path, const char *as,
                                  struct why *why)
{
    if (FAULT("store.restore.keep") ? (errno = EIO, true) : link(path, as) != 0)
        return backup_errno_error(why, "keep the old database as", as);
    return OK;
}

/* "signalbox.db.kept-20250131-235959", or with a number if that is taken. */
static void restore_choose_name(const char *folder, char kept[256])
{
    time_t now_s = time(NULL);
    char stamp[32] = "", path[DB_PATH_MAX];
    struct tm tm;

    if (gmtime_r(&now_s, &tm))
        strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    for (int i = 1; i < 1000; i++) {
        if (i == 1)
            snprintf(kept, 256, "%s.kept-%s", DB_NAME, stamp);
        else
            snprintf(kept, 256, "%s.kept-%s-%d", DB_NAME, stamp, i);
        if (db_path(path, str_of(folder), kept, NULL) != OK ||
            !backup_path_exists(path))
            return;
    }
}

/* Files that SQLite would apply to any database beside them. */
static const char *const stale[] = {"-wal", "-journal", "-shm"};

enum { N_STALE = sizeof(stale) / sizeof(stale[0]) };

static void stale_path(char out[DB_PATH_MAX + 16], const char *path, int i)
{
    snprintf(out, DB_PATH_MAX + 16, "%s%s", path, stale[i]);
}

/* Add second names for the irreplaceable parts of the old database: the file,
 * and its log if that could not be folded in. */
static enum err restore_keep_all(const char *path, const char *as,
                                 struct why *why)
{
    char from[DB_PATH_MAX + 16], to[DB_PATH_MAX + 16];
    enum err e =
        backup_path_exists(path) ? restore_keep_file(path, as, why) : OK;

    for (int i = 0; i < N_STALE && !e; i++) {
        stale_path(from, path, i);
        stale_path(to, as, i);
        if (strcmp(stale[i], "-shm") != 0 && file_has_bytes(from))
            e = restore_keep_file(from, to, why);
    }
    return e ? e : path_sync_folder(path, why);
}

/* Keep the old database, and make sure that none of its files lies beside the
 * new one. Each step is on disk before the next. */
static enum err restore_put_aside(const char *folder, const char *path,
                                  char kept[256], struct why *why)
{
    char as[DB_PATH_MAX], old[DB_PATH_MAX + 16];
    enum err e =
        backup_path_exists(path) ? restore_fold_old_log(path, why) : OK;

    if (e)
        return e;
    restore_choose_name(folder, kept);
    e = db_path(as, str_of(folder), kept, why);
    if (!e)
        e = restore_keep_all(path, as, why);
    if (!backup_path_exists(path))
        kept[0] = '\0';
    for (int i = 0; i < N_STALE && !e; i++) {
        stale_path(old, path, i);
        if (FAULT("store.restore.remove") ? (errno = EIO, true)
                                          : unlink(old) != 0 && errno != ENOENT)
            e = backup_errno_error(why, "remove", old);
    }
    return e ? e : path_sync_folder(path, why);
}

/* The last epoch of a database; 0: it is empty. */
static enum err database_epoch(sqlite3 *sql, const char *path, int64_t *out,
                               struct why *why)
{
    bool is_empty = false;
    enum err e = schema_look(sql, path, &is_empty, why);
    int code;

    *out = 0;
    if (e || is_empty)
        return e;
    code = db_ask(sql, "SELECT value FROM signalbox_meta WHERE kind = 'epoch'",
                  out);
    return code == SQLITE_OK ? OK : db_say(sql, code, path, why);
}

/* The last epoch of the folder; 0: unknown. `remark` explains it if the
 * database should have it. */
static enum err restore_old_epoch(const char *folder, const char *path,
                                  int64_t *out, struct why *remark,
                                  struct why *why)
{
    int64_t mark = epoch_mark_read(str_of(folder));
    sqlite3 *sql = NULL;
    int code;
    enum err e;

    *out = mark;
    if (!file_has_bytes(path))
        return OK;
    code = backup_open_source(&sql, path, 0);
    e = code == SQLITE_OK ? database_epoch(sql, path, out, why)
                          : db_say(NULL, code, path, why);
    sqlite3_close(sql);
    if (e && e != ERR_BAD_CONFIG)
        return e;
    if (e || *out < 0 || *out > EPOCH_MAX) {
        *out = 0;
        why_err(remark, OK,
                "how often the old database was started cannot be read%s",
                mark ? "; that was taken from " MARK_NAME
                     : ": a thousand starts were added to those of the "
                       "backup, so that none counts twice");
    }
    if (mark > *out)
        *out = mark;
    return OK;
}

/* Set the number of starts of the copy at `path` to at least that of the old
 * database. No program uses the copy yet, so it needs no journal, which a crash
 * would leave behind for the next file of that name. */
static enum err restore_raise_epoch(const char *path, int64_t old,
                                    struct why *why)
{
    sqlite3 *sql = NULL;
    char text[256];
    enum err e = OK;
    int code = FAULT("store.restore.epoch")
                   ? SQLITE_FULL
                   : db_connect(&sql, path, SQLITE_OPEN_READWRITE);

    /* A folder with fewer starts is not where the backup was made. */
    snprintf(text, sizeof(text),
             "PRAGMA journal_mode=OFF; UPDATE signalbox_meta SET value = "
             "CASE WHEN value > %lld THEN value + %d ELSE %lld END "
             "WHERE kind = 'epoch'",
             (long long)old, EPOCH_MARGIN, (long long)old);
    if (code == SQLITE_OK)
        code = db_exec(sql, text);
    if (code != SQLITE_OK)
        e = db_say(sql, code, path, why);
    sqlite3_close(sql);
    return e ? e : path_sync(path, 0, why);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

enum err store_restore(const struct store_folder *f, struct str file,
                       char kept[256], store_progress *progress, void *ctx,
                       struct why *why)
{
    char from[DB_PATH_MAX], to[DB_PATH_MAX], unnamed[DB_PATH_MAX];
    struct copying c = {.from = from,
                        .path = unnamed,
                        .shown = to,
                        .is_restore = true,
                        .progress = {progress, ctx}};
    struct why remark = {""};
    int64_t old;
    enum err e = backup_path(from, file, "", why);

    kept[0] = '\0';
    if (!e)
        e = db_path(to, str_of(f->path), DB_NAME, why);
    if (!e)
        e = db_path(unnamed, str_of(f->path), DB_NAME ".restoring", why);
    if (e)
        return e;
    if (!backup_path_exists(from))
        return why_err(why, ERR_NOT_FOUND, "there is no file %s", from);
    if (is_same_file(from, to))
        return why_err(why, ERR_USAGE,
                       "%s is the database itself: name a backup of it", from);
    e = database_copy(&c, why);
    if (e)
        return e;
    e = restore_old_epoch(f->path, to, &old, &remark, why);
    if (!e)
        e = restore_raise_epoch(unnamed, old, why);
    if (!e)
        e = restore_put_aside(f->path, to, kept, why);
    if (!e && (FAULT("store.restore.rename") ? (errno = EIO, true)
                                             : rename(unnamed, to) != 0))
        e = backup_errno_error(why, "put the new database at", to);
    if (!e)
        e = path_sync_folder(to, why);
    if (!e && why)
        *why = remark;
    if (e)
        unlink(unnamed);
    else
        progress_report(&c.progress, 1000);
    return e;
}

/* Inspect. */

/* A path as SQLite's URI with options. */
static void path_to_uri(char out[3 * DB_PATH_MAX + 32], const char *path)
{
    char *end = out + snprintf(out, 8, "file:");

    for (; *path; path++)
        if (strchr("%?#", *path))
            end += snprintf(end, 4, "%%%02x", (unsigned char)*path);
        else
            *end++ = *path;
    snprintf(end, 16, "?immutable=1");
}

/* A database without a log is not in use and can be read without a lock; any
 * other way would create files beside it. */
static int database_open_read_only(sqlite3 **sql, const char *path,
                                   bool has_log)
{
    char uri[3 * DB_PATH_MAX + 32];

    if (has_log)
        return backup_open_source(sql, path, 0);
    path_to_uri(uri, path);
    return backup_open_source(sql, uri, SQLITE_OPEN_URI);
}

static enum err database_inspect(sqlite3 *sql, const char *path,
                                 struct store_about *out, struct why *why)
{
    enum err e = database_epoch(sql, path, &out->n_starts, why);

    if (e || out->n_starts == 0)
        return e ? e : why_err(why, ERR_NOT_FOUND, "%s is empty", path);
    out->is_checked_whole = out->data_bytes <= LOOK_BYTES_MAX;
    return out->is_checked_whole
               ? database_check(sql, "PRAGMA quick_check(1)", path, false, why)
               : OK;
}

/* The caller closes *sql after any result. */
static enum err database_open_for_look(struct str folder,
                                       char path[DB_PATH_MAX],
                                       struct store_about *out, sqlite3 **sql,
                                       struct why *why)
{
    char log[DB_PATH_MAX];
    struct stat st;
    enum err e = db_path(path, folder, DB_NAME, why);
    int code;

    *sql = NULL;
    *out = (struct store_about){0};
    if (e)
        return e;
    if (stat(path, &st) != 0)
        return why_err(why, ERR_NOT_FOUND, "there is no database in %.*s",
                       STR_ARG(folder));
    out->data_bytes = st.st_size;
    snprintf(log, sizeof(log), "%.*s-wal", DB_PATH_MAX - 8, path);
    out->log_bytes = stat(log, &st) == 0 ? st.st_size : 0;
    code = database_open_read_only(sql, path, backup_path_exists(log));
    return code == SQLITE_OK ? OK : db_say(NULL, code, path, why);
}

enum err store_look_at(struct str folder, struct store_about *out,
                       struct why *why)
{
    char path[DB_PATH_MAX];
    sqlite3 *sql;
    enum err e = database_open_for_look(folder, path, out, &sql, why);

    if (!e)
        e = database_inspect(sql, path, out, why);
    sqlite3_close(sql);
    return e;
}

static enum err look_prepare_query(sqlite3 *sql, const struct table *t,
                                   const uint8_t *columns, size_t n,
                                   sqlite3_stmt **out, struct why *why)
{
    struct buf text;
    enum err e = OK;

    buf_init(&text, 4096);
    buf_add_str(&text, STR("SELECT "));
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%s\"%s\"", i ? "," : "", t->columns[columns[i]].name);
    buf_addf(&text, " FROM \"%s\"", t->name);
    buf_add_char(&text, '\0');
    if (text.over)
        e = ERR_NOMEM;
    else if (sqlite3_prepare_v2(sql, text.p, -1, out, NULL) != SQLITE_OK)
        e = why_err(why, ERR_BAD_CONFIG, "the database cannot be read: %s",
                    sqlite3_errmsg(sql));
    buf_fini(&text);
    return e;
}

static void look_row(sqlite3_stmt *stmt, size_t n,
                     void (*each)(void *ctx, const struct str *values),
                     void *ctx)
{
    struct str values[STORE_LOOK_COLUMNS_MAX];

    for (size_t i = 0; i < n; i++) {
        const char *p = (const char *)sqlite3_column_text(stmt, (int)i);

        values[i] =
            p ? (struct str){p, (size_t)sqlite3_column_bytes(stmt, (int)i)}
              : STR("");
    }
    each(ctx, values);
}

enum err store_look_through(struct str folder, const struct table *t,
                            const uint8_t *columns, size_t n,
                            void (*each)(void *ctx, const struct str *values),
                            void *ctx, struct why *why)
{
    char path[DB_PATH_MAX];
    struct store_about about;
    sqlite3 *sql;
    sqlite3_stmt *stmt = NULL;
    enum err e = database_open_for_look(folder, path, &about, &sql, why);
    int code = SQLITE_DONE;

    assert(n <= STORE_LOOK_COLUMNS_MAX);
    if (!e)
        e = look_prepare_query(sql, t, columns, n, &stmt, why);
    while (!e && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        look_row(stmt, n, each, ctx);
    if (!e && code != SQLITE_DONE)
        e = db_say(sql, code, path, why);
    sqlite3_finalize(stmt);
    sqlite3_close(sql);
    return e;
}
