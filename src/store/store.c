/* Queues, threads, and the exchange between them.
 *
 * Why the sharing is safe. There are four threads: the loop thread, on which
 * every function of store.h is called and every callback runs; the writer; and
 * two readers, one per lane, so that lookups never wait behind listings. A tx
 * or a query is always in exactly one list (or is the one being read), and the
 * list determines its owner:
 *
 *     loop thread     under the lock        worker thread
 *     submitted   ->  to_write         ->   batch
 *     (callback)  <-  written          <-
 *     asked       ->  to_read          ->   running
 *     (callback)  <-  found            <-
 *
 * A move to another column needs the lock. The owner of a list may access its
 * members, and no other thread does. The lock makes the writes of one side
 * visible to the other. Nothing is copied, and the lock is not held while
 * SQLite works.
 *
 * A cancelled query is removed from `asked` or `to_read`; `is_waiting` tells
 * that it is in one of them and changes only under the lock. The query that is
 * being read stays: `running` names it under the lock, and the loop only sets a
 * flag that the reader checks now and then. The flag is cleared under the lock
 * before the next query runs.
 *
 * The writing connection (`db`) belongs to the writer from the start of its
 * thread until the join; the reading ones belong to their lanes likewise;
 * `look` always belongs to the loop. Before and after, and inline, all belong
 * to the loop. Figures of the db for the loop are copied under the lock after
 * each batch.
 *
 * The loop passes its submissions on once, at the end of its turn: a turn that
 * accepts a hundred messages wakes the writer once and gets one batch. Results
 * come back with one wake-up per batch. A checkpoint runs after that, so only
 * the next batch waits for it.
 *
 * The log can restart only at a moment without readers. Two lanes that are
 * never empty have no such moment, and the log would fill the disk. So when it
 * is long the writer sets `wants_quiet` and goes on writing. The listings lane
 * then pauses before its next query; the lookups lane pauses only when no
 * listing is running, because lookups are short and the last listing may be
 * long. The thread that ends a read then wakes the writer, which truncates the
 * log between two batches and lets the lanes go on:
 *
 *     listings   [ being read ]  -- wait --                      [ next …
 *     lookups    [ ][ ] [ ][ ][ ]  - wait -                      [ ][ ] …
 *     writer     [ batch ][ batch ][ batch ][ truncate the log ] [ batch …
 *
 * So the writer never waits for a reader, a lookup waits for one batch and the
 * truncation, and the log grows by the writes during one listing.
 *
 * This breaks with: a callback on another thread than the loop's, a second user
 * of a connection, or access to a shared list without the lock. */
#include "store/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

/* Outlives the store by one turn: libuv releases a handle late. */
struct bell {
    uv_async_t async;
    struct store *store;
};

enum { LOOKUPS, LISTINGS, N_LANES };

/* A reading thread and its pending queries. */
struct lane {
    struct store *store;
    struct reader reader; /* the thread's */
    struct list asked;    /* the loop's, of this turn */

    /* Under the lock. */
    uv_cond_t wakes;
    struct list to_read;
    struct query *running; /* NULL: nothing is being read */

    uv_thread_t thread;
    bool has_cond, has_thread;
};

struct store {
    struct store_opts opts; /* without folder and schemas */
    struct db db;           /* the writer's */
    struct reader look;     /* the loop's */
    struct lane lanes[N_LANES];
    int64_t epoch;

    /* The loop's. */
    struct list submitted;                    /* in this turn */
    struct list refused_txs, refused_queries; /* to be returned */
    size_t n_txs, n_queries;                  /* not returned yet */
    struct loop_job end_of_turn;
    struct bell *bell;
    bool is_closing, is_giving_back, was_told, notes_stop;
    int64_t txs_total[4], queries_total;

    /* Shared, under the lock. */
    uv_mutex_t lock;
    uv_cond_t writer_wakes;
    struct list to_write, written, found;
    bool wants_quiet;           /* the log is long: readers pause */
    struct store_stats figures; /* the writer's part */
    struct why why;
    bool is_dead;

    atomic_bool is_stopping; /* set once, under the lock; read anywhere */
    bool has_lock, has_writer;
    uv_thread_t writer_thread;
};

/* Copy the figures of the db. With the lock. */
static void store_copy_figures(struct store *s)
{
    const struct db *db = &s->db;

    s->figures.batches_total = db->n_batches;
    s->figures.rows_written_total = db->n_rows;
    s->figures.batch_us_total = db->batch_us;
    s->figures.sync_us_total = db->sync_us;
    s->figures.log_bytes = db->log_bytes;
    s->figures.data_bytes = db->data_bytes;
    s->figures.is_full = db->is_full;
    s->figures.is_locked = db->is_locked;
    s->figures.is_dead = db->is_dead;
    if (db->is_dead && !s->is_dead) {
        s->is_dead = true;
        s->why = db->why;
    }
}

static void store_ring(struct store *s)
{
    if (s->bell)
        uv_async_send(&s->bell->async);
}

static void store_hand_back_txs(struct store *s, struct list *batch)
{
    uv_mutex_lock(&s->lock);
    list_append_all(&s->written, batch);
    store_copy_figures(s);
    uv_mutex_unlock(&s->lock);
    store_ring(s);
}

/* Copy the figures after a checkpoint. With the lock. */
static void store_copy_log_figures(struct store *s)
{
    bool was_dead = s->is_dead;

    store_copy_figures(s);
    if (was_dead != s->is_dead)
        store_ring(s);
}

static void store_write_batch(struct store *s, struct list *batch)
{
    db_write(&s->db, batch);
    store_hand_back_txs(s, batch);
    if (!db_checkpoint(&s->db))
        return;
    /* Inline there are no readers now; with threads, they must pause first. */
    if (s->db.wants_restart &&
        (s->opts.is_inline || s->db.sabotage.never_pauses))
        db_restart_log(&s->db);
    uv_mutex_lock(&s->lock);
    s->wants_quiet |= s->db.wants_restart; /* until restart_log */
    store_copy_log_figures(s);
    uv_mutex_unlock(&s->lock);
}

/* Whether the readers have paused. With the lock. */
static bool store_is_quiet(const struct store *s)
{
    return s->wants_quiet && !s->lanes[LOOKUPS].running &&
           !s->lanes[LISTINGS].running;
}

/* With the lock, which is released meanwhile: wants_quiet keeps readers out. */
static void store_restart_log(struct store *s)
{
    uv_mutex_unlock(&s->lock);
    db_restart_log(&s->db);
    uv_mutex_lock(&s->lock);
    s->wants_quiet = false;
    store_copy_log_figures(s);
    for (int i = 0; i < N_LANES; i++)
        uv_cond_signal(&s->lanes[i].wakes);
}

static void store_run_writer(void *ctx)
{
    struct store *s = ctx;
    struct list batch;

    list_init(&batch);
    uv_mutex_lock(&s->lock);
    for (;;) {
        while (list_is_empty(&s->to_write) && !store_is_quiet(s) &&
               !s->is_stopping)
            uv_cond_wait(&s->writer_wakes, &s->lock);
        if (store_is_quiet(s))
            store_restart_log(s);
        if (list_is_empty(&s->to_write)) {
            if (s->is_stopping)
                break; /* all is written */
            continue;
        }
        db_gather(&s->db, &batch, &s->to_write);
        uv_mutex_unlock(&s->lock);
        store_write_batch(s, &batch);
        uv_mutex_lock(&s->lock);
    }
    uv_mutex_unlock(&s->lock);
}

/* With the lock. */
static bool lane_must_wait(const struct lane *l)
{
    const struct store *s = l->store;
    bool makes_way = l == &s->lanes[LISTINGS] || !s->lanes[LISTINGS].running;

    return list_is_empty(&l->to_read) || (s->wants_quiet && makes_way);
}

/* Begin the next query; from here on it can only be interrupted. With the
 * lock. */
static struct query *lane_begin_next(struct lane *l)
{
    struct query *q = LIST_OF(list_pop(&l->to_read), struct query, node);

    q->is_waiting = false;
    l->running = q;
    atomic_store(&l->reader.is_given_up, false);
    return q;
}

static void lane_run_reader(void *ctx)
{
    struct lane *l = ctx;
    struct store *s = l->store;
    struct query *q;

    uv_mutex_lock(&s->lock);
    for (;;) {
        while (lane_must_wait(l) && !s->is_stopping)
            uv_cond_wait(&l->wakes, &s->lock);
        if (s->is_stopping)
            break; /* the rest is returned unread */
        q = lane_begin_next(l);
        uv_mutex_unlock(&s->lock);
        reader_find(&l->reader, q);
        uv_mutex_lock(&s->lock);
        l->running = NULL;
        list_append(&s->found, &q->node);
        if (store_is_quiet(s))
            uv_cond_signal(&s->writer_wakes);
        store_ring(s);
    }
    uv_mutex_unlock(&s->lock);
}

/* Return txs and queries. */

static void store_give_back_tx(struct store *s, struct tx *tx)
{
    s->n_txs--;
    s->txs_total[tx->result]++;
    if (tx->result == TX_COMMITTED && s->opts.on_committed)
        s->opts.on_committed(s->opts.ctx, tx);
    tx->done(tx, tx->ctx);
}

/* Return all finished ones, but none that the callbacks submit. */
static void store_give_back(struct store *s)
{
    struct list txs, queries;
    struct list_node *n;
    bool is_dead;

    if (s->is_giving_back)
        return;
    s->is_giving_back = true;
    list_init(&txs);
    list_init(&queries);
    list_append_all(&txs, &s->refused_txs);
    list_append_all(&queries, &s->refused_queries);
    uv_mutex_lock(&s->lock);
    if (!SABOTAGE().holds_reports)
        list_append_all(&txs, &s->written);
    list_append_all(&queries, &s->found);
    is_dead = s->is_dead;
    uv_mutex_unlock(&s->lock);
    if (is_dead && !s->was_told) {
        s->was_told = true;
        if (s->opts.on_fatal)
            s->opts.on_fatal(s->opts.ctx, &s->why); /* it is final */
    }
    while ((n = list_pop(&txs)))
        store_give_back_tx(s, LIST_OF(n, struct tx, node));
    while ((n = list_pop(&queries))) {
        struct query *q = LIST_OF(n, struct query, node);

        s->n_queries--;
        s->queries_total++;
        q->done(q, q->ctx);
    }
    s->is_giving_back = false;
}

static void store_on_bell(uv_async_t *async)
{
    store_give_back(LIST_OF(async, struct bell, async)->store);
}

/* Sabotage: report a batch before its commit. */
static void store_ack_early(void *ctx, struct list *batch)
{
    struct store *s = ctx;

    store_hand_back_txs(s, batch);
    if (s->opts.is_inline)
        store_give_back(s);
    else if (s->db.sabotage.early_ms)
        uv_sleep((unsigned)s->db.sabotage.early_ms);
}

/* Pass the submissions of this turn on, and wake each thread once. */
static void store_hand_over(struct store *s)
{
    uv_mutex_lock(&s->lock);
    if (!list_is_empty(&s->submitted))
        uv_cond_signal(&s->writer_wakes);
    list_append_all(&s->to_write, &s->submitted);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        if (!list_is_empty(&l->asked))
            uv_cond_signal(&l->wakes);
        list_append_all(&l->to_read, &l->asked);
    }
    uv_mutex_unlock(&s->lock);
}

/* Inline: do the work of the threads. */
static void store_work_inline(struct store *s)
{
    struct list txs, batch;

    list_init(&txs);
    list_init(&batch);
    list_append_all(&txs, &s->submitted);
    while (!list_is_empty(&txs)) {
        db_gather(&s->db, &batch, &txs);
        store_write_batch(s, &batch);
    }
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        list_append_all(&l->to_read, &l->asked);
        while (!list_is_empty(&l->to_read)) {
            struct query *q = lane_begin_next(l);

            reader_find(&l->reader, q);
            l->running = NULL;
            list_append(&s->found, &q->node);
        }
    }
}

static bool store_has_work(const struct store *s)
{
    return !list_is_empty(&s->submitted) ||
           !list_is_empty(&s->lanes[LOOKUPS].asked) ||
           !list_is_empty(&s->lanes[LISTINGS].asked) ||
           !list_is_empty(&s->refused_txs) ||
           !list_is_empty(&s->refused_queries);
}

static void store_pass_on(struct store *s)
{
    if (s->opts.is_inline)
        store_work_inline(s);
    else
        store_hand_over(s);
    /* Results of threads come with the bell; these do not need it. */
    if (s->opts.is_inline || !list_is_empty(&s->refused_txs) ||
        !list_is_empty(&s->refused_queries))
        store_give_back(s);
}

static void store_on_end_of_turn(struct loop_job *job)
{
    /* Submissions from its callbacks schedule this job again. */
    store_pass_on(LIST_OF(job, struct store, end_of_turn));
}

void store_turn(struct store *s)
{
    while (store_has_work(s) && !s->is_giving_back)
        store_pass_on(s);
}

/* Submit. */

static void store_schedule(struct store *s)
{
    if (s->opts.loop)
        loop_at_end(s->opts.loop, &s->end_of_turn);
}

static enum err store_refusal(const struct store *s, size_t n_waiting)
{
    if (s->is_closing)
        return ERR_STOPPING;
    return n_waiting > s->opts.max_waiting ? ERR_OVERLOADED : OK;
}

void store_submit(struct store *s, struct tx *tx,
                  void (*done)(struct tx *tx, void *ctx), void *ctx)
{
    enum err e;

    tx->done = done;
    tx->ctx = ctx;
    e = store_refusal(s, ++s->n_txs);
    if (e) {
        tx->result = TX_REFUSED;
        tx->err = e;
        tx->failed_op = NULL;
    }
    list_append(e ? &s->refused_txs : &s->submitted, &tx->node);
    store_schedule(s);
}

void store_read(struct store *s, struct query *q,
                void (*done)(struct query *q, void *ctx), void *ctx)
{
    enum err e;

    q->done = done;
    q->ctx = ctx;
    e = store_refusal(s, ++s->n_queries);
    if (e)
        q->err = e;
    q->is_waiting = !e;
    list_append(e                    ? &s->refused_queries
                : query_is_lookup(q) ? &s->lanes[LOOKUPS].asked
                                     : &s->lanes[LISTINGS].asked,
                &q->node);
    store_schedule(s);
}

/* Return q unread. It belongs to the loop and is in no list. */
static void store_refuse_query(struct store *s, struct query *q, enum err e)
{
    q->is_waiting = false;
    q->err = e;
    q->rows = NULL;
    q->n_rows = 0;
    q->has_more = false;
    list_append(&s->refused_queries, &q->node);
}

void store_forget(struct store *s, struct query *q)
{
    bool is_waiting;

    uv_mutex_lock(&s->lock);
    is_waiting = q->is_waiting;
    if (is_waiting)
        list_remove(&q->node);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++)
        if (l->running == q)
            atomic_store(&l->reader.is_given_up, true);
    uv_mutex_unlock(&s->lock);
    if (is_waiting) {
        store_refuse_query(s, q, ERR_GONE);
        store_schedule(s);
    }
}

enum err store_look(struct store *s, struct query *q)
{
    enum err e = OK;

    if (!s->look.sql)
        e = reader_open(&s->look, s->db.files[DB_MAIN].path, &s->is_stopping,
                        NULL);
    if (e)
        return q->err = e;
    reader_find(&s->look, q);
    s->queries_total++;
    return q->err;
}

int64_t store_epoch(const struct store *s)
{
    return s->epoch;
}

void store_note_stop(struct store *s)
{
    s->notes_stop = true;
}

bool store_was_stopped(const struct store *s)
{
    return s->db.was_stopped != 0;
}

struct store_stats store_stats(struct store *s)
{
    struct store_stats out;

    uv_mutex_lock(&s->lock);
    out = s->figures;
    uv_mutex_unlock(&s->lock);
    memcpy(out.txs_total, s->txs_total, sizeof(out.txs_total));
    out.queries_total = s->queries_total;
    out.waiting = (int64_t)s->n_txs;
    return out;
}

/* Open and close. */

static enum err store_init_lock(struct store *s)
{
    if (FAULT("store.lock_init") || uv_mutex_init(&s->lock) != 0)
        return ERR_NOMEM;
    if (uv_cond_init(&s->writer_wakes) != 0) {
        uv_mutex_destroy(&s->lock);
        return ERR_NOMEM;
    }
    s->has_lock = true;
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        l->has_cond = uv_cond_init(&l->wakes) == 0;
        if (!l->has_cond)
            return ERR_NOMEM;
    }
    return OK;
}

static enum err store_add_bell(struct store *s)
{
    struct bell *b = mem_new(sizeof(*b));

    b->store = s;
    if (uv_async_init(&s->opts.loop->uv, &b->async, store_on_bell) != 0) {
        free(b);
        return ERR_NOMEM;
    }
    s->bell = b;
    return OK;
}

static void store_on_bell_closed(uv_handle_t *h)
{
    free(LIST_OF(h, struct bell, async));
}

static bool store_start_thread(uv_thread_t *t, void (*run)(void *), void *ctx)
{
    return !FAULT("store.thread") && uv_thread_create(t, run, ctx) == 0;
}

/* Threads start last, so that no FAULT is met on them before there is work. */
static enum err store_start_threads(struct store *s, struct why *why)
{
    enum err e = store_add_bell(s);

    if (e)
        return why_err(why, e, "out of memory");
    s->has_writer = store_start_thread(&s->writer_thread, store_run_writer, s);
    if (!s->has_writer)
        return why_err(why, ERR_NOMEM, "cannot start a thread");
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        l->has_thread = store_start_thread(&l->thread, lane_run_reader, l);
        if (!l->has_thread)
            return why_err(why, ERR_NOMEM, "cannot start a thread");
    }
    return OK;
}

static void store_stop_threads(struct store *s)
{
    uv_mutex_lock(&s->lock);
    atomic_store(&s->is_stopping, true);
    uv_cond_signal(&s->writer_wakes);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++)
        if (l->has_cond)
            uv_cond_signal(&l->wakes);
    uv_mutex_unlock(&s->lock);
    if (s->has_writer)
        uv_thread_join(&s->writer_thread);
    s->has_writer = false;
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        if (l->has_thread)
            uv_thread_join(&l->thread);
        l->has_thread = false;
    }
}

static void store_init_lists(struct store *s)
{
    struct list *const lists[] = {
        &s->submitted, &s->refused_txs, &s->refused_queries,
        &s->to_write,  &s->written,     &s->found,
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        list_init(lists[i]);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        l->store = s;
        list_init(&l->asked);
        list_init(&l->to_read);
    }
}

static void store_free(struct store *s)
{
    if (s->has_lock)
        store_stop_threads(s);
    reader_close(&s->look);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        reader_close(&l->reader);
        if (l->has_cond)
            uv_cond_destroy(&l->wakes);
    }
    db_close(&s->db); /* last, because it folds the log in */
    if (s->bell)
        uv_close((uv_handle_t *)&s->bell->async, store_on_bell_closed);
    if (s->has_lock) {
        uv_cond_destroy(&s->writer_wakes);
        uv_mutex_destroy(&s->lock);
    }
    free(s);
}

static enum err store_open_parts(struct store *s, struct why *why)
{
    enum err e = store_init_lock(s);

    if (e)
        return why_err(why, e, "out of memory");
    e = db_open(&s->db, &s->opts, why);
    if (e)
        return e;
    s->epoch = s->db.epoch;
    store_copy_figures(s);
    if (s->db.sabotage.acks_early) {
        s->db.before_commit = store_ack_early;
        s->db.ctx = s;
    }
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES && !e; l++)
        e = reader_open(&l->reader, s->db.files[DB_MAIN].path, &s->is_stopping,
                        why);
    if (!e && !s->opts.is_inline)
        e = store_start_threads(s, why);
    return e;
}

enum err store_open(struct store **out, const struct store_opts *opts,
                    struct why *why)
{
    struct store *s = mem_new(sizeof(*s));
    enum err e;

    *out = NULL;
    assert(opts->loop || opts->is_inline);
    assert(opts->max_waiting > 0);
    s->opts = *opts;
    s->end_of_turn.run = store_on_end_of_turn;
    store_init_lists(s);
    e = store_open_parts(s, why);
    s->opts.folder = NULL;
    s->opts.schemas = NULL;
    if (e)
        store_free(s);
    else
        *out = s;
    return e;
}

/* After the threads: return the rest, and refuse what callbacks submit now. */
static void store_give_back_rest(struct store *s)
{
    struct list_node *n;

    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++)
        while ((n = list_pop(&l->to_read)))
            store_refuse_query(s, LIST_OF(n, struct query, node), ERR_STOPPING);
    do
        store_give_back(s);
    while (store_has_work(s));
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert(!s->is_giving_back);
    s->is_closing = true;
    if (s->opts.is_inline)
        store_work_inline(s);
    else
        store_hand_over(s);
    store_stop_threads(s);
    store_give_back_rest(s);
    assert(s->n_txs == 0 && s->n_queries == 0);
    loop_not_at_end(&s->end_of_turn);
    /* Without the note, the next run treats this stop as a crash and only
     * counts its attempts. */
    if (s->notes_stop && schema_note_stop(s->db.sql) != SQLITE_OK)
        s->notes_stop = false;
    store_free(s);
}
