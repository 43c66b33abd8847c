#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

/* What the files of the store share.
 *
 *     store.c   queues, threads, handing over: all that is ever shared
 *     sqlite.c  the one connection that writes: opening and closing it
 *     batch.c   what it does: batches and checkpoints
 *     schema.c  what the database must look like
 *     sql.c     operations and questions as statements
 *     read.c    connections that only read
 *     backup.c  copies of the whole
 *     folder.c  the ground
 *
 * Threads: everything but store.c is used by one thread at a time and knows
 * of no other; store.c says how that is kept. */

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/map.h"
#include "store/store.h"

#define DB_NAME   "signalbox.db"
#define MARK_NAME "signalbox.epoch"

enum {
    DB_APPLICATION_ID = 0x53474258, /* "SGBX", in the file's header */
    DB_FORMAT = 1,                  /* of our own bookkeeping in it */
    DB_PAGE_BYTES = 4096,
    DB_PATH_MAX = 4096,
    DB_BUSY_MS = 1000,   /* how long to wait for another program's lock */
    DB_READ_MS = 5000,   /* how long one page of rows may take to find */
    EPOCH_MAX = 1 << 22, /* more is no count of starts, but damage */
};

/* Ways to make the store worse than it is, for tests that must notice, and
 * limits made small. Set before store_open; zero is how it should be. */
struct store_sabotage {
    const char *synchronous; /* "NORMAL" or "OFF" instead of "FULL" */
    bool acks_early;         /* report a batch before it is committed */
    int early_ms;            /* so long before */
    bool ignores_moved;      /* do not look whether the files are still ours */
    int busy_ms;             /* instead of DB_BUSY_MS */
    int read_ms;             /* instead of DB_READ_MS; -1: no time at all */
    int max_pages;           /* the database may not become larger */
    int batch_txs;           /* at most so many in one transaction */
    int checkpoint_pages;    /* fold the log in at so many */
    int restart_pages;       /* and have it begin anew at so many */
    bool never_pauses;       /* readers do not make way for that */
    bool holds_reports;      /* what is committed is not reported yet */
};

#ifdef WITH_FAULTS
/* For every store opened from now on. NULL: none. */
void store_sabotage(const struct store_sabotage *how);
struct store_sabotage store_sabotage_get(void);
#define SABOTAGE() store_sabotage_get()
#elif !defined(WITHOUT_FAULTS)
#define SABOTAGE() ((struct store_sabotage){0})
#endif

/* Statements (sql.c). Kept by their shape, so that one is prepared once and
 * then only bound; a bounded number of them, the longest unused goes. */
struct stmts {
    sqlite3 *db;
    struct map by_shape;
    struct list by_age; /* the longest unused first */
    struct buf shape;   /* scratch */
};

void stmts_init(struct stmts *st, sqlite3 *db);
void stmts_fini(struct stmts *st);

/* A statement for op, or q, with its values bound; they must live until it is
 * reset. Returns SQLite's code. Borrowed: reset it, do not finalize it. */
MUST_USE int stmts_for_op(struct stmts *st, const struct tx_op *op,
                          sqlite3_stmt **out);
MUST_USE int stmts_for_query(struct stmts *st, const struct query *q,
                             sqlite3_stmt **out);

/* Whether no number can fit an addition at all: it would leave the range of
 * 64 bits or the floor whatever stood there. */
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
    int index_fd; /* keeps room for the log's index; see sqlite.c */
    int64_t epoch;
    bool is_new;    /* there was no database, or an empty one */
    bool is_dead;   /* nothing is ever written again */
    struct why why; /* it is dead */
    int last_errno; /* of the last step; zero when the kernel had no say */
    struct store_sabotage sabotage;

    /* Called between a batch's last operation and its commit, if set. */
    void (*before_commit)(void *ctx, struct list *batch);
    void *ctx;

    int log_pages;      /* in the log after the last commit */
    int checkpoint_at;  /* so many of them */
    bool needs_room;    /* a batch found none: folding the log in may help */
    bool wants_restart; /* the log is long: db_restart_log when nobody reads */

    /* Counted for store_stats. */
    int64_t n_batches, n_rows, batch_us, sync_us, log_bytes, data_bytes;
    bool is_full, is_locked;
};

/* On error nothing is open. */
MUST_USE enum err db_open(struct db *db, const struct store_opts *opts,
                          struct why *why);

/* Fold the log into the database, unless it is dead, and close. */
void db_close(struct db *db);

/* Nothing is ever written again. The first reason stays. */
void db_kill(struct db *db, const char *doing, int code);

/* Whether the files are still where they were opened; kills it if not. */
void db_check_files(struct db *db);

/* Take as many txs from the front of `from` as make a good batch. */
void db_gather(const struct db *db, struct list *batch, struct list *from);

/* Write the batch and fill in what came of each. */
void db_write(struct db *db, struct list *batch);

/* Fold the log into the database if it has grown: when nobody waits. False:
 * there was no need. Sets wants_restart. */
bool db_checkpoint(struct db *db);

/* Fold in the rest and cut the log off. Does nothing, after a moment, while
 * anybody is reading. */
void db_restart_log(struct db *db);

/* Run SQL without values. Returns SQLite's code. */
MUST_USE int db_exec(sqlite3 *sql, const char *text);

/* Open a connection; *out is NULL on error. Returns SQLite's code. */
MUST_USE int db_connect(sqlite3 **out, const char *path, int flags);

/* The first column of the first row; 0 when there is none. */
MUST_USE int db_ask(sqlite3 *sql, const char *text, int64_t *out);

/* SQLite's code as ours, worded for who opens a database at `path`. */
enum err db_say(sqlite3 *sql, int code, const char *path, struct why *why);

/* The path of a file in the folder. ERR_LIMIT when it is too long. */
MUST_USE enum err db_path(char out[DB_PATH_MAX], struct str folder,
                          const char *name, struct why *why);

/* Make what is missing (schema.c), inside the caller's transaction. */
MUST_USE enum err schema_migrate(sqlite3 *sql, const struct store_opts *opts,
                                 const char *path, struct why *why);

/* Whether the database is ours and of a version we know. is_new: it is empty.
 */
MUST_USE enum err schema_look(sqlite3 *sql, const char *path, bool *is_new,
                              struct why *why);

/* The last epoch that the folder has seen, in a file of its own beside the
 * database: for a restore that cannot read the old one any more. Best effort;
 * 0: not known. */
void epoch_mark_write(struct str folder, int64_t epoch);
int64_t epoch_mark_read(struct str folder);

/* Count this opening, inside the caller's transaction. */
MUST_USE int schema_count_epoch(sqlite3 *sql, int64_t *epoch);

/* A connection that only reads (read.c). */
struct reader {
    sqlite3 *sql;
    struct stmts stmts;
    int64_t limit_ms;
    uint64_t deadline_ns;
    atomic_bool *is_stopping; /* whoever closes the store is waiting */
    atomic_bool is_given_up;  /* nobody wants to know this any more */
};

MUST_USE enum err reader_open(struct reader *r, const char *path,
                              atomic_bool *is_stopping, struct why *why);
void reader_close(struct reader *r);

/* Fill q. */
void reader_find(struct reader *r, struct query *q);

#endif
