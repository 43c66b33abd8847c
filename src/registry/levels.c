/* The reference vectors, from which the levels of cards are made
 * (registry/index/level.c).
 *
 *     a model at hand     embedded when the registry is opened
 *     a slow one          requested once the loop runs, some texts at a time so
 *                         that cards get theirs in between, and again after a
 *                         pause if that fails
 *     of two parts        the quick ones when the registry is opened, the full
 *                         ones like those of a slow one
 *     then                stored in a row under the stamp of the model, and
 *                         given to the index, which computes the levels of the
 *                         present cards, some a turn
 *
 * The row lets a provider embed the texts once per stamp, and keeps the levels
 * in force while the provider is away, also over a restart. Until the vectors
 * are there no level is known, and choices are unsure.
 *
 * Rejected: a level in every agent's row. A start without a snapshot computes
 * them from the vectors in microseconds per card, and one row is simpler than a
 * hundred thousand that must follow the texts. */
#include "registry/internal.h"

enum {
    BATCH_TEXTS = 64,
    CARDS_FIRST_MS = 100, /* between batches while cards wait for vectors */
    WAIT_FIRST_MS = 1000,
    WAIT_MAX_MS = 5 * 60 * 1000,
    REFERENCE_BYTES_MAX = 32 * 1024 * 1024,
};

static const struct column reference_columns[] = {
    REFERENCE_COLUMNS(COLUMN_ROW)};

const struct table reference_table = {
    .name = "reference_vectors",
    .columns = reference_columns,
    .n_columns = N_REFERENCE_COLUMNS,
    .n_key = 1,
    .since = 3,
};

static void levels_ask(struct levels *l);

static void levels_on_turn(struct loop_job *job)
{
    struct levels *l = LIST_OF(job, struct levels, turn);

    if (index_level_turn(l->r->index))
        loop_next_turn(l->r->opts.loop, &l->turn);
    else
        l->r->stats.has_levels = index_references(l->r->index) > 0;
}

static void levels_take_full(struct levels *l)
{
    struct index *x = l->r->index;
    size_t each = vec_packed_bytes(index_dims(x));

    l->r->stats.has_levels = false;
    if (index_set_reference(x, (const uint8_t *)l->packed.p,
                            l->packed.n / each) != OK)
        log_warn(l->r->opts.log, "registry.no_levels",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
    else if (l->is_begun)
        loop_next_turn(l->r->opts.loop, &l->turn);
}

/* The quick ones, where the model has them: computed at once and not stored.
 * Without them choices by quick vectors are unsure. */
static void levels_take_quick(struct levels *l)
{
    struct registry *r = l->r;
    uint32_t dims = index_dims(r->index);
    float v[INDEX_DIMS_MAX];
    bool levels_are_complete = true;
    struct buf packed;

    if (!l->texts.n || !vectors_have_quick(r) ||
        index_quick_references(r->index))
        return;
    buf_init(&packed, REFERENCE_BYTES_MAX);
    for (size_t i = 0; levels_are_complete && i < l->texts.n; i++)
        levels_are_complete = embed_quick(r->opts.embed, l->texts.list[i], v) &&
                              vectors_pack(&packed, v, dims);
    if (!levels_are_complete ||
        index_set_quick_reference(r->index, (const uint8_t *)packed.p,
                                  l->texts.n) != OK)
        log_warn(r->opts.log, "registry.no_levels",
                 LOG_C("because", err_row(ERR_NOMEM)->wording));
    buf_fini(&packed);
}

static bool levels_row_matches(const struct levels *l, const struct row *row)
{
    struct embed_stamp s = l->r->vectors->stamp;
    int64_t dims = row_int(row, REFERENCE_DIMS);
    struct str bytes = row_str(row, REFERENCE_BYTES);

    return dims > 0 && dims <= INDEX_DIMS_MAX && (!s.dims || s.dims == dims) &&
           str_eq(row_str(row, REFERENCE_HASH), str_of(s.hash)) &&
           row_int(row, REFERENCE_TEXTS) == l->sum &&
           bytes.n == l->texts.n * vec_packed_bytes((size_t)dims);
}

/* All vectors are present, with the length of the index. */
static bool levels_are_complete(const struct levels *l)
{
    uint32_t dims = index_dims(l->r->index);

    return dims && l->packed.n == l->texts.n * vec_packed_bytes(dims);
}

/* Runs before the vectors of agents are read: the row of a provider tells their
 * length, and a snapshot has brought an index without reference vectors. */
enum err levels_load(struct registry *r)
{
    struct levels *l = r->vectors ? &r->vectors->levels : NULL;
    struct query q;
    enum err e;

    if (!l || !l->texts.n)
        return OK;
    levels_take_quick(l);
    if (levels_are_complete(l)) {
        levels_take_full(l);
        return OK;
    }
    query_init(&q, &reference_table, 1);
    query_if(&q, REFERENCE_MODEL, IS,
             value_text(str_of(r->vectors->stamp.name)));
    e = store_look(r->opts.store, &q);
    if (!e && q.rows && levels_row_matches(l, q.rows)) {
        buf_clear(&l->packed);
        buf_add_str(&l->packed, row_str(q.rows, REFERENCE_BYTES));
        if (l->packed.over)
            e = ERR_NOMEM;
        else if (levels_are_complete(l))
            levels_take_full(l);
    }
    query_fini(&q);
    return e;
}

static void levels_on_written(struct tx *tx, void *ctx)
{
    struct levels *l = ctx;

    l->is_writing = false;
    if (tx->result != TX_COMMITTED)
        log_warn(l->r->opts.log, "registry.reference_not_kept",
                 LOG_C("because", err_row(tx->err)->wording));
    tx_fini(tx);
}

/* A failure only costs embedding the texts again at the next start. */
static void levels_write_row(struct levels *l)
{
    const struct embed_stamp *s = &l->r->vectors->stamp;
    struct tx_op *op;

    if (l->is_writing)
        return; /* the tx of a previous length is still pending */
    tx_init(&l->tx);
    op = tx_put(&l->tx, &reference_table);
    tx_set(op, REFERENCE_MODEL, value_text(str_of(s->name)));
    tx_set(op, REFERENCE_HASH, value_text(str_of(s->hash)));
    tx_set(op, REFERENCE_TEXTS, value_int(l->sum));
    tx_set(op, REFERENCE_DIMS, value_int(index_dims(l->r->index)));
    tx_set(op, REFERENCE_BYTES, value_blob(buf_str(&l->packed)));
    l->is_writing = true;
    store_submit(l->r->opts.store, &l->tx, levels_on_written, l);
}

static void levels_on_timer(struct timer *t)
{
    levels_ask(LIST_OF(t, struct levels, timer));
}

static void levels_ask_in(struct levels *l, int64_t ms)
{
    l->timer.fire = levels_on_timer;
    loop_timer_set(l->r->opts.loop, &l->timer, ms);
}

static void levels_retry(struct levels *l)
{
    l->wait_ms = l->wait_ms ? 2 * l->wait_ms : WAIT_FIRST_MS;
    if (l->wait_ms > WAIT_MAX_MS)
        l->wait_ms = WAIT_MAX_MS;
    levels_ask_in(l, l->wait_ms);
}

static void levels_on_vectors(void *ctx, uint64_t id, enum err e,
                              const struct embed_result *result,
                              const struct why *why)
{
    struct levels *l = ctx;
    bool is_good = !e;

    (void)id, (void)why;
    l->ask_id = 0;
    if (e == ERR_STOPPING)
        return;
    vectors_learn(l->r);
    if (timer_is_set(&l->timer))
        return; /* it restarts, with vectors of another length */
    if (is_good && result->stamp.dims != index_dims(l->r->index))
        is_good = false;
    for (size_t i = 0; is_good && i < result->n; i++)
        is_good =
            vectors_pack(&l->packed, result->vectors + i * result->stamp.dims,
                         result->stamp.dims);
    if (!is_good) {
        l->packed.n = l->at * vec_packed_bytes(index_dims(l->r->index));
        l->r->stats.reference_failures_total++;
        levels_retry(l);
        return;
    }
    l->wait_ms = 0;
    l->at += result->n;
    if (l->at < l->texts.n) {
        /* Queries go before documents. A model of two parts has quick vectors
         * of all cards meanwhile, and its full levels come first. */
        if (l->r->stats.unembedded && !vectors_have_quick(l->r))
            levels_ask_in(l, CARDS_FIRST_MS);
        else
            levels_ask(l);
        return;
    }
    levels_take_full(l);
    levels_write_row(l);
}

/* Embedded as queries, which they stand for. */
static void levels_ask(struct levels *l)
{
    struct registry *r = l->r;
    size_t n =
        l->texts.n - l->at < BATCH_TEXTS ? l->texts.n - l->at : BATCH_TEXTS;

    if (r->is_stopped || vectors_obstacle(r))
        return;
    if (!l->at)
        buf_clear(&l->packed);
    if (embed_start(r->opts.embed, l->texts.list + l->at, n, EMBED_QUERY,
                    levels_on_vectors, l, &l->ask_id, NULL) != OK) {
        l->ask_id = 0;
        levels_retry(l);
    }
}

/* All at once, if the model is a table. */
static bool levels_embed_now(struct levels *l)
{
    struct embed *embed = l->r->opts.embed;
    uint32_t dims = index_dims(l->r->index);
    float v[INDEX_DIMS_MAX];

    if (!dims || embed_stats(embed).kind != EMBED_TABLE)
        return false;
    for (size_t i = 0; i < l->texts.n; i++)
        if (!embed_now(embed, l->texts.list[i], EMBED_QUERY, v) ||
            !vectors_pack(&l->packed, v, dims))
            return false;
    return true;
}

/* FNV-1a. */
static uint32_t texts_hash(struct strs texts)
{
    uint32_t h = UINT32_C(0x811c9dc5);

    for (size_t i = 0; i < texts.n; i++)
        for (size_t k = 0; k <= texts.list[i].n; k++) {
            struct str t = texts.list[i];
            unsigned char c = k < t.n ? (unsigned char)t.p[k] : '\n';

            h = (h ^ c) * UINT32_C(0x01000193);
        }
    return h;
}

void levels_open(struct registry *r)
{
    struct levels *l = &r->vectors->levels;

    l->r = r;
    l->turn.run = levels_on_turn;
    l->texts = r->opts.reference;
    if (l->texts.n > INDEX_REFERENCE_MAX)
        l->texts.n = INDEX_REFERENCE_MAX;
    l->sum = texts_hash(l->texts);
    buf_init(&l->packed, REFERENCE_BYTES_MAX);
    if (levels_embed_now(l))
        levels_take_full(l);
    levels_take_quick(l);
}

void levels_begin(struct registry *r)
{
    struct levels *l = &r->vectors->levels;

    l->is_begun = true;
    if (l->texts.n &&
        (levels_are_complete(l) || index_quick_references(r->index)))
        loop_next_turn(r->opts.loop, &l->turn);
    if (l->texts.n && !levels_are_complete(l))
        levels_ask(l);
}

/* The index may now have vectors of another length, and then it has no
 * reference vectors. */
void levels_again(struct registry *r)
{
    struct levels *l = &r->vectors->levels;

    if (!l->texts.n || index_references(r->index))
        return;
    r->stats.has_levels = false;
    if (levels_are_complete(l)) {
        levels_take_full(l); /* a row of that length was loaded */
        return;
    }
    if (!l->at && !l->packed.n)
        return; /* the first answer told the length */
    if (l->ask_id)
        embed_cancel(r->opts.embed, l->ask_id); /* vectors of later texts */
    l->ask_id = 0;
    l->at = 0;
    if (l->is_begun && !timer_is_set(&l->timer))
        levels_retry(l);
}

void levels_stop(struct registry *r)
{
    struct levels *l = &r->vectors->levels;

    if (l->ask_id)
        embed_cancel(r->opts.embed, l->ask_id);
    l->ask_id = 0;
    loop_timer_cancel(r->opts.loop, &l->timer);
    loop_not_at_end(&l->turn);
}

void levels_close(struct registry *r)
{
    struct levels *l = &r->vectors->levels;

    assert(!l->is_writing); /* the store has returned the tx */
    buf_fini(&l->packed);
}
