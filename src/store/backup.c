/* Copies of the whole database.
 *
 * A backup is made by another process while the server writes: it reads one
 * state of the database, from the first page to the last, and never writes or
 * folds in anything there (SQLite before 3.51.3 loses data when two do that).
 * As long as it takes, the server's log grows; that is the price. The copy is
 * one file that needs no log beside it.
 *
 * Copies are made under another name, checked, synced and then renamed: under
 * its own name a file is whole or not there.
 *
 * Restoring has one trap. SQLite applies whatever log lies beside a database,
 * whoever wrote it; the log of the old database beside the new one would ruin
 * it. So the old log is folded into the old database first, and gone from the
 * folder, durably, before the new one takes its name.
 *
 * And one promise to keep: an epoch never comes twice. The count of starts
 * goes back with the database, so the larger of the two is written into the
 * new one before it has its name. A mark beside the database tells what it was
 * if the database cannot; without either, in a new folder above all, a margin
 * is added: as many starts nobody makes between two backups. The time of day
 * would be larger still, but epochs are multiplied further up and must stay
 * small. */
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
    COPIED_PERMILLE = 800,              /* the rest is checking */
    LOOK_BYTES_MAX = 256 * 1024 * 1024, /* a second or so */
    EPOCH_MARGIN = 1000,
};

struct progress {
    store_progress *tell;
    void *ctx;
};

static void tell(const struct progress *p, int permille)
{
    if (p->tell)
        p->tell(p->ctx, permille);
}

/* A copy of the database `from`, made at `path`; whoever asked for it knows
 * that as `shown`. */
struct copying {
    const char *from, *path, *shown;
    bool is_restore; /* then `from` is what was said to be a backup */
    struct progress progress;
};

static enum err say_errno(struct why *why, const char *doing, const char *path)
{
    int err = errno;
    enum err e = err == ENOSPC || err == EDQUOT ? ERR_NO_SPACE
                 : err == EACCES || err == EPERM || err == EROFS
                     ? ERR_NOT_ALLOWED
                 : err == ENOENT || err == ENOTDIR ? ERR_NOT_FOUND
                                                   : ERR_IO;

    return why_err(why, e, "cannot %s %s: %s", doing, path, strerror(err));
}

static enum err as_path(char out[DB_PATH_MAX], struct str path,
                        const char *suffix, struct why *why)
{
    int n = snprintf(out, DB_PATH_MAX, "%.*s%s", STR_ARG(path), suffix);

    if (n < 0 || n >= DB_PATH_MAX - 64)
        return why_err(why, ERR_LIMIT, "the path %.64s… is too long", out);
    return OK;
}

static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* Reading without leaving a trace in the database. */
static int open_source(sqlite3 **sql, const char *path, int flags)
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

/* One page after the other. The caller has begun to read from `from`: that
 * holds one state of it still, whatever is written meanwhile. */
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
            tell(p, (int)((int64_t)(all - sqlite3_backup_remaining(b)) *
                          COPIED_PERMILLE / all));
    }
    sqlite3_backup_finish(b);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* What is wrong with a file that is to be put back: the hints for a database
 * of the server's would lead astray. */
static enum err say_no_backup(sqlite3 *sql, int code, const char *path,
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

static enum err say_source(const struct copying *c, sqlite3 *sql, int code,
                           struct why *why)
{
    return c->is_restore ? say_no_backup(sql, code, c->from, why)
                         : db_say(sql, code, c->from, why);
}

static enum err say_target(const struct copying *c, sqlite3 *sql, int code,
                           struct why *why)
{
    if ((code & 0xff) == SQLITE_FULL)
        return why_err(why, ERR_NO_SPACE,
                       "no space left for %s: free some and try again",
                       c->shown);
    return db_say(sql, code, c->shown, why);
}

/* Whether it is a database of ours at all, and has anything in it. */
static enum err look_at_source(const struct copying *c, sqlite3 *sql,
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
        return say_no_backup(sql, code, c->from, why);
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

/* What SQLite says of the damage, without its headline and on one line. */
static void show_damage(const char *said, char out[100])
{
    struct str rest = str_of(said ? said : "no reason given");
    struct str line = str_cut(&rest, '\n');

    while (rest.n && str_starts(line, STR("***")))
        line = str_cut(&rest, '\n');
    snprintf(out, 100, "%.*s", STR_ARG(str_head(line, 99)));
    str_tame(out, strlen(out));
}

/* Whether every page and every index is as it should be. */
static enum err check_whole(sqlite3 *sql, const char *text, const char *path,
                            bool is_backup, struct why *why)
{
    char damage[100];
    sqlite3_stmt *s = NULL;
    const char *said = NULL;
    enum err e = OK;
    int code = FAULT("store.backup.check")
                   ? SQLITE_CORRUPT
                   : sqlite3_prepare_v2(sql, text, -1, &s, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        said = (const char *)sqlite3_column_text(s, 0);
        show_damage(said, damage);
        if (strcmp(damage, "ok") != 0)
            e = why_err(why, ERR_BAD_CONFIG,
                        is_backup ? "the backup %s is damaged (%s): name "
                                    "another"
                                  : "the database %s is damaged (%s): go back "
                                    "to an earlier backup with signalbox "
                                    "restore FILE",
                        path, damage);
    } else {
        e = is_backup ? say_no_backup(sql, code, path, why)
                      : db_say(sql, code, path, why);
    }
    sqlite3_finalize(s);
    return e;
}

static enum err make_empty(const char *path, const char *shown, struct why *why)
{
    int fd = FAULT("store.backup.make")
                 ? (errno = EACCES, -1)
                 : open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0)
        return say_errno(why, "make", shown);
    close(fd);
    return OK;
}

static enum err sync_path(const char *path, int flags, struct why *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    enum err e = OK;

    if (fd < 0 || FAULT("store.backup.sync") || fsync(fd) != 0)
        e = say_errno(why, "sync", path);
    if (fd >= 0)
        close(fd);
    return e;
}

static enum err sync_folder_of(const char *path, struct why *why)
{
    struct str folder = str_parent(str_of(path));
    char copy[DB_PATH_MAX];

    snprintf(copy, sizeof(copy), "%.*s", STR_ARG(folder));
    return sync_path(copy, O_DIRECTORY, why);
}

/* What is in `from` now, into the empty file. */
static enum err fill(const struct copying *c, sqlite3 *from, struct why *why)
{
    sqlite3 *to = NULL;
    enum err e = OK;
    int code = FAULT("store.backup.target")
                   ? SQLITE_CANTOPEN
                   : db_connect(&to, c->path, SQLITE_OPEN_READWRITE);

    /* It is synced once, at the end; until then nobody knows its name. */
    if (code == SQLITE_OK)
        code = db_exec(to, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF");
    if (code == SQLITE_OK)
        code = copy_pages(to, from, &c->progress);
    /* The copy says of itself that it has a log. It needs none. */
    if (code == SQLITE_OK)
        code = db_exec(to, "PRAGMA journal_mode=DELETE");
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        e = say_source(c, to, code, why);
    else if (code != SQLITE_OK)
        e = say_target(c, to, code, why);
    if (!e)
        e = check_whole(to, "PRAGMA integrity_check(1)", c->from, c->is_restore,
                        why);
    sqlite3_close(to);
    return e;
}

/* Checked and synced; on error there is nothing at c->path. */
static enum err copy(const struct copying *c, struct why *why)
{
    sqlite3 *from = NULL;
    int64_t n;
    int code = open_source(&from, c->from, 0);
    enum err e;

    if (code != SQLITE_OK)
        return say_source(c, NULL, code, why);
    e = look_at_source(c, from, why);
    if (!e) {
        code = db_exec(from, "BEGIN");
        if (code == SQLITE_OK)
            code = db_ask(from, "SELECT count(*) FROM sqlite_schema", &n);
        if (code != SQLITE_OK)
            e = say_source(c, from, code, why);
    }
    if (!e)
        e = make_empty(c->path, c->shown, why);
    if (!e) {
        e = fill(c, from, why);
        if (!e)
            e = sync_path(c->path, 0, why);
        if (e)
            unlink(c->path);
    }
    sqlite3_close(from);
    return e;
}

/* Give it its name, unless somebody else has it by now. */
static enum err name_it(const char *from, const char *to, struct why *why)
{
    int rc = FAULT("store.backup.rename")
                 ? (errno = EIO, -1)
                 : renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

    if (rc != 0 && errno == EINVAL) /* a file system that cannot */
        rc = rename(from, to);
    if (rc != 0 && errno == EEXIST)
        return why_err(why, ERR_BUSY,
                       "%s is there already: choose another name", to);
    if (rc != 0)
        return say_errno(why, "name the backup", to);
    return sync_folder_of(to, why);
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
        e = as_path(to, file, "", why);
    if (!e)
        e = as_path(unnamed, file, suffix, why);
    if (e)
        return e;
    if (!is_there(from))
        return why_err(why, ERR_NOT_FOUND,
                       "there is no database in %.*s: name the data folder "
                       "with --data",
                       STR_ARG(folder));
    if (is_there(to))
        return why_err(why, ERR_BUSY,
                       "%s is there already: choose another name", to);
    e = copy(&c, why);
    if (e)
        return e;
    e = name_it(unnamed, to, why);
    if (e)
        unlink(unnamed);
    else
        tell(&c.progress, 1000);
    return e;
}

/* Restoring. */

/* Fold the old log into the old database, so that it is one file. One that
 * cannot be read any more is left as it is, its log beside it. */
static enum err fold_old(const char *path, struct why *why)
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

/* A second name for what is there: so it is never without one. */
static enum err keep(const char *path, const char *as, struct why *why)
{
    if (FAULT("store.restore.keep") ? (errno = EIO, true) : link(path, as) != 0)
        return say_errno(why, "keep the old database as", as);
    return OK;
}

static enum err remove_file(const char *path, struct why *why)
{
    if (FAULT("store.restore.remove") ? (errno = EIO, true)
                                      : unlink(path) != 0 && errno != ENOENT)
        return say_errno(why, "remove", path);
    return OK;
}

/* "signalbox.db.kept-20250131-235959", or with a number if that is taken. */
static void choose_name(const char *folder, char kept[256])
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
        if (db_path(path, str_of(folder), kept, NULL) != OK || !is_there(path))
            return;
    }
}

/* What SQLite would apply to any database it lies beside. */
static const char *const stale[] = {"-wal", "-journal", "-shm"};

enum { N_STALE = sizeof(stale) / sizeof(stale[0]) };

static void beside(char out[DB_PATH_MAX + 16], const char *path, int i)
{
    snprintf(out, DB_PATH_MAX + 16, "%s%s", path, stale[i]);
}

static bool has_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_size > 0;
}

/* Second names for whatever of the old database cannot be made again: the
 * file, and what is left of its log when it could not be folded in. */
static enum err keep_all(const char *path, const char *as, struct why *why)
{
    char from[DB_PATH_MAX + 16], to[DB_PATH_MAX + 16];
    enum err e = is_there(path) ? keep(path, as, why) : OK;

    for (int i = 0; i < N_STALE && !e; i++) {
        beside(from, path, i);
        beside(to, as, i);
        if (strcmp(stale[i], "-shm") != 0 && has_bytes(from))
            e = keep(from, to, why);
    }
    return e ? e : sync_folder_of(path, why);
}

/* Keep the old database and see that nothing of it lies beside the new one.
 * Each step is on the disk before the next. */
static enum err put_aside(const char *folder, const char *path, char kept[256],
                          struct why *why)
{
    char as[DB_PATH_MAX], old[DB_PATH_MAX + 16];
    enum err e = is_there(path) ? fold_old(path, why) : OK;

    if (e)
        return e;
    choose_name(folder, kept);
    e = db_path(as, str_of(folder), kept, why);
    if (!e)
        e = keep_all(path, as, why);
    if (!is_there(path))
        kept[0] = '\0';
    for (int i = 0; i < N_STALE && !e; i++) {
        beside(old, path, i);
        e = remove_file(old, why);
    }
    return e ? e : sync_folder_of(path, why);
}

/* The last epoch of a database; 0 when it is empty. */
static enum err read_epoch(sqlite3 *sql, const char *path, int64_t *out,
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

/* The last epoch of what the folder has; 0: not known. `remark` says so if
 * the database should know it. */
static enum err old_epoch(const char *folder, const char *path, int64_t *out,
                          struct why *remark, struct why *why)
{
    int64_t mark = epoch_mark_read(str_of(folder));
    sqlite3 *sql = NULL;
    int code;
    enum err e;

    *out = mark;
    if (!has_bytes(path))
        return OK;
    code = open_source(&sql, path, 0);
    e = code == SQLITE_OK ? read_epoch(sql, path, out, why)
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

/* Write into the copy at `path` that it was started at least as often as the
 * old database. Nobody knows its name yet: it needs no journal, which a crash
 * would leave behind for the next one of that name. */
static enum err raise_epoch(const char *path, int64_t old, struct why *why)
{
    sqlite3 *sql = NULL;
    char text[256];
    enum err e = OK;
    int code = FAULT("store.restore.epoch")
                   ? SQLITE_FULL
                   : db_connect(&sql, path, SQLITE_OPEN_READWRITE);

    /* A folder that knows of fewer starts is not where the backup was made. */
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
    return e ? e : sync_path(path, 0, why);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static enum err take_place(const char *from, const char *to, struct why *why)
{
    if (FAULT("store.restore.rename") ? (errno = EIO, true)
                                      : rename(from, to) != 0)
        return say_errno(why, "put the new database at", to);
    return sync_folder_of(to, why);
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
    enum err e = as_path(from, file, "", why);

    kept[0] = '\0';
    if (!e)
        e = db_path(to, str_of(f->path), DB_NAME, why);
    if (!e)
        e = db_path(unnamed, str_of(f->path), DB_NAME ".restoring", why);
    if (e)
        return e;
    if (!is_there(from))
        return why_err(why, ERR_NOT_FOUND, "there is no file %s", from);
    if (is_same_file(from, to))
        return why_err(why, ERR_USAGE,
                       "%s is the database itself: name a backup of it", from);
    e = copy(&c, why);
    if (e)
        return e;
    e = old_epoch(f->path, to, &old, &remark, why);
    if (!e)
        e = raise_epoch(unnamed, old, why);
    if (!e)
        e = put_aside(f->path, to, kept, why);
    if (!e)
        e = take_place(unnamed, to, why);
    if (!e && why)
        *why = remark;
    if (e)
        unlink(unnamed);
    else
        tell(&c.progress, 1000);
    return e;
}

/* Looking. */

/* A path as SQLite wants it when there is more to say about it. */
static void as_uri(char out[3 * DB_PATH_MAX + 32], const char *path)
{
    char *end = out + snprintf(out, 8, "file:");

    for (; *path; path++)
        if (strchr("%?#", *path))
            end += snprintf(end, 4, "%%%02x", (unsigned char)*path);
        else
            *end++ = *path;
    snprintf(end, 16, "?immutable=1");
}

/* A database without a log that nobody uses can be read without even a lock;
 * everything else would put files beside it. */
static int open_to_look(sqlite3 **sql, const char *path, bool has_log)
{
    char uri[3 * DB_PATH_MAX + 32];

    if (has_log)
        return open_source(sql, path, 0);
    as_uri(uri, path);
    return open_source(sql, uri, SQLITE_OPEN_URI);
}

static enum err look_inside(sqlite3 *sql, const char *path,
                            struct store_about *out, struct why *why)
{
    enum err e = read_epoch(sql, path, &out->n_starts, why);

    if (e || out->n_starts == 0)
        return e ? e : why_err(why, ERR_NOT_FOUND, "%s is empty", path);
    out->is_checked_whole = out->data_bytes <= LOOK_BYTES_MAX;
    return out->is_checked_whole
               ? check_whole(sql, "PRAGMA quick_check(1)", path, false, why)
               : OK;
}

/* *sql is to be closed, whatever comes back. */
static enum err look_open(struct str folder, char path[DB_PATH_MAX],
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
    code = open_to_look(sql, path, is_there(log));
    return code == SQLITE_OK ? OK : db_say(NULL, code, path, why);
}

enum err store_look_at(struct str folder, struct store_about *out,
                       struct why *why)
{
    char path[DB_PATH_MAX];
    sqlite3 *sql;
    enum err e = look_open(folder, path, out, &sql, why);

    if (!e)
        e = look_inside(sql, path, out, why);
    sqlite3_close(sql);
    return e;
}

static enum err look_prepare(sqlite3 *sql, const struct table *t,
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
    enum err e = look_open(folder, path, &about, &sql, why);
    int code = SQLITE_DONE;

    assert(n <= STORE_LOOK_COLUMNS_MAX);
    if (!e)
        e = look_prepare(sql, t, columns, n, &stmt, why);
    while (!e && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        look_row(stmt, n, each, ctx);
    if (!e && code != SQLITE_DONE)
        e = db_say(sql, code, path, why);
    sqlite3_finalize(stmt);
    sqlite3_close(sql);
    return e;
}
