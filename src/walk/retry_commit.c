#include "walk/retry_commit.h"

enum {
    AGAIN_MS = 500,      /* delay before the next try */
    AGAIN_AT_ONCE = 256, /* changes per try */
    SAY_FULL_MS = 10 * 1000,
};

static size_t task_change_bytes(const struct task_change *c)
{
    return c->result.text.n + c->result.metadata.n;
}

/* A delay of zero moves a try that is already scheduled. */
static void retry_commit_in(struct retry_commit *u, int64_t delay_ms)
{
    if (delay_ms == 0 || !timer_is_set(&u->timer))
        loop_timer_set(u->loop, &u->timer, delay_ms);
}

static void on_retry_commit_timer(struct timer *t)
{
    struct retry_commit *u = LIST_OF(t, struct retry_commit, timer);
    struct list_node *n;

    for (int i = 0; i < AGAIN_AT_ONCE && (n = list_pop(&u->held)); i++) {
        struct task_change *c = LIST_OF(n, struct task_change, node);

        u->n--;
        u->bytes -= task_change_bytes(c);
        u->again(u->ctx, c);
    }
    if (!list_is_empty(&u->held))
        retry_commit_in(u, AGAIN_MS);
}

void retry_commit_init(struct retry_commit *u)
{
    list_init(&u->held);
    u->timer.fire = on_retry_commit_timer;
}

void retry_commit_fini(struct retry_commit *u)
{
    struct list_node *n;

    loop_timer_cancel(u->loop, &u->timer);
    while ((n = list_pop(&u->held)))
        task_change_free(LIST_OF(n, struct task_change, node));
}

bool retry_commit_may_be(enum err e)
{
    return e == ERR_NO_SPACE || e == ERR_NOMEM || e == ERR_BUSY ||
           e == ERR_OVERLOADED;
}

bool retry_commit_hold(struct retry_commit *u, struct task_change *c,
                       size_t max_bytes)
{
    bool is_result =
        c->result.status == TASK_COMPLETED || c->result.status == TASK_FAILED;

    if (is_result && u->bytes + task_change_bytes(c) > max_bytes)
        return false;
    list_append(&u->held, &c->node);
    u->bytes += task_change_bytes(c);
    u->n++;
    retry_commit_in(u, AGAIN_MS);
    return true;
}

/* Logged when it starts and when it is over, but not again and again while
 * small txs find space and large ones do not. */
static void log_disk_space(struct retry_commit *u, const struct tx *tx)
{
    bool is_full = tx->result == TX_REFUSED && tx->err == ERR_NO_SPACE;
    int64_t now_ms = loop_mono_ms(u->loop);

    if (is_full == u->is_full || (!is_full && tx->result != TX_COMMITTED) ||
        (is_full && u->full_at_ms && now_ms - u->full_at_ms < SAY_FULL_MS))
        return;
    u->is_full = is_full;
    if (is_full) {
        u->full_at_ms = now_ms;
        log_error(u->log, "store.full",
                  LOG_C("because", "the disk is full; new work is rejected "
                                   "until there is space"));
    } else {
        log_info(u->log, "store.has_space");
    }
}

void retry_commit_note(struct retry_commit *u, const struct tx *tx)
{
    log_disk_space(u, tx);
    if (tx->result == TX_COMMITTED && !list_is_empty(&u->held))
        retry_commit_in(u, 0);
}
