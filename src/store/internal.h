#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

/* Declarations shared by the files of store/.
 *
 *     store.c   queues and threads: all shared state
 *     sqlite.c  opens and closes the one connection that writes
 *     batch.c   batches and checkpoints on that connection
 *     schema.c  the tables of the database
 *     sql.c     operations and queries as statements
 *     read.c    read-only connections
 *     backup.c  copies of the database
 *     folder.c  the data folder
 *
 * Threads: every file except store.c is used by one thread at a time; store.c
 * explains how. */

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/store.h"

#define DB_NAME   "signalbox.db"
#define MARK_NAME "signalbox.epoch"

enum {
    DB_APPLICATION_ID = 0x53474258, /* "SGBX", in the file's header */
    DB_FORMAT = 1,                  /* of signalbox_meta */
    DB_PAGE_BYTES = 4096,
    DB_PATH_MAX = 4096,
    DB_BUSY_MS = 1000,   /* wait for another program's lock */
    DB_READ_MS = 5000,   /* limit for finding one page of rows */
    EPOCH_MAX = 1 << 22, /* a larger count of starts means damage */
};

/* Planted mistakes, which tests must notice, and small limits. Set before
 * store_open; zero means normal. */
struct store_sabotage {
    const char *synchronous; /* "NORMAL" or "OFF" instead of "FULL" */
    bool acks_early;         /* report a batch before it is committed */
    int early_ms;            /* by this time */
    bool ignores_moved;      /* do not check if the files were replaced */
    int busy_ms;             /* instead of DB_BUSY_MS */
    int read_ms;             /* instead of DB_READ_MS; -1: zero */
    int max_pages;           /* size limit of the database */
    int batch_txs;           /* limit of txs in one transaction */
    int checkpoint_pages;    /* fold the log in at this size */
    int restart_pages;       /* and restart it at this size */
    bool never_pauses;       /* readers do not yield for that */
    bool holds_reports;      /* do not report committed txs yet */
};

#ifdef WITH_FAULTS
/* For every store opened from now on. NULL: none. */
void store_sabotage(const struct store_sabotage *how);
struct store_sabotage store_sabotage_get(void);
#define SABOTAGE() store_sabotage_get()
#elif !defined(WITHOUT_FAULTS)
#define SABOTAGE() ((struct store_sabotage){0})
#endif

/* Statements (sql.c), cached by shape, so that each is prepared once and then
 * only bound. Their number is bounded; the one unused longest is evicted. */
struct stmts {
    sqlite3 *db;
    struct map by_shape;
    struct list by_age; /* unused longest first */
    struct buf shape;   /* scratch */
};

void stmts_init(struct stmts *st, sqlite3 *db);
void stmts_fini(struct stmts *st);

/* A statement for op, or q, with its values bound; they must live until it is
 * reset. Returns SQLite's code. Borrowed: reset it, but do not finalize it. */
MUST_USE int stmts_for_op(struct stmts *st, const struct tx_op *op,
                          sqlite3_stmt **out);
MUST_USE int stmts_for_query(struct stmts *st, const struct query *q,
                             sqlite3_stmt **out);

/* Whether the addition fails for every number: it would leave the range of 64
 * bits or fall below the floor. */
bool add_fits_nothing(const struct tx_op *op);

/* The writing connection (sqlite.c, batch.c). */
struct db_file {
    char path[DB_PATH_MAX];
    dev_t dev;
    ino_t ino;
};

enum { DB_MAIN, DB_LOG, DB_INDEX, N_DB_FILES };

enum db_step {
    STEP_BEGIN,
    STEP_SAVEPOINT,
    STEP_RELEASE,
    STEP_UNDO,
    STEP_COMMIT,
    STEP_ROLLBACK,
    N_DB_STEPS
};

struct db {
    sqlite3 *sql;
    struct stmts stmts;
    sqlite3_stmt *steps[N_DB_STEPS];
    struct db_file files[N_DB_FILES];
    int index_fd; /* reserves space for the log's index; see sqlite.c */
    int64_t epoch;
    int64_t was_stopped; /* the previous run was stopped in order */
    bool is_new;         /* there was no database, or an empty one */
    bool is_dead;        /* nothing is ever written again */
    struct why why;      /* the reason */
    int last_errno;      /* of the last step; zero: no kernel error */
    struct store_sabotage sabotage;

    /* Called between a batch's last operation and its commit, if set. */
    void (*before_commit)(void *ctx, struct list *batch);
    void *ctx;

    int log_pages;      /* in the log after the last commit */
    int checkpoint_at;  /* the number that triggers one */
    bool needs_room;    /* a batch found no space; a checkpoint may help */
    bool wants_restart; /* the log is long: db_restart_log without readers */

    /* Counted for store_stats. */
    int64_t n_batches, n_rows, batch_us, sync_us, log_bytes, data_bytes;
    bool is_full, is_locked;
};

/* On error nothing is open. */
MUST_USE enum err db_open(struct db *db, const struct store_opts *opts,
                          struct why *why);

/* Fold the log into the database, unless it has failed, and close. */
void db_close(struct db *db);

/* Nothing is ever written again. The first reason stays. */
void db_kill(struct db *db, const char *doing, int code);

/* Check that the files were not moved or replaced; db_kill otherwise. */
void db_check_files(struct db *db);

/* Move txs from the front of `from` to `batch`, up to the size of a batch. */
void db_gather(const struct db *db, struct list *batch, struct list *from);

/* Write the batch and set the result of each tx. */
void db_write(struct db *db, struct list *batch);

/* Fold the log into the database if it has grown. Call when no tx waits for the
 * result. False: no need. Sets wants_restart. */
bool db_checkpoint(struct db *db);

/* Fold in the rest and truncate the log. Gives up after a moment if there is a
 * reader. */
void db_restart_log(struct db *db);

/* Run SQL without values. Returns SQLite's code. */
MUST_USE int db_exec(sqlite3 *sql, const char *text);

/* Open a connection; *out is NULL on error. Returns SQLite's code. */
MUST_USE int db_connect(sqlite3 **out, const char *path, int flags);

/* The first column of the first row; 0: no row. */
MUST_USE int db_ask(sqlite3 *sql, const char *text, int64_t *out);

/* SQLite's code as ours, with an explanation for the database at `path`. */
enum err db_say(sqlite3 *sql, int code, const char *path, struct why *why);

/* The path of a file in the folder. ERR_LIMIT: too long. */
MUST_USE enum err db_path(char out[DB_PATH_MAX], struct str folder,
                          const char *name, struct why *why);

/* Whether there is a non-empty file. */
bool file_has_bytes(const char *path);

/* Create what is missing (schema.c), inside the caller's transaction. */
MUST_USE enum err schema_migrate(sqlite3 *sql, const struct store_opts *opts,
                                 const char *path, struct why *why);

/* Check that the database is ours and of a known version. is_new: it is
 * empty. */
MUST_USE enum err schema_look(sqlite3 *sql, const char *path, bool *is_new,
                              struct why *why);

/* The last epoch of the folder, in a file beside the database, for a restore
 * that cannot read the old database. Best effort; 0: unknown. */
void epoch_mark_write(struct str folder, int64_t epoch);
int64_t epoch_mark_read(struct str folder);

/* Count this start, inside the caller's transaction. *was_stopped: the previous
 * run has noted its stop. */
MUST_USE int schema_count_epoch(sqlite3 *sql, int64_t *epoch,
                                int64_t *was_stopped);
MUST_USE int schema_note_stop(sqlite3 *sql);

/* A read-only connection (read.c). */
struct reader {
    sqlite3 *sql;
    struct stmts stmts;
    int64_t limit_ms;
    uint64_t deadline_ns;
    atomic_bool *is_stopping; /* the store is closing */
    atomic_bool is_given_up;  /* the running query was cancelled */
};

MUST_USE enum err reader_open(struct reader *r, const char *path,
                              atomic_bool *is_stopping, struct why *why);
void reader_close(struct reader *r);

/* Fill q. */
void reader_find(struct reader *r, struct query *q);

#endif
