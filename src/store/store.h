#ifndef STORE_STORE_H
#define STORE_STORE_H

/* store: durable state.
 *
 * Takes changes (model/tx.h) and queries (model/query.h) about the tables that
 * the modules describe (model/table.h), without knowing their meaning. A tx
 * that was reported as committed is synced to disk: a crash or a power cut
 * right after that does not undo it.
 *
 *     loop                    writer thread              reader threads
 *     store_submit  ------->  the txs that waited
 *                             meanwhile: one transaction,
 *                             a savepoint each,
 *     tx->done  <-----------  one sync
 *     store_read  ------------------------------------>  a page of rows
 *     q->done  <---------------------------------------
 *
 * Txs are applied and reported in the order of their submission. Only a tx that
 * is refused, because too many wait or the store is closing, is reported before
 * its turn. A read that begins after the report of a tx sees it. Every tx and
 * query is returned exactly once, from the loop and never before the call that
 * took it has returned.
 *
 * One connection writes and checkpoints, on its own thread; the others are
 * read-only. Inline (for tests and the command line) there are no threads, and
 * all work happens in store_turn.
 *
 * Owns: the database in the data folder. Threads: loop thread only; store.c
 * explains what the threads inside share. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "model/query.h"
#include "model/tx.h"

/* The data folder, created if missing and locked by one server at a time. The
 * kernel holds the locks and drops them with the process however that ends, so
 * a lock file that was left behind does no harm. */
struct store_folder {
    char *path;
    int lock_fd, folder_fd;
    bool is_shared; /* other users of this machine may write to it */
    bool was_used;  /* marked by store_folder_set_used, or files beside the
                     * database show it */
};

/* Create the folder if only its last part is missing (mode 0700), and lock it.
 * On error nothing is held, and why says what to do:
 * ERR_NOT_FOUND   the parent folder is missing
 * ERR_NOT_ALLOWED no permission, or a read-only file system
 * ERR_BAD_CONFIG  there is a file of that name
 * ERR_BUSY        another server has it; why names its process
 * ERR_NO_SPACE, ERR_IO */
MUST_USE enum err store_folder_open(struct store_folder *f, struct str path,
                                    struct why *why);
void store_folder_close(struct store_folder *f);

/* Mark that the folder has data to rely on: later opens see was_used. Best
 * effort. */
void store_folder_set_used(struct store_folder *f);

/* Whether there is a non-empty database. */
bool store_folder_has_data(const struct store_folder *f);

/* Call before store_open, unless an empty database is wanted. ERR_BAD_CONFIG:
 * the folder was used, and its database is gone. */
MUST_USE enum err store_folder_check(const struct store_folder *f,
                                     struct why *why);

/* The result that store_folder_open would give, without any change. */
MUST_USE enum err store_folder_look(struct str path, struct why *why);

/* Whether a server has ever used the folder, and whether it was marked as
 * used. */
bool store_folder_is_ours(struct str path);
bool store_folder_was_used(struct str path);

/* Records. */

struct store;

struct store_opts {
    const char *folder; /* held by the caller, with store_folder_open */
    const struct schema *const *schemas;
    size_t n_schemas;
    size_t max_waiting; /* limit of pending txs, and of queries, at least one;
                         * more are refused with ERR_OVERLOADED */
    bool is_inline;
    struct loop *loop; /* NULL only inline: then the caller calls store_turn;
                        * with a loop, the end of a loop turn does */

    /* Every committed tx, before its own done. May be NULL. */
    void (*on_committed)(void *ctx, const struct tx *tx);
    /* The store has failed: it commits nothing any more, and every tx returns
     * TX_FATAL. Called once, from the loop. May be NULL. */
    void (*on_fatal)(void *ctx, const struct why *why);
    void *ctx;
};

/* Open the database, create or migrate its tables, and count this start
 * (store_epoch). On error *out is NULL and why says what to do:
 * ERR_BAD_CONFIG  not a database, not ours, damaged, or of a newer version
 * ERR_BUSY        another program has locked it
 * ERR_NOT_ALLOWED, ERR_NO_SPACE, ERR_LIMIT (its path), ERR_IO, ERR_NOMEM */
MUST_USE enum err store_open(struct store **out, const struct store_opts *opts,
                             struct why *why);

/* Commit the submitted txs, return everything, fold the log into the database,
 * and close. Reads that have not begun, and submissions from callbacks, return
 * ERR_STOPPING. Do not call it from a callback. NULL is fine. */
void store_close(struct store *s);

/* How often this database was opened for writing, this time included. */
int64_t store_epoch(const struct store *s);

/* Let store_close note that this run was stopped in order, so that the next run
 * knows that no task aborted it. Best effort. */
void store_note_stop(struct store *s);

/* Whether the previous run was stopped in order. False for a new database. */
bool store_was_stopped(const struct store *s);

/* Takes tx until done. */
void store_submit(struct store *s, struct tx *tx,
                  void (*done)(struct tx *tx, void *ctx), void *ctx);

/* Takes q until done. */
void store_read(struct store *s, struct query *q,
                void (*done)(struct query *q, void *ctx), void *ctx);

/* Cancel q, which was not returned yet. done still comes, soon. A pending read
 * does not begin and a running one is interrupted, with q->err = ERR_GONE; a
 * finished one is returned as it is. */
void store_forget(struct store *s, struct query *q);

/* Read at once, on this thread: for the start and the command line. Returns
 * q->err. */
MUST_USE enum err store_look(struct store *s, struct query *q);

/* Inline: do all pending work, including work that its callbacks submit. */
void store_turn(struct store *s);

struct store_stats {
    int64_t txs_total[4]; /* by enum tx_result */
    int64_t batches_total;
    int64_t rows_written_total;
    int64_t queries_total;
    int64_t waiting;        /* pending txs */
    int64_t batch_us_total; /* time spent in transactions, sync included */
    int64_t sync_us_total;  /* of that, in the commit */
    int64_t log_bytes;      /* not folded into the database yet */
    int64_t data_bytes;     /* the database file */
    bool is_full;           /* the last tx was refused for lack of space */
    bool is_locked;         /* … or because another program has a lock */
    bool is_dead;           /* nothing is written any more */
};

struct store_stats store_stats(struct store *s);

/* Progress, in 1/1000. */
typedef void store_progress(void *ctx, int permille);

/* Make a consistent copy of the database of a folder, even while a server uses
 * it. `progress` may be NULL. The file appears complete and synced, or not at
 * all. ERR_BUSY: the file exists. ERR_NOT_FOUND: the folder has no database. */
MUST_USE enum err store_backup(struct str folder, struct str file,
                               store_progress *progress, void *ctx,
                               struct why *why);

/* Make `file` the database of a folder, which the caller holds. The whole file
 * is checked first. The previous database is kept beside it under the name in
 * `kept` (empty: there was none). A crash leaves the old or the new one, never
 * a mixture. The next epoch is larger than any that either database had. If the
 * old epoch cannot be read, the result is still OK and why explains what was
 * done. */
MUST_USE enum err store_restore(const struct store_folder *f, struct str file,
                                char kept[256], store_progress *progress,
                                void *ctx, struct why *why);

/* Inspect the database of a folder without any change, even while a server uses
 * it. ERR_NOT_FOUND: there is none. Other errors are those of store_open, as
 * far as they can be seen from outside. */
struct store_about {
    int64_t data_bytes, log_bytes;
    int64_t n_starts;      /* the last epoch */
    bool is_checked_whole; /* false: too large to check all of it */
};

MUST_USE enum err store_look_at(struct str folder, struct store_about *out,
                                struct why *why);

/* Read some columns of every row of a table as text, in the same way; NULL
 * becomes empty. Values are borrowed for the call. Errors as above;
 * ERR_BAD_CONFIG: there is no such table or column yet. */
enum { STORE_LOOK_COLUMNS_MAX = 8 };
MUST_USE enum err store_look_through(struct str folder, const struct table *t,
                                     const uint8_t *columns, size_t n,
                                     void (*each)(void *ctx,
                                                  const struct str *values),
                                     void *ctx, struct why *why);

#endif
