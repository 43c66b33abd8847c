#include "unwritten.h"

enum {
    AGAIN_MS = 500,      /* until what could not be written is tried again */
    AGAIN_AT_ONCE = 256, /* and how much of it */
    SAY_FULL_MS = 10 * 1000,
};

static size_t bytes_of(const struct task_change *c)
{
    return c->result.text.n + c->result.metadata.n;
}

/* Sooner, if it was to be later. Where even the timer cannot be set, the next
 * look comes by. */
static void try_in(struct unwritten *u, int64_t delay_ms)
{
    if ((delay_ms == 0 || !timer_is_set(&u->timer)) &&
        loop_timer_set(u->loop, &u->timer, delay_ms) != OK)
        log_warn(u->log, "walk.no_timer",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
}

static void on_timer(struct timer *t)
{
    struct unwritten *u = LIST_OF(t, struct unwritten, timer);
    struct list_node *n;

    for (int i = 0; i < AGAIN_AT_ONCE && (n = list_pop(&u->held)); i++) {
        struct task_change *c = LIST_OF(n, struct task_change, node);

        u->n--;
        u->bytes -= bytes_of(c);
        u->again(u->ctx, c);
    }
    unwritten_look(u);
}

void unwritten_init(struct unwritten *u)
{
    list_init(&u->held);
    u->timer.fire = on_timer;
}

void unwritten_fini(struct unwritten *u)
{
    struct list_node *n;

    loop_timer_cancel(u->loop, &u->timer);
    while ((n = list_pop(&u->held)))
        task_change_free(LIST_OF(n, struct task_change, node));
}

bool unwritten_may_be(enum err e)
{
    return e == ERR_NO_SPACE || e == ERR_NOMEM || e == ERR_BUSY ||
           e == ERR_OVERLOADED;
}

bool unwritten_hold(struct unwritten *u, struct task_change *c,
                    size_t max_bytes)
{
    bool is_result =
        c->result.status == TASK_COMPLETED || c->result.status == TASK_FAILED;

    if (is_result && u->bytes + bytes_of(c) > max_bytes)
        return false;
    list_append(&u->held, &c->node);
    u->bytes += bytes_of(c);
    u->n++;
    try_in(u, AGAIN_MS);
    return true;
}

/* Said when it begins and when it is over, but not time and again where small
 * txs find space and large ones do not. */
static void say_space(struct unwritten *u, const struct tx *tx)
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
                  LOG_C("because", "the disk has no space left; new work is "
                                   "refused until it has"));
    } else {
        log_info(u->log, "store.has_space");
    }
}

void unwritten_note(struct unwritten *u, const struct tx *tx)
{
    say_space(u, tx);
    if (tx->result == TX_COMMITTED && !list_is_empty(&u->held))
        try_in(u, 0);
}

void unwritten_look(struct unwritten *u)
{
    if (!list_is_empty(&u->held))
        try_in(u, AGAIN_MS);
}
