/* The one header of three kinds: limits, ids, who waits for what, and a table
 * of what each kind does.
 *
 * A call of embed_start is a job: its texts in one piece of memory, each on its
 * own way through the kind's queue, so that the texts of many small calls
 * travel together and those of a large one do not hold up the rest. A job is
 * over with its last vector or its first failure. Owners are told at the end
 * of a turn and from nowhere else, so that none of them is ever called from
 * inside a call of its own.
 *
 * What a kind works on while its job is given up (a text on the worker's
 * thread) comes back before the job is freed: until then it is a zombie. */
#include "embed/jobs.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"

enum { SLOT_BITS = 24, NO_SLOT = (1 << SLOT_BITS) - 1, FIRST_SLOTS = 16 };

static const struct {
    const char *name;
    const struct embed_ops *ops;
    bool is_cached; /* making it anew is not as fast as finding it */
} kinds[N_EMBED_KINDS] = {
    [EMBED_BUILTIN] = {"builtin", &embed_inline_ops, false},
    [EMBED_MINILM] = {"minilm", &embed_worker_ops, true},
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

bool embed_is_close(const float *scores, size_t n, float margin)
{
    float first = -INFINITY, second = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        float score = isfinite(scores[i]) ? scores[i] : 0;

        if (score > first) {
            second = first;
            first = score;
        } else if (score > second) {
            second = score;
        }
    }
    return n > 1 && first - second < margin;
}

/* The table of jobs. */

static enum err grow_slots(struct embed *e)
{
    uint32_t n = e->n_slots ? e->n_slots * 2 : FIRST_SLOTS;
    struct embed_slot *slots;

    if (n >= NO_SLOT)
        return ERR_BUSY;
    slots =
        FAULT("embed.slots") ? NULL : realloc(e->slots, n * sizeof(*e->slots));
    if (!slots)
        return ERR_NOMEM;
    for (uint32_t i = e->n_slots; i < n; i++)
        slots[i] = (struct embed_slot){NULL, i + 1 < n ? i + 1 : NO_SLOT};
    e->first_free = e->n_slots;
    e->slots = slots;
    e->n_slots = n;
    return OK;
}

static enum err take_slot(struct embed *e, struct embed_job *j)
{
    enum err err = e->first_free == NO_SLOT ? grow_slots(e) : OK;

    if (err)
        return err;
    j->slot = e->first_free;
    e->first_free = e->slots[j->slot].next_free;
    e->slots[j->slot].job = j;
    j->id = (++e->n_ids << SLOT_BITS) | j->slot;
    return OK;
}

static void give_slot(struct embed *e, struct embed_job *j)
{
    if (!j->id)
        return;
    e->slots[j->slot] = (struct embed_slot){NULL, e->first_free};
    e->first_free = j->slot;
    j->id = 0;
}

static struct embed_job *find(const struct embed *e, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & NO_SLOT);
    struct embed_job *j = slot < e->n_slots ? e->slots[slot].job : NULL;

    return j && j->id == id ? j : NULL;
}

/* Jobs. */

static struct str cut_text(const struct embed *e, struct str text)
{
    return str_head(text, e->max_text_bytes);
}

static size_t vector_bytes(const struct embed *e, size_t n)
{
    return n * e->stamp.dims * sizeof(float);
}

/* Memory for its vectors, as soon as it is known how long they are. */
static bool has_room(struct embed_job *j)
{
    size_t bytes = vector_bytes(j->embed, j->n);

    if (j->vectors || !bytes)
        return true;
    j->vectors = FAULT("embed.vectors") ? NULL : calloc(1, bytes);
    if (!j->vectors)
        return false;
    j->n_bytes += bytes;
    if (j->is_counted)
        j->embed->n_waiting_bytes += bytes;
    return true;
}

static void job_free(struct embed_job *j)
{
    assert(!j->n_out && !timer_is_set(&j->deadline));
    give_slot(j->embed, j);
    list_remove(&j->node);
    free(j->vectors);
    free(j);
}

static struct embed_job *job_new(struct embed *e, const struct str *texts,
                                 size_t n)
{
    size_t n_bytes = 0;
    struct embed_job *j;
    char *to;

    for (size_t i = 0; i < n; i++)
        n_bytes += cut_text(e, texts[i]).n;
    j = FAULT("embed.job")
            ? NULL
            : calloc(1, sizeof(*j) + n * sizeof(j->texts[0]) + n_bytes);
    if (!j)
        return NULL;
    j->embed = e;
    j->n = j->n_left = n;
    j->n_bytes = n_bytes;
    to = (char *)&j->texts[n];
    for (size_t i = 0; i < n; i++) {
        struct str text = cut_text(e, texts[i]);

        if (text.n)
            memcpy(to, text.p, text.n);
        j->texts[i] = (struct embed_text){.job = j, .text = {to, text.n}};
        to += text.n;
    }
    if (has_room(j))
        return j;
    free(j);
    return NULL;
}

static float *vector_of(struct embed_text *t)
{
    size_t at = (size_t)(t - t->job->texts);

    return t->job->vectors + at * t->job->embed->stamp.dims;
}

/* It waits, until uncount. */
static void count(struct embed_job *j)
{
    j->is_counted = true;
    j->embed->n_waiting += j->n;
    j->embed->n_waiting_bytes += j->n_bytes;
}

static void uncount(struct embed_job *j)
{
    j->is_counted = false;
    j->embed->n_waiting -= j->n;
    j->embed->n_waiting_bytes -= j->n_bytes;
}

/* Nothing more is made for it. */
static void job_drop_texts(struct embed_job *j)
{
    j->is_over = true;
    loop_timer_cancel(j->embed->loop, &j->deadline);
    uncount(j);
    for (size_t i = 0; i < j->n; i++) {
        struct embed_text *t = &j->texts[i];

        if (!t->is_pending)
            continue;
        t->is_pending = false;
        t->is_dropped = !j->embed->ops->drop(j->embed, t);
        j->n_out += t->is_dropped;
    }
}

/* Its owner is told at the end of the turn. */
static void job_end(struct embed_job *j, enum err err, const struct why *why)
{
    struct embed *e = j->embed;

    j->e = err;
    if (err)
        j->why = *why;
    if (err && err != ERR_STOPPING)
        e->stats.failed_total += (int64_t)j->n_left;
    job_drop_texts(j);
    list_remove(&j->node);
    list_append(&e->ended, &j->node);
    loop_at_end(e->loop, &e->deliver);
}

static void on_deadline(struct timer *t)
{
    struct embed_job *j = LIST_OF(t, struct embed_job, deadline);
    struct why why;

    why_err(&why, ERR_TIMEOUT,
            "%zu of %zu texts had no vector within %lld ms: too much is "
            "before them, or embed.timeoutMs is too short",
            j->n_left, j->n, (long long)j->timeout_ms);
    job_end(j, ERR_TIMEOUT, &why);
}

/* Its owner is told nothing any more. */
static void job_bury(struct embed_job *j)
{
    struct embed *e = j->embed;

    give_slot(e, j);
    list_remove(&j->node);
    if (!j->n_out)
        job_free(j);
    else
        e->n_zombies++;
}

static void job_tell(struct embed_job *j)
{
    struct embed *e = j->embed;
    struct embed_result r = {.stamp = e->stamp, .n = j->n};
    uint64_t id = j->id;

    /* The length may have been learnt only now, if all its texts are blank. */
    if (!j->e && !has_room(j))
        j->e = why_err(&j->why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    r.vectors = j->vectors;
    give_slot(e, j);
    j->done(j->ctx, id, j->e, j->e ? NULL : &r, &j->why);
    job_bury(j);
}

/* What kinds tell us. */

void embed_made(struct embed_text *t, const float *vector)
{
    struct embed_job *j = t->job;
    struct embed *e = j->embed;
    struct why why;

    t->is_pending = false;
    e->stats.texts_total++;
    if (j->use == EMBED_QUERY)
        cache_put(&e->cache, t->text, vector);
    if (!has_room(j)) {
        why_err(&why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
        job_end(j, ERR_NOMEM, &why);
        return;
    }
    memcpy(vector_of(t), vector, e->stamp.dims * sizeof(float));
    if (--j->n_left == 0)
        job_end(j, OK, NULL);
}

void embed_failed(struct embed_text *t, enum err e, const struct why *why)
{
    t->is_pending = false;
    job_end(t->job, e, why);
}

void embed_back(struct embed_text *t)
{
    struct embed_job *j = t->job;
    struct embed *e = j->embed;

    assert(t->is_dropped && j->n_out);
    t->is_dropped = false;
    if (--j->n_out || j->id || list_has(&j->node))
        return;
    e->n_zombies--;
    job_free(j);
    if (e->is_stopping)
        loop_at_end(e->loop, &e->deliver);
}

static bool is_cached(const struct embed *e)
{
    return kinds[e->kind].is_cached && e->cache_entries;
}

static void open_cache(struct embed *e)
{
    cache_set(&e->cache, is_cached(e) ? e->cache_entries : 0, e->stamp.dims);
}

void embed_learn_dims(struct embed *e, uint32_t dims)
{
    if (e->stamp.dims == dims)
        return;
    e->stamp.dims = dims;
    open_cache(e);
}

void embed_down(struct embed *e)
{
    e->is_down = true;
    loop_at_end(e->loop, &e->deliver);
}

static void on_deliver(struct loop_job *job)
{
    struct embed *e = LIST_OF(job, struct embed, deliver);
    void (*done)(void *ctx);
    struct list_node *n;
    struct list ended;

    /* What owners begin and end meanwhile has its turn after these. */
    list_init(&ended);
    list_append_all(&ended, &e->ended);
    while ((n = list_first(&ended)))
        job_tell(LIST_OF(n, struct embed_job, node));
    if (!e->is_stopping || !e->is_down || !list_is_empty(&e->ended) ||
        e->n_zombies)
        return;
    done = e->done; /* which one of those may have set */
    e->done = NULL;
    if (done)
        done(e->done_ctx);
}

/* What owners ask for. */

static bool is_blank(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != ' ' && (text.p[i] < '\t' || text.p[i] > '\r'))
            return false;
    return true;
}

bool embed_now(struct embed *e, struct str text, enum embed_use use, float *out)
{
    const float *found;

    text = cut_text(e, text);
    if (e->ops->now) {
        e->ops->now(e, text, out);
        e->stats.texts_total++;
        return true;
    }
    if (e->stamp.dims && is_blank(text)) {
        memset(out, 0, e->stamp.dims * sizeof(*out));
        return true;
    }
    found = use == EMBED_QUERY ? cache_get(&e->cache, text) : NULL;
    if (!found)
        return false;
    e->stats.cache_hits_total++;
    memcpy(out, found, e->stamp.dims * sizeof(*out));
    return true;
}

/* ERR_BUSY: there is no room; ERR_LIMIT: there never will be. A quarter is kept
 * free of documents, so that a registry that is read anew does not turn
 * questions away. */
static enum err check_room(const struct embed *e, size_t n, size_t n_bytes,
                           enum embed_use use, struct why *why)
{
    size_t most = e->max_waiting - e->max_waiting / 4;
    size_t most_bytes = e->max_waiting_bytes - e->max_waiting_bytes / 4;

    if (use == EMBED_QUERY) {
        most = e->max_waiting;
        most_bytes = e->max_waiting_bytes;
    }
    if (n > most)
        return why_err(why, ERR_LIMIT,
                       "%zu texts at once are more than the %zu that "
                       "embed.maxWaiting lets wait",
                       n, most);
    if (n_bytes > most_bytes)
        return why_err(why, ERR_LIMIT,
                       "%zu bytes of texts and vectors at once are more than "
                       "the %zu that embed.maxWaitingBytes lets wait",
                       n_bytes, most_bytes);
    if (e->n_waiting + n <= most && e->n_waiting_bytes + n_bytes <= most_bytes)
        return OK;
    return why_err(why, ERR_BUSY,
                   "%zu texts of %zu bytes wait for their vectors, and there "
                   "is no room for %zu more of %zu bytes",
                   e->n_waiting, e->n_waiting_bytes, n, n_bytes);
}

/* What needs no work: texts that the cache has, and those with nothing in
 * them, whose vector is zero with every model; providers refuse them. */
static void fill_known(struct embed_job *j)
{
    struct embed *e = j->embed;

    for (size_t i = 0; i < j->n; i++) {
        struct embed_text *t = &j->texts[i];
        const float *found = NULL;

        if (is_blank(t->text)) {
            j->n_left--;
            continue;
        }
        if (j->use == EMBED_QUERY)
            found = cache_get(&e->cache, t->text);
        if (found) {
            memcpy(vector_of(t), found, e->stamp.dims * sizeof(*found));
            j->n_left--;
            j->n_hits++;
        } else {
            t->is_pending = true;
        }
    }
}

static void job_begin(struct embed_job *j)
{
    struct embed *e = j->embed;

    count(j);
    list_append(&e->jobs, &j->node);
    if (j->use == EMBED_QUERY && is_cached(e)) {
        e->stats.cache_hits_total += (int64_t)j->n_hits;
        e->stats.cache_misses_total += (int64_t)j->n_left;
    }
    if (!j->n_left)
        job_end(j, OK, NULL);
    for (size_t i = 0; i < j->n && !j->is_over; i++)
        if (j->texts[i].is_pending)
            e->ops->take(e, &j->texts[i]);
}

static enum err set_deadline(struct embed_job *j)
{
    j->timeout_ms =
        j->embed->timeout_ms * (j->use == EMBED_QUERY ? 1 : EMBED_PATIENCE);
    j->deadline.fire = on_deadline;
    return loop_timer_set(j->embed->loop, &j->deadline, j->timeout_ms);
}

enum err embed_start(struct embed *e, const struct str *texts, size_t n,
                     enum embed_use use, embed_done done, void *ctx,
                     uint64_t *id, struct why *why)
{
    size_t n_bytes = vector_bytes(e, n);
    struct embed_job *j;
    enum err err;

    if (e->is_stopping)
        return why_err(why, ERR_STOPPING, "%s", err_row(ERR_STOPPING)->wording);
    if (n > EMBED_BATCH_MAX)
        return why_err(why, ERR_LIMIT, "at most %d texts at once, not %zu",
                       EMBED_BATCH_MAX, n);
    for (size_t i = 0; i < n; i++)
        n_bytes += cut_text(e, texts[i]).n;
    err = check_room(e, n, n_bytes, use, why);
    if (err)
        return err;
    j = job_new(e, texts, n);
    if (!j)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    j->use = use;
    j->done = done;
    j->ctx = ctx;
    fill_known(j);
    if (j->n_left && e->ops->may)
        err = e->ops->may(e, why);
    if (!err && ((err = take_slot(e, j)) || (err = set_deadline(j))))
        why_err(why, err, "%s", err_row(err)->wording);
    if (err) {
        job_free(j);
        return err;
    }
    *id = j->id;
    job_begin(j);
    return OK;
}

void embed_cancel(struct embed *e, uint64_t id)
{
    struct embed_job *j = find(e, id);

    if (!j)
        return;
    if (!j->is_over)
        job_drop_texts(j);
    job_bury(j);
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

/* Life and death. */

static void set_limits(struct embed *e, const struct embed_opts *opts)
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
    struct embed *e = FAULT("embed.new") ? NULL : calloc(1, sizeof(*e));
    enum err err;

    *out = NULL;
    if (!e)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    e->loop = loop;
    e->log = log;
    e->fetch = fetch;
    e->kind = opts->kind;
    e->ops = ops;
    e->max_text_bytes = EMBED_TEXT_MAX;
    e->first_free = NO_SLOT;
    e->deliver.run = on_deliver;
    list_init(&e->jobs);
    list_init(&e->ended);
    cache_init(&e->cache, opts->seed);
    set_limits(e, opts);
    err = e->ops->open(e, opts, why);
    if (err) {
        free(e);
        return err;
    }
    open_cache(e);
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

    set_limits(e, opts);
    if (is_other_cache)
        open_cache(e);
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

/* The kind gives back what it has out, or forgets it. */
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
