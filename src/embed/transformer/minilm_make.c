/* Makes our file from the published ones. Weights become bytes with one scale
 * per channel, embeddings bytes with one scale per row; everything else stays
 * float. The same input gives the same file on every machine: nothing is
 * measured, and each step is rounded as IEEE 754 requires.
 *
 * Folded in here, so that it is not repeated for every text: the embedding of
 * the first sentence's type is added to the positions, and the root of a head's
 * width is divided out of the query. */
#include "embed/transformer/minilm.h"

#include <assert.h>
#include <math.h>

#include "base/fault.h"

enum {
    HEAD_DIMS = 32, /* in every MiniLM of any width; no published file says
                     * so */
    ARENA_MAX = 256 << 20,
    TEXT_MAX = 64 << 20,
};

/* Where tensors_find returns NULL it has written the message. */
struct maker {
    struct tensors t;
    struct minilm_pieces pieces;
    struct minilm_head head;
    struct minilm m; /* points into the file being made */
    struct buf vocab;
    struct why *why;
};

/* The pointers from minilm_lay point into our own buffer here. */
static float *floats(const float *p)
{
    return (float *)p;
}

static int8_t *bytes(const int8_t *p)
{
    return (int8_t *)p;
}

/* ---- sizes ---- */

static uint32_t count_layers(struct tensors *t)
{
    uint32_t n = 0;
    char name[64];

    do {
        snprintf(name, sizeof(name), "encoder.layer.%u.output.dense.bias", n);
    } while (n <= MINILM_LAYERS_MAX && tensors_named(t, name) && ++n);
    return n;
}

/* One side of a tensor; 0 if it is missing or too large. */
static uint32_t tensor_side(struct tensors *t, const char *name, uint32_t side)
{
    const struct tensor *found = tensors_named(t, name);
    uint64_t n = found && found->rank == 2 ? found->shape[side] : 0;

    return n <= MINILM_WORDS_MAX ? (uint32_t)n : 0;
}

static enum err make_find_sizes(struct maker *k)
{
    struct minilm_head *h = &k->head;
    const char *words = "embeddings.word_embeddings.weight";
    uint32_t positions =
        tensor_side(&k->t, "embeddings.position_embeddings.weight", 0);
    struct why inner = {""};
    enum err e;

    memcpy(h->magic, MINILM_MAGIC, sizeof(h->magic));
    h->version = MINILM_VERSION;
    h->head_bytes = sizeof(*h);
    h->vocab_bytes = k->vocab.n;
    h->n_layers = count_layers(&k->t);
    h->n_words = tensor_side(&k->t, words, 0);
    h->hidden = tensor_side(&k->t, words, 1);
    h->n_heads = h->hidden / HEAD_DIMS;
    h->inner =
        tensor_side(&k->t, "encoder.layer.0.intermediate.dense.weight", 0);
    h->n_positions =
        positions < MINILM_MAX_TOKENS ? positions : MINILM_MAX_TOKENS;
    h->begin_id = k->pieces.begin_id;
    h->end_id = k->pieces.end_id;
    h->unknown_id = k->pieces.unknown_id;
    snprintf(h->name, sizeof(h->name), "%s", MINILM_NAME);
    e = minilm_check_sizes(h, &inner);
    if (e)
        return why_err(k->why, ERR_BAD_REQUEST,
                       "this MiniLM cannot be used: %s", inner.text);
    if (h->n_words != k->pieces.n)
        return why_err(k->why, ERR_BAD_REQUEST,
                       "the weights have %u pieces of words and the tokenizer "
                       "%u: they do not belong together",
                       h->n_words, k->pieces.n);
    return OK;
}

/* ---- numbers ---- */

static float tensor_row_largest(const struct tensor *t, size_t row,
                                size_t width)
{
    float most = 0;

    for (size_t i = 0; i < width; i++)
        most = fmaxf(most, fabsf(tensor_at(t, row * width + i)));
    return most;
}

static int8_t to_i8(float x, float scale)
{
    float q = scale > 0 ? rintf(x / scale) : 0;

    return (int8_t)fmaxf(fminf(q, 127), -127);
}

/* The index of weight k of channel c; see struct minilm_matrix. */
static size_t weight_index(size_t n_in, size_t c, size_t k)
{
    return c / MINILM_GROUP * MINILM_GROUP * n_in + k / 4 * 4 * MINILM_GROUP +
           c % MINILM_GROUP * 4 + k % 4;
}

/* The rows of one tensor become channels of w from `first` on, multiplied by
 * `by`. */
static void make_put_channels(const struct minilm_matrix *w, size_t first,
                              const struct tensor *weight,
                              const struct tensor *bias, float by)
{
    for (size_t row = 0; row < weight->shape[0]; row++) {
        float scale = tensor_row_largest(weight, row, w->n_in) / 127;
        size_t c = first + row;
        int32_t sum = 0;

        for (size_t k = 0; k < w->n_in; k++) {
            int8_t q = to_i8(tensor_at(weight, row * w->n_in + k), scale);

            bytes(w->weights)[weight_index(w->n_in, c, k)] = q;
            sum += q;
        }
        floats(w->scales)[c] = scale * by;
        floats(w->bias)[c] = tensor_at(bias, row) * by;
        ((int32_t *)w->sums)[c] = sum;
    }
}

static enum err make_put_matrix(struct maker *k, const struct minilm_matrix *w,
                                size_t first, size_t n_out, float by,
                                uint32_t layer, const char *name)
{
    const struct tensor *weight, *bias;

    weight = tensors_find(&k->t, k->why, n_out, w->n_in,
                          "encoder.layer.%u.%s.weight", layer, name);
    bias = tensors_find(&k->t, k->why, n_out, 0, "encoder.layer.%u.%s.bias",
                        layer, name);
    if (!weight || !bias)
        return ERR_BAD_REQUEST;
    make_put_channels(w, first, weight, bias, by);
    return OK;
}

static enum err make_put_norm(struct maker *k, const struct minilm_norm *norm,
                              const char *prefix)
{
    size_t width = k->head.hidden;
    const struct tensor *weight, *bias;

    weight =
        tensors_find(&k->t, k->why, width, 0, "%s.LayerNorm.weight", prefix);
    bias = tensors_find(&k->t, k->why, width, 0, "%s.LayerNorm.bias", prefix);
    if (!weight || !bias)
        return ERR_BAD_REQUEST;
    for (size_t i = 0; i < width; i++) {
        floats(norm->weight)[i] = tensor_at(weight, i);
        floats(norm->bias)[i] = tensor_at(bias, i);
    }
    return OK;
}

static enum err make_put_layer_norm(struct maker *k,
                                    const struct minilm_norm *norm,
                                    uint32_t layer, const char *name)
{
    char prefix[64];

    snprintf(prefix, sizeof(prefix), "encoder.layer.%u.%s", layer, name);
    return make_put_norm(k, norm, prefix);
}

static enum err make_put_layer(struct maker *k, uint32_t i)
{
    const struct minilm_layer *l = &k->m.layers[i];
    size_t width = k->head.hidden, inner = k->head.inner;
    float by = 1 / sqrtf(HEAD_DIMS);
    enum err e =
        make_put_matrix(k, &l->qkv, 0, width, by, i, "attention.self.query");

    if (!e)
        e = make_put_matrix(k, &l->qkv, width, width, 1, i,
                            "attention.self.key");
    if (!e)
        e = make_put_matrix(k, &l->qkv, 2 * width, width, 1, i,
                            "attention.self.value");
    if (!e)
        e = make_put_matrix(k, &l->out, 0, width, 1, i,
                            "attention.output.dense");
    if (!e)
        e = make_put_layer_norm(k, &l->out_norm, i, "attention.output");
    if (!e)
        e = make_put_matrix(k, &l->up, 0, inner, 1, i, "intermediate.dense");
    if (!e)
        e = make_put_matrix(k, &l->down, 0, width, 1, i, "output.dense");
    if (!e)
        e = make_put_layer_norm(k, &l->down_norm, i, "output");
    return e;
}

static enum err make_put_positions(struct maker *k)
{
    const char *name = "embeddings.position_embeddings.weight";
    size_t width = k->head.hidden;
    const struct tensor *positions, *types;

    /* The tensor may have more positions than we keep. */
    positions = tensors_find(&k->t, k->why, tensor_side(&k->t, name, 0), width,
                             "%s", name);
    types = tensors_find(&k->t, k->why, 2, width,
                         "embeddings.token_type_embeddings.weight");
    if (!positions || !types)
        return ERR_BAD_REQUEST;
    for (size_t i = 0; i < k->head.n_positions * width; i++)
        floats(k->m.positions)[i] =
            tensor_at(positions, i) + tensor_at(types, i % width);
    return OK;
}

static enum err make_put_words(struct maker *k)
{
    size_t width = k->head.hidden;
    const struct tensor *t = tensors_find(&k->t, k->why, k->head.n_words, width,
                                          "embeddings.word_embeddings.weight");

    if (!t)
        return ERR_BAD_REQUEST;
    for (size_t row = 0; row < k->head.n_words; row++) {
        float scale = tensor_row_largest(t, row, width) / 127;

        floats(k->m.word_scales)[row] = scale;
        for (size_t i = row * width; i < (row + 1) * width; i++)
            bytes(k->m.words)[i] = to_i8(tensor_at(t, i), scale);
    }
    return OK;
}

/* Unused tensors mean another kind of model, except the layer that is only for
 * training, and ids that simply count. */
static enum err make_check_unused(struct maker *k)
{
    for (size_t i = 0; i < k->t.n; i++) {
        const struct tensor *t = &k->t.all[i];

        if (!t->is_used && !str_starts(t->name, STR("pooler.")) &&
            !str_eq(t->name, STR("embeddings.position_ids")))
            return why_err(k->why, ERR_BAD_REQUEST,
                           "this is another kind of model: its tensor "
                           "\"%.*s\" is unknown",
                           STR_ARG(t->name));
    }
    return OK;
}

/* ---- the file ---- */

static enum err make_write_file(struct maker *k, struct buf *out)
{
    struct minilm measure = {0};
    size_t n;
    char *p;
    enum err e;

    n = k->head.file_bytes = minilm_lay(&measure, (const char *)&k->head);
    p = FAULT("minilm.make") ? NULL : buf_reserve(out, n);
    if (!p)
        return why_err(k->why, ERR_NOMEM, "no room for the model's %zu bytes",
                       n);
    memset(p, 0, n);
    memcpy(p, &k->head, sizeof(k->head));
    memcpy(p + sizeof(k->head), k->vocab.p, k->vocab.n);
    minilm_lay(&k->m, p);
    e = make_put_words(k);
    if (!e)
        e = make_put_positions(k);
    if (!e)
        e = make_put_norm(k, &k->m.norm, "embeddings");
    for (uint32_t i = 0; i < k->head.n_layers && !e; i++)
        e = make_put_layer(k, i);
    if (!e)
        e = make_check_unused(k);
    if (e)
        return e;
    if (!minilm_seal(p, n))
        return why_err(k->why, ERR_NOMEM, "no memory for the model's hash");
    buf_commit(out, n);
    return OK;
}

/* Invalid pieces are the tokenizer's fault. */
static enum err make_vocabulary(struct maker *k)
{
    struct why inner = {""};
    enum err e = vocab_make(k->pieces.all, k->pieces.n, &k->vocab, &inner);

    if (!e || e == ERR_NOMEM)
        return e ? why_err(k->why, e, "%s", inner.text) : OK;
    return why_err(k->why, ERR_BAD_REQUEST,
                   "the tokenizer's vocabulary cannot be used: %s", inner.text);
}

enum err minilm_make(struct str safetensors, struct str tokenizer,
                     struct buf *out, struct why *why)
{
    struct maker k = {.why = why};
    struct arena a;
    enum err e;

    assert(out->n == 0); /* its numbers are written in place, so alignment
                          * matters */
    arena_init(&a, ARENA_MAX);
    buf_init(&k.vocab, TEXT_MAX);
    e = tensors_read(&k.t, &a, safetensors, why);
    if (!e)
        e = minilm_read_pieces(&k.pieces, &a, tokenizer, why);
    if (!e)
        e = make_vocabulary(&k);
    if (!e)
        e = make_find_sizes(&k);
    if (!e)
        e = make_write_file(&k, out);
    buf_fini(&k.vocab);
    arena_fini(&a);
    return e;
}
