/* Queues, threads and handing over.
 *
 * Why sharing this is safe. There are four threads: the loop's, on which
 * every function of store.h is called and every callback runs; the writer; and
 * two readers, one in each lane: look-ups never wait behind listings. A tx, or
 * a query, is always in exactly one list (or is the one being read), and the
 * list says whose it is:
 *
 *     loop's own      under the lock        the thread's own
 *     submitted   ->  to_write         ->   batch
 *     (callback)  <-  written          <-
 *     asked       ->  to_read          ->   running
 *     (callback)  <-  found            <-
 *
 * Whoever moves one from list to list across a column holds the lock; whoever
 * has it in a list of his own may touch what is inside and nobody else does.
 * The lock is what makes the writes of one side visible to the other. Nothing
 * is copied, and nothing is locked while SQLite works.
 *
 * A query that is forgotten is taken out of `asked` or `to_read` again, which
 * `is_waiting` says it is in; that changes under the lock alone. One that is
 * being read stays where it is: which one that is (`running`) is known under
 * the lock, and all the loop does is set a flag that the reader looks at now
 * and then. The flag is cleared under the lock before the next one runs.
 *
 * The connection that writes (`db`) is the writer's from the moment its thread
 * is started until it is joined; those that read are their lanes' likewise;
 * `look` stays the loop's. Before and after, and inline, they are the loop's.
 * What the loop wants to know of the db (figures, whether it is dead) is
 * copied under the lock after each batch.
 *
 * What the loop submits goes over once, at the end of its turn: so a turn that
 * accepts a hundred messages wakes the writer once and has them in one batch.
 * What is written comes back with one wake-up per batch. A checkpoint comes
 * after that, so nobody waits for it but the next batch.
 *
 * The log begins anew only at a moment in which nobody reads. Two lanes that
 * are never empty have no such moment and the log would fill the disk. So when
 * it is long the writer asks for quiet (`wants_quiet`) and goes on writing.
 * Listings make way at once, between two of them; look-ups only when no
 * listing is being read, since they are short and the last listing may be
 * long. Whoever ends a read then wakes the writer, which cuts the log off
 * between two batches and lets everybody go on:
 *
 *     listings   [ being read ]  -- wait --                     [ next …
 *     look-ups   [ ][ ] [ ][ ][ ]  - wait -                     [ ][ ] …
 *     writer     [ batch ][ batch ][ batch ][ cut the log off ] [ batch …
 *
 * So the writer never waits for a reader, a look-up waits for one batch and
 * the cut, and the log grows by what is written during one listing.
 *
 * What would break it: a callback on another thread than the loop's, a second
 * user of one connection, or a list that is looked at without the lock. */
#include "store/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

/* Outlives the store by one turn: libuv gives a handle back late. */
struct bell {
    uv_async_t async;
    struct store *store;
};

enum { LOOKUPS, LISTINGS, N_LANES };

/* A thread that reads, and what waits for it. */
struct lane {
    struct store *store;
    struct reader reader; /* the thread's */
    struct list asked;    /* the loop's: in this turn */

    /* Under the lock. */
    uv_cond_t wakes;
    struct list to_read;
    struct query *running; /* NULL: nothing is being read */

    uv_thread_t thread;
    bool has_cond, has_thread;
};

struct store {
    struct store_opts opts; /* its folder and schemas are not kept */
    struct db db;           /* the writer's */
    struct reader look;     /* the loop's */
    struct lane lanes[N_LANES];
    int64_t epoch;

    /* The loop's. */
    struct list submitted;                    /* in this turn */
    struct list refused_txs, refused_queries; /* not even begun */
    size_t n_txs, n_queries;                  /* not given back yet */
    struct loop_job end_of_turn;
    struct bell *bell;
    bool is_closing, is_giving_back, was_told;
    int64_t txs_total[4], queries_total;

    /* Shared, under the lock. */
    uv_mutex_t lock;
    uv_cond_t writer_wakes;
    struct list to_write, written, found;
    bool wants_quiet;           /* the log is long: readers make way */
    struct store_stats figures; /* the writer's part of them */
    struct why why;
    bool is_dead;

    atomic_bool is_stopping; /* set once, under the lock; read anywhere */
    bool has_lock, has_writer;
    uv_thread_t writer_thread;
};

/* Copy what others want to know about the db. With the lock. */
static void note_figures(struct store *s)
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

static void ring(struct store *s)
{
    if (s->bell)
        uv_async_send(&s->bell->async);
}

static void hand_back_txs(struct store *s, struct list *batch)
{
    uv_mutex_lock(&s->lock);
    list_append_all(&s->written, batch);
    note_figures(s);
    uv_mutex_unlock(&s->lock);
    ring(s);
}

/* Copy what others want to know after the log was folded in. With the lock. */
static void note_log(struct store *s)
{
    bool was_dead = s->is_dead;

    note_figures(s);
    if (was_dead != s->is_dead)
        ring(s);
}

static void write_batch(struct store *s, struct list *batch)
{
    db_write(&s->db, batch);
    hand_back_txs(s, batch);
    if (!db_checkpoint(&s->db))
        return;
    /* Inline nobody is reading now; with threads, they are asked first. */
    if (s->db.wants_restart &&
        (s->opts.is_inline || s->db.sabotage.never_pauses))
        db_restart_log(&s->db);
    uv_mutex_lock(&s->lock);
    s->wants_quiet |= s->db.wants_restart; /* until restart_log */
    note_log(s);
    uv_mutex_unlock(&s->lock);
}

/* Whether the readers have made way. With the lock. */
static bool is_quiet(const struct store *s)
{
    return s->wants_quiet && !s->lanes[LOOKUPS].running &&
           !s->lanes[LISTINGS].running;
}

/* With the lock, but not while it is done: wants_quiet keeps readers out. */
static void restart_log(struct store *s)
{
    uv_mutex_unlock(&s->lock);
    db_restart_log(&s->db);
    uv_mutex_lock(&s->lock);
    s->wants_quiet = false;
    note_log(s);
    for (int i = 0; i < N_LANES; i++)
        uv_cond_signal(&s->lanes[i].wakes);
}

static void run_writer(void *ctx)
{
    struct store *s = ctx;
    struct list batch;

    list_init(&batch);
    uv_mutex_lock(&s->lock);
    for (;;) {
        while (list_is_empty(&s->to_write) && !is_quiet(s) && !s->is_stopping)
            uv_cond_wait(&s->writer_wakes, &s->lock);
        if (is_quiet(s))
            restart_log(s);
        if (list_is_empty(&s->to_write)) {
            if (s->is_stopping)
                break; /* and all is written */
            continue;
        }
        db_gather(&s->db, &batch, &s->to_write);
        uv_mutex_unlock(&s->lock);
        write_batch(s, &batch);
        uv_mutex_lock(&s->lock);
    }
    uv_mutex_unlock(&s->lock);
}

/* With the lock. */
static bool must_wait(const struct lane *l)
{
    const struct store *s = l->store;
    bool makes_way = l == &s->lanes[LISTINGS] || !s->lanes[LISTINGS].running;

    return list_is_empty(&l->to_read) || (s->wants_quiet && makes_way);
}

/* The next to be read, and from here on forgetting it is another matter. With
 * the lock. */
static struct query *begin_next(struct lane *l)
{
    struct query *q = LIST_OF(list_pop(&l->to_read), struct query, node);

    q->is_waiting = false;
    l->running = q;
    atomic_store(&l->reader.is_given_up, false);
    return q;
}

static void run_reader(void *ctx)
{
    struct lane *l = ctx;
    struct store *s = l->store;
    struct query *q;

    uv_mutex_lock(&s->lock);
    for (;;) {
        while (must_wait(l) && !s->is_stopping)
            uv_cond_wait(&l->wakes, &s->lock);
        if (s->is_stopping)
            break; /* what is left is given back unread */
        q = begin_next(l);
        uv_mutex_unlock(&s->lock);
        reader_find(&l->reader, q);
        uv_mutex_lock(&s->lock);
        l->running = NULL;
        list_append(&s->found, &q->node);
        if (is_quiet(s))
            uv_cond_signal(&s->writer_wakes);
        ring(s);
    }
    uv_mutex_unlock(&s->lock);
}

/* Giving back. */

static void give_back_tx(struct store *s, struct tx *tx)
{
    s->n_txs--;
    s->txs_total[tx->result]++;
    if (tx->result == TX_COMMITTED && s->opts.on_committed)
        s->opts.on_committed(s->opts.ctx, tx);
    tx->done(tx, tx->ctx);
}

static void give_back_query(struct store *s, struct query *q)
{
    s->n_queries--;
    s->queries_total++;
    q->done(q, q->ctx);
}

static void tell_if_dead(struct store *s, bool is_dead)
{
    if (!is_dead || s->was_told)
        return;
    s->was_told = true;
    if (s->opts.on_fatal)
        s->opts.on_fatal(s->opts.ctx, &s->why); /* never changes any more */
}

/* Everything that is done, and nothing that its callbacks cause. */
static void give_back(struct store *s)
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
    tell_if_dead(s, is_dead);
    while ((n = list_pop(&txs)))
        give_back_tx(s, LIST_OF(n, struct tx, node));
    while ((n = list_pop(&queries)))
        give_back_query(s, LIST_OF(n, struct query, node));
    s->is_giving_back = false;
}

static void on_bell(uv_async_t *async)
{
    give_back(LIST_OF(async, struct bell, async)->store);
}

/* Sabotage: report a batch as committed that is not yet. */
static void ack_early(void *ctx, struct list *batch)
{
    struct store *s = ctx;

    hand_back_txs(s, batch);
    if (s->opts.is_inline)
        give_back(s);
    else if (s->db.sabotage.early_ms)
        uv_sleep((unsigned)s->db.sabotage.early_ms);
}

/* Give over what gathered during the turn, waking each thread once. */
static void hand_over(struct store *s)
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

/* Inline: what the threads would do. */
static void work(struct store *s)
{
    struct list txs, batch;

    list_init(&txs);
    list_init(&batch);
    list_append_all(&txs, &s->submitted);
    while (!list_is_empty(&txs)) {
        db_gather(&s->db, &batch, &txs);
        write_batch(s, &batch);
    }
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        list_append_all(&l->to_read, &l->asked);
        while (!list_is_empty(&l->to_read)) {
            struct query *q = begin_next(l);

            reader_find(&l->reader, q);
            l->running = NULL;
            list_append(&s->found, &q->node);
        }
    }
}

static bool has_work(const struct store *s)
{
    return !list_is_empty(&s->submitted) ||
           !list_is_empty(&s->lanes[LOOKUPS].asked) ||
           !list_is_empty(&s->lanes[LISTINGS].asked) ||
           !list_is_empty(&s->refused_txs) ||
           !list_is_empty(&s->refused_queries);
}

static void pass(struct store *s)
{
    if (s->opts.is_inline)
        work(s);
    else
        hand_over(s);
    /* A thread's own come with the bell; these need none. */
    if (s->opts.is_inline || !list_is_empty(&s->refused_txs) ||
        !list_is_empty(&s->refused_queries))
        give_back(s);
}

static void on_end_of_turn(struct loop_job *job)
{
    /* What its callbacks submit asks for the end of the turn once more. */
    pass(LIST_OF(job, struct store, end_of_turn));
}

void store_turn(struct store *s)
{
    while (has_work(s) && !s->is_giving_back)
        pass(s);
}

/* Taking things in. */

static void wake(struct store *s)
{
    if (s->opts.loop)
        loop_at_end(s->opts.loop, &s->end_of_turn);
}

static enum err refusal(const struct store *s, size_t n_waiting)
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
    e = refusal(s, ++s->n_txs);
    if (e) {
        tx->result = TX_REFUSED;
        tx->err = e;
        tx->failed_op = NULL;
    }
    list_append(e ? &s->refused_txs : &s->submitted, &tx->node);
    wake(s);
}

void store_read(struct store *s, struct query *q,
                void (*done)(struct query *q, void *ctx), void *ctx)
{
    enum err e;

    q->done = done;
    q->ctx = ctx;
    e = refusal(s, ++s->n_queries);
    if (e)
        q->err = e;
    q->is_waiting = !e;
    list_append(e                    ? &s->refused_queries
                : query_is_lookup(q) ? &s->lanes[LOOKUPS].asked
                                     : &s->lanes[LISTINGS].asked,
                &q->node);
    wake(s);
}

/* Give back unread. The loop has it, and it is in no list. */
static void refuse_query(struct store *s, struct query *q, enum err e)
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
        refuse_query(s, q, ERR_GONE);
        wake(s);
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

/* Life and death. */

static enum err init_lock(struct store *s)
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

static enum err hang_bell(struct store *s)
{
    struct bell *b = FAULT("store.bell") ? NULL : calloc(1, sizeof(*b));

    if (!b)
        return ERR_NOMEM;
    b->store = s;
    if (uv_async_init(&s->opts.loop->uv, &b->async, on_bell) != 0) {
        free(b);
        return ERR_NOMEM;
    }
    s->bell = b;
    return OK;
}

static void on_bell_closed(uv_handle_t *h)
{
    free(LIST_OF(h, struct bell, async));
}

static bool start(uv_thread_t *t, void (*run)(void *), void *ctx)
{
    return !FAULT("store.thread") && uv_thread_create(t, run, ctx) == 0;
}

/* Threads are last: they ask no FAULT before there is work. */
static enum err start_threads(struct store *s, struct why *why)
{
    enum err e = hang_bell(s);

    if (e)
        return why_err(why, e, "out of memory");
    s->has_writer = start(&s->writer_thread, run_writer, s);
    if (!s->has_writer)
        return why_err(why, ERR_NOMEM, "cannot start a thread");
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        l->has_thread = start(&l->thread, run_reader, l);
        if (!l->has_thread)
            return why_err(why, ERR_NOMEM, "cannot start a thread");
    }
    return OK;
}

static void stop_threads(struct store *s)
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

static void init_lists(struct store *s)
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

static void take_down(struct store *s)
{
    if (s->has_lock)
        stop_threads(s);
    reader_close(&s->look);
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++) {
        reader_close(&l->reader);
        if (l->has_cond)
            uv_cond_destroy(&l->wakes);
    }
    db_close(&s->db); /* the last to leave: it folds the log in */
    if (s->bell)
        uv_close((uv_handle_t *)&s->bell->async, on_bell_closed);
    if (s->has_lock) {
        uv_cond_destroy(&s->writer_wakes);
        uv_mutex_destroy(&s->lock);
    }
    free(s);
}

static enum err open_all(struct store *s, struct why *why)
{
    enum err e = init_lock(s);

    if (e)
        return why_err(why, e, "out of memory");
    e = db_open(&s->db, &s->opts, why);
    if (e)
        return e;
    s->epoch = s->db.epoch;
    note_figures(s);
    if (s->db.sabotage.acks_early) {
        s->db.before_commit = ack_early;
        s->db.ctx = s;
    }
    for (struct lane *l = s->lanes; l < s->lanes + N_LANES && !e; l++)
        e = reader_open(&l->reader, s->db.files[DB_MAIN].path, &s->is_stopping,
                        why);
    if (!e && !s->opts.is_inline)
        e = start_threads(s, why);
    return e;
}

enum err store_open(struct store **out, const struct store_opts *opts,
                    struct why *why)
{
    struct store *s = FAULT("store.new") ? NULL : calloc(1, sizeof(*s));
    enum err e;

    *out = NULL;
    assert(opts->loop || opts->is_inline);
    assert(opts->max_waiting > 0);
    if (!s)
        return why_err(why, ERR_NOMEM, "out of memory");
    s->opts = *opts;
    s->end_of_turn.run = on_end_of_turn;
    init_lists(s);
    e = open_all(s, why);
    s->opts.folder = NULL;
    s->opts.schemas = NULL;
    if (e)
        take_down(s);
    else
        *out = s;
    return e;
}

/* The threads are gone: what they left, and what the callbacks cause now. */
static void give_back_rest(struct store *s)
{
    struct list_node *n;

    for (struct lane *l = s->lanes; l < s->lanes + N_LANES; l++)
        while ((n = list_pop(&l->to_read)))
            refuse_query(s, LIST_OF(n, struct query, node), ERR_STOPPING);
    do
        give_back(s);
    while (has_work(s));
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert(!s->is_giving_back);
    s->is_closing = true;
    if (s->opts.is_inline)
        work(s);
    else
        hand_over(s);
    stop_threads(s);
    give_back_rest(s);
    assert(s->n_txs == 0 && s->n_queries == 0);
    loop_not_at_end(&s->end_of_turn);
    take_down(s);
}
