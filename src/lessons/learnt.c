/* A picture is one tx, because half of one would count some outcomes twice: a
 * row that has seen them beside a number that has not. It is small, since it is
 * taken a second after the first change or after LEARNT_WRITE_BEHIND outcomes.
 *
 * Turned down: the number of its last outcome in every row. It makes rows
 * independent of each other, and every fold step a question of which rows it
 * may touch. */
#include "lessons/learnt.h"

#include <assert.h>

#include "base/fault.h"

enum {
    PAGE = 100,      /* outcomes read at once */
    ROWS = 500,      /* of the state: read at once; written at once where it
                      * is a new one */
    AGAIN_MS = 1000, /* until what was refused is tried again */
};

static void write_soon(struct learnt *l);
static void fold_on(struct learnt_fold *f);

static struct learn *new_state(const struct learnt *l)
{
    return learn_new(&l->settings, l->model_hash, l->seed);
}

static void set_timer(struct learnt *l, struct timer *t, int64_t delay_ms)
{
    if (!l->is_stopping && loop_timer_set(l->loop, t, delay_ms) != OK)
        log_warn(l->log, "learning.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

/* Writing. */

/* The tx is back: what waited for it goes on. */
static void is_back(struct learnt *l)
{
    l->is_writing = false;
    if (l->is_ready)
        fold_on(&l->rebuilding);
}

static void tell_rebuilt(struct learnt *l, enum err e)
{
    learnt_rebuilt *done = l->rebuilt;

    l->rebuilt = NULL;
    if (done)
        done(l->rebuilt_ctx, e, l->rebuilding.n);
}

static void not_written(struct learnt *l, enum err e)
{
    log_warn(l->log, "learning.not_written",
             LOG_C("because", err_row(e)->wording));
    if (!l->rebuilding.into)
        tell_rebuilt(l, e);
    set_timer(l, &l->write_timer, AGAIN_MS);
}

static void all_is_written(struct learnt *l)
{
    l->is_new = false;
    l->written = l->taken;
    l->behind -= l->behind_taken;
    if (!l->rebuilding.into)
        tell_rebuilt(l, OK);
    if (l->behind)
        write_soon(l);
}

static void on_written(struct tx *tx, void *ctx)
{
    struct learnt *l = ctx;
    bool is_done = tx->result == TX_COMMITTED;
    enum err e = tx->err;

    tx_fini(tx);
    l->is_writing = false;
    learn_written(l->learn, is_done);
    if (!is_done)
        not_written(l, e);
    else if (l->is_last)
        all_is_written(l);
    else
        set_timer(l, &l->write_timer, 0);
    is_back(l);
}

/* All at once, but for a state that is new: which the rows say. */
static void write_now(struct learnt *l)
{
    if (l->is_writing)
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
    store_submit(l->store, &l->tx, on_written, l);
}

static void on_write_timer(struct timer *t)
{
    write_now(LIST_OF(t, struct learnt, write_timer));
}

static void write_soon(struct learnt *l)
{
    if (l->is_writing)
        return; /* and then looks again */
    if (l->behind >= LEARNT_WRITE_BEHIND)
        set_timer(l, &l->write_timer, 0);
    else if (!timer_is_set(&l->write_timer))
        set_timer(l, &l->write_timer, LEARNT_WRITE_MS);
}

/* Applying. */

static enum err apply(struct learnt *l, struct learn *into,
                      const struct outcome *o)
{
    enum err e = FAULT("learnt.apply") ? ERR_NOMEM : learn_apply(into, o);

    if (!e && into == l->learn)
        l->behind++;
    return e;
}

/* Until memory is there again. */
static void catch_up(struct learnt *l)
{
    l->catching_up.into = l->learn;
    set_timer(l, &l->catch_up_timer, AGAIN_MS);
}

static void on_catch_up_timer(struct timer *t)
{
    fold_on(&LIST_OF(t, struct learnt, catch_up_timer)->catching_up);
}

void learnt_take(struct learnt *l, const struct outcome *o)
{
    assert(o->seq > l->newest);
    l->newest = o->seq;
    if (l->catching_up.into)
        return; /* it will come to this one */
    if (apply(l, l->learn, o) != OK) {
        log_warn(l->log, "learning.late",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
        catch_up(l);
    }
    write_soon(l);
}

/* Folding what is in the store. */

static void ask_outcomes(struct query *q, const struct learn *l)
{
    query_init(q, &outcome_table, PAGE);
    query_if(q, OUTCOME_SEQ, IS_MORE, value_int(learn_version(l)));
    query_order(q, OUTCOME_SEQ, false);
}

static enum err apply_page(struct learnt *l, struct learnt_fold *f)
{
    enum err e = f->query.err;

    for (const struct row *r = f->query.rows; r && !e; r = r->next) {
        struct outcome o;

        outcome_from_row(r, &o);
        if (o.seq <= learn_version(f->into))
            continue; /* another state came between */
        e = apply(l, f->into, &o);
        f->n += !e;
    }
    return e;
}

/* Nothing of the old state is on its way to the disk here. */
static void take_place(struct learnt *l)
{
    learn_free(l->learn);
    l->learn = l->rebuilding.into;
    l->rebuilding.into = NULL;
    l->is_ready = false;
    l->is_new = true;
    l->behind = l->rebuilding.n;
    if (l->catching_up.into)
        l->catching_up.into = l->learn;
    learn_rewrite(l->learn);
    log_info(l->log, "learning.rebuilt", LOG_I("outcomes", l->rebuilding.n));
    set_timer(l, &l->write_timer, 0);
}

static void fold_is_over(struct learnt_fold *f)
{
    struct learnt *l = f->learnt;

    if (f == &l->rebuilding) {
        l->is_ready = true;
        if (!l->is_writing)
            take_place(l);
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
        tell_rebuilt(l, e);
    } else {
        catch_up(l);
    }
}

static void on_page(struct query *q, void *ctx)
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

/* The next page; none is asked for while one is on its way. What was ready
 * to take its place may have fallen behind while it waited. */
static void fold_on(struct learnt_fold *f)
{
    struct learnt *l = f->learnt;

    if (f->is_reading || !f->into)
        return;
    if (f == &l->rebuilding)
        l->is_ready = false;
    ask_outcomes(&f->query, f->into);
    f->upto = l->newest;
    f->is_reading = true;
    store_read(l->store, &f->query, on_page, f);
}

enum err learnt_rebuild(struct learnt *l, learnt_rebuilt *done, void *ctx)
{
    struct learnt_fold *f = &l->rebuilding;

    if (l->is_stopping)
        return ERR_STOPPING;
    if (f->into || l->rebuilt)
        return ERR_BUSY;
    f->into = new_state(l);
    if (!f->into)
        return ERR_NOMEM;
    f->n = 0;
    l->rebuilt = done;
    l->rebuilt_ctx = ctx;
    fold_on(f);
    return OK;
}

/* Starting. */

/* The rows of one kind, in the order of their keys. ERR_SYNTAX: one of them
 * cannot be understood. */
static enum err load_kind(struct learnt *l, int64_t kind)
{
    char last[512]; /* no key is as long */
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

/* The next kind of row that there is, above this one; false: none is left. */
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

/* In the order of the kinds. */
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

/* What cannot be read is made again from the outcomes. */
static enum err begin_anew(struct learnt *l)
{
    log_warn(l->log, "learning.begins_anew",
             LOG_C("because", "a record of what was learnt is not ours"));
    learn_free(l->learn);
    l->learn = new_state(l);
    if (!l->learn)
        return ERR_NOMEM;
    l->is_new = true;
    learn_rewrite(l->learn);
    return OK;
}

static enum err load_outcomes(struct learnt *l)
{
    bool has_more;
    enum err e;

    do {
        struct learnt_fold f = {.into = l->learn};

        ask_outcomes(&f.query, l->learn);
        f.query.err = store_look(l->store, &f.query);
        e = apply_page(l, &f);
        has_more = f.query.has_more;
        query_fini(&f.query);
    } while (!e && has_more);
    return e;
}

enum err learnt_load(struct learnt *l, struct why *why)
{
    enum err e = load_rows(l);

    if (e == ERR_SYNTAX)
        e = begin_anew(l);
    if (!e)
        l->written = learn_version(l->learn);
    if (!e)
        e = load_outcomes(l);
    if (e)
        return why_err(why, e, "cannot read what was learnt: %s",
                       err_row(e)->wording);
    l->newest = learn_version(l->learn);
    if (l->behind || l->is_new)
        write_soon(l);
    return OK;
}

/* Life. */

enum err learnt_init(struct learnt *l)
{
    l->catching_up.learnt = l->rebuilding.learnt = l;
    l->write_timer.fire = on_write_timer;
    l->catch_up_timer.fire = on_catch_up_timer;
    l->learn = FAULT("learnt.new") ? NULL : new_state(l);
    return l->learn ? OK : ERR_NOMEM;
}

void learnt_fini(struct learnt *l)
{
    if (!l->loop)
        return;
    assert(!l->is_writing && !l->rebuilding.is_reading &&
           !l->catching_up.is_reading);
    loop_timer_cancel(l->loop, &l->write_timer);
    loop_timer_cancel(l->loop, &l->catch_up_timer);
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
    tell_rebuilt(l, ERR_STOPPING);
}
