/* The kinds that run on the worker's threads: minilm from its file, the
 * transformer inside the binary, and builtin, which joins that and the table in
 * one vector. */
#include "embed/jobs.h"

#include <stdlib.h>

#include "base/mem.h"

/* The loop (quick vectors) and both threads read the model and the table; none
 * of them writes. */
struct on_thread {
    struct minilm *model;
    struct minilm_scratch *scratch[N_EMBED_USES]; /* one per thread */
    struct builtin table;                         /* for builtin */
};

static void on_thread_close(void *ctx)
{
    struct on_thread *s = ctx;

    for (enum embed_use u = 0; u < N_EMBED_USES; u++)
        minilm_scratch_free(s->scratch[u]);
    minilm_close(s->model);
    free(s);
}

static void make_one_part(void *ctx, enum embed_use use,
                          const struct str *texts, size_t n, float *out)
{
    struct on_thread *s = ctx;

    minilm_embed_many(s->model, s->scratch[use], texts, n, out);
}

static void make_both_parts(void *ctx, enum embed_use use,
                            const struct str *texts, size_t n, float *out)
{
    float made[WORKER_BATCH * TRANSFORMER_DIMS];
    struct on_thread *s = ctx;

    minilm_embed_many(s->model, s->scratch[use], texts, n, made);
    for (size_t i = 0; i < n; i++) {
        float *v = out + i * BOTH_DIMS;

        builtin_embed(&s->table, texts[i], v);
        memcpy(v + BUILTIN_DIMS, made + i * TRANSFORMER_DIMS,
               TRANSFORMER_DIMS * sizeof(*v));
        (void)vec_join(v, BOTH_DIMS, BUILTIN_DIMS); /* may be zero */
    }
}

/* Opening. */

static enum err open_model(enum embed_kind kind, const char *file,
                           struct minilm **out, struct why *why)
{
    return kind == EMBED_MINILM ? minilm_open(out, file, why)
                                : transformer_open(out, why);
}

static void set_stamp(enum embed_kind kind, const struct minilm *m,
                      const struct builtin *table, struct embed_stamp *stamp)
{
    if (kind != EMBED_BUILTIN)
        embed_stamp_set(stamp, str_of(embed_kind_name(kind)), minilm_hash(m),
                        minilm_dims(m));
    else
        embed_stamp_both(stamp, builtin_hash(table), minilm_hash(m));
}

static enum err open_parts(struct on_thread *s, struct embed *e,
                           const struct embed_opts *opts, struct why *why)
{
    enum err err = open_model(opts->kind, opts->model_file, &s->model, why);

    if (!err && opts->kind == EMBED_BUILTIN)
        err = builtin_open(&s->table, why);
    if (err)
        return err;
    set_stamp(opts->kind, s->model, &s->table, &e->stamp);
    for (enum embed_use u = 0; u < N_EMBED_USES; u++) {
        s->scratch[u] = minilm_scratch_new(s->model, cpu_level());
        if (!s->scratch[u])
            return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    }
    return OK;
}

static enum err on_thread_open(struct embed *e, const struct embed_opts *opts,
                               struct why *why)
{
    struct on_thread *s = mem_new(sizeof(*s));
    struct worker_model model = {make_one_part, on_thread_close, s, 0};
    enum err err = open_parts(s, e, opts, why);

    if (err) {
        on_thread_close(s);
        return err;
    }
    if (opts->kind == EMBED_BUILTIN)
        model.make = make_both_parts;
    model.dims = e->stamp.dims;
    return worker_start(e, &model, why);
}

static enum err on_thread_check(const struct embed_opts *opts,
                                struct embed_stamp *stamp, struct why *why)
{
    struct builtin table;
    struct minilm *m;
    enum err e = open_model(opts->kind, opts->model_file, &m, why);

    if (e)
        return e;
    if (opts->kind == EMBED_BUILTIN)
        e = builtin_open(&table, why);
    if (!e)
        set_stamp(opts->kind, m, &table, stamp);
    minilm_close(m);
    return e;
}

static void both_quick(struct embed *e, struct str text, float *out)
{
    struct on_thread *s = worker_ctx(e);

    builtin_embed(&s->table, text, out);
    memset(out + BUILTIN_DIMS, 0, TRANSFORMER_DIMS * sizeof(*out));
}

const struct embed_ops embed_minilm_ops = {
    WORKER_OPS,
    .open = on_thread_open,
    .check = on_thread_check,
};

const struct embed_ops embed_transformer_ops = {
    WORKER_OPS,
    .open = on_thread_open,
    .check = on_thread_check,
};

const struct embed_ops embed_builtin_ops = {
    WORKER_OPS,
    .open = on_thread_open,
    .check = on_thread_check,
    .quick = both_quick,
};
