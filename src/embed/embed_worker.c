/* A model on two threads: one for queries and one for documents.
 *
 * A text of a document may take twenty milliseconds, and nothing interrupts the
 * model in the middle of one. With one thread for both, every query that
 * arrived while the cards of a few users were embedded waited for the rest of a
 * document, and the rate fell to a tenth. So queries have their own thread. The
 * thread for documents has a lower priority than all others: it runs on idle
 * processors, and gets at least a tenth of one. Rejected: checking for queries
 * between the layers of the model. It needs no second thread, but a query would
 * still wait for a layer, and the loop would still compete with documents for a
 * processor.
 *
 * Why sharing this is safe. Each of the two lanes works like this: a text is
 * always in exactly one place, and the place determines its owner:
 *
 *     the loop's      under the lock            the thread's
 *     take        ->  to_do                  -> its current batch
 *     give_back   <-  the same, has_made     <-
 *
 * Moving a text across a column requires the lock. While a text is worked on,
 * the thread reads its bytes and nothing else of it or its job; the vectors go
 * to memory of the lane, from which the loop takes them: the thread begins no
 * other batch before that. So a job that is given up meanwhile may end at once;
 * it is only not freed (embed.c), since its texts are still being read.
 *
 * A batch is a few texts that are already waiting. Batches of documents are
 * small, since larger ones make short texts slightly faster and long ones not
 * at all.
 *
 * The thread is woken only if it has work, and after the lock is released:
 * woken without work, or into a held lock, it sleeps again at once, and either
 * costs as much as the hand-over itself.
 *
 * It would break if a job were freed while the thread has one of its texts, or
 * if a lane used the scratch memory of the other. */
#include "embed/jobs.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"

enum { DOCUMENTS_NICE = 10 }; /* a tenth of a contended processor */

/* Outlives the worker by one turn, because libuv closes a handle
 * asynchronously. */
struct bell {
    uv_async_t async;
    struct worker *worker;
};

/* One thread and its work. */
struct lane {
    struct worker *worker;
    enum embed_use use;
    uv_thread_t thread;
    bool has_thread, has_cond;
    float *taken; /* WORKER_BATCH vectors, owned by the loop */

    uv_cond_t wakes;
    /* Under the lock. */
    struct list to_do;
    struct embed_text *batch[WORKER_BATCH];
    size_t n_batch;
    bool has_made; /* the batch is done and waits for the loop */
    bool is_over;
    float *vectors; /* of the batch; the thread's unless has_made */
};

struct worker {
    struct embed *embed;
    struct worker_model model; /* only the threads call make() */
    struct bell *bell;
    bool has_lock;
    struct lane lanes[N_EMBED_USES];

    uv_mutex_t lock;
    /* Under the lock. */
    bool is_stopping;
    bool is_held; /* by a test, to observe what waits */
};

/* The threads. */

/* The lock is held. */
static size_t lane_take_batch(struct lane *l, struct str texts[WORKER_BATCH])
{
    size_t most = l->use == EMBED_QUERY ? WORKER_BATCH : WORKER_DOCUMENTS;
    struct list_node *n;

    l->n_batch = 0;
    while (l->n_batch < most && (n = list_pop(&l->to_do))) {
        struct embed_text *t = LIST_OF(n, struct embed_text, node);

        texts[l->n_batch] = t->text;
        l->batch[l->n_batch++] = t;
    }
    return l->n_batch;
}

static bool lane_has_work(const struct lane *l)
{
    return !l->has_made && !l->worker->is_held && !list_is_empty(&l->to_do);
}

/* Linux treats threads like processes here. If it is not permitted, documents
 * keep the normal priority. */
static void lower_thread_priority(void)
{
    id_t self = (id_t)gettid();

    (void)setpriority(PRIO_PROCESS, self,
                      getpriority(PRIO_PROCESS, self) + DOCUMENTS_NICE);
}

static void lane_run(void *ctx)
{
    struct lane *l = ctx;
    struct worker *w = l->worker;
    struct str texts[WORKER_BATCH];

    if (l->use == EMBED_DOCUMENT)
        lower_thread_priority();
    uv_mutex_lock(&w->lock);
    while (!w->is_stopping) {
        float *to = l->vectors;
        size_t n;

        if (!lane_has_work(l)) {
            uv_cond_wait(&l->wakes, &w->lock);
            continue;
        }
        n = lane_take_batch(l, texts);
        uv_mutex_unlock(&w->lock);
        w->model.make(w->model.ctx, l->use, texts, n, to);
        uv_mutex_lock(&w->lock);
        l->has_made = true;
        uv_async_send(&w->bell->async);
    }
    l->is_over = true;
    uv_async_send(&w->bell->async);
    uv_mutex_unlock(&w->lock);
}

/* The loop. */

/* Take the finished batch, so that the thread can continue. Returns its
 * size. */
static size_t lane_take_made(struct lane *l,
                             struct embed_text *texts[WORKER_BATCH],
                             bool *is_over)
{
    float *made = l->taken;
    bool is_wanted;
    size_t n;

    uv_mutex_lock(&l->worker->lock);
    n = l->has_made ? l->n_batch : 0;
    memcpy(texts, l->batch, n * sizeof(texts[0]));
    if (n) {
        l->taken = l->vectors;
        l->vectors = made;
    }
    l->has_made = false;
    *is_over = l->is_over;
    is_wanted = lane_has_work(l);
    uv_mutex_unlock(&l->worker->lock);
    if (is_wanted)
        uv_cond_signal(&l->wakes);
    return n;
}

/* A text may have been dropped meanwhile, even by the callback of the one
 * before it; it is returned all the same. Returns whether the thread has
 * ended. */
static bool lane_give_back(struct lane *l)
{
    struct embed_text *texts[WORKER_BATCH];
    bool is_over;
    size_t n = lane_take_made(l, texts, &is_over);

    for (size_t i = 0; i < n; i++)
        if (texts[i]->is_dropped)
            embed_back(texts[i]);
        else
            embed_made(texts[i], l->taken + i * l->worker->model.dims);
    return is_over;
}

static void worker_lane_join(struct lane *l)
{
    if (l->has_thread)
        uv_thread_join(&l->thread);
    l->has_thread = false;
}

static void on_worker_bell(uv_async_t *async)
{
    struct worker *w = LIST_OF(async, struct bell, async)->worker;
    bool was_there = false, is_there = false;

    for (enum embed_use u = 0; u < N_EMBED_USES; u++) {
        struct lane *l = &w->lanes[u];

        was_there |= l->has_thread;
        if (lane_give_back(l))
            worker_lane_join(l);
        is_there |= l->has_thread;
    }
    if (was_there && !is_there)
        embed_down(w->embed);
}

static struct lane *lane_of(struct worker *w, const struct embed_text *t)
{
    return &w->lanes[PLANTED("embed.one_lane") ? EMBED_DOCUMENT : t->job->use];
}

void worker_take(struct embed *e, struct embed_text *t)
{
    struct worker *w = e->model;
    struct lane *l = lane_of(w, t);

    uv_mutex_lock(&w->lock);
    list_append(&l->to_do, &t->node);
    w->is_held = PLANTED("embed.held");
    uv_mutex_unlock(&w->lock);
    uv_cond_signal(&l->wakes);
}

bool worker_drop(struct embed *e, struct embed_text *t)
{
    struct worker *w = e->model;
    bool is_here;

    uv_mutex_lock(&w->lock);
    is_here = list_has(&t->node);
    list_remove(&t->node);
    w->is_held = PLANTED("embed.held");
    for (enum embed_use u = 0; u < N_EMBED_USES; u++)
        uv_cond_signal(&w->lanes[u].wakes);
    uv_mutex_unlock(&w->lock);
    return is_here;
}

static void worker_end_lanes(struct worker *w)
{
    uv_mutex_lock(&w->lock);
    w->is_stopping = true;
    for (enum embed_use u = 0; u < N_EMBED_USES; u++)
        if (w->lanes[u].has_cond)
            uv_cond_signal(&w->lanes[u].wakes);
    uv_mutex_unlock(&w->lock);
}

/* Create and free. */

static void on_worker_bell_closed(uv_handle_t *h)
{
    free(LIST_OF(h, struct bell, async));
}

static enum err worker_open_bell(struct worker *w)
{
    struct bell *b = mem_new(sizeof(*b));

    b->worker = w;
    if (uv_async_init(&w->embed->loop->uv, &b->async, on_worker_bell) != 0) {
        free(b);
        return ERR_NOMEM;
    }
    w->bell = b;
    return OK;
}

static bool lane_prepare(struct lane *l)
{
    size_t bytes = WORKER_BATCH * l->worker->model.dims * sizeof(float);

    list_init(&l->to_do);
    l->vectors = mem_new(bytes);
    l->taken = mem_new(bytes);
    l->has_cond = uv_cond_init(&l->wakes) == 0;
    return l->has_cond;
}

static bool worker_start_lanes(struct worker *w)
{
    bool is_good;

    w->has_lock = uv_mutex_init(&w->lock) == 0;
    is_good = w->has_lock;
    for (enum embed_use u = 0; u < N_EMBED_USES; u++) {
        w->lanes[u].worker = w;
        w->lanes[u].use = u;
        is_good = is_good && lane_prepare(&w->lanes[u]);
    }
    is_good = is_good && !worker_open_bell(w);
    for (enum embed_use u = 0; u < N_EMBED_USES && is_good; u++) {
        struct lane *l = &w->lanes[u];

        l->has_thread = !FAULT("embed.thread") &&
                        uv_thread_create(&l->thread, lane_run, l) == 0;
        is_good = l->has_thread;
    }
    return is_good;
}

static void lane_fini(struct lane *l)
{
    worker_lane_join(l);
    if (l->has_cond) {
        lane_give_back(l); /* the last batch of the thread */
        uv_cond_destroy(&l->wakes);
    }
    free(l->vectors);
    free(l->taken);
}

static void worker_free(struct worker *w)
{
    if (w->has_lock)
        worker_end_lanes(w);
    for (enum embed_use u = 0; u < N_EMBED_USES; u++)
        lane_fini(&w->lanes[u]);
    if (w->bell)
        uv_close((uv_handle_t *)&w->bell->async, on_worker_bell_closed);
    if (w->has_lock)
        uv_mutex_destroy(&w->lock);
    if (w->model.close)
        w->model.close(w->model.ctx);
    free(w);
}

enum err worker_start(struct embed *e, const struct worker_model *model,
                      struct why *why)
{
    struct worker *w = mem_new(sizeof(*w));

    w->embed = e;
    w->model = *model;
    e->model = w;
    if (worker_start_lanes(w))
        return OK;
    worker_free(w);
    return why_err(why, ERR_NOMEM, "cannot start the threads for the model");
}

void worker_close(struct embed *e)
{
    worker_free(e->model);
}

void worker_stop(struct embed *e)
{
    worker_end_lanes(e->model);
}

void *worker_ctx(const struct embed *e)
{
    return ((struct worker *)e->model)->model.ctx;
}
