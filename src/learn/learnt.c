/* A checkpoint is one tx, because half of one would count some outcomes twice:
 * a row that includes them beside a number that does not. It is small, since it
 * is written a second after the first change or after LEARNT_WRITE_BEHIND
 * outcomes.
 *
 * Rejected: the number of its last outcome in every row. It makes rows
 * independent of each other, but every step of the fold would have to ask which
 * rows it may touch. */
#include "learn/learnt.h"

#include <assert.h>

#include "base/fault.h"

enum {
    PAGE = 100,      /* outcomes read at once */
    ROWS = 500,      /* of the state: read at once, and written at once for a
                      * new state */
    AGAIN_MS = 1000, /* delay of a retry */
};

static void write_soon(struct learnt *l);
static void fold_on(struct learnt_fold *f);
static void fold_fails(struct learnt_fold *f, enum err e);
static void read_voids(struct learnt *l);
static void drop_voids(struct learnt *l);
static void begin_rebuilding(struct learnt *l);
static void learnt_on_void(struct learnt *l);

static struct learn *new_state(const struct learnt *l)
{
    return learn_new(&l->settings, l->model_hash, l->quick_dims, l->seed);
}

static void learnt_set_timer(struct learnt *l, struct timer *t,
                             int64_t delay_ms)
{
    if (!l->is_stopping)
        loop_timer_set(l->loop, t, delay_ms);
}

/* Writing. */

/* A callback may begin to wait again, and use the list. */
static void call_rebuilt(struct learnt *l, enum err e)
{
    struct learnt_waiting waiting[LEARNT_WAITING_MAX];
    size_t n = l->n_waiting;
    int64_t outcomes = l->rebuilding.n;

    memcpy(waiting, l->waiting, n * sizeof(*waiting));
    l->is_rebuilding = false;
    l->n_waiting = 0;
    for (size_t i = 0; i < n; i++)
        waiting[i].done(waiting[i].ctx, e, outcomes);
}

static void on_rows_written(struct tx *tx, void *ctx)
{
    struct learnt *l = ctx;
    bool is_done = tx->result == TX_COMMITTED;
    enum err e = tx->err;

    tx_fini(tx);
    l->is_writing = false;
    learn_written(l->learn, is_done);
    if (!is_done) {
        log_warn(l->log, "learning.not_written",
                 LOG_C("because", err_row(e)->wording));
        if (!l->rebuilding.into)
            call_rebuilt(l, e);
        learnt_set_timer(l, &l->write_timer, AGAIN_MS);
    } else if (l->is_last) {
        l->is_new = false;
        l->written = l->taken;
        l->behind -= l->behind_taken;
        if (!l->rebuilding.into)
            call_rebuilt(l, OK);
        if (l->behind)
            write_soon(l);
    } else {
        learnt_set_timer(l, &l->write_timer, 0);
    }
    if (l->is_ready)
        fold_on(&l->rebuilding);
}

/* All changes at once, except for a new state: the rows then say so. */
static void write_now(struct learnt *l)
{
    if (l->is_writing || l->must_rebuild)
        return;
    tx_init(&l->tx);
    if (!learn_dirty(l->learn, &l->tx, l->is_new ? ROWS : SIZE_MAX,
                     &l->is_last)) {
        tx_fini(&l->tx);
        l->behind = 0;
        return;
    }
    l->taken = learn_version(l->learn);
    l->behind_taken = l->behind;
    l->is_writing = true;
    store_submit(l->store, &l->tx, on_rows_written, l);
}

static void on_write_timer(struct timer *t)
{
    write_now(LIST_OF(t, struct learnt, write_timer));
}

static void write_soon(struct learnt *l)
{
    if (l->is_writing)
        return; /* on_rows_written looks again */
    if (l->behind >= LEARNT_WRITE_BEHIND)
        learnt_set_timer(l, &l->write_timer, 0);
    else if (!timer_is_set(&l->write_timer))
        learnt_set_timer(l, &l->write_timer, LEARNT_WRITE_MS);
}

/* Applying. */

/* voids: NULL if none can cover the outcome. */
static enum err learnt_apply(struct learnt *l, struct learn *into,
                             struct learn_voids *voids, struct outcome *o)
{
    enum err e = FAULT("learnt.apply") ? ERR_NOMEM : OK;
    bool is_void = false;

    if (!e && voids)
        e = learn_voids_judge(voids, o, &is_void);
    if (!e && is_void)
        learn_skip(into, o->seq);
    else if (!e)
        e = learn_apply(into, o);
    if (!e && into == l->learn)
        l->behind++;
    return e;
}

/* Retry until there is memory. */
static void learnt_catch_up(struct learnt *l)
{
    l->catching_up.into = l->learn;
    learnt_set_timer(l, &l->catch_up_timer, AGAIN_MS);
}

static void on_catch_up_timer(struct timer *t)
{
    fold_on(&LIST_OF(t, struct learnt, catch_up_timer)->catching_up);
}

void learnt_take(struct learnt *l, const struct outcome *o)
{
    struct outcome own = *o;

    assert(o->seq > l->newest);
    l->newest = o->seq;
    if (o->kind == OUTCOME_VOID)
        learnt_on_void(l);
    if (l->catching_up.into)
        return; /* the fold will reach this one */
    if (learnt_apply(l, l->learn, NULL, &own) != OK) {
        log_warn(l->log, "learning.late",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
        learnt_catch_up(l);
    }
    write_soon(l);
}

/* Folding what is in the store. */

void learnt_ask_outcomes(struct query *q, int64_t after)
{
    query_init(q, &outcome_table, PAGE);
    query_if(q, OUTCOME_SEQ, IS_MORE, value_int(after));
    query_order(q, OUTCOME_SEQ, false);
}

void learnt_ask_voids(struct query *q, int64_t after)
{
    query_init(q, &outcome_table, PAGE);
    query_if(q, OUTCOME_KIND, IS, value_int(OUTCOME_VOID));
    query_if(q, OUTCOME_SEQ, IS_MORE, value_int(after));
    query_order(q, OUTCOME_SEQ, false);
}

static enum err collect_voids(struct learnt *l, const struct query *q)
{
    enum err e = q->err;

    for (const struct row *r = q->rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        l->last_void = o.seq;
        l->voided_ms = o.at_ms > l->voided_ms ? o.at_ms : l->voided_ms;
        e = learn_voids_add(l->voids, &o);
    }
    return e;
}

static enum err apply_page(struct learnt *l, struct learnt_fold *f)
{
    enum err e = f->query.err;

    for (const struct row *r = f->query.rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        if (o.seq <= learn_version(f->into))
            continue; /* another state has replaced the one of the query */
        e = learnt_apply(l, f->into, f->voids, &o);
    }
    f->n = learn_stats(f->into).applied_total; /* voided ones do not count */
    return e;
}

/* No tx of the old state is pending. */
static void replace_state(struct learnt *l)
{
    learn_free(l->learn);
    l->learn = l->rebuilding.into;
    l->rebuilding.into = NULL;
    l->is_ready = false;
    l->must_rebuild = false;
    drop_voids(l);
    l->is_new = true;
    l->behind = l->rebuilding.n;
    if (l->catching_up.into)
        l->catching_up.into = l->learn;
    learn_rewrite(l->learn);
    log_info(l->log, "learning.rebuilt", LOG_I("outcomes", l->rebuilding.n));
    learnt_set_timer(l, &l->write_timer, 0);
}

static void fold_is_over(struct learnt_fold *f)
{
    struct learnt *l = f->learnt;

    if (f == &l->rebuilding && l->is_overtaken) {
        begin_rebuilding(l);
    } else if (f == &l->rebuilding) {
        l->is_ready = true;
        if (!l->is_writing)
            replace_state(l);
    } else {
        f->into = NULL;
        write_soon(l);
    }
}

static void fold_fails(struct learnt_fold *f, enum err e)
{
    struct learnt *l = f->learnt;

    if (f == &l->rebuilding) {
        learn_free(f->into);
        f->into = NULL;
        l->is_ready = false;
        drop_voids(l);
        call_rebuilt(l, e);
        if (l->must_rebuild)
            learnt_set_timer(l, &l->void_timer, AGAIN_MS);
    } else {
        learnt_catch_up(l);
    }
}

static void on_outcome_page(struct query *q, void *ctx)
{
    struct learnt_fold *f = ctx;
    struct learnt *l = f->learnt;
    bool is_over;
    enum err e;

    f->is_reading = false;
    e = apply_page(l, f);
    is_over = !q->has_more && f->upto == l->newest;
    query_fini(q);
    if (l->is_stopping)
        e = ERR_STOPPING;
    if (e)
        fold_fails(f, e);
    else if (is_over)
        fold_is_over(f);
    else
        fold_on(f);
}

/* Read the next page, unless a query is pending. A state that was ready may
 * have fallen behind while it waited. */
static void fold_on(struct learnt_fold *f)
{
    struct learnt *l = f->learnt;

    if (f->is_reading || !f->into)
        return;
    if (f == &l->rebuilding)
        l->is_ready = false;
    learnt_ask_outcomes(&f->query, learn_version(f->into));
    f->upto = l->newest;
    f->is_reading = true;
    store_read(l->store, &f->query, on_outcome_page, f);
}

/* Rebuilding. */

static void drop_voids(struct learnt *l)
{
    learn_voids_free(l->voids);
    l->voids = l->rebuilding.voids = NULL;
}

static void on_void_page(struct query *q, void *ctx)
{
    struct learnt_fold *f = ctx;
    struct learnt *l = f->learnt;
    bool has_more = q->has_more;
    enum err e = collect_voids(l, q);

    f->is_reading = false;
    query_fini(q);
    if (l->is_stopping)
        e = ERR_STOPPING;
    if (e) {
        fold_fails(f, e);
    } else if (has_more) {
        read_voids(l);
    } else {
        f->voids = l->voids;
        fold_on(f);
    }
}

static void read_voids(struct learnt *l)
{
    learnt_ask_voids(&l->rebuilding.query, l->last_void);
    l->rebuilding.is_reading = true;
    store_read(l->store, &l->rebuilding.query, on_void_page, &l->rebuilding);
}

/* Start over, with the present voids. */
static void begin_rebuilding(struct learnt *l)
{
    struct learnt_fold *f = &l->rebuilding;

    learn_free(f->into);
    drop_voids(l);
    l->is_rebuilding = true;
    l->is_ready = l->is_overtaken = false;
    l->last_void = 0;
    f->n = 0;
    f->into = new_state(l);
    l->voids = learn_voids_new(l->seed);
    read_voids(l);
}

static void on_void_timer(struct timer *t)
{
    struct learnt *l = LIST_OF(t, struct learnt, void_timer);

    if (l->must_rebuild && !l->rebuilding.into)
        begin_rebuilding(l);
}

static void learnt_on_void(struct learnt *l)
{
    l->must_rebuild = true;
    l->is_overtaken = true;
    if (!l->rebuilding.into && !l->is_stopping) /* else the next start does */
        begin_rebuilding(l);
}

static enum err wait_rebuilt(struct learnt *l, learnt_rebuilt *done, void *ctx)
{
    if (l->n_waiting == LEARNT_WAITING_MAX)
        return ERR_OVERLOADED;
    l->waiting[l->n_waiting++] = (struct learnt_waiting){done, ctx};
    return OK;
}

enum err learnt_rebuild(struct learnt *l, learnt_rebuilt *done, void *ctx)
{
    if (l->is_stopping)
        return ERR_STOPPING;
    if (l->rebuilding.into || l->is_rebuilding)
        return ERR_BUSY;
    begin_rebuilding(l);
    /* No other call waits, so there is room. */
    return wait_rebuilt(l, done, ctx);
}

enum err learnt_await(struct learnt *l, learnt_rebuilt *done, void *ctx)
{
    if (l->is_stopping)
        return ERR_STOPPING;
    if (l->is_rebuilding)
        return wait_rebuilt(l, done, ctx);
    if (l->must_rebuild)
        return ERR_NOMEM;
    done(ctx, OK, learn_stats(l->learn).applied_total);
    return OK;
}

/* Start. */

/* Load the rows of one kind, in the order of their keys. ERR_SYNTAX: one of
 * them is not valid. */
static enum err load_kind(struct learnt *l, int64_t kind)
{
    char last[512]; /* longer than any key */
    struct str after = {last, 0};
    struct query q;
    bool has_more;
    enum err e;

    do {
        query_init(&q, &learn_table, ROWS);
        query_if(&q, LEARN_KIND, IS, value_int(kind));
        if (after.n)
            query_if(&q, LEARN_KEY, IS_MORE, value_text(after));
        query_order(&q, LEARN_KEY, false);
        e = store_look(l->store, &q);
        has_more = q.has_more;
        for (const struct row *r = q.rows; r && !e; r = r->next) {
            e = learn_load_row(l->learn, r);
            after.n = row_str(r, LEARN_KEY).n;
            if (!e && after.n > sizeof(last))
                e = ERR_SYNTAX;
            if (!e)
                memcpy(last, row_str(r, LEARN_KEY).p, after.n);
        }
        query_fini(&q);
    } while (!e && has_more);
    return e;
}

/* The next kind that has rows, above this one; *is_there false: none. */
static enum err next_kind(struct learnt *l, int64_t *kind, bool *is_there)
{
    struct query q;
    enum err e;

    query_init(&q, &learn_table, 1);
    query_if(&q, LEARN_KIND, IS_MORE, value_int(*kind));
    query_order(&q, LEARN_KIND, false);
    e = store_look(l->store, &q);
    *is_there = !e && q.rows;
    if (*is_there)
        *kind = row_int(q.rows, LEARN_KIND);
    query_fini(&q);
    return e;
}

/* Kinds are loaded in their order. */
static enum err load_rows(struct learnt *l)
{
    int64_t kind = INT64_MIN;
    bool is_there = true;
    enum err e;

    while (!(e = next_kind(l, &kind, &is_there)) && is_there) {
        e = load_kind(l, kind);
        if (e)
            break;
    }
    return e;
}

/* A state that cannot be used is rebuilt from the outcomes. */
static void start_over(struct learnt *l, const char *because)
{
    log_warn(l->log, "learning.begins_anew", LOG_C("because", because));
    learn_free(l->learn);
    l->learn = new_state(l);
    l->is_new = true;
    learn_rewrite(l->learn);
}

/* All voids after that number. */
static enum err load_voids(struct learnt *l, int64_t after)
{
    bool has_more;
    enum err e;

    l->voids = learn_voids_new(l->seed);
    l->last_void = after;
    do {
        struct query q;

        learnt_ask_voids(&q, l->last_void);
        q.err = store_look(l->store, &q);
        e = collect_voids(l, &q);
        has_more = q.has_more;
        query_fini(&q);
    } while (!e && has_more);
    return e;
}

/* Rows that are older than a void are useless: they include what it covers. */
static enum err load_new_voids(struct learnt *l)
{
    int64_t version = learn_version(l->learn);
    enum err e = load_voids(l, version);

    if (e || !version || l->last_void == version)
        return e;
    drop_voids(l);
    start_over(l, "verdicts were voided");
    return load_voids(l, 0);
}

static enum err load_outcomes(struct learnt *l)
{
    bool has_more;
    enum err e;

    do {
        struct learnt_fold f = {.into = l->learn, .voids = l->voids};

        learnt_ask_outcomes(&f.query, learn_version(l->learn));
        f.query.err = store_look(l->store, &f.query);
        e = apply_page(l, &f);
        has_more = f.query.has_more;
        query_fini(&f.query);
    } while (!e && has_more);
    return e;
}

/* One column of the first outcome, or of the last one of a kind; zero: there is
 * none. */
static enum err load_edge(struct learnt *l, enum outcome_kind last_of,
                          uint8_t column, int64_t *out)
{
    struct query q;
    enum err e;

    query_init(&q, &outcome_table, 1);
    if (last_of)
        query_if(&q, OUTCOME_KIND, IS, value_int(last_of));
    query_order(&q, OUTCOME_SEQ, last_of != 0);
    e = store_look(l->store, &q);
    *out = !e && q.rows ? row_int(q.rows, column) : 0;
    query_fini(&q);
    return e;
}

enum err learnt_load(struct learnt *l, struct why *why)
{
    int64_t first;
    enum err e = load_edge(l, 0, OUTCOME_SEQ, &first);

    if (first)
        learn_kept_from(l->learn, first);
    if (!e)
        e = load_rows(l);
    if (e == ERR_SYNTAX) {
        start_over(l, "a record of what was learnt is not ours");
        e = OK;
    }
    if (!e && learn_was_shared(l->learn)) {
        log_info(l->log, "learning.upgraded",
                 LOG_C("because", "types of query are of one org now, and are "
                                  "made again from the outcomes"));
        l->is_new = true;
    }
    if (!e) /* rows that are newer than the last void do not have its time */
        e = load_edge(l, OUTCOME_VOID, OUTCOME_AT_MS, &l->voided_ms);
    if (!e)
        e = load_new_voids(l);
    if (!e)
        l->written = learn_version(l->learn);
    if (!e)
        e = load_outcomes(l);
    drop_voids(l);
    if (e)
        return why_err(why, e, "cannot read what was learnt: %s",
                       err_row(e)->wording);
    l->newest = learn_version(l->learn);
    if (l->behind || l->is_new)
        write_soon(l);
    return OK;
}

/* Start and stop. */

void learnt_init(struct learnt *l)
{
    l->catching_up.learnt = l->rebuilding.learnt = l;
    l->write_timer.fire = on_write_timer;
    l->catch_up_timer.fire = on_catch_up_timer;
    l->void_timer.fire = on_void_timer;
    l->learn = new_state(l);
}

void learnt_fini(struct learnt *l)
{
    if (!l->loop)
        return;
    assert(!l->is_writing && !l->rebuilding.is_reading &&
           !l->catching_up.is_reading);
    loop_timer_cancel(l->loop, &l->write_timer);
    loop_timer_cancel(l->loop, &l->catch_up_timer);
    loop_timer_cancel(l->loop, &l->void_timer);
    drop_voids(l);
    learn_free(l->rebuilding.into);
    learn_free(l->learn);
}

void learnt_set(struct learnt *l, const struct learn_settings *s)
{
    l->settings = *s;
    learn_set(l->learn, s);
    if (l->rebuilding.into)
        learn_set(l->rebuilding.into, s);
}

void learnt_stop(struct learnt *l)
{
    if (l->is_stopping)
        return;
    if (l->behind && !FAULT("learnt.last_words"))
        write_now(l);
    l->is_stopping = true;
    loop_timer_cancel(l->loop, &l->write_timer);
    loop_timer_cancel(l->loop, &l->catch_up_timer);
    loop_timer_cancel(l->loop, &l->void_timer);
    call_rebuilt(l, ERR_STOPPING);
}
