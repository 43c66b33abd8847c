#ifndef STORE_STORE_H
#define STORE_STORE_H

/* store: what must outlive the process.
 *
 * Takes changes (model/tx.h) and questions (model/query.h) about the tables
 * that the rooms described (model/table.h) and knows nothing about what they
 * mean. A tx that was reported as committed is on the disk, synced: a crash or
 * a power cut one instant later does not undo it.
 *
 *     loop                    writer thread              reader threads
 *     store_submit  ------->  what gathered during
 *                             the last sync: one
 *                             transaction, a savepoint
 *     tx->done  <-----------  each, one sync
 *     store_read  ------------------------------------>  a page of rows
 *     q->done  <---------------------------------------
 *
 * Txs happen in the order they were submitted, and are reported in it (but
 * one that is refused because too many wait, or the store is closing, at once).
 * A read that begins after a tx was reported sees it. Every tx and query is
 * given back exactly once, from the loop and never before the call that took
 * it has returned.
 *
 * One connection writes and checkpoints, on its own thread; those that read
 * are read-only. Inline (for tests and the command line) there is no thread
 * and nothing happens but in store_turn.
 *
 * Owns: the database in the data folder. Threads: the loop's, outside; see
 * internal.h for what crosses over inside. */

#include "base/log.h"
#include "base/loop.h"
#include "base/str.h"
#include "model/query.h"
#include "model/tx.h"

/* The ground: the data folder, made if it is missing and locked by one server
 * at a time. The locks are the kernel's, so they go with the process however
 * that ends, and a file left behind locks nobody out. */
struct store_folder {
    char *path;
    int lock_fd, folder_fd;
    bool is_shared; /* others on this machine may write to it */
    bool was_used;  /* store_folder_set_used said so once, or what servers
                     * leave beside a database does */
};

/* Make the folder if only its last part is missing (mode 0700), and lock it.
 * On error nothing is held and why says what to do:
 * ERR_NOT_FOUND   the folder above it is missing
 * ERR_NOT_ALLOWED no permission, or a read-only file system
 * ERR_BAD_CONFIG  there is something by that name, but no folder
 * ERR_BUSY        another server has it; why names its process
 * ERR_NO_SPACE, ERR_IO, ERR_NOMEM */
MUST_USE enum err store_folder_open(struct store_folder *f, struct str path,
                                    struct why *why);
void store_folder_close(struct store_folder *f);

/* From now on something is kept here that somebody counts on: whoever opens
 * the folder later is told (was_used). As well as may be. */
void store_folder_set_used(struct store_folder *f);

/* Whether there is a database that is not empty. */
bool store_folder_has_data(const struct store_folder *f);

/* Before store_open, unless an empty database is what is wanted.
 * ERR_BAD_CONFIG: the folder was used, and its database is gone. */
MUST_USE enum err store_folder_check(const struct store_folder *f,
                                     struct why *why);

/* What store_folder_open would say, without making or changing anything. */
MUST_USE enum err store_folder_look(struct str path, struct why *why);

/* Whether a server has ever used the folder as its own, and whether it came
 * so far that it was marked. */
bool store_folder_is_ours(struct str path);
bool store_folder_was_used(struct str path);

/* The records. */

struct store;

struct store_opts {
    const char *folder; /* held by the caller, with store_folder_open */
    const struct schema *const *schemas;
    size_t n_schemas;
    size_t max_waiting; /* txs, and queries, that may wait, at least one; more
                         * are refused with ERR_OVERLOADED */
    bool is_inline;
    struct loop *loop; /* NULL only inline: then the caller calls store_turn;
                        * with a loop, the end of a turn does */

    /* Every committed tx, before its own done: for who must see all of them.
     * May be NULL. */
    void (*on_committed)(void *ctx, const struct tx *tx);
    /* The store has failed: nothing will be committed any more, every tx is
     * given back as TX_FATAL. Once, from the loop. May be NULL. */
    void (*on_fatal)(void *ctx, const struct why *why);
    void *ctx;
};

/* Open the database, make or migrate what is missing, and count this start
 * (store_epoch). On error *out is NULL and why says what to do:
 * ERR_BAD_CONFIG  not a database, not ours, damaged, or of a newer version
 * ERR_BUSY        another program has it locked
 * ERR_NOT_ALLOWED, ERR_NO_SPACE, ERR_LIMIT (its path), ERR_IO, ERR_NOMEM */
MUST_USE enum err store_open(struct store **out, const struct store_opts *opts,
                             struct why *why);

/* Commit what was submitted, give everything back, fold the log into the
 * database, close. Reads not yet begun, and what a callback submits now, are
 * given back with ERR_STOPPING. Not from a callback. NULL is fine. */
void store_close(struct store *s);

/* How often this database has been opened for writing, this time included. */
int64_t store_epoch(const struct store *s);

/* Takes tx until done. */
void store_submit(struct store *s, struct tx *tx,
                  void (*done)(struct tx *tx, void *ctx), void *ctx);

/* Takes q until done. */
void store_read(struct store *s, struct query *q,
                void (*done)(struct query *q, void *ctx), void *ctx);

/* Who asked q, which was not given back yet, has left: done comes soon, as
 * ever. What nobody has begun to read, nobody will; what is being read is cut
 * short. Its err is then ERR_GONE; what was found by now comes as it is. */
void store_forget(struct store *s, struct query *q);

/* The same at once, on this thread: for starting up and the command line.
 * Returns q->err. */
MUST_USE enum err store_look(struct store *s, struct query *q);

/* Inline: do all that waits, and what its callbacks cause, and give it back.
 */
void store_turn(struct store *s);

struct store_stats {
    int64_t txs_total[4]; /* by enum tx_result */
    int64_t batches_total;
    int64_t rows_written_total;
    int64_t queries_total;
    int64_t waiting;        /* txs not given back yet */
    int64_t batch_us_total; /* time spent in transactions, sync included */
    int64_t sync_us_total;  /* of that, in the commit */
    int64_t log_bytes;      /* not yet folded into the database */
    int64_t data_bytes;     /* the database file */
    bool is_full;           /* the last tx was refused for want of space */
    bool is_locked;         /* or because another program holds the database */
    bool is_dead;           /* nothing is written any more */
};

struct store_stats store_stats(struct store *s);

/* How far something is, in 1/1000. */
typedef void store_progress(void *ctx, int permille);

/* A copy of the database of a folder, consistent, while a server may be using
 * it. `progress` (may be NULL) hears how far it is. The file appears whole and
 * synced, or not at all; one that is there already is an error, ERR_BUSY.
 * ERR_NOT_FOUND: the folder has no database. */
MUST_USE enum err store_backup(struct str folder, struct str file,
                               store_progress *progress, void *ctx,
                               struct why *why);

/* Make `file` the database of a folder, which the caller holds. The file is
 * checked first, whole. What the folder had before is kept beside it under
 * the name put into `kept` (empty when there was nothing). A crash on the way
 * leaves the one or the other, never a mixture. The next epoch is larger than
 * any that either has had, as far as the old one can be read; if it cannot,
 * all is well (OK) and why says what was done about it. */
MUST_USE enum err store_restore(const struct store_folder *f, struct str file,
                                char kept[256], store_progress *progress,
                                void *ctx, struct why *why);

/* What the database of a folder is like, while a server may be using it and
 * without changing anything. ERR_NOT_FOUND: there is none yet; other errors
 * are those that store_open would find, as far as one can see from outside. */
struct store_about {
    int64_t data_bytes, log_bytes;
    int64_t n_starts;      /* the last epoch */
    bool is_checked_whole; /* false: it was too large to look at all of it */
};

MUST_USE enum err store_look_at(struct str folder, struct store_about *out,
                                struct why *why);

/* Some columns of every row of a table, as text, in the same way; what is null
 * is empty. Borrowed for the call. Errors as above; ERR_BAD_CONFIG: there is no
 * such table or column yet. */
enum { STORE_LOOK_COLUMNS_MAX = 8 };
MUST_USE enum err store_look_through(struct str folder, const struct table *t,
                                     const uint8_t *columns, size_t n,
                                     void (*each)(void *ctx,
                                                  const struct str *values),
                                     void *ctx, struct why *why);

#endif
