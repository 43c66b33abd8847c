/* Entries are not queued for readers. A reader is a cursor, which costs the
 * same whether its owner is fast, slow or stuck. The next entry is found in
 * the ring of the newest entries, or in a page read from the store.
 *
 *     the store, as far as it was pruned              the ring
 *     |- - - - oldest ........................... from ........ newest
 *               ^ after: reads a page                  ^ after: looks here
 *
 * A page ends at the latest where the ring began when the page was requested;
 * entries that leave the ring meanwhile belong to the next page. So the two
 * always meet and never overlap. A page is only a copy from the store. It may
 * be taken away from a reader that does not use it, and is then read again.
 * That bounds the memory of all pages together.
 *
 *     idle ---> told          on_news said that there is something
 *      |  <---   |
 *      v         v
 *     hungry -> reads -> idle
 *
 * Idle readers are in one of two lists: those in `waiting` have seen
 * everything, those in `due` must be checked. A commit makes all of them due
 * in one step, and the end of each turn checks a limited number. A thousand
 * readers delay each other, and nothing else.
 *
 * Rejected: a queue for each reader (unbounded memory, or lost entries), and
 * notifying readers inside the commit (they would act in the middle of the
 * store's own turn). */
#include "watch/watch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "watch/internal.h"

enum {
    WAKES_PER_TURN = 128,
    STEPS_PER_TURN = 4096, /* readers and entries that are checked */
    STEPS_PER_NEXT = 1024,
    PAGES_MAX = 32, /* in memory at once */
    /* The stretch of keys that one page covers for a reader that sees only a
     * part: few matches must not become a walk through millions of rows. */
    PAGE_STRETCH = 20000,
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 5000,
};

struct feed_page {
    struct list_node node;      /* in feed->pages */
    struct feed *feed;          /* NULL: the feed was freed */
    struct feed_reader *reader; /* NULL: it has left */
    struct query q;
    int64_t upto;         /* the reader's cursor after this page */
    const struct row *at; /* the next row */
};

struct feed {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct ring ring;
    int64_t newest;
    int64_t oldest; /* the store has no lower seq */
    struct list waiting, due, hungry;
    struct list pages;
    size_t n_pages, n_readers;
    size_t n_inside; /* of these, readers of our own */
    struct loop_job news;
    struct timer pause; /* set: a read of the store has just failed */
    int64_t pause_ms;
    int64_t entries_total, pages_total;
    feed_sees *sees; /* may be NULL */
    void *sees_ctx;
};

/* Visibility. */

void feed_set_sees(struct feed *f, feed_sees *sees, void *ctx)
{
    f->sees = sees;
    f->sees_ctx = ctx;
}

bool feed_shows(const struct feed *f, struct feed_entry *e,
                const struct caller *c)
{
    if (feed_is_for(e, c))
        return true;
    if (!e->is_for_seers || !caller_name(c).n || !f->sees ||
        !f->sees(f->sees_ctx, e, c))
        return false;
    if (!str_eq(e->type, STR("agent.state")))
        e->data = STR("{}");
    e->requester = e->root_user = STR("");
    return true;
}

/* Readers. */

/* l: the list it moves to, or NULL. */
static void reader_move(struct feed_reader *r, enum feed_state to,
                        struct list *l)
{
    list_remove(&r->node);
    r->state = to;
    if (l)
        list_append(l, &r->node);
}

static void page_free(struct feed_page *p)
{
    if (p->reader)
        p->reader->page = NULL;
    if (p->feed) {
        list_remove(&p->node);
        p->feed->n_pages--;
    }
    query_fini(&p->q);
    free(p);
}

static bool page_next(struct feed_reader *r, struct feed_entry *out)
{
    struct feed_page *p = r->page;

    for (; p->at; p->at = p->at->next) {
        feed_from_row(out, p->at);
        if (out->seq > r->after && feed_shows(p->feed, out, &r->caller))
            return true;
    }
    return false;
}

enum sight {
    SEES_ONE,   /* an entry */
    SEES_ALL,   /* there is no more */
    SEES_OLDER, /* an entry below the ring: read it first */
    IS_TIRED,   /* out of steps */
};

/* The next entry for r, which has no read in flight. Moves its cursor over
 * entries that it may not see, never over those that it may. */
static enum sight reader_find_next(struct feed *f, struct feed_reader *r,
                                   struct feed_entry *out, size_t *steps)
{
    if (r->page) {
        if (page_next(r, out))
            return SEES_ONE;
        r->after = r->page->upto;
        page_free(r->page);
    }
    if (r->after + 1 < f->ring.from)
        return SEES_OLDER;
    for (size_t i = feed_ring_after(&f->ring, r->after); i < f->ring.n; i++) {
        if (*steps == 0)
            return IS_TIRED;
        --*steps;
        *out = *feed_ring_at(&f->ring, i);
        if (feed_shows(f, out, &r->caller))
            return SEES_ONE;
        r->after = out->seq;
    }
    r->after = f->newest;
    return SEES_ALL;
}

/* Pages. */

/* The store is not read during the pause. */
static void feed_pause_reads(struct feed *f, enum err e)
{
    if (timer_is_set(&f->pause))
        return;
    f->pause_ms = f->pause_ms ? 2 * f->pause_ms : PAUSE_MIN_MS;
    if (f->pause_ms > PAUSE_MAX_MS)
        f->pause_ms = PAUSE_MAX_MS;
    log_warn(f->log, "watch.feed_not_read",
             LOG_C("because", err_row(e)->wording),
             LOG_I("again_in_ms", f->pause_ms));
    loop_timer_set(f->loop, &f->pause, f->pause_ms);
}

static void feed_notify_soon(struct feed *f)
{
    /* A job that waits for the next turn stays there. */
    if (!list_has(&f->news.node))
        loop_at_end(f->loop, &f->news);
}

static void feed_serve_hungry(struct feed *f);

static void on_feed_page(struct query *q, void *ctx)
{
    struct feed_page *p = ctx;
    struct feed *f = p->feed;
    struct feed_reader *r = p->reader;
    enum err e = q->err;

    if (!f || !r) {
        page_free(p);
        if (f)
            feed_serve_hungry(f);
        return;
    }
    if (e) {
        reader_move(r, FEED_HUNGRY, &f->hungry);
        page_free(p);
        feed_pause_reads(f, e);
        return;
    }
    f->pause_ms = 0;
    p->at = q->rows;
    if (q->has_more) {
        assert(q->n_rows > 0);
        QUERY_EACH(row, q)
        p->upto = row_int(row, FEED_SEQ);
    }
    reader_move(r, FEED_IDLE, &f->due);
    feed_notify_soon(f);
}

static void page_read(struct feed *f, struct feed_reader *r)
{
    struct feed_page *p = mem_new(sizeof(*p));
    int64_t after = r->after < f->oldest ? f->oldest - 1 : r->after;

    p->feed = f;
    p->reader = r;
    /* The store has every reported entry, so a read that begins now sees all
     * entries below the ring. */
    p->upto = f->ring.from - 1;
    if (!caller_is_admin(&r->caller) && p->upto - after > PAGE_STRETCH)
        p->upto = after + PAGE_STRETCH;
    query_init(&p->q, &feed_table, FEED_PAGE);
    query_if(&p->q, FEED_SEQ, IS_MORE, value_int(after));
    query_if(&p->q, FEED_SEQ, IS_AT_MOST, value_int(p->upto));
    feed_query_for(&p->q, &r->caller);
    query_order(&p->q, FEED_SEQ, false);
    r->page = p;
    list_append(&f->pages, &p->node);
    f->n_pages++;
    f->pages_total++;
    reader_move(r, FEED_READS, NULL);
    store_read(f->store, &p->q, on_feed_page, p);
}

/* Take a page from a reader that was notified and has not used it. */
static bool page_evict(struct feed *f)
{
    LIST_EACH(n, &f->pages)
    {
        struct feed_page *p = LIST_OF(n, struct feed_page, node);

        if (p->reader && p->reader->state == FEED_TOLD) {
            page_free(p);
            return true;
        }
    }
    return false;
}

static void feed_serve_hungry(struct feed *f)
{
    struct list_node *n;

    while (!timer_is_set(&f->pause) && (n = list_first(&f->hungry)) &&
           (f->n_pages < PAGES_MAX || page_evict(f)))
        page_read(f, LIST_OF(n, struct feed_reader, node));
}

static void on_feed_pause_over(struct timer *t)
{
    feed_serve_hungry(LIST_OF(t, struct feed, pause));
}

/* News. */

static void feed_notify_due(struct loop_job *job)
{
    struct feed *f = LIST_OF(job, struct feed, news);
    size_t steps = STEPS_PER_TURN, wakes = 0;
    struct list_node *n;

    while (wakes < WAKES_PER_TURN && steps > 0 && (n = list_first(&f->due))) {
        struct feed_reader *r = LIST_OF(n, struct feed_reader, node);
        struct feed_entry e;

        steps--;
        switch (reader_find_next(f, r, &e, &steps)) {
        case SEES_ONE:
            wakes++;
            reader_move(r, FEED_TOLD, NULL);
            r->on_news(r);
            break;
        case SEES_ALL: reader_move(r, FEED_IDLE, &f->waiting); break;
        case SEES_OLDER: reader_move(r, FEED_HUNGRY, &f->hungry); break;
        case IS_TIRED: break; /* stays the first, with its cursor moved */
        }
    }
    feed_serve_hungry(f);
    if (!list_is_empty(&f->due))
        loop_next_turn(f->loop, &f->news);
}

void feed_join(struct feed *f, struct feed_reader *r,
               const struct caller *caller, int64_t after)
{
    assert(r->state == FEED_AWAY && r->on_news);
    r->caller = *caller;
    r->after = after < 0 ? 0 : after < f->newest ? after : f->newest;
    r->page = NULL;
    f->n_readers++;
    f->n_inside += r->is_inside;
    reader_move(r, FEED_IDLE, &f->due);
    feed_notify_soon(f);
}

void feed_leave(struct feed *f, struct feed_reader *r)
{
    struct feed_page *p = r->page;

    if (r->state == FEED_AWAY)
        return;
    if (p && r->state == FEED_READS)
        p->reader = NULL; /* the store has it; on_feed_page frees it */
    else if (p)
        page_free(p);
    r->page = NULL;
    reader_move(r, FEED_AWAY, NULL);
    f->n_readers--;
    f->n_inside -= r->is_inside;
}

bool feed_next(struct feed *f, struct feed_reader *r, struct feed_entry *out)
{
    size_t steps = STEPS_PER_NEXT;

    assert(r->state != FEED_AWAY);
    if (r->state == FEED_HUNGRY || r->state == FEED_READS)
        return false;
    switch (reader_find_next(f, r, out, &steps)) {
    case SEES_ONE:
        reader_move(r, FEED_TOLD, NULL);
        r->after = out->seq;
        return true;
    case SEES_ALL: reader_move(r, FEED_IDLE, &f->waiting); break;
    case SEES_OLDER:
        reader_move(r, FEED_HUNGRY, &f->hungry);
        feed_serve_hungry(f);
        break;
    case IS_TIRED:
        reader_move(r, FEED_IDLE, &f->due);
        feed_notify_soon(f);
        break;
    }
    return false;
}

/* Commits. */

static void feed_note_insert(struct feed *f, const struct tx_op *op)
{
    struct feed_entry e;
    struct value values[N_FEED_COLUMNS];
    struct row row = {.values = values};

    for (int i = 0; i < N_FEED_COLUMNS; i++)
        values[i] = tx_value(op, (uint8_t)i);
    values[FEED_SEQ] = value_int(op->seq);
    feed_from_row(&e, &row);
    assert(e.seq > f->newest);
    feed_ring_add(&f->ring, &e);
    f->newest = e.seq;
    f->entries_total++;
}

/* Pruned entries must not be seen, and below the ring the store has the truth.
 * So the front of the ring may always go. */
static void feed_note_prune(struct feed *f, const struct tx_op *op)
{
    const struct condition *c = op->conditions;

    feed_ring_trim(&f->ring, c);
    if (op->n_rows < op->limit && !c->next && c->columns[0] == FEED_SEQ &&
        c->compare == IS_AT_MOST && c->value.i >= f->oldest)
        f->oldest = c->value.i + 1;
}

void feed_committed(struct feed *f, const struct tx *tx)
{
    int64_t newest = f->newest;

    TX_EACH(op, tx)
    {
        if (op->table != &feed_table)
            continue;
        if (op->kind == TX_INSERT)
            feed_note_insert(f, op);
        else if (op->kind == TX_PRUNE && op->conditions)
            feed_note_prune(f, op);
    }
    if (f->newest == newest)
        return;
    list_append_all(&f->due, &f->waiting);
    if (!list_is_empty(&f->due))
        feed_notify_soon(f);
}

int64_t feed_newest(const struct feed *f)
{
    return f->newest;
}

void feed_prune(struct feed *f, struct tx *tx, int64_t before_ms, int64_t rows,
                size_t limit)
{
    struct tx_op *op;

    if (before_ms > 0) {
        op = tx_prune(tx, &feed_table, limit);
        tx_if(op, FEED_AT_MS, IS_LESS, value_int(before_ms));
    }
    if (rows > 0 && f->newest - rows >= f->oldest) {
        op = tx_prune(tx, &feed_table, limit);
        tx_if(op, FEED_SEQ, IS_AT_MOST, value_int(f->newest - rows));
    }
}

struct feed_stats feed_stats(const struct feed *f)
{
    return (struct feed_stats){
        .entries_total = f->entries_total,
        .newest = f->newest,
        .readers = (int64_t)(f->n_readers - f->n_inside),
        .pages_total = f->pages_total,
        .pages = (int64_t)f->n_pages,
        .ring_entries = (int64_t)f->ring.n,
        .ring_bytes = (int64_t)f->ring.bytes,
    };
}

/* Life. */

/* The first seq in that order; zero: the feed is empty. */
static enum err feed_find_seq(struct feed *f, bool is_descending, int64_t *seq)
{
    struct query q;
    enum err e;

    query_init(&q, &feed_table, 1);
    query_order(&q, FEED_SEQ, is_descending);
    e = store_look(f->store, &q);
    *seq = !e && q.rows ? row_int(q.rows, FEED_SEQ) : 0;
    query_fini(&q);
    return e;
}

struct feed *feed_new(struct loop *loop, struct log *log, struct store *store,
                      struct why *why)
{
    struct feed *f = mem_new(sizeof(*f));
    enum err e;

    f->loop = loop;
    f->log = log;
    f->store = store;
    list_init(&f->waiting);
    list_init(&f->due);
    list_init(&f->hungry);
    list_init(&f->pages);
    f->news.run = feed_notify_due;
    f->pause.fire = on_feed_pause_over;
    e = feed_find_seq(f, false, &f->oldest);
    if (!e)
        e = feed_find_seq(f, true, &f->newest);
    f->ring.from = f->newest + 1;
    if (!e)
        return f;
    why_err(why, e, "cannot read the feed: %s", err_row(e)->wording);
    free(f);
    return NULL;
}

void feed_free(struct feed *f)
{
    struct list_node *n;

    if (!f)
        return;
    assert(f->n_readers == 0);
    loop_not_at_end(&f->news);
    loop_timer_cancel(f->loop, &f->pause);
    while ((n = list_pop(&f->pages)))
        LIST_OF(n, struct feed_page, node)->feed = NULL;
    feed_ring_fini(&f->ring);
    free(f);
}
