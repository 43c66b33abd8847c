/* The transport "echo:": an agent that answers with its message after a delay.
 * It is for trials, and behaves like a real agent: it reports that it works,
 * sends chunks, and then a result.
 *
 *     started -> ready: "working" -> waits for its timer -> ready: chunk,
 *     chunk, ... -> result
 *
 * One loop job serves all ready deliveries in turns, one message each, until
 * the share of the loop turn is used up. So a message of a megabyte does not
 * delay a thousand small ones, nor a thousand of them the rest of the server.
 */
#include <stdlib.h>

#include "base/fault.h"
#include "deliver/internal.h"

enum {
    CHUNK_BYTES = 16 * 1024,
    WORDS_PER_TURN = 256,
    BYTES_PER_TURN = 512 * 1024,
};

struct echo {
    struct delivery delivery;
    struct echoes *all;
    struct list_node ready;
    struct timer timer;
    bool is_due;   /* the delay is over */
    size_t n_sent; /* sent bytes of the text */
    size_t n;
    char text[];
};

static void echo_make_ready(struct echo *e)
{
    if (list_has(&e->ready))
        return;
    list_append(&e->all->ready, &e->ready);
    /* If the job waits for the next turn, the share of this one is used up. */
    if (!list_has(&e->all->job.node))
        loop_at_end(e->all->loop, &e->all->job);
}

static void echo_on_timer(struct timer *t)
{
    struct echo *e = LIST_OF(t, struct echo, timer);

    e->is_due = true;
    echo_make_ready(e);
}

/* Send one message and return its bytes of text. */
static size_t echo_send(struct echo *e)
{
    struct delivery *y = &e->delivery;
    struct str rest = {e->text + e->n_sent, e->n - e->n_sent};
    struct str chunk = str_head(rest, CHUNK_BYTES);

    if (!y->is_working) {
        if (delivery_working(y) && e->is_due)
            echo_make_ready(e);
        return 0;
    }
    if (chunk.n) {
        e->n_sent += chunk.n;
        if (delivery_chunk(y, chunk))
            echo_make_ready(e);
        return chunk.n;
    }
    delivery_result(y,
                    &(struct task_result){.status = TASK_COMPLETED,
                                          .text = {e->text, e->n}},
                    true, 0);
    return e->n;
}

/* Whether the share of this loop turn is not used up. Callbacks may make more
 * deliveries ready within the turn. */
static bool echoes_have_share(struct echoes *all)
{
    if (all->turn != loop_turn_number(all->loop)) {
        all->turn = loop_turn_number(all->loop);
        all->n_words = 0;
        all->n_bytes = 0;
    }
    return all->n_words < WORDS_PER_TURN && all->n_bytes < BYTES_PER_TURN;
}

static void echoes_on_end_of_turn(struct loop_job *job)
{
    struct echoes *all = LIST_OF(job, struct echoes, job);

    while (!list_is_empty(&all->ready) && echoes_have_share(all)) {
        struct list_node *n = list_pop(&all->ready);

        all->n_words++;
        all->n_bytes += echo_send(LIST_OF(n, struct echo, ready));
    }
    loop_not_at_end(&all->job);
    if (!list_is_empty(&all->ready))
        loop_next_turn(all->loop, &all->job);
}

static enum err echo_start(struct deliver *d, const struct task *t,
                           const struct agent *a, const struct agent_url *url,
                           struct delivery **out)
{
    struct echo *e =
        FAULT("deliver.echo") ? NULL : calloc(1, sizeof(*e) + t->text.n);

    (void)a;
    if (!e)
        return ERR_NOMEM;
    e->all = &d->echoes;
    e->timer.fire = echo_on_timer;
    e->n = t->text.n;
    if (t->text.n)
        memcpy(e->text, t->text.p, t->text.n);
    e->is_due = url->delay_ms == 0;
    if (!e->is_due)
        loop_timer_set(e->all->loop, &e->timer, url->delay_ms);
    echo_make_ready(e);
    *out = &e->delivery;
    return OK;
}

static void echo_stop(struct delivery *y, enum stop_why why)
{
    struct echo *e = LIST_OF(y, struct echo, delivery);

    (void)why;
    loop_timer_cancel(e->all->loop, &e->timer);
    list_remove(&e->ready);
}

static void echo_free(struct delivery *y)
{
    free(LIST_OF(y, struct echo, delivery));
}

const struct transport_row transport_echo = {
    .start = echo_start, .stop = echo_stop, .free = echo_free};

void echoes_init(struct echoes *e, struct loop *loop)
{
    e->loop = loop;
    list_init(&e->ready);
    e->job.run = echoes_on_end_of_turn;
}

void echoes_fini(struct echoes *e)
{
    loop_not_at_end(&e->job);
}
