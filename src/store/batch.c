/* Batches: many txs in one transaction and one sync.
 *
 *     BEGIN IMMEDIATE
 *       SAVEPOINT tx; its operations; RELEASE tx         all guards held
 *       SAVEPOINT tx; its operations; ROLLBACK TO tx …   one guard failed
 *     COMMIT                                             includes the sync
 *
 * Errors, and the state that is known after each:
 *
 * - No space or no memory in an operation: nothing of the batch is written. It
 *   is rolled back and each tx gets a transaction of its own, so that one that
 *   is too large does not fail the small ones.
 * - No space in the commit: the mark that ends a commit in the log was not
 *   written, since it comes last. Nothing was committed; as above.
 * - Any other error in the commit, above all a failed sync: the mark may be on
 *   the disk or not. This is unknown until a restart, and another sync would
 *   only make the kernel forget the error. The store is dead: it acknowledges
 *   nothing, writes nothing, and does not fold the log in. */
#include "store/internal.h"

#include <assert.h>
#include <errno.h>

#include "base/fault.h"

enum {
    BATCH_TXS = 1024,
    BATCH_BYTES = 8 * 1024 * 1024,
    GIVE_UP_AFTER = 8, /* txs in a row that found no space, each alone */
    CHECKPOINT_PAGES = 1000,
    RESTART_PAGES = 16384, /* 64 MiB: readers must pause */
    RESTART_MS = 50,
};

/* The outcome of a step. */
enum outcome { FINE, GUARD, NO_ROOM, NO_MEMORY, LOCKED, TOO_LARGE, DEAD };

static bool is_out_of_space(const struct db *db, int code)
{
    /* SQLite knows only a full disk, but quotas and file size limits mean the
     * same. A failed write has not written its mark either. */
    return (code & 0xff) == SQLITE_FULL ||
           (code == SQLITE_IOERR_WRITE &&
            (db->last_errno == EDQUOT || db->last_errno == EFBIG));
}

static enum outcome outcome_of_code(struct db *db, const char *doing, int code)
{
    if (is_out_of_space(db, code))
        return NO_ROOM;
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW: return FINE;
    case SQLITE_NOMEM: return NO_MEMORY;
    case SQLITE_BUSY: return LOCKED;
    case SQLITE_TOOBIG: return TOO_LARGE;
    case SQLITE_CANTOPEN: return NO_ROOM; /* a temporary file for undo */
    default: break;
    }
    switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
    case SQLITE_CONSTRAINT_FOREIGNKEY: return GUARD;
    case SQLITE_IOERR_NOMEM: return NO_MEMORY;
    default: db_kill(db, doing, code); return DEAD;
    }
}

/* Step a statement and keep the kernel's error: SQLite does not keep it when a
 * commit fails, and successful calls do not change errno. */
static int db_step_statement(struct db *db, sqlite3_stmt *s)
{
    int code;

    errno = 0;
    code = sqlite3_step(s);
    db->last_errno = errno;
    return code;
}

static int db_run_step(struct db *db, enum db_step which)
{
    static const char *const faults[N_DB_STEPS] = {
        [STEP_BEGIN] = "store.begin.io",
        [STEP_COMMIT] = "store.commit.io",
        [STEP_SAVEPOINT] = "store.savepoint.io",
        [STEP_RELEASE] = "store.release.io",
        [STEP_UNDO] = "store.undo.io",
        [STEP_ROLLBACK] = "store.rollback.io",
    };

    (void)faults;
    if (FAULT(faults[which]))
        return SQLITE_IOERR;
    db_step_statement(db, db->steps[which]);
    return sqlite3_reset(db->steps[which]);
}

static bool op_has_key(const struct tx_op *op)
{
    for (uint8_t i = 0; i < op->table->n_key; i++)
        if (tx_value(op, i).type == VALUE_NULL)
            return false;
    return true;
}

/* Assert what SQLite would otherwise reject in the middle of a batch. */
static void op_check(const struct tx_op *op)
{
    if (op->kind == TX_INSERT && op->table->is_counted)
        assert(tx_value(op, 0).type == VALUE_NULL);
    else if (op->kind == TX_INSERT || op->kind == TX_PUT)
        assert(op_has_key(op));
}

static enum outcome op_fault(struct db *db)
{
    if (FAULT("store.op.full"))
        return NO_ROOM;
    if (FAULT("store.op.nomem"))
        return NO_MEMORY;
    if (FAULT("store.op.io"))
        return outcome_of_code(db, "writing to", SQLITE_IOERR);
    return FINE;
}

/* Whether the guard of an operation that ran has held. */
static bool op_guard_held(const struct tx_op *op, int code, int64_t n_changed)
{
    switch (op->kind) {
    case TX_INSERT:
    case TX_AMEND:
    case TX_PRUNE: return true;
    case TX_EXPECT: return code == SQLITE_ROW;
    case TX_PUT:
    case TX_UPDATE:
    case TX_DELETE:
    case TX_ADD: return n_changed == 1;
    }
    return false;
}

static enum outcome op_apply(struct db *db, struct tx_op *op)
{
    int64_t n_changed = 0;
    sqlite3_stmt *s = NULL;
    enum outcome o = op_fault(db);
    int code, reset;

    op_check(op);
    if (o != FINE)
        return o;
    if (op->kind == TX_ADD && add_fits_nothing(op))
        return GUARD;
    code = stmts_for_op(&db->stmts, op, &s);
    if (code != SQLITE_OK)
        return outcome_of_code(db, "writing to", code);
    code = db_step_statement(db, s);
    if (code == SQLITE_DONE && op->kind != TX_EXPECT)
        n_changed = sqlite3_changes64(db->sql);
    reset = sqlite3_reset(s);
    if (reset != SQLITE_OK)
        return outcome_of_code(db, "writing to", reset);
    if (!op_guard_held(op, code, n_changed))
        return GUARD;
    db->n_rows += n_changed;
    if (op->kind == TX_INSERT && op->table->is_counted)
        op->seq = sqlite3_last_insert_rowid(db->sql);
    if (op->kind == TX_PRUNE)
        op->n_rows = (size_t)n_changed;
    return FINE;
}

static void tx_settle(struct tx *tx, enum tx_result result, enum err e)
{
    tx->result = result;
    tx->err = e;
    tx->failed_op = NULL;
}

static void batch_settle_all(struct list *batch, enum tx_result result,
                             enum err e)
{
    for (struct list_node *n = list_first(batch); n; n = list_next(batch, n))
        tx_settle(LIST_OF(n, struct tx, node), result, e);
}

/* Undo one tx; the batch goes on. */
static enum outcome tx_undo(struct db *db)
{
    int code = db_run_step(db, STEP_UNDO);

    if (code == SQLITE_OK)
        code = db_run_step(db, STEP_RELEASE);
    return outcome_of_code(db, "undoing a change of", code);
}

/* FINE also if a guard failed or the tx is too large: it is then undone, and
 * the batch goes on. */
static enum outcome tx_apply(struct db *db, struct tx *tx)
{
    int64_t n_rows = db->n_rows;
    enum outcome o;

    if (tx->build_error) {
        tx_settle(tx, TX_REFUSED, tx->build_error);
        return FINE;
    }
    o = outcome_of_code(db, "writing to", db_run_step(db, STEP_SAVEPOINT));
    if (o != FINE)
        return o;
    tx_settle(tx, TX_COMMITTED, OK);
    for (struct tx_op *op = tx->first; op && o == FINE; op = op->next) {
        o = op_apply(db, op);
        if (o == GUARD) {
            tx_settle(tx, TX_GUARD_FAILED, OK);
            tx->failed_op = op;
        } else if (o == TOO_LARGE) {
            tx_settle(tx, TX_REFUSED, ERR_LIMIT);
        }
    }
    if (o == FINE)
        return outcome_of_code(db, "writing to", db_run_step(db, STEP_RELEASE));
    db->n_rows = n_rows;
    return o == GUARD || o == TOO_LARGE ? tx_undo(db) : o;
}

static enum outcome batch_commit(struct db *db, struct list *batch)
{
    uint64_t began_ns = uv_hrtime();
    int code;

    if (FAULT("store.commit.full"))
        return NO_ROOM;
    if (db->before_commit)
        db->before_commit(db->ctx, batch);
    code = db_run_step(db, STEP_COMMIT);
    if (code == SQLITE_OK && FAULT("store.sync"))
        code = SQLITE_IOERR_FSYNC;
    db->sync_us += (int64_t)(uv_hrtime() - began_ns) / 1000;
    if (code == SQLITE_OK)
        return FINE;
    if (is_out_of_space(db, code))
        return NO_ROOM;
    db_kill(db, "committing to", code);
    return DEAD;
}

static void batch_roll_back(struct db *db)
{
    int code = SQLITE_OK;

    if (!sqlite3_get_autocommit(db->sql)) /* SQLite has not done it itself */
        code = db_run_step(db, STEP_ROLLBACK);
    if (code != SQLITE_OK || !sqlite3_get_autocommit(db->sql))
        db_kill(db, "rolling back a change of", code ? code : SQLITE_ERROR);
}

/* One transaction. If the outcome is not FINE, it was rolled back or the store
 * is dead. */
static enum outcome batch_attempt(struct db *db, struct list *batch)
{
    int64_t n_rows = db->n_rows;
    enum outcome o =
        FAULT("store.begin.busy")
            ? LOCKED
            : outcome_of_code(db, "writing to", db_run_step(db, STEP_BEGIN));

    if (o != FINE)
        return o;
    for (struct list_node *n = list_first(batch); n && o == FINE;
         n = list_next(batch, n))
        o = tx_apply(db, LIST_OF(n, struct tx, node));
    if (o == FINE)
        o = batch_commit(db, batch);
    if (o != FINE) {
        db->n_rows = n_rows;
        if (!db->is_dead)
            batch_roll_back(db);
    }
    if (db->is_dead)
        return DEAD;
    db->n_batches += o == FINE;
    return o;
}

static enum err outcome_err(enum outcome o)
{
    switch (o) {
    case NO_ROOM: return ERR_NO_SPACE;
    case NO_MEMORY: return ERR_NOMEM;
    case LOCKED: return ERR_BUSY;
    case TOO_LARGE: return ERR_LIMIT;
    case FINE:
    case GUARD:
    case DEAD: break;
    }
    return ERR_IO;
}

/* Txs that were too much together may succeed alone. After several in a row
 * without space the rest is refused untried, since it would wait long for the
 * same result. */
static void batch_write_each(struct db *db, struct list *batch)
{
    struct list all, one;
    struct list_node *n;
    int n_in_a_row = 0;

    list_init(&all);
    list_init(&one);
    list_append_all(&all, batch);
    while ((n = list_pop(&all))) {
        enum outcome o = NO_ROOM;

        list_append(&one, n);
        if (n_in_a_row < GIVE_UP_AFTER && !db->is_dead)
            o = batch_attempt(db, &one);
        n_in_a_row = o == NO_ROOM ? n_in_a_row + 1 : 0;
        db->is_full = o == NO_ROOM;
        db->is_locked = o == LOCKED;
        if (o != FINE)
            batch_settle_all(&one, TX_REFUSED, outcome_err(o));
        list_append_all(batch, &one);
    }
}

static void batch_write_together(struct db *db, struct list *batch)
{
    enum outcome o = batch_attempt(db, batch);
    struct list_node *first = list_first(batch);

    db->is_full = db->is_locked = false;
    if (o == FINE || o == DEAD || !first)
        return;
    db->needs_room |= o == NO_ROOM;
    if (o != LOCKED && list_next(batch, first)) {
        batch_write_each(db, batch);
        return;
    }
    db->is_full = o == NO_ROOM;
    db->is_locked = o == LOCKED;
    batch_settle_all(batch, TX_REFUSED, outcome_err(o));
}

void db_gather(const struct db *db, struct list *batch, struct list *from)
{
    int max = db->sabotage.batch_txs ? db->sabotage.batch_txs : BATCH_TXS;
    size_t bytes = 0;
    struct list_node *n;

    while (max-- > 0 && bytes < BATCH_BYTES && (n = list_pop(from))) {
        bytes += LIST_OF(n, struct tx, node)->arena.used;
        list_append(batch, n);
    }
}

void db_write(struct db *db, struct list *batch)
{
    uint64_t began_ns = uv_hrtime();

    if (!db->is_dead) {
        batch_write_together(db, batch);
        /* A write to a deleted file is lost. */
        if (!db->is_dead && !db->sabotage.ignores_moved)
            db_check_files(db);
    }
    if (db->is_dead)
        batch_settle_all(batch, TX_FATAL, ERR_IO);
    db->batch_us += (int64_t)(uv_hrtime() - began_ns) / 1000;
    db->log_bytes = (int64_t)db->log_pages * DB_PAGE_BYTES;
}

static int db_run_checkpoint(struct db *db, int mode, int *n_log, int *n_done)
{
    int code;

    errno = 0;
    code =
        FAULT("store.checkpoint.full") ? SQLITE_FULL
        : FAULT("store.checkpoint.io")
            ? SQLITE_IOERR_FSYNC
            : sqlite3_wal_checkpoint_v2(db->sql, "main", mode, n_log, n_done);
    db->last_errno = errno;
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY &&
        (code & 0xff) != SQLITE_NOMEM && !is_out_of_space(db, code))
        db_kill(db, "folding the log into", code);
    return code;
}

/* A passive checkpoint never waits. The next commit then restarts the log, if
 * it has no reader. */
bool db_checkpoint(struct db *db)
{
    const struct store_sabotage *sab = &db->sabotage;
    int every =
        sab->checkpoint_pages ? sab->checkpoint_pages : CHECKPOINT_PAGES;
    int restart = sab->restart_pages ? sab->restart_pages : RESTART_PAGES;
    int n_log = 0, n_done = 0;

    if (db->log_pages + every < db->checkpoint_at) /* it has restarted */
        db->checkpoint_at = every;
    if (db->checkpoint_at == 0)
        db->checkpoint_at = every;
    if (db->is_dead || (db->log_pages < db->checkpoint_at && !db->needs_room))
        return false;
    db->needs_room = false;
    if (db_run_checkpoint(db, SQLITE_CHECKPOINT_PASSIVE, &n_log, &n_done) ==
        SQLITE_OK)
        db->log_bytes = (int64_t)(n_log - n_done) * DB_PAGE_BYTES;
    /* With a reader the log only grows: try again when it has grown by the same
     * amount, not after every commit. */
    db->checkpoint_at = db->log_pages + every;
    db->wants_restart = !db->is_dead && db->log_pages >= restart;
    return true;
}

void db_restart_log(struct db *db)
{
    int busy_ms = db->sabotage.busy_ms ? db->sabotage.busy_ms : DB_BUSY_MS;
    int n_log = 0, n_done = 0, code;

    db->wants_restart = false;
    if (db->is_dead)
        return;
    /* Another program may be reading, most likely a backup. */
    sqlite3_busy_timeout(db->sql, db->sabotage.never_pauses ? 0 : RESTART_MS);
    code = db_run_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE, &n_log, &n_done);
    sqlite3_busy_timeout(db->sql, busy_ms);
    if (code != SQLITE_OK)
        return;
    db->log_pages = 0;
    db->log_bytes = 0;
}
