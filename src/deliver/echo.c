/* The road "echo:": the agent that answers with its message, after so many
 * milliseconds. It is there to try things out with, and keeps every promise a
 * real one would: it works, it speaks in chunks, it has a last word.
 *
 *     started -> ready: says "working" -> waits for its timer -> ready: chunk,
 *     chunk, ... -> result
 *
 * One job says what all the ready ones have to say, one word each and then to
 * the back of the list, until the turn's share is used up; the rest waits for
 * the next turn. So a message of a megabyte does not hold up a thousand small
 * ones, nor a thousand of them everybody else. The timer runs from the start,
 * so that setting it is the only step that can fail, and fails there. */
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
    bool is_due;   /* its time has come */
    size_t n_said; /* bytes of the text */
    size_t n;
    char text[];
};

static void make_ready(struct echo *e)
{
    if (list_has(&e->ready))
        return;
    list_append(&e->all->ready, &e->ready);
    /* When the job waits for the next turn, this one's share is used up. */
    if (!list_has(&e->all->job.node))
        loop_at_end(e->all->loop, &e->all->job);
}

static void on_timer(struct timer *t)
{
    struct echo *e = LIST_OF(t, struct echo, timer);

    e->is_due = true;
    make_ready(e);
}

/* The next part of the text: up to CHUNK_BYTES, not through the middle of a
 * character. */
static struct str next_chunk(const struct echo *e)
{
    struct str rest = {e->text + e->n_said, e->n - e->n_said};

    return str_head(rest, CHUNK_BYTES);
}

/* Say one word. Returns how many bytes went out with it. */
static size_t say(struct echo *e)
{
    struct delivery *y = &e->delivery;
    struct str chunk = next_chunk(e);

    if (!y->is_working) {
        if (delivery_working(y) && e->is_due)
            make_ready(e);
        return 0;
    }
    if (chunk.n) {
        e->n_said += chunk.n;
        if (delivery_chunk(y, chunk))
            make_ready(e);
        return chunk.n;
    }
    delivery_result(y,
                    &(struct task_result){.status = TASK_COMPLETED,
                                          .text = {e->text, e->n}},
                    true, 0);
    return e->n;
}

/* Whether something may still be said in this turn. What others do in it may
 * make more ready again and again. */
static bool has_share(struct echoes *all)
{
    if (all->turn != loop_turn_number(all->loop)) {
        all->turn = loop_turn_number(all->loop);
        all->n_words = 0;
        all->n_bytes = 0;
    }
    return all->n_words < WORDS_PER_TURN && all->n_bytes < BYTES_PER_TURN;
}

static void say_some(struct loop_job *job)
{
    struct echoes *all = LIST_OF(job, struct echoes, job);

    while (!list_is_empty(&all->ready) && has_share(all)) {
        struct list_node *n = list_pop(&all->ready);

        all->n_words++;
        all->n_bytes += say(LIST_OF(n, struct echo, ready));
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
    e->timer.fire = on_timer;
    e->n = t->text.n;
    if (t->text.n)
        memcpy(e->text, t->text.p, t->text.n);
    e->is_due = url->delay_ms == 0;
    if (!e->is_due &&
        loop_timer_set(e->all->loop, &e->timer, url->delay_ms) != OK) {
        free(e);
        return ERR_NOMEM;
    }
    make_ready(e);
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

const struct road_row road_echo = {
    .start = echo_start, .stop = echo_stop, .free = echo_free};

void echoes_init(struct echoes *e, struct loop *loop)
{
    e->loop = loop;
    list_init(&e->ready);
    e->job.run = say_some;
}

void echoes_fini(struct echoes *e)
{
    loop_not_at_end(&e->job);
}
