/* A model on a thread of its own.
 *
 * Why sharing this is safe. A text is always in exactly one place, and the
 * place says whose it is:
 *
 *     the loop's      under the lock            the thread's
 *     take        ->  to_do[query, document] -> the batch it works on
 *     give_back   <-  the same, has_made     <-
 *
 * Whoever moves one across a column holds the lock. While a text is worked on,
 * the thread reads its bytes and nothing else of it or its job; the vectors go
 * to memory of the worker's, and the loop takes them from there: the thread
 * begins no other batch before that. So a job that is given up meanwhile may be
 * as over as it likes; it is only not freed (embed.c), since its texts are
 * still read.
 *
 * A batch is a few texts that are there anyway, never waited for, and of one
 * use. Queries go first: whoever asks something waits for the rest of one
 * batch of documents at the most. Those are small, since larger ones make
 * short texts a little faster and long ones not at all, and would have to be
 * waited for.
 *
 * What would break it: a job freed while a text of it is out, or a second user
 * of the model's scratch memory. */
#include "embed/jobs.h"

#include <stdlib.h>

#include "base/fault.h"

/* Outlives the worker by one turn: libuv gives a handle back late. */
struct bell {
    uv_async_t async;
    struct worker *worker;
};

struct worker {
    struct embed *embed;
    struct worker_model model; /* make() is the thread's to call */
    struct bell *bell;
    uv_thread_t thread;
    bool has_lock, has_cond, has_thread;
    float *taken; /* WORKER_BATCH vectors: the loop's */

    uv_mutex_t lock;
    uv_cond_t wakes;
    /* Under the lock. */
    struct list to_do[2]; /* by use */
    struct embed_text *batch[WORKER_BATCH];
    size_t n_batch;
    bool has_made; /* the batch has its vectors, and waits for the loop */
    bool is_stopping, is_over;
    bool is_held;   /* by a test, to see what waits */
    float *vectors; /* of the batch: the thread's unless has_made */
};

/* The thread. */

/* With the lock. */
static size_t take_batch(struct worker *w, struct str texts[WORKER_BATCH])
{
    struct list *from = &w->to_do[EMBED_QUERY];
    size_t most = WORKER_BATCH;
    struct list_node *n;

    if (list_is_empty(from)) {
        from = &w->to_do[EMBED_DOCUMENT];
        most = WORKER_DOCUMENTS;
    }
    w->n_batch = 0;
    while (w->n_batch < most && (n = list_pop(from))) {
        struct embed_text *t = LIST_OF(n, struct embed_text, node);

        texts[w->n_batch] = t->text;
        w->batch[w->n_batch++] = t;
    }
    return w->n_batch;
}

static bool has_work(const struct worker *w)
{
    return !w->has_made && !w->is_held &&
           !(list_is_empty(&w->to_do[EMBED_QUERY]) &&
             list_is_empty(&w->to_do[EMBED_DOCUMENT]));
}

static void run(void *ctx)
{
    struct worker *w = ctx;
    struct str texts[WORKER_BATCH];

    uv_mutex_lock(&w->lock);
    while (!w->is_stopping) {
        float *to = w->vectors;
        size_t n;

        if (!has_work(w)) {
            uv_cond_wait(&w->wakes, &w->lock);
            continue;
        }
        n = take_batch(w, texts);
        uv_mutex_unlock(&w->lock);
        w->model.make(w->model.ctx, texts, n, to);
        uv_mutex_lock(&w->lock);
        w->has_made = true;
        uv_async_send(&w->bell->async);
    }
    w->is_over = true;
    uv_async_send(&w->bell->async);
    uv_mutex_unlock(&w->lock);
}

/* The loop. */

/* Take what was made, so that the thread may go on. Returns how many. */
static size_t take_made(struct worker *w,
                        struct embed_text *texts[WORKER_BATCH], bool *is_over)
{
    float *made = w->taken;
    size_t n;

    uv_mutex_lock(&w->lock);
    n = w->has_made ? w->n_batch : 0;
    memcpy(texts, w->batch, n * sizeof(texts[0]));
    if (n) {
        w->taken = w->vectors;
        w->vectors = made;
    }
    w->has_made = false;
    *is_over = w->is_over;
    uv_cond_signal(&w->wakes);
    uv_mutex_unlock(&w->lock);
    return n;
}

/* A text may have been dropped meanwhile, or only just, by what became of the
 * one before it: it comes back all the same. Returns whether the thread has
 * come to its end. */
static bool give_back(struct worker *w)
{
    struct embed_text *texts[WORKER_BATCH];
    bool is_over;
    size_t n = take_made(w, texts, &is_over);

    for (size_t i = 0; i < n; i++)
        if (texts[i]->is_dropped)
            embed_back(texts[i]);
        else
            embed_made(texts[i], w->taken + i * w->model.dims);
    return is_over;
}

static void join(struct worker *w)
{
    if (w->has_thread)
        uv_thread_join(&w->thread);
    w->has_thread = false;
}

static void on_bell(uv_async_t *async)
{
    struct worker *w = LIST_OF(async, struct bell, async)->worker;

    if (!give_back(w) || !w->has_thread)
        return;
    join(w);
    embed_down(w->embed);
}

void worker_take(struct embed *e, struct embed_text *t)
{
    struct worker *w = e->model;

    uv_mutex_lock(&w->lock);
    list_append(&w->to_do[t->job->use], &t->node);
    w->is_held = PLANTED("embed.held");
    uv_cond_signal(&w->wakes);
    uv_mutex_unlock(&w->lock);
}

bool worker_drop(struct embed *e, struct embed_text *t)
{
    struct worker *w = e->model;
    bool is_here;

    uv_mutex_lock(&w->lock);
    is_here = list_has(&t->node);
    list_remove(&t->node);
    w->is_held = PLANTED("embed.held");
    uv_cond_signal(&w->wakes);
    uv_mutex_unlock(&w->lock);
    return is_here;
}

static void ask_to_end(struct worker *w)
{
    uv_mutex_lock(&w->lock);
    w->is_stopping = true;
    uv_cond_signal(&w->wakes);
    uv_mutex_unlock(&w->lock);
}

/* Life and death. */

static void on_bell_closed(uv_handle_t *h)
{
    free(LIST_OF(h, struct bell, async));
}

static enum err hang_bell(struct worker *w)
{
    struct bell *b = FAULT("embed.bell") ? NULL : calloc(1, sizeof(*b));

    if (!b)
        return ERR_NOMEM;
    b->worker = w;
    if (uv_async_init(&w->embed->loop->uv, &b->async, on_bell) != 0) {
        free(b);
        return ERR_NOMEM;
    }
    w->bell = b;
    return OK;
}

static bool start(struct worker *w)
{
    size_t bytes = WORKER_BATCH * w->model.dims * sizeof(float);

    list_init(&w->to_do[EMBED_QUERY]);
    list_init(&w->to_do[EMBED_DOCUMENT]);
    w->vectors = FAULT("embed.batch") ? NULL : calloc(1, bytes);
    w->taken = w->vectors ? calloc(1, bytes) : NULL;
    w->has_lock = w->taken && uv_mutex_init(&w->lock) == 0;
    w->has_cond = w->has_lock && uv_cond_init(&w->wakes) == 0;
    if (!w->has_cond || hang_bell(w))
        return false;
    w->has_thread =
        !FAULT("embed.thread") && uv_thread_create(&w->thread, run, w) == 0;
    return w->has_thread;
}

/* What the thread was at comes back first. */
static void worker_free(struct worker *w)
{
    if (w->has_thread)
        ask_to_end(w);
    join(w);
    if (w->has_cond)
        give_back(w);
    if (w->bell)
        uv_close((uv_handle_t *)&w->bell->async, on_bell_closed);
    if (w->has_cond)
        uv_cond_destroy(&w->wakes);
    if (w->has_lock)
        uv_mutex_destroy(&w->lock);
    free(w->vectors);
    free(w->taken);
    if (w->model.close)
        w->model.close(w->model.ctx);
    free(w);
}

enum err worker_start(struct embed *e, const struct worker_model *model,
                      struct why *why)
{
    struct worker *w = FAULT("embed.worker") ? NULL : calloc(1, sizeof(*w));

    if (w) {
        w->embed = e;
        w->model = *model;
        e->model = w;
        if (start(w))
            return OK;
        worker_free(w);
    } else if (model->close) {
        model->close(model->ctx);
    }
    return why_err(why, ERR_NOMEM, "cannot start a thread for the model");
}

void worker_close(struct embed *e)
{
    worker_free(e->model);
}

void worker_stop(struct embed *e)
{
    ask_to_end(e->model);
}

void *worker_ctx(const struct embed *e)
{
    return ((struct worker *)e->model)->model.ctx;
}
