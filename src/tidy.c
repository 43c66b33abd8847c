/* So many rows of each table at once, so that nobody waits for it: where some
 * are left the next ones go in the next turn, else a minute later. */
#include "tidy.h"

#include "choose/choose.h"

enum {
    FIRST_MS = 10 * 1000,
    AGAIN_MS = 60 * 1000,
    ROWS = 500, /* removed at once, of each table */
};

static void tidy_in(struct tidy *t, int64_t delay_ms)
{
    if (loop_timer_set(t->opts.loop, &t->timer, delay_ms) != OK)
        log_warn(t->opts.log, "walk.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

static void on_tidied(struct tx *tx, void *ctx)
{
    struct tidy *t = ctx;
    bool there_is_more = false;
    size_t n = 0;

    TX_EACH(op, tx)
    {
        n += op->n_rows;
        there_is_more |= op->n_rows == ROWS;
    }
    if (tx->result != TX_COMMITTED)
        log_warn(t->opts.log, "walk.not_tidied",
                 LOG_C("because", err_row(tx->err)->wording));
    else if (n)
        log_info(t->opts.log, "walk.tidied", LOG_I("rows", (int64_t)n));
    there_is_more &= tx->result == TX_COMMITTED;
    tx_fini(tx);
    tidy_in(t, there_is_more ? 0 : AGAIN_MS);
}

static void remove_old(struct tidy *t)
{
    const struct tidy_opts *o = &t->opts;
    const struct tasks_keep *keep = &t->keep;
    /* The counts of a tree stay as long as its tasks may be there. */
    int64_t counts_ms =
        keep->oldest_ms < keep->before_ms ? keep->oldest_ms : keep->before_ms;

    t->keep.needed_ms = hire_needed_ms(o->hires);
    tx_init(&t->tx);
    tasks_prune(o->tasks, &t->tx, keep);
    feed_prune(o->feed, &t->tx, keep->before_ms, keep->rows, ROWS);
    access_prune(o->access, &t->tx, keep->before_ms, ROWS);
    registry_prune(o->registry, &t->tx, keep->before_ms, ROWS);
    ledger_prune(&t->tx, counts_ms, ROWS);
    broker_prune(o->broker, &t->tx, keep->before_ms, keep->rows, ROWS);
    hire_prune(o->hires, &t->tx, t->at_ms, keep->before_ms, ROWS);
    if (o->lessons)
        lessons_prune(o->lessons, &t->tx, &t->lessons_keep);
    store_submit(o->store, &t->tx, on_tidied, t);
}

/* The first number; nothing of a table that cannot be read goes. */
static int64_t first_of(struct query *q)
{
    int64_t first = !q->err && q->rows ? row_int(q->rows, 0) : 0;

    query_fini(q);
    return first;
}

static void on_first_outcome(struct query *q, void *ctx)
{
    struct tidy *t = ctx;

    t->lessons_keep.first_outcome = first_of(q);
    remove_old(t);
}

static void on_first_decision(struct query *q, void *ctx)
{
    struct tidy *t = ctx;

    t->lessons_keep.first_decision = first_of(q);
    lessons_first(&t->oldest, &outcome_table);
    store_read(t->opts.store, &t->oldest, on_first_outcome, t);
}

static void on_oldest(struct query *q, void *ctx)
{
    struct tidy *t = ctx;
    const struct tidy_opts *o = &t->opts;

    t->keep = (struct tasks_keep){.now_ms = t->at_ms,
                                  .before_ms = t->at_ms - o->retention_ms,
                                  .rows = o->retention_rows,
                                  .limit = ROWS};
    if (!q->err)
        t->keep.oldest_ms =
            q->rows ? row_int(q->rows, TASK_CREATED_MS) : t->at_ms;
    query_fini(q);
    if (!o->lessons) {
        remove_old(t);
        return;
    }
    t->lessons_keep = (struct lessons_keep){.before_ms = t->keep.before_ms,
                                            .unfinished_ms = t->keep.oldest_ms,
                                            .rows = t->keep.rows,
                                            .limit = ROWS};
    lessons_first(&t->oldest, &decision_table);
    store_read(o->store, &t->oldest, on_first_decision, t);
}

static void on_timer(struct timer *timer)
{
    struct tidy *t = LIST_OF(timer, struct tidy, timer);

    t->opts.on_tidy(t->opts.ctx);
    t->at_ms = loop_wall_ms(t->opts.loop);
    tasks_oldest(&t->oldest);
    store_read(t->opts.store, &t->oldest, on_oldest, t);
}

void tidy_init(struct tidy *t, const struct tidy_opts *opts)
{
    *t = (struct tidy){.opts = *opts, .timer.fire = on_timer};
    tidy_in(t, FIRST_MS);
}

void tidy_fini(struct tidy *t)
{
    if (t->opts.loop)
        loop_timer_cancel(t->opts.loop, &t->timer);
}

void tidy_set(struct tidy *t, int64_t retention_ms, int64_t retention_rows)
{
    t->opts.retention_ms = retention_ms;
    t->opts.retention_rows = retention_rows;
}
