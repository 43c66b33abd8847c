/* Text -> vector: BERT's encoder, then the mean of its outputs for all tokens,
 * normalised.
 *
 * Every token is a row. Before each multiplication the numbers of a row become
 * bytes with a scale of its own, so a row's result does not depend on the other
 * rows; only attention looks at other rows, and only at those of its own text.
 * That is why many texts can share one matrix and get the same vectors, to the
 * last bit, as one at a time. A matrix has at most MINILM_MAX_TOKENS rows, the
 * length of the longest text; more would gain nothing, since the weights are
 * then already read only once per 256 rows.
 *
 * Attention itself is computed in float: for short texts it is a hundredth of
 * the work. */
#include "embed/transformer/minilm.h"

#include <stdlib.h>

#include "base/fault.h"

struct minilm_scratch {
    const struct minilm_ops *ops;
    float *x;    /* one row per token, of the model's width */
    float *part; /* added to x */
    float *wide; /* query, key and value, or the inner layer */
    float *keys, *scores;
    struct minilm_bytes bytes;
    size_t n_rows;                  /* in use */
    size_t ends[MINILM_MAX_TOKENS]; /* end row of each text in the matrix */
    float *outs[MINILM_MAX_TOKENS]; /* the texts' results */
    size_t n_texts;
    uint32_t ids[MINILM_MAX_TOKENS]; /* of one text */
};

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Cut a piece from the one allocation; with base NULL only count. */
static void *scratch_cut(char *base, size_t *at, size_t n, size_t size)
{
    char *p = base ? base + *at : NULL;

    *at += (n * size + MINILM_ALIGN - 1) / MINILM_ALIGN * MINILM_ALIGN;
    return p;
}

static size_t scratch_lay(struct minilm_scratch *s, const struct minilm_head *h,
                          char *base)
{
    size_t at = 0, rows = h->n_positions;
    size_t lanes = (rows + MINILM_LANES - 1) / MINILM_LANES * MINILM_LANES;
    size_t widest = max_of((size_t)3 * h->hidden, h->inner);

    scratch_cut(base, &at, 1, sizeof(*s));
    s->x = scratch_cut(base, &at, rows * h->hidden, sizeof(*s->x));
    s->part = scratch_cut(base, &at, rows * h->hidden, sizeof(*s->part));
    s->wide = scratch_cut(base, &at, rows * widest, sizeof(*s->wide));
    s->keys =
        scratch_cut(base, &at, lanes * MINILM_HEAD_DIMS_MAX, sizeof(*s->keys));
    s->scores =
        scratch_cut(base, &at, MINILM_ROWS_MAX * lanes, sizeof(*s->scores));
    s->bytes.bytes =
        scratch_cut(base, &at, rows * max_of(h->hidden, h->inner), 1);
    s->bytes.scales = scratch_cut(base, &at, rows, sizeof(*s->bytes.scales));
    s->bytes.zeros = scratch_cut(base, &at, rows, sizeof(*s->bytes.zeros));
    return at;
}

struct minilm_scratch *minilm_scratch_new(const struct minilm *m,
                                          enum cpu_level level)
{
    struct minilm_scratch count = {0}, *s;
    size_t n = scratch_lay(&count, m->head, NULL);

    s = FAULT("minilm.scratch") ? NULL : aligned_alloc(MINILM_ALIGN, n);
    if (!s)
        return NULL;
    memset(s, 0, sizeof(*s));
    scratch_lay(s, m->head, (char *)s);
    s->ops = minilm_levels[level < cpu_level() ? level : cpu_level()];
    return s;
}

void minilm_scratch_free(struct minilm_scratch *s)
{
    free(s);
}

/* ---- the layers ---- */

static void minilm_attend_texts(const struct minilm *m,
                                struct minilm_scratch *s)
{
    size_t from = 0, width = m->head->hidden;

    for (size_t i = 0; i < s->n_texts; from = s->ends[i++]) {
        struct minilm_attention a = {
            .out = s->part + from * width,
            .qkv = s->wide + from * 3 * width,
            .n = s->ends[i] - from,
            .n_heads = m->head->n_heads,
            .head_dims = width / m->head->n_heads,
            .keys = s->keys,
            .scores = s->scores,
        };

        s->ops->attend(&a);
    }
}

static void minilm_run_layer(const struct minilm *m,
                             const struct minilm_layer *l,
                             struct minilm_scratch *s)
{
    const struct minilm_ops *ops = s->ops;
    size_t n = s->n_rows, width = m->head->hidden;

    ops->to_bytes(&s->bytes, s->x, n, width);
    ops->multiply(s->wide, &l->qkv, &s->bytes, n);
    minilm_attend_texts(m, s);
    ops->to_bytes(&s->bytes, s->part, n, width);
    ops->multiply(s->part, &l->out, &s->bytes, n);
    ops->add_norm(s->x, s->part, &l->out_norm, n, width);

    ops->to_bytes(&s->bytes, s->x, n, width);
    ops->multiply(s->wide, &l->up, &s->bytes, n);
    ops->gelu_to_bytes(&s->bytes, s->wide, n, m->head->inner);
    ops->multiply(s->part, &l->down, &s->bytes, n);
    if (!PLANTED("minilm.no_residual"))
        ops->add_norm(s->x, s->part, &l->down_norm, n, width);
}

/* Compute the vectors of the gathered texts. */
static void minilm_run_texts(const struct minilm *m, struct minilm_scratch *s)
{
    size_t from = 0, width = m->head->hidden;

    if (s->n_texts > 0)
        s->ops->add_norm(s->x, NULL, &m->norm, s->n_rows, width);
    for (uint32_t i = 0; s->n_texts > 0 && i < m->head->n_layers; i++)
        minilm_run_layer(m, &m->layers[i], s);
    for (size_t i = 0; i < s->n_texts; from = s->ends[i++]) {
        s->ops->mean(s->outs[i], s->x + from * width, s->ends[i] - from, width);
        /* Only a deliberately crafted file makes this fail. */
        (void)vec_normalise(s->outs[i], width);
    }
    s->n_texts = s->n_rows = 0;
}

/* ---- texts ---- */

static size_t minilm_tokenize(const struct minilm *m, struct minilm_scratch *s,
                              struct str text)
{
    const struct minilm_head *h = m->head;
    size_t n = wordpieces(&m->vocab, text, h->unknown_id, s->ids + 1,
                          h->n_positions - 2);

    if (n == 0)
        return 0;
    s->ids[0] = h->begin_id;
    s->ids[n + 1] = h->end_id;
    return n + 2;
}

static void minilm_add_text(const struct minilm *m, struct minilm_scratch *s,
                            size_t n, float *out)
{
    size_t width = m->head->hidden;

    for (size_t i = 0; i < n; i++) {
        size_t id = s->ids[i];

        if (PLANTED("embed.shuffled")) /* as builtin.c does */
            id = (id + m->head->n_words / 3 + 1) % m->head->n_words;
        s->ops->add_word(s->x + (s->n_rows + i) * width, m->words + id * width,
                         m->word_scales[id], m->positions + i * width, width);
    }
    s->n_rows += n;
    s->ends[s->n_texts] = s->n_rows;
    s->outs[s->n_texts++] = out;
}

void minilm_embed_many(const struct minilm *m, struct minilm_scratch *s,
                       const struct str *texts, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++, out += m->head->hidden) {
        size_t tokens = minilm_tokenize(m, s, texts[i]);

        if (s->n_rows + tokens > m->head->n_positions)
            minilm_run_texts(m, s);
        if (tokens > 0)
            minilm_add_text(m, s, tokens, out);
        else
            memset(out, 0, m->head->hidden * sizeof(*out));
    }
    minilm_run_texts(m, s);
}

void minilm_embed(const struct minilm *m, struct minilm_scratch *s,
                  struct str text, float *out)
{
    minilm_embed_many(m, s, &text, 1, out);
}
