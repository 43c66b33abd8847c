/* The common part of all kinds: limits, the cache, stopping, and a table with
 * the operations of each kind. Owners are called only at the end of a turn, so
 * no callback runs inside a call of its owner. */
#include "embed/jobs.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/mem.h"

static const struct {
    const char *name;
    const struct embed_ops *ops;
    bool is_cached; /* The models inside the binary are not cached: one org
                     * could tell from the time it takes what another has
                     * asked. */
} kinds[N_EMBED_KINDS] = {
    [EMBED_BUILTIN] = {"builtin", &embed_builtin_ops, false},
    [EMBED_TABLE] = {"table", &embed_inline_ops, false},
    [EMBED_TRANSFORMER] = {"transformer", &embed_transformer_ops, false},
    [EMBED_MINILM] = {"minilm", &embed_minilm_ops, true},
    [EMBED_HTTP] = {"http", &embed_http_ops, true},
};

const char *embed_kind_name(enum embed_kind kind)
{
    return kind < N_EMBED_KINDS ? kinds[kind].name : "?";
}

bool embed_stamp_is(const struct embed_stamp *a, const struct embed_stamp *b)
{
    return a->dims == b->dims && strcmp(a->name, b->name) == 0 &&
           strcmp(a->hash, b->hash) == 0;
}

void embed_stamp_set(struct embed_stamp *s, struct str name, const char *hash,
                     uint32_t dims)
{
    *s = (struct embed_stamp){.dims = dims};
    snprintf(s->name, sizeof(s->name), "%.*s", STR_ARG(name));
    snprintf(s->hash, sizeof(s->hash), "%s", hash);
}

/* The weights of the two are part of what the vectors are. */
void embed_stamp_both(struct embed_stamp *s, const char *table_hash,
                      const char *transformer_hash)
{
    char text[2 * EMBED_HASH_CHARS + 64];
    uint8_t digest_of[DIGEST_BYTES];
    char hash[EMBED_HASH_CHARS + 1];

    snprintf(text, sizeof(text), "%s %s %.6f", table_hash, transformer_hash,
             VEC_QUICK_PART);
    digest(str_of(text), digest_of);
    str_hex(hash, digest_of, sizeof(digest_of));
    embed_stamp_set(s, STR("builtin"), hash, BOTH_DIMS);
    s->quick_dims = BUILTIN_DIMS;
}

static bool embed_is_cached(const struct embed *e)
{
    return kinds[e->kind].is_cached && e->cache_entries;
}

static void embed_open_cache(struct embed *e)
{
    cache_set(&e->cache, embed_is_cached(e) ? e->cache_entries : 0,
              e->stamp.dims);
}

void embed_learn_dims(struct embed *e, uint32_t dims)
{
    if (e->stamp.dims == dims)
        return;
    e->stamp.dims = dims;
    embed_open_cache(e);
}

void embed_down(struct embed *e)
{
    e->is_down = true;
    loop_at_end(e->loop, &e->deliver);
}

static void on_embed_deliver(struct loop_job *job)
{
    struct embed *e = LIST_OF(job, struct embed, deliver);
    void (*done)(void *ctx);
    struct list_node *n;
    struct list ended;

    /* Jobs that callbacks start or end are handled after these. */
    list_init(&ended);
    list_append_all(&ended, &e->ended);
    while ((n = list_first(&ended)))
        job_tell(LIST_OF(n, struct embed_job, node));
    if (!e->is_stopping || !e->is_down || !list_is_empty(&e->ended) ||
        e->n_zombies)
        return;
    done = e->done; /* a callback may have set it */
    e->done = NULL;
    if (done)
        done(e->done_ctx);
}

/* Calls of owners. */

static bool embed_is_blank(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != ' ' && (text.p[i] < '\t' || text.p[i] > '\r'))
            return false;
    return true;
}

static bool make_now(struct embed *e, struct str scope, struct str text,
                     enum embed_use use, float *out)
{
    const float *found;

    text = embed_cut(e, text);
    if (e->ops->now) {
        e->ops->now(e, text, out);
        e->stats.texts_total++;
        return true;
    }
    if (e->stamp.dims && embed_is_blank(text)) {
        memset(out, 0, e->stamp.dims * sizeof(*out));
        return true;
    }
    found = use == EMBED_QUERY
                ? cache_get(&e->cache, cache_scope(&e->cache, scope), text)
                : NULL;
    if (!found)
        return false;
    e->stats.cache_hits_total++;
    memcpy(out, found, e->stamp.dims * sizeof(*out));
    return true;
}

bool embed_now(struct embed *e, struct str text, enum embed_use use, float *out)
{
    return make_now(e, STR(""), text, use, out);
}

bool embed_now_for(struct embed *e, struct str scope, struct str text,
                   float *out)
{
    return make_now(e, scope, text, EMBED_QUERY, out);
}

bool embed_quick(struct embed *e, struct str text, float *out)
{
    if (!e->ops->quick)
        return false;
    e->ops->quick(e, embed_cut(e, text), out);
    e->stats.quick_total++;
    return true;
}

/* ERR_BUSY: no room now; ERR_LIMIT: there can never be. A quarter is reserved
 * for queries, so that reloading a registry does not reject questions. */
static enum err embed_check_room(const struct embed *e, size_t n,
                                 size_t n_bytes, enum embed_use use,
                                 struct why *why)
{
    size_t most = e->max_waiting - e->max_waiting / 4;
    size_t most_bytes = e->max_waiting_bytes - e->max_waiting_bytes / 4;

    if (use == EMBED_QUERY) {
        most = e->max_waiting;
        most_bytes = e->max_waiting_bytes;
    }
    if (n > most)
        return why_err(why, ERR_LIMIT,
                       "%zu texts at once are more than embed.maxWaiting, %zu",
                       n, most);
    if (n_bytes > most_bytes)
        return why_err(why, ERR_LIMIT,
                       "%zu bytes of texts and vectors at once are more than "
                       "embed.maxWaitingBytes, %zu",
                       n_bytes, most_bytes);
    if (e->n_waiting + n <= most && e->n_waiting_bytes + n_bytes <= most_bytes)
        return OK;
    return why_err(why, ERR_BUSY,
                   "%zu texts of %zu bytes wait for their vectors, and there "
                   "is no room for %zu more of %zu bytes",
                   e->n_waiting, e->n_waiting_bytes, n, n_bytes);
}

/* Texts that need no work: cached ones, and blank ones, whose vector is zero
 * with every model, since providers reject them. */
static void job_fill_known(struct embed_job *j)
{
    struct embed *e = j->embed;

    for (size_t i = 0; i < j->n; i++) {
        struct embed_text *t = &j->texts[i];
        const float *found = NULL;

        if (embed_is_blank(t->text)) {
            j->n_left--;
            continue;
        }
        if (j->use == EMBED_QUERY)
            found = cache_get(&e->cache, j->by, t->text);
        if (found) {
            memcpy(job_vector(t), found, e->stamp.dims * sizeof(*found));
            j->n_left--;
            j->n_hits++;
        } else {
            t->is_pending = true;
        }
    }
}

static enum err embed_start_job(struct embed *e, struct str scope,
                                const struct str *texts, size_t n,
                                enum embed_use use, embed_done done, void *ctx,
                                uint64_t *id, struct why *why)
{
    size_t n_bytes = embed_vector_bytes(e, n);
    struct embed_job *j;
    enum err err;

    if (e->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (n > EMBED_BATCH_MAX)
        return why_err(why, ERR_LIMIT, "at most %d texts at once, not %zu",
                       EMBED_BATCH_MAX, n);
    for (size_t i = 0; i < n; i++)
        n_bytes += embed_cut(e, texts[i]).n;
    err = embed_check_room(e, n, n_bytes, use, why);
    if (err)
        return err;
    j = embed_job_new(e, texts, n);
    if (!j)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    j->use = use;
    j->by = cache_scope(&e->cache, scope);
    j->done = done;
    j->ctx = ctx;
    job_fill_known(j);
    if (j->n_left && e->ops->may)
        err = e->ops->may(e, why);
    if (!err && (err = job_take_slot(e, j)))
        why_err(why, err, "%s", err_row(err)->wording);
    if (err) {
        embed_job_free(j);
        return err;
    }
    job_set_deadline(j);
    if (use == EMBED_QUERY && embed_is_cached(e)) {
        e->stats.cache_hits_total += (int64_t)j->n_hits;
        e->stats.cache_misses_total += (int64_t)j->n_left;
    }
    *id = j->id;
    job_begin(j);
    return OK;
}

enum err embed_start(struct embed *e, const struct str *texts, size_t n,
                     enum embed_use use, embed_done done, void *ctx,
                     uint64_t *id, struct why *why)
{
    return embed_start_job(e, STR(""), texts, n, use, done, ctx, id, why);
}

enum err embed_start_for(struct embed *e, struct str scope,
                         const struct str *texts, size_t n, embed_done done,
                         void *ctx, uint64_t *id, struct why *why)
{
    return embed_start_job(e, scope, texts, n, EMBED_QUERY, done, ctx, id, why);
}

void embed_cancel(struct embed *e, uint64_t id)
{
    struct embed_job *j = job_find(e, id);

    if (j)
        job_cancel(j);
}

struct embed_stamp embed_stamp(const struct embed *e)
{
    return e->stamp;
}

struct embed_stats embed_stats(const struct embed *e)
{
    struct embed_stats s = e->stats;

    s.kind = e->kind;
    s.waiting = (int64_t)e->n_waiting;
    s.cache_entries = e->cache.n;
    s.is_paused = e->ops->is_paused && e->ops->is_paused(e);
    return s;
}

/* Create and free. */

static void embed_set_limits(struct embed *e, const struct embed_opts *opts)
{
    e->max_waiting = opts->max_waiting;
    e->max_waiting_bytes = opts->max_waiting_bytes;
    e->cache_entries = opts->cache_entries;
    e->timeout_ms = opts->timeout_ms;
}

enum err embed_new(struct embed **out, struct loop *loop, struct log *log,
                   struct fetch *fetch, const struct embed_opts *opts,
                   struct why *why)
{
    return embed_new_with(out, loop, log, fetch, opts, kinds[opts->kind].ops,
                          why);
}

enum err embed_new_with(struct embed **out, struct loop *loop, struct log *log,
                        struct fetch *fetch, const struct embed_opts *opts,
                        const struct embed_ops *ops, struct why *why)
{
    struct embed *e = mem_new(sizeof(*e));
    enum err err;

    *out = NULL;
    e->loop = loop;
    e->log = log;
    e->fetch = fetch;
    e->kind = opts->kind;
    e->ops = ops;
    e->max_text_bytes = EMBED_TEXT_MAX;
    e->first_free = EMBED_NO_SLOT;
    e->deliver.run = on_embed_deliver;
    list_init(&e->jobs);
    list_init(&e->ended);
    cache_init(&e->cache, opts->seed);
    embed_set_limits(e, opts);
    err = e->ops->open(e, opts, why);
    if (err) {
        free(e);
        return err;
    }
    embed_open_cache(e);
    *out = e;
    return OK;
}

enum err embed_check(const struct embed_opts *opts, struct embed_stamp *stamp,
                     struct why *why)
{
    *stamp = (struct embed_stamp){.dims = 0};
    return kinds[opts->kind].ops->check(opts, stamp, why);
}

void embed_set(struct embed *e, const struct embed_opts *opts)
{
    bool is_other_cache = e->cache_entries != opts->cache_entries;

    embed_set_limits(e, opts);
    if (is_other_cache)
        embed_open_cache(e);
    if (e->ops->set)
        e->ops->set(e, opts);
}

void embed_stop(struct embed *e, void (*done)(void *ctx), void *ctx)
{
    struct list_node *n;
    struct why why;

    e->done = done;
    e->done_ctx = ctx;
    loop_at_end(e->loop, &e->deliver);
    if (e->is_stopping)
        return;
    e->is_stopping = true;
    why_err(&why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    while ((n = list_first(&e->jobs)))
        job_end(LIST_OF(n, struct embed_job, node), ERR_STOPPING, &why);
    e->ops->stop(e);
}

/* The kind returns its texts in progress, or forgets them. */
void embed_free(struct embed *e)
{
    struct list_node *n;

    if (!e)
        return;
    while ((n = list_first(&e->jobs)))
        embed_cancel(e, LIST_OF(n, struct embed_job, node)->id);
    while ((n = list_first(&e->ended)))
        job_bury(LIST_OF(n, struct embed_job, node));
    e->ops->close(e);
    assert(!e->n_zombies);
    loop_not_at_end(&e->deliver);
    cache_fini(&e->cache);
    free(e->slots);
    free(e);
}
