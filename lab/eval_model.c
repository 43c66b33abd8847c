/* Two calls are in progress at any time, so that a worker always has a next
 * text. More would only cost memory. */
#include "lab/eval_model.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
    CALL_TEXTS = 64,
    CALLS_MAX = 2,
    WAITING_BYTES = 32 * 1024 * 1024,
    CALL_TIMEOUT_MS = 600 * 1000, /* a single text may take long */
};

enum err eval_model_open(struct eval_model *m, enum embed_kind kind,
                         const struct config *c, struct why *why)
{
    *m = (struct eval_model){.config = *c};
    m->config.embed.kind = (int64_t)kind;
    m->config.embed.cache_entries = 0;
    m->config.embed.max_waiting = 4 * CALL_TEXTS * CALLS_MAX;
    m->config.embed.max_waiting_bytes = WAITING_BYTES;
    m->config.embed.timeout_ms = CALL_TIMEOUT_MS;
    log_init(&m->log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&m->loop, clock_system()))
        return why_err(why, ERR_NOMEM, "out of memory");
    m->has_loop = true;
    m->providers = (struct providers){.loop = &m->loop, .log = &m->log};
    return providers_open(&m->providers, &m->config, m->config.data.p, why);
}

void eval_model_close(struct eval_model *m)
{
    if (!m->has_loop)
        return;
    providers_close(&m->providers);
    loop_fini(&m->loop);
    m->has_loop = false;
}

struct embed_stamp eval_model_stamp(const struct eval_model *m)
{
    return embed_stamp(m->providers.embeds[0]);
}

/* One pass over texts. */

struct embed_pass;

struct embed_call {
    struct embed_pass *pass;
    size_t first, n; /* n is zero while it is free */
};

struct embed_pass {
    struct eval_model *m;
    const struct str *texts;
    size_t n, next;
    enum embed_use use;
    eval_take_fn *take;
    void *ctx;
    float *vector; /* for embed_now */
    uint32_t dims; /* of that vector */
    struct embed_call calls[CALLS_MAX];
    unsigned n_open;
    enum err e;
    struct why *why;
};

static void embed_pass_deliver(struct embed_pass *p, size_t i, const float *v,
                               uint32_t dims)
{
    for (uint32_t k = 0; k < dims; k++)
        if (v[k] != 0) {
            p->take(p->ctx, i, v, dims);
            return;
        }
    p->take(p->ctx, i, NULL, dims);
}

static void embed_pass_continue(struct embed_pass *p);

static void embed_pass_on_done(void *ctx, uint64_t id, enum err e,
                               const struct embed_result *r,
                               const struct why *why)
{
    struct embed_call *c = ctx;
    struct embed_pass *p = c->pass;

    (void)id;
    if (e && !p->e) {
        p->e =
            providers_failure(embed_stats(p->m->providers.embeds[0]).kind, e);
        *p->why = *why;
    }
    for (size_t i = 0; !p->e && i < c->n; i++)
        embed_pass_deliver(p, c->first + i,
                           r->stamp.dims ? r->vectors + i * r->stamp.dims
                                         : NULL,
                           r->stamp.dims);
    c->n = 0;
    p->n_open--;
    embed_pass_continue(p);
    if (!p->n_open)
        loop_stop(&p->m->loop);
}

static struct embed_call *embed_pass_free_call(struct embed_pass *p)
{
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (!p->calls[i].n)
            return &p->calls[i];
    return NULL;
}

/* Starts a call. False: none can be started now. */
static bool embed_pass_begin(struct embed_pass *p)
{
    struct embed_call *c = embed_pass_free_call(p);
    size_t n = p->n - p->next < CALL_TEXTS ? p->n - p->next : CALL_TEXTS;
    uint64_t id;
    enum err e;

    if (!c || !n)
        return false;
    *c = (struct embed_call){p, p->next, n};
    e = embed_start(p->m->providers.embeds[0], p->texts + p->next, n, p->use,
                    embed_pass_on_done, c, &id, p->why);
    if (e) {
        c->n = 0;
        /* While other calls are open, a busy model only has to be waited for.
         */
        if (e != ERR_BUSY || !p->n_open)
            p->e = providers_failure(
                embed_stats(p->m->providers.embeds[0]).kind, e);
        return false;
    }
    p->n_open++;
    p->next += n;
    return true;
}

static void embed_pass_continue(struct embed_pass *p)
{
    struct embed *e = p->m->providers.embeds[0];

    while (!p->e && p->next < p->n) {
        if (embed_now(e, p->texts[p->next], p->use, p->vector))
            embed_pass_deliver(p, p->next++, p->vector, p->dims);
        else if (!embed_pass_begin(p))
            return;
    }
}

enum err eval_model_embed(struct eval_model *m, const struct str *texts,
                          size_t n, enum embed_use use, eval_take_fn *take,
                          void *ctx, struct why *why)
{
    struct embed_pass p = {.m = m,
                           .texts = texts,
                           .n = n,
                           .use = use,
                           .take = take,
                           .ctx = ctx,
                           .why = why};

    p.vector = mem_array(EMBED_DIMS_MAX, sizeof(*p.vector));
    p.dims = eval_model_stamp(m).dims;
    embed_pass_continue(&p);
    if (p.n_open)
        loop_run(&m->loop);
    assert(p.e || p.next == n);
    free(p.vector);
    return p.e;
}
