/* Options, ids, and the calls of owners.
 *
 * Calls are only noted here; the job at the end of the turn carries them out.
 * An id is a running number and a slot of a table, as in net/server/net.c: an
 * old id finds another number in its slot, or an empty slot. */
#include "net/client/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

enum { NO_SLOT = (1 << SLOT_BITS) - 1, FIRST_SLOTS = 16 };

void fetch_kick(struct fetch *f)
{
    loop_at_end(f->loop, &f->job);
}

/* The table. */

static enum err fetch_grow_slots(struct fetch *f)
{
    uint32_t n = f->n_slots ? f->n_slots * 2 : FIRST_SLOTS;
    struct slot *slots;

    if (n >= NO_SLOT)
        return ERR_BUSY;
    slots =
        FAULT("fetch.slots") ? NULL : realloc(f->slots, n * sizeof(*f->slots));
    if (!slots)
        return ERR_NOMEM;
    for (uint32_t i = f->n_slots; i < n; i++)
        slots[i] = (struct slot){NULL, i + 1 < n ? i + 1 : NO_SLOT};
    f->first_free = f->n_slots;
    f->slots = slots;
    f->n_slots = n;
    return OK;
}

static enum err fetch_take_slot(struct fetch *f, struct request *r)
{
    enum err e = f->first_free == NO_SLOT ? fetch_grow_slots(f) : OK;

    if (e)
        return e;
    r->slot = f->first_free;
    f->first_free = f->slots[r->slot].next_free;
    f->slots[r->slot].r = r;
    r->id = (++f->n_ids << SLOT_BITS) | r->slot;
    f->n_open++;
    return OK;
}

void fetch_give_slot(struct fetch *f, struct request *r)
{
    if (!r->id)
        return;
    f->slots[r->slot] = (struct slot){NULL, f->first_free};
    f->first_free = r->slot;
    r->id = 0;
    f->n_open--;
}

static struct request *fetch_find(const struct fetch *f, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & NO_SLOT);
    struct request *r = slot < f->n_slots ? f->slots[slot].r : NULL;

    return r && r->id == id ? r : NULL;
}

/* The end of the turn. */

/* Run libcurl at once for a request that resumes after a pause. */
static void request_nudge_now(struct request *r)
{
    if (r->pool && !r->is_asked) {
        curl_easy_pause(r->easy, CURLPAUSE_ALL);
        curl_easy_pause(r->easy, CURLPAUSE_CONT);
    }
    r->is_stuck = false;
}

static void fetch_settle_todo(struct request *r)
{
    if (!r->id || r->cut) {
        request_finish(r, r->cut);
        return;
    }
    if (r->is_stuck)
        request_nudge_now(r);
    if (r->is_paused)
        return; /* again */
    if (r->is_whole)
        request_finish(r, OK);
    else if (r->pool)
        /* Delivers the held bytes, from inside this call. */
        curl_easy_pause(r->easy, CURLPAUSE_CONT);
}

static void drop_old_pools(struct fetch *f)
{
    struct list_node *i, *next;

    for (i = list_first(&f->pools); i; i = next) {
        struct curl_pool *p = LIST_OF(i, struct curl_pool, node);

        next = list_next(&f->pools, i);
        if (p != f->pool && p != f->next_pool && !p->n_requests)
            curl_pool_free(p);
    }
}

static void end_all(struct fetch *f)
{
    struct list_node *i;

    for (size_t s = 0; s < 3; s++)
        while ((i = list_first(&f->by_state[s]))) {
            struct request *r = LIST_OF(i, struct request, node);

            why_err(&r->why, ERR_STOPPING, "%s",
                    err_row(ERR_STOPPING)->wording);
            request_finish(r, ERR_STOPPING);
        }
}

/* Called when nothing is left; f may be freed in done. */
static void fetch_finish_stop(struct fetch *f)
{
    void (*done)(void *ctx) = f->done;

    end_all(f);
    f->pool = f->next_pool = NULL;
    drop_old_pools(f);
    if (f->n_watches)
        return; /* libuv returns them and kicks us again */
    f->done = NULL;
    if (done)
        done(f->done_ctx);
}

static void on_fetch_turn(struct loop_job *job)
{
    struct fetch *f = LIST_OF(job, struct fetch, job);
    struct list_node *i;
    struct list todo, begun;

    if (f->is_stopping) {
        fetch_finish_stop(f);
        return;
    }
    /* Calls that owners make meanwhile are handled in the next turn. */
    list_init(&todo);
    list_init(&begun);
    list_append_all(&todo, &f->todo);
    while ((i = list_pop(&todo)))
        fetch_settle_todo(LIST_OF(i, struct request, todo));
    list_append_all(&begun, &f->by_state[REQUEST_NEW]);
    while ((i = list_pop(&begun))) {
        list_append(&f->by_state[REQUEST_NEW], i);
        request_begin(LIST_OF(i, struct request, node));
    }
    for (i = list_first(&f->pools); i; i = list_next(&f->pools, i))
        curl_pool_drive(LIST_OF(i, struct curl_pool, node));
    drop_old_pools(f);
}

/* Calls of owners. */

enum err fetch_start(struct fetch *f, const struct fetch_request *rq,
                     const struct fetch_handler *handler, void *ctx,
                     uint64_t *id, struct why *why)
{
    struct request *r;
    enum err e;

    if (f->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (f->n_open + f->n_lingering >= f->opts.max_open)
        return why_err(why, ERR_BUSY,
                       "%zu outgoing requests are under way, which is as many "
                       "as may be",
                       f->n_open + f->n_lingering);
    e = request_new(f, rq, &r, why);
    if (e)
        return e;
    r->on = *handler;
    r->ctx = ctx;
    e = host_share_enter(r, &r->url, why);
    if (!e && (e = fetch_take_slot(f, r)))
        why_err(why, e, "%s", err_row(e)->wording);
    if (e) {
        request_free(r);
        return e;
    }
    f->stats.started_total++;
    list_append(&f->by_state[REQUEST_NEW], &r->node);
    *id = r->id;
    fetch_kick(f);
    return OK;
}

void fetch_pause(struct fetch *f, uint64_t id, bool is_paused)
{
    struct request *r = fetch_find(f, id);

    if (!r || r->is_paused == is_paused)
        return;
    r->is_paused = is_paused;
    if (is_paused)
        return; /* answer_body rejects the next bytes */
    if (r->heard_ms != INT64_MAX)
        r->heard_ms = loop_mono_ms(f->loop);
    request_arm(r);
    request_todo(r);
}

void fetch_cancel(struct fetch *f, uint64_t id)
{
    struct request *r = fetch_find(f, id);

    if (!r)
        return;
    request_forget(r);
    request_todo(r);
}

struct fetch_stats fetch_stats(const struct fetch *f)
{
    struct fetch_stats s = f->stats;

    s.open = (int64_t)f->n_open;
    s.lingering = (int64_t)f->n_lingering;
    return s;
}

/* Life of fetch. */

struct fetch *fetch_new(struct loop *loop, struct log *log,
                        const struct fetch_opts *opts, struct why *why)
{
    struct fetch *f = mem_new(sizeof(*f));

    if (FAULT("fetch.new") || curl_global_init(CURL_GLOBAL_DEFAULT)) {
        why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
        free(f);
        return NULL;
    }
    f->loop = loop;
    f->log = log;
    f->first_free = NO_SLOT;
    f->job.run = on_fetch_turn;
    shares_init(&f->host_shares, sizeof(struct share), NO_SLOT, opts->seed);
    list_init(&f->pools);
    list_init(&f->todo);
    for (size_t s = 0; s < 3; s++)
        list_init(&f->by_state[s]);
    if (fetch_set(f, opts, why)) {
        fetch_free(f);
        return NULL;
    }
    return f;
}

enum err fetch_prepare(struct fetch *f, const struct fetch_opts *opts,
                       struct why *why)
{
    fetch_forget(f);
    f->next_opts = *opts;
    f->next_opts.proxy = f->next_opts.ca_file = NULL; /* the pool has them */
    return curl_pool_new(f, opts, &f->next_pool, why);
}

void fetch_commit(struct fetch *f)
{
    f->opts = f->next_opts;
    f->pool = f->next_pool;
    f->next_pool = NULL;
    fetch_kick(f); /* the old pool may be idle */
}

void fetch_forget(struct fetch *f)
{
    if (f->next_pool)
        curl_pool_free(f->next_pool);
    f->next_pool = NULL;
}

struct guard fetch_guard(const struct fetch *f)
{
    return f->opts.guard;
}

enum err fetch_set(struct fetch *f, const struct fetch_opts *opts,
                   struct why *why)
{
    enum err e = fetch_prepare(f, opts, why);

    if (!e)
        fetch_commit(f);
    return e;
}

void fetch_stop(struct fetch *f, void (*done)(void *ctx), void *ctx)
{
    f->is_stopping = true;
    f->done = done;
    f->done_ctx = ctx;
    fetch_kick(f);
}

void fetch_free(struct fetch *f)
{
    if (!f)
        return;
    f->is_stopping = true;
    end_all(f);
    f->pool = f->next_pool = NULL;
    drop_old_pools(f);
    assert(!f->n_watches); /* stop it first */
    loop_not_at_end(&f->job);
    free(f->slots);
    shares_fini(&f->host_shares);
    free(f);
    curl_global_cleanup();
}
