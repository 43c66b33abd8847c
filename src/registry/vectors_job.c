/* The job of one agent without vectors: its texts go to the model, some at a
 * time; the results into a row; and with the commit of the row into the index.
 *
 * The row is guarded by the revision of the card that it was made from. So an
 * intervening change wins, and its agent is in the list again. A job knows its
 * entry until that goes (vectors_forget); then it ends as soon as possible and
 * has no further effect. In any case backlog.c is told once and decides what
 * comes next. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "registry/internal.h"

enum {
    BATCH_BYTES = 128 * 1024, /* and one text more */
    TEXTS_BYTES_MAX = 8 * 1024 * 1024,
};

static struct vectors_job *vectors_job_new(struct vectors *v, struct entry *e)
{
    struct vectors_job *j = mem_new(sizeof(*j));

    j->all = v;
    j->entry = e;
    j->round = v->round;
    j->batch = backlog_slices(v).texts;
    arena_init(&j->arena, TEXTS_BYTES_MAX);
    buf_init(&j->packed, VECTORS_BYTES_MAX);
    tx_init(&j->tx);
    list_append(&v->jobs, &j->node);
    v->n_jobs++;
    e->job = j;
    backlog_joined(v, e);
    return j;
}

/* Its entry, if any, is in no list then. */
static void vectors_job_free(struct vectors_job *j)
{
    struct vectors *v = j->all;

    assert(!j->ask_id && !j->is_written);
    if (j->entry) {
        backlog_left(v, j->entry, j);
        j->entry->job = NULL;
    }
    list_remove(&j->node);
    v->n_jobs--;
    if (j->change)
        index_forget(v->r->index, j->change);
    tx_fini(&j->tx);
    buf_fini(&j->packed);
    arena_fini(&j->arena);
    free(j);
}

/* Cancel the pending request. */
static void job_unask(struct vectors_job *j)
{
    if (!j->ask_id)
        return;
    embed_cancel(j->all->r->opts.embed, j->ask_id);
    j->ask_id = 0;
    j->all->n_texts_out -= j->n_asked;
    j->n_asked = 0;
}

static void job_fail(struct vectors_job *j, enum err err, const char *why)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    vectors_job_free(j);
    backlog_failed(v, e, err, why);
}

static void job_fail_nomem(struct vectors_job *j)
{
    job_fail(j, ERR_NOMEM, err_row(ERR_NOMEM)->wording);
}

/* Runs before the row is written, so that the index can follow the commit.
 * ERR_BAD_REQUEST: unusable, because other vectors are expected by now. */
static enum err job_prepare_index(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    const struct agent *a = &j->entry->agent;
    struct buf own;
    enum err e = OK;

    buf_init(&own, VECTORS_BYTES_MAX);
    if (!vectors_for_index(r, a, buf_str(&j->packed), &own))
        e = own.over ? ERR_NOMEM : ERR_BAD_REQUEST;
    if (!e)
        e = vectors_prepare(r, a, &own, &j->change);
    buf_fini(&own);
    snprintf(j->org, sizeof(j->org), "%.*s", STR_ARG(a->org));
    return e;
}

/* The model may have changed meanwhile. */
static bool entry_has_vectors(const struct registry *r, const struct entry *e)
{
    struct buf own;
    bool has;

    buf_init(&own, VECTORS_BYTES_MAX);
    has = index_vectors(r->index, e->number, &own);
    buf_fini(&own);
    return has;
}

static void job_settle(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;
    uint64_t round = j->round;

    seq_settle(v->r);
    if (!e) {
        vectors_job_free(j);
        backlog_overtaken(v, NULL);
        return;
    }
    index_put(v->r->index, e->number, j->change);
    j->change = NULL;
    index_found(v->r, e);
    if (e->is_aside || !str_eq(e->agent.org, str_of(j->org)))
        index_follow(v->r, e); /* or its creator has changed orgs */
    vectors_job_free(j);
    if (entry_has_vectors(v->r, e))
        backlog_made(v, e, round);
    else
        backlog_overtaken(v, e);
}

/* Another card exists: its entry has arrived or is about to. */
static void job_step_back(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    vectors_job_free(j);
    backlog_overtaken(v, e);
}

static void job_on_written(struct tx *tx, void *ctx)
{
    struct vectors_job *j = ctx;

    j->is_written = false;
    switch (tx->result) {
    case TX_COMMITTED: job_settle(j); break;
    case TX_GUARD_FAILED: job_step_back(j); break;
    case TX_REFUSED:
    case TX_FATAL: job_fail(j, tx->err, err_row(tx->err)->wording); break;
    }
}

static void job_write_row(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    const struct agent *a = &j->entry->agent;
    enum err e = job_prepare_index(j);
    struct tx_op *op;

    if (e) {
        job_fail(j, e,
                 e == ERR_BAD_REQUEST ? "its vectors are of no use"
                                      : err_row(e)->wording);
        return;
    }
    op = tx_expect(&j->tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(j->entry->key));
    tx_if(op, AGENT_REVISION, IS, value_int(a->revision));
    vectors_append(r, &j->tx, a, buf_str(&j->packed));
    seq_append(r, &j->tx);
    j->is_written = true;
    store_submit(r->opts.store, &j->tx, job_on_written, j);
}

static void job_on_vectors(void *ctx, uint64_t id, enum err e,
                           const struct embed_result *r, const struct why *why);

/* While the length of vectors is unknown, a batch is never too large. */
static size_t job_n_texts(const struct vectors_job *j)
{
    uint32_t dims = j->all->stamp.dims;

    return dims ? vectors_kept(&j->entry->agent, dims) : j->texts.n;
}

static size_t job_next_batch(const struct vectors_job *j)
{
    size_t most = job_n_texts(j) - j->at, bytes = 0, n = 0;

    if (most > j->batch)
        most = j->batch;
    while (n < most && bytes < BATCH_BYTES)
        bytes += j->texts.list[j->at + n++].n;
    return n;
}

void vectors_job_go_on(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct why why = {""};
    enum err e;

    for (;;) {
        j->n_asked = job_next_batch(j);
        e = embed_start(v->r->opts.embed, j->texts.list + j->at, j->n_asked,
                        EMBED_DOCUMENT, job_on_vectors, j, &j->ask_id, &why);
        if (e != ERR_LIMIT || j->n_asked < 2)
            break;
        j->batch = j->n_asked / 2; /* so many would never fit into its queue */
    }
    if (e) {
        j->ask_id = 0;
        job_fail(j, e, why.text);
        return;
    }
    v->n_texts_out += j->n_asked;
}

/* The results have the length that the index has. */
static bool job_can_use(const struct vectors *v, const struct embed_result *r)
{
    return r->stamp.dims && r->stamp.dims == v->stamp.dims;
}

static void job_on_vectors(void *ctx, uint64_t id, enum err e,
                           const struct embed_result *r, const struct why *why)
{
    struct vectors_job *j = ctx;
    struct vectors *v = j->all;
    uint32_t dims;

    (void)id;
    j->ask_id = 0;
    v->n_texts_out -= j->n_asked;
    if (e) {
        job_fail(j, e, why->text);
        return;
    }
    vectors_learn(v->r);
    dims = v->stamp.dims;
    if (vectors_obstacle(v->r) || !job_can_use(v, r)) {
        job_fail(j, ERR_BAD_REQUEST, "its vectors are of no use");
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!vectors_pack(&j->packed, r->vectors + i * dims, dims)) {
            job_fail_nomem(j);
            return;
        }
    j->at += j->n_asked;
    j->n_asked = 0;
    if (j->at < job_n_texts(j))
        backlog_ready(v, j);
    else
        job_write_row(j);
}

void vectors_job_begin(struct vectors *v, struct entry *e)
{
    struct vectors_job *j = vectors_job_new(v, e);

    if (vectors_texts(&j->arena, &e->agent, &j->texts))
        job_fail_nomem(j);
    else
        vectors_job_go_on(j);
}

bool vectors_job_drop(struct vectors_job *j)
{
    job_unask(j);
    if (j->is_written)
        return false;
    vectors_job_free(j);
    return true;
}
