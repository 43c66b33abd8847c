/* Removes expired rows from the store for every module that stores something:
 * a limited number of rows of each table at once, so that nothing waits for it.
 * If more are left, the next batch is in the next turn, otherwise a minute
 * later. Unfinished work is never removed. */
#include "walk/internal.h"

enum {
    FIRST_MS = 10 * 1000,
    AGAIN_MS = 60 * 1000,
    ROWS = 500, /* removed at once, of each table */
};

static void on_tidied(struct tx *tx, void *ctx)
{
    struct walk *w = ctx;
    bool there_is_more = false;
    size_t n = 0;

    TX_EACH(op, tx)
    {
        n += op->n_rows;
        there_is_more |= op->n_rows == ROWS;
    }
    if (tx->result != TX_COMMITTED)
        log_warn(w->opts.log, "walk.not_tidied",
                 LOG_C("because", err_row(tx->err)->wording));
    else if (n)
        log_info(w->opts.log, "walk.tidied", LOG_I("rows", (int64_t)n));
    there_is_more &= tx->result == TX_COMMITTED;
    tx_fini(tx);
    loop_timer_set(w->opts.loop, &w->tidy.timer, there_is_more ? 0 : AGAIN_MS);
}

static void remove_old(struct walk *w)
{
    const struct walk_opts *o = &w->opts;
    struct tidy *t = &w->tidy;
    const struct tasks_keep *keep = &t->keep;
    /* Counts of a tree stay as long as its tasks may exist. */
    int64_t counts_ms =
        keep->oldest_ms < keep->before_ms ? keep->oldest_ms : keep->before_ms;

    t->keep.needed_ms = delegation_needed_ms(w->delegations);
    tx_init(&t->tx);
    tasks_prune(w->tasks, &t->tx, keep);
    feed_prune(o->feed, &t->tx, keep->before_ms, keep->rows, ROWS);
    access_prune(o->access, &t->tx, keep->before_ms, ROWS);
    registry_prune(o->registry, &t->tx, keep->before_ms, ROWS);
    ledger_prune(&t->tx, counts_ms, ROWS);
    gatekeeper_prune(w->gatekeeper, &t->tx, keep->before_ms, ROWS);
    delegation_prune(w->delegations, &t->tx, t->at_ms, keep->before_ms, ROWS);
    if (o->learning)
        learning_prune(o->learning, &t->tx, &t->learning_keep);
    store_submit(o->store, &t->tx, on_tidied, w);
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
    struct walk *w = ctx;

    w->tidy.learning_keep.first_outcome = first_row_number(q);
    remove_old(w);
}

static void on_first_decision(struct query *q, void *ctx)
{
    struct walk *w = ctx;

    w->tidy.learning_keep.first_decision = first_row_number(q);
    learning_first(&w->tidy.oldest, &outcome_table);
    store_read(w->opts.store, &w->tidy.oldest, on_first_outcome, w);
}

static void on_oldest_task(struct query *q, void *ctx)
{
    struct walk *w = ctx;
    struct tidy *t = &w->tidy;
    const struct walk_opts *o = &w->opts;

    t->keep = (struct tasks_keep){.now_ms = t->at_ms,
                                  .before_ms = t->at_ms - o->retention_ms,
                                  .rows = o->retention_rows,
                                  .limit = ROWS};
    if (!q->err)
        t->keep.oldest_ms =
            q->rows ? row_int(q->rows, TASK_CREATED_MS) : t->at_ms;
    query_fini(q);
    if (!o->learning) {
        remove_old(w);
        return;
    }
    t->learning_keep =
        (struct learning_keep){.before_ms = t->keep.before_ms,
                               .unfinished_ms = t->keep.oldest_ms,
                               .rows = t->keep.rows,
                               .limit = ROWS};
    learning_first(&t->oldest, &decision_table);
    store_read(o->store, &t->oldest, on_first_decision, w);
}

static void on_tidy_timer(struct timer *timer)
{
    struct walk *w = LIST_OF(timer, struct walk, tidy.timer);

    w->tidy.at_ms = loop_wall_ms(w->opts.loop);
    tasks_oldest(&w->tidy.oldest);
    store_read(w->opts.store, &w->tidy.oldest, on_oldest_task, w);
}

void tidy_start(struct walk *w)
{
    w->tidy.timer.fire = on_tidy_timer;
    loop_timer_set(w->opts.loop, &w->tidy.timer, FIRST_MS);
}
