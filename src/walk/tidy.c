/* Removes a limited number of rows of each table at once, so that nothing waits
 * for it. If more are left, the next batch is in the next turn, otherwise a
 * minute later. */
#include "walk/tidy.h"

#include "choose/layers/choose.h"

enum {
    FIRST_MS = 10 * 1000,
    AGAIN_MS = 60 * 1000,
    ROWS = 500, /* removed at once, of each table */
};

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
    loop_timer_set(t->opts.loop, &t->timer, there_is_more ? 0 : AGAIN_MS);
}

static void remove_old(struct tidy *t)
{
    const struct tidy_opts *o = &t->opts;
    const struct tasks_keep *keep = &t->keep;
    /* Counts of a tree stay as long as its tasks may exist. */
    int64_t counts_ms =
        keep->oldest_ms < keep->before_ms ? keep->oldest_ms : keep->before_ms;

    t->keep.needed_ms = delegation_needed_ms(o->delegations);
    tx_init(&t->tx);
    tasks_prune(o->tasks, &t->tx, keep);
    feed_prune(o->feed, &t->tx, keep->before_ms, keep->rows, ROWS);
    access_prune(o->access, &t->tx, keep->before_ms, ROWS);
    registry_prune(o->registry, &t->tx, keep->before_ms, ROWS);
    ledger_prune(&t->tx, counts_ms, ROWS);
    gatekeeper_prune(o->gatekeeper, &t->tx, keep->before_ms, ROWS);
    delegation_prune(o->delegations, &t->tx, t->at_ms, keep->before_ms, ROWS);
    if (o->learning)
        learning_prune(o->learning, &t->tx, &t->learning_keep);
    store_submit(o->store, &t->tx, on_tidied, t);
}

/* The number in the first row; zero if the table cannot be read, so that
 * nothing is removed. */
static int64_t first_row_number(struct query *q)
{
    int64_t first = !q->err && q->rows ? row_int(q->rows, 0) : 0;

    query_fini(q);
    return first;
}

static void on_first_outcome(struct query *q, void *ctx)
{
    struct tidy *t = ctx;

    t->learning_keep.first_outcome = first_row_number(q);
    remove_old(t);
}

static void on_first_decision(struct query *q, void *ctx)
{
    struct tidy *t = ctx;

    t->learning_keep.first_decision = first_row_number(q);
    learning_first(&t->oldest, &outcome_table);
    store_read(t->opts.store, &t->oldest, on_first_outcome, t);
}

static void on_oldest_task(struct query *q, void *ctx)
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
    if (!o->learning) {
        remove_old(t);
        return;
    }
    t->learning_keep =
        (struct learning_keep){.before_ms = t->keep.before_ms,
                               .unfinished_ms = t->keep.oldest_ms,
                               .rows = t->keep.rows,
                               .limit = ROWS};
    learning_first(&t->oldest, &decision_table);
    store_read(o->store, &t->oldest, on_first_decision, t);
}

static void on_tidy_timer(struct timer *timer)
{
    struct tidy *t = LIST_OF(timer, struct tidy, timer);

    t->at_ms = loop_wall_ms(t->opts.loop);
    tasks_oldest(&t->oldest);
    store_read(t->opts.store, &t->oldest, on_oldest_task, t);
}

void tidy_init(struct tidy *t, const struct tidy_opts *opts)
{
    *t = (struct tidy){.opts = *opts, .timer.fire = on_tidy_timer};
    loop_timer_set(t->opts.loop, &t->timer, FIRST_MS);
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
