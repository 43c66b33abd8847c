/* Who calls works along; the others wait between two pieces of work. Parts are
 * handed out by a counter, so that a thread that is held up holds up no one. */
#include "train/train.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct crew {
    unsigned n;
    pthread_t threads[CREW_MAX];
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    unsigned round, n_busy;
    bool is_over;
    /* of this round */
    crew_work work;
    void *ctx;
    size_t n_items, grain;
    atomic_size_t next;
};

struct member {
    struct crew *crew;
    unsigned worker;
};

static void take_parts(struct crew *c, unsigned worker)
{
    for (;;) {
        size_t from = atomic_fetch_add(&c->next, c->grain);
        size_t to = from + c->grain;

        if (from >= c->n_items)
            return;
        c->work(c->ctx, worker, from, to < c->n_items ? to : c->n_items);
    }
}

static void *live(void *arg)
{
    struct member *me = arg;
    struct crew *c = me->crew;
    unsigned seen = 0;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->round == seen && !c->is_over)
            pthread_cond_wait(&c->begun, &c->lock);
        if (c->is_over)
            break;
        seen = c->round;
        pthread_mutex_unlock(&c->lock);
        take_parts(c, me->worker);
        pthread_mutex_lock(&c->lock);
        if (--c->n_busy == 0)
            pthread_cond_signal(&c->ended);
    }
    pthread_mutex_unlock(&c->lock);
    free(me);
    return NULL;
}

struct crew *crew_new(unsigned n_threads)
{
    struct crew *c = train_alloc(1, sizeof(*c));

    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begun, NULL);
    pthread_cond_init(&c->ended, NULL);
    c->n = 1;
    for (; c->n < n_threads && c->n < CREW_MAX; c->n++) {
        struct member *m = train_alloc(1, sizeof(*m));

        *m = (struct member){c, c->n};
        if (pthread_create(&c->threads[c->n], NULL, live, m) != 0) {
            free(m);
            break;
        }
    }
    return c;
}

void crew_free(struct crew *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 1; i < c->n; i++)
        pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->begun);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

unsigned crew_size(const struct crew *c)
{
    return c->n;
}

void crew_run(struct crew *c, size_t n, size_t grain, crew_work work, void *ctx)
{
    if (n <= grain || c->n == 1) {
        for (size_t at = 0; at < n; at += grain)
            work(ctx, 0, at, at + grain < n ? at + grain : n);
        return;
    }
    pthread_mutex_lock(&c->lock);
    c->work = work;
    c->ctx = ctx;
    c->n_items = n;
    c->grain = grain;
    atomic_store(&c->next, 0);
    c->n_busy = c->n - 1;
    c->round++;
    pthread_cond_broadcast(&c->begun);
    pthread_mutex_unlock(&c->lock);
    take_parts(c, 0);
    pthread_mutex_lock(&c->lock);
    while (c->n_busy)
        pthread_cond_wait(&c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
}
