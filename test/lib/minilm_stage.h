#ifndef MINILM_STAGE_H
#define MINILM_STAGE_H

/* A MiniLM small enough for tests: two layers, 64 wide, a vocabulary of the
 * alphabet. Its weights are drawn by lot and look like anything, but they are
 * published in the form of the real one: safetensors and tokenizer.json. All of
 * them are multiples of 1/1024 below 2, so F16 and F32 say the same.
 *
 *     struct toy t;
 *     toy_init(&t, TOY_F16);
 *     toy_make(&t);            t.file is a model file
 *     toy_fini(&t); */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "embed/transformer/minilm.h"

enum {
    TOY_LAYERS = 2,
    TOY_DIMS = 64,
    TOY_HEADS = 2, /* 32 wide, as those of every MiniLM */
    TOY_INNER = 128,
    TOY_POSITIONS = 20,
    TOY_TENSORS_MAX = 64,
};

enum toy_type { TOY_F16, TOY_F32 };

struct toy {
    enum toy_type type;
    struct buf header, numbers; /* of the safetensors */
    struct buf safetensors, tokenizer, file;
    uint32_t n_words;
    uint32_t dice;
    struct toy_tensor {
        char name[80];
        size_t rows, cols, at; /* in values */
    } tensors[TOY_TENSORS_MAX];
    size_t n_tensors;
    float values[200000];
    size_t n_values;
};

static inline uint32_t toy_throw(struct toy *t, uint32_t sides)
{
    t->dice = t->dice * 1664525 + 1013904223;
    return (t->dice >> 8) % sides;
}

/* Multiples of 1/1024 alone, and below 2. */
static inline uint16_t toy_f16(float x)
{
    int n = (int)(x * 1024), size = n < 0 ? -n : n, exponent = 25;

    if (size == 0)
        return 0;
    for (; size < 1024; size *= 2)
        exponent--;
    for (; size >= 2048; size /= 2)
        exponent++;
    return (uint16_t)((n < 0 ? 0x8000 : 0) | (exponent - 10) << 10 |
                      (size & 1023));
}

static inline void toy_put(struct toy *t, float x)
{
    uint16_t half = toy_f16(x);

    assert(t->n_values < sizeof(t->values) / sizeof(*t->values));
    t->values[t->n_values++] = x;
    if (t->type == TOY_F16)
        buf_add(&t->numbers, &half, sizeof(half));
    else
        buf_add(&t->numbers, &x, sizeof(x));
}

/* Numbers around `centre`, in 1024ths. cols 0: a vector. */
static inline void toy_add(struct toy *t, size_t rows, size_t cols, int centre,
                           uint32_t spread, const char *name)
{
    struct toy_tensor *new = &t->tensors[t->n_tensors++];
    size_t from = t->numbers.n, n = rows * (cols > 0 ? cols : 1);

    assert(t->n_tensors <= TOY_TENSORS_MAX);
    *new = (struct toy_tensor){.rows = rows, .cols = cols, .at = t->n_values};
    snprintf(new->name, sizeof(new->name), "%s", name);
    for (size_t i = 0; i < n; i++)
        toy_put(t, (float)(centre + (int)toy_throw(t, 2 * spread + 1) -
                           (int)spread) /
                       1024);
    buf_addf(&t->header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu",
             t->header.n > 1 ? "," : "", name,
             t->type == TOY_F16 ? "F16" : "F32", rows);
    if (cols > 0)
        buf_addf(&t->header, ",%zu", cols);
    buf_addf(&t->header, "],\"data_offsets\":[%zu,%zu]}", from, t->numbers.n);
}

static inline void toy_add_in(struct toy *t, int layer, size_t rows,
                              size_t cols, int centre, uint32_t spread,
                              const char *name)
{
    char full[80];

    snprintf(full, sizeof(full), "encoder.layer.%d.%s", layer, name);
    toy_add(t, rows, cols, centre, spread, full);
}

static inline void toy_add_layer(struct toy *t, int layer)
{
    static const char *const square[] = {
        "attention.self.query", "attention.self.key", "attention.self.value",
        "attention.output.dense"};
    static const char *const norms[] = {"attention.output.LayerNorm",
                                        "output.LayerNorm"};
    char name[64];

    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "%s.weight", square[i]);
        toy_add_in(t, layer, TOY_DIMS, TOY_DIMS, 0, 300, name);
        snprintf(name, sizeof(name), "%s.bias", square[i]);
        toy_add_in(t, layer, TOY_DIMS, 0, 0, 100, name);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof(name), "%s.weight", norms[i]);
        toy_add_in(t, layer, TOY_DIMS, 0, 1024, 300, name);
        snprintf(name, sizeof(name), "%s.bias", norms[i]);
        toy_add_in(t, layer, TOY_DIMS, 0, 0, 200, name);
    }
    toy_add_in(t, layer, TOY_INNER, TOY_DIMS, 0, 250,
               "intermediate.dense.weight");
    toy_add_in(t, layer, TOY_INNER, 0, 0, 200, "intermediate.dense.bias");
    toy_add_in(t, layer, TOY_DIMS, TOY_INNER, 0, 250, "output.dense.weight");
    toy_add_in(t, layer, TOY_DIMS, 0, 0, 200, "output.dense.bias");
}

static inline void toy_add_tokenizer(struct toy *t)
{
    static const char *const first[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                        "hello", "world", "##ing"};
    struct buf *b = &t->tokenizer;

    buf_addf(b,
             "{\"normalizer\":{\"type\":\"BertNormalizer\","
             "\"clean_text\":true,\"handle_chinese_chars\":true,"
             "\"strip_accents\":null,\"lowercase\":true},"
             "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
             "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
             "{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},"
             "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
             "{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":0}}]},"
             "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
             "\"continuing_subword_prefix\":\"##\","
             "\"max_input_chars_per_word\":100,\"vocab\":{");
    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
        buf_addf(b, "%s\"%s\":%u", i > 0 ? "," : "", first[i], t->n_words++);
    for (char c = 'a'; c <= 'z'; c++) {
        buf_addf(b, ",\"%c\":%u", c, t->n_words++);
        buf_addf(b, ",\"##%c\":%u", c, t->n_words++);
    }
    buf_addf(b, "}}}");
}

/* The safetensors, of the header and numbers as they are now. */
static inline void toy_join(struct toy *t)
{
    uint64_t n = t->header.n;

    buf_clear(&t->safetensors);
    buf_add(&t->safetensors, &n, sizeof(n));
    buf_add_str(&t->safetensors, buf_str(&t->header));
    buf_add_str(&t->safetensors, buf_str(&t->numbers));
    assert(!t->safetensors.over);
}

static inline void toy_init(struct toy *t, enum toy_type type)
{
    memset(t, 0, sizeof(*t));
    t->type = type;
    buf_init(&t->header, 1 << 20);
    buf_init(&t->numbers, 4 << 20);
    buf_init(&t->safetensors, 8 << 20);
    buf_init(&t->tokenizer, 1 << 20);
    buf_init(&t->file, 8 << 20);
    toy_add_tokenizer(t);
    buf_add_char(&t->header, '{');
    toy_add(t, t->n_words, TOY_DIMS, 0, 600,
            "embeddings.word_embeddings.weight");
    toy_add(t, TOY_POSITIONS, TOY_DIMS, 0, 200,
            "embeddings.position_embeddings.weight");
    toy_add(t, 2, TOY_DIMS, 0, 100, "embeddings.token_type_embeddings.weight");
    toy_add(t, TOY_DIMS, 0, 1024, 300, "embeddings.LayerNorm.weight");
    toy_add(t, TOY_DIMS, 0, 0, 200, "embeddings.LayerNorm.bias");
    for (int i = 0; i < TOY_LAYERS; i++)
        toy_add_layer(t, i);
    toy_add(t, TOY_DIMS, 0, 0, 10, "pooler.dense.bias");
    buf_add_char(&t->header, '}');
    toy_join(t);
}

static inline void toy_fini(struct toy *t)
{
    buf_fini(&t->header);
    buf_fini(&t->numbers);
    buf_fini(&t->safetensors);
    buf_fini(&t->tokenizer);
    buf_fini(&t->file);
}

static inline enum err toy_try(struct toy *t, struct why *why)
{
    buf_clear(&t->file);
    return minilm_make(buf_str(&t->safetensors), buf_str(&t->tokenizer),
                       &t->file, why);
}

static inline void toy_make(struct toy *t)
{
    struct why why = {""};
    enum err e = toy_try(t, &why);

    if (e)
        fprintf(stderr, "the toy is refused: %s\n", why.text);
    assert(!e);
}

/* The model of a file that was made; borrows it. */
static inline struct minilm *toy_use(struct toy *t)
{
    struct why why = {""};
    struct minilm *m;
    enum err e = minilm_use(&m, buf_str(&t->file), "toy", &why);

    if (e)
        fprintf(stderr, "the toy cannot be used: %s\n", why.text);
    assert(!e);
    return m;
}

/* What was published, by name. */
static inline const float *toy_values(const struct toy *t, const char *name)
{
    for (size_t i = 0; i < t->n_tensors; i++)
        if (strcmp(t->tensors[i].name, name) == 0)
            return t->values + t->tensors[i].at;
    fprintf(stderr, "the toy has no %s\n", name);
    abort();
}

#endif
