/* What is done for one agent that has no vectors: its texts to the model, some
 * at a time; what comes back into a row; and with the row's commit into the
 * index.
 *
 * The row is written under the guard that the card is still that of the
 * revision it was made from: so a change that came between wins, and its agent
 * is in the list anew. A job knows its entry until that goes (vectors_forget);
 * then it ends as soon as it can and does nothing any more. Whatever becomes
 * of it, backlog.c hears of it once and says what next. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "registry/internal.h"

enum {
    BATCH_TEXTS = 64,
    BATCH_BYTES = 128 * 1024, /* and one text more */
    TEXTS_BYTES_MAX = 8 * 1024 * 1024,
};

static_assert((int)BATCH_TEXTS <= (int)EMBED_BATCH_MAX,
              "one call takes a batch");

static struct vectors_job *job_new(struct vectors *v, struct entry *e)
{
    struct vectors_job *j = FAULT("vectors.job") ? NULL : calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->all = v;
    j->entry = e;
    j->round = v->round;
    j->batch = BATCH_TEXTS;
    arena_init(&j->arena, TEXTS_BYTES_MAX);
    buf_init(&j->packed, VECTORS_BYTES_MAX);
    tx_init(&j->tx);
    list_append(&v->jobs, &j->node);
    v->n_jobs++;
    e->job = j;
    return j;
}

/* Its entry, if it has one still, is nowhere then. */
static void job_free(struct vectors_job *j)
{
    struct vectors *v = j->all;

    assert(!j->ask_id && !j->is_written);
    if (j->entry)
        j->entry->job = NULL;
    list_remove(&j->node);
    v->n_jobs--;
    if (j->change)
        index_forget(v->r->index, j->change);
    tx_fini(&j->tx);
    buf_fini(&j->packed);
    arena_fini(&j->arena);
    free(j);
}

/* What is asked for is not needed any more. */
static void job_unask(struct vectors_job *j)
{
    if (!j->ask_id)
        return;
    embed_cancel(j->all->r->opts.embed, j->ask_id);
    j->ask_id = 0;
    j->all->n_texts_out -= j->n_asked;
    j->n_asked = 0;
}

static void fail_job(struct vectors_job *j, enum err err, const char *why)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    job_free(j);
    backlog_failed(v, e, err, why);
}

static void fail_nomem(struct vectors_job *j)
{
    fail_job(j, ERR_NOMEM, err_row(ERR_NOMEM)->wording);
}

/* From the row into the index. */

/* Before the row is written, so that the index can follow the commit.
 * ERR_BAD_REQUEST: they are of no use, since others are expected by now. */
static enum err prepare_index(struct vectors_job *j)
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

static void put_into_index(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    struct entry *e = j->entry;

    index_put(r->index, e->number, j->change);
    j->change = NULL;
    index_found(r, e);
    if (!str_eq(e->agent.org, str_of(j->org)))
        index_follow(r, e); /* its creator has moved meanwhile */
}

/* The model may have turned out to be another one meanwhile. */
static bool has_vectors(const struct registry *r, const struct entry *e)
{
    struct buf own;
    bool has;

    buf_init(&own, VECTORS_BYTES_MAX);
    has = index_vectors(r->index, e->number, &own);
    buf_fini(&own);
    return has;
}

static void settle(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;
    uint64_t round = j->round;

    seq_settle(v->r);
    if (!e) {
        job_free(j);
        backlog_overtaken(v, NULL);
        return;
    }
    put_into_index(j);
    job_free(j);
    if (has_vectors(v->r, e))
        backlog_made(v, e, round);
    else
        backlog_overtaken(v, e);
}

/* Another card is there: its entry has come, or comes any moment. */
static void step_back(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct entry *e = j->entry;

    job_free(j);
    backlog_overtaken(v, e);
}

static void on_written(struct tx *tx, void *ctx)
{
    struct vectors_job *j = ctx;

    j->is_written = false;
    switch (tx->result) {
    case TX_COMMITTED: settle(j); break;
    case TX_GUARD_FAILED: step_back(j); break;
    case TX_REFUSED:
    case TX_FATAL: fail_job(j, tx->err, err_row(tx->err)->wording); break;
    }
}

static void write_row(struct vectors_job *j)
{
    struct registry *r = j->all->r;
    const struct agent *a = &j->entry->agent;
    enum err e = prepare_index(j);
    struct tx_op *op;

    if (e) {
        fail_job(j, e,
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
    store_submit(r->opts.store, &j->tx, on_written, j);
}

/* From texts to the row. */

static void on_vectors(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why);

/* Where it is not known yet how long they are, a batch is never too many. */
static size_t n_wanted(const struct vectors_job *j)
{
    uint32_t dims = j->all->stamp.dims;

    return dims ? vectors_kept(&j->entry->agent, dims) : j->texts.n;
}

static size_t next_batch(const struct vectors_job *j)
{
    size_t most = n_wanted(j) - j->at, bytes = 0, n = 0;

    if (most > j->batch)
        most = j->batch;
    while (n < most && bytes < BATCH_BYTES)
        bytes += j->texts.list[j->at + n++].n;
    return n;
}

static void ask(struct vectors_job *j)
{
    struct vectors *v = j->all;
    struct why why = {""};
    enum err e;

    for (;;) {
        j->n_asked = next_batch(j);
        e = embed_start(v->r->opts.embed, j->texts.list + j->at, j->n_asked,
                        EMBED_DOCUMENT, on_vectors, j, &j->ask_id, &why);
        if (e != ERR_LIMIT || j->n_asked < 2)
            break;
        j->batch = j->n_asked / 2; /* so many could never wait */
    }
    if (e) {
        j->ask_id = 0;
        fail_job(j, e, why.text);
        return;
    }
    v->n_texts_out += j->n_asked;
}

/* What came is of the length that the index has. */
static bool is_usable(const struct vectors *v, const struct embed_result *r)
{
    return r->stamp.dims && r->stamp.dims == v->stamp.dims;
}

static void on_vectors(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why)
{
    struct vectors_job *j = ctx;
    struct vectors *v = j->all;
    uint32_t dims;

    (void)id;
    j->ask_id = 0;
    v->n_texts_out -= j->n_asked;
    if (e) {
        fail_job(j, e, why->text);
        return;
    }
    vectors_learn(v->r);
    dims = v->stamp.dims;
    if (vectors_obstacle(v->r) || !is_usable(v, r)) {
        fail_job(j, ERR_BAD_REQUEST, "its vectors are of no use");
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!vectors_pack(&j->packed, r->vectors + i * dims, dims)) {
            fail_nomem(j);
            return;
        }
    j->at += j->n_asked;
    j->n_asked = 0;
    if (j->at < n_wanted(j))
        ask(j);
    else
        write_row(j);
}

/* What the backlog asks for. */

void vectors_job_begin(struct vectors *v, struct entry *e)
{
    struct vectors_job *j = job_new(v, e);

    if (!j)
        backlog_failed(v, e, ERR_NOMEM, err_row(ERR_NOMEM)->wording);
    else if (vectors_texts(&j->arena, &e->agent, &j->texts))
        fail_nomem(j);
    else
        ask(j);
}

bool vectors_job_drop(struct vectors_job *j)
{
    job_unask(j);
    if (j->is_written)
        return false;
    job_free(j);
    return true;
}
