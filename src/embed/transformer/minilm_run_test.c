/* Text -> vector with a toy model: compared with a plain float forward pass of
 * the published weights, on every level of this processor, alone and in
 * batches. */
#include "embed/transformer/minilm.h"

#include <math.h>

#include "base/fault.h"
#include "test/lib/alloc_count.h"
#include "test/lib/minilm_stage.h"
#include "test/t.h"

static const char *const texts[] = {
    "hello world",
    "a",
    "",
    "the quick brown fox",
    "!?",
    "hello hello hello hello hello hello hello hello hello hello",
    "abcdefghijklmnopqrstuvwxyz and what is beyond the last position",
    "testing \xff\xfe bytes",
    "zebra",
    "W\xc3\xb6rld \xe4\xb8\xad",
    "\t\n ",
    "singing",
};
enum { N_TEXTS = sizeof(texts) / sizeof(*texts) };

/* ---- the slow reference: the published weights, in double ---- */

static double x[TOY_POSITIONS][TOY_DIMS];

static const float *layer_values(const struct toy *t, int layer,
                                 const char *name)
{
    char full[128];

    snprintf(full, sizeof(full), "encoder.layer.%d.%s", layer, name);
    return toy_values(t, full);
}

static void slow_linear(const struct toy *t, int layer, const char *name,
                        const double *in, size_t n_in, double *out,
                        size_t n_out)
{
    char part[80];
    const float *w, *b;

    snprintf(part, sizeof(part), "%s.weight", name);
    w = layer_values(t, layer, part);
    snprintf(part, sizeof(part), "%s.bias", name);
    b = layer_values(t, layer, part);
    for (size_t c = 0; c < n_out; c++) {
        out[c] = b[c];
        for (size_t k = 0; k < n_in; k++)
            out[c] += w[c * n_in + k] * in[k];
    }
}

static void slow_norm(double *v, const float *w, const float *b)
{
    double mean = 0, squares = 0;

    for (int i = 0; i < TOY_DIMS; i++)
        mean += v[i] / TOY_DIMS;
    for (int i = 0; i < TOY_DIMS; i++)
        squares += (v[i] - mean) * (v[i] - mean) / TOY_DIMS;
    for (int i = 0; i < TOY_DIMS; i++)
        v[i] = (v[i] - mean) / sqrt(squares) * w[i] + b[i];
}

static void slow_attention(const struct toy *t, int layer, size_t n,
                           double mixed[][TOY_DIMS])
{
    static double q[TOY_POSITIONS][TOY_DIMS], k[TOY_POSITIONS][TOY_DIMS],
        v[TOY_POSITIONS][TOY_DIMS];

    for (size_t i = 0; i < n; i++) {
        slow_linear(t, layer, "attention.self.query", x[i], TOY_DIMS, q[i],
                    TOY_DIMS);
        slow_linear(t, layer, "attention.self.key", x[i], TOY_DIMS, k[i],
                    TOY_DIMS);
        slow_linear(t, layer, "attention.self.value", x[i], TOY_DIMS, v[i],
                    TOY_DIMS);
    }
    for (size_t i = 0; i < n; i++)
        for (int d = 0; d < TOY_DIMS; d++) {
            double sum = 0, value = 0;
            int head = d / 32 * 32;

            for (size_t j = 0; j < n; j++) {
                double s = 0;

                for (int e = head; e < head + 32; e++)
                    s += q[i][e] * k[j][e];
                s = exp(s / sqrt(32));
                sum += s;
                value += s * v[j][d];
            }
            mixed[i][d] = value / sum;
        }
}

static void slow_layer(const struct toy *t, int layer, size_t n)
{
    static double mixed[TOY_POSITIONS][TOY_DIMS];

    slow_attention(t, layer, n, mixed);
    for (size_t i = 0; i < n; i++) {
        double part[TOY_DIMS], wide[TOY_INNER];

        slow_linear(t, layer, "attention.output.dense", mixed[i], TOY_DIMS,
                    part, TOY_DIMS);
        for (int d = 0; d < TOY_DIMS; d++)
            x[i][d] += part[d];
        slow_norm(x[i],
                  layer_values(t, layer, "attention.output.LayerNorm.weight"),
                  layer_values(t, layer, "attention.output.LayerNorm.bias"));
        slow_linear(t, layer, "intermediate.dense", x[i], TOY_DIMS, wide,
                    TOY_INNER);
        for (int d = 0; d < TOY_INNER; d++)
            wide[d] *= 0.5 * (1 + erf(wide[d] / sqrt(2)));
        slow_linear(t, layer, "output.dense", wide, TOY_INNER, part, TOY_DIMS);
        for (int d = 0; d < TOY_DIMS; d++)
            x[i][d] += part[d];
        slow_norm(x[i], layer_values(t, layer, "output.LayerNorm.weight"),
                  layer_values(t, layer, "output.LayerNorm.bias"));
    }
}

static void slow_embed(const struct toy *t, const uint32_t *ids, size_t n,
                       double out[TOY_DIMS])
{
    const float *words = toy_values(t, "embeddings.word_embeddings.weight");
    const float *places =
        toy_values(t, "embeddings.position_embeddings.weight");
    const float *types =
        toy_values(t, "embeddings.token_type_embeddings.weight");
    double squares = 0;

    for (size_t i = 0; i < n; i++) {
        for (int d = 0; d < TOY_DIMS; d++)
            x[i][d] = words[ids[i] * TOY_DIMS + d] + places[i * TOY_DIMS + d] +
                      types[d];
        slow_norm(x[i], toy_values(t, "embeddings.LayerNorm.weight"),
                  toy_values(t, "embeddings.LayerNorm.bias"));
    }
    for (int layer = 0; layer < TOY_LAYERS; layer++)
        slow_layer(t, layer, n);
    for (int d = 0; d < TOY_DIMS; d++) {
        out[d] = 0;
        for (size_t i = 0; i < n; i++)
            out[d] += x[i][d];
        squares += out[d] * out[d];
    }
    for (int d = 0; d < TOY_DIMS; d++)
        out[d] /= sqrt(squares);
}

/* ---- */

struct scene {
    struct toy t;
    struct minilm *m;
    struct minilm_scratch *s;
};

static struct scene *open_scene(enum cpu_level level)
{
    struct scene *c = calloc(1, sizeof(*c));

    CHECK(c);
    toy_init(&c->t, TOY_F16);
    toy_make(&c->t);
    c->m = toy_use(&c->t);
    c->s = minilm_scratch_new(c->m, level);
    CHECK(c->s && minilm_dims(c->m) == TOY_DIMS);
    return c;
}

static void close_scene(struct scene *c)
{
    minilm_scratch_free(c->s);
    minilm_close(c->m);
    toy_fini(&c->t);
    free(c);
}

static double length_of(const float *v)
{
    double squares = 0;

    for (int d = 0; d < TOY_DIMS; d++)
        squares += (double)v[d] * v[d];
    return sqrt(squares);
}

/* The cosine with the slow reference. */
static double likeness(struct scene *c, const char *text)
{
    uint32_t ids[TOY_POSITIONS];
    double truth[TOY_DIMS], sum = 0;
    float v[TOY_DIMS];
    size_t n = wordpieces(&c->m->vocab, str_of(text), c->m->head->unknown_id,
                          ids + 1, TOY_POSITIONS - 2);

    ids[0] = c->m->head->begin_id;
    ids[n + 1] = c->m->head->end_id;
    slow_embed(&c->t, ids, n + 2, truth);
    minilm_embed(c->m, c->s, str_of(text), v);
    for (int d = 0; d < TOY_DIMS; d++)
        sum += truth[d] * v[d];
    return sum;
}

TEST(vectors_are_those_of_a_plain_float_forward)
{
    struct scene *c = open_scene(cpu_level());

    CHECK(likeness(c, "hello world") > 0.999);
    CHECK(likeness(c, "singing zebras and what else") > 0.999);
    CHECK(likeness(c, "the whole alphabet does not fit in here") > 0.999);
    CHECK(likeness(c, "? \xe4\xb8\xad") > 0.999);
    close_scene(c);
}

TEST(a_planted_mistake_is_seen)
{
    struct scene *c = open_scene(cpu_level());

    fault_arm_at("minilm.no_residual", 1);
    CHECK(likeness(c, "hello world") < 0.95);
    CHECK(fault_fired());
    close_scene(c);
}

TEST(every_level_gives_the_same_to_the_last_bit)
{
    struct scene *plain = open_scene(CPU_PLAIN);

    for (int level = CPU_PLAIN + 1; level <= (int)cpu_level(); level++) {
        struct scene *c = open_scene((enum cpu_level)level);

        for (int i = 0; i < N_TEXTS; i++) {
            float a[TOY_DIMS], b[TOY_DIMS];

            minilm_embed(plain->m, plain->s, str_of(texts[i]), a);
            minilm_embed(c->m, c->s, str_of(texts[i]), b);
            CHECK(memcmp(a, b, sizeof(a)) == 0);
        }
        close_scene(c);
    }
    close_scene(plain);
}

TEST(many_at_once_give_what_each_gives_alone)
{
    enum { MANY = 40 };
    static float together[MANY][TOY_DIMS], alone[TOY_DIMS];
    struct scene *c = open_scene(cpu_level());
    struct str many[MANY];

    for (int i = 0; i < MANY; i++)
        many[i] = str_of(texts[i * 7 % N_TEXTS]);
    minilm_embed_many(c->m, c->s, many, MANY, together[0]);
    for (int i = 0; i < MANY; i++) {
        minilm_embed(c->m, c->s, many[i], alone);
        CHECK(memcmp(together[i], alone, sizeof(alone)) == 0);
    }
    minilm_embed_many(c->m, c->s, NULL, 0, NULL);
    close_scene(c);
}

TEST(a_vector_is_one_long_and_of_nothing_it_is_zero)
{
    struct scene *c = open_scene(cpu_level());
    float v[TOY_DIMS];

    for (int i = 0; i < N_TEXTS; i++) {
        bool is_nothing = i == 2 || i == 10;

        minilm_embed(c->m, c->s, str_of(texts[i]), v);
        CHECK(fabs(length_of(v) - !is_nothing) < 1e-6);
    }
    minilm_embed(c->m, c->s, (struct str){NULL, 0}, v);
    CHECK(length_of(v) == 0);
    close_scene(c);
}

TEST(what_is_beyond_the_last_position_does_not_count)
{
    struct scene *c = open_scene(cpu_level());
    char *text = malloc(1 << 20);
    float a[TOY_DIMS], b[TOY_DIMS];
    size_t whole = 2 * (TOY_POSITIONS - 2);

    CHECK(text);
    for (size_t i = 0; i < 1 << 20; i++)
        text[i] = i % 2 ? ' ' : (char)('a' + i % 13);
    minilm_embed(c->m, c->s, (struct str){text, whole}, a);
    minilm_embed(c->m, c->s, (struct str){text, 1 << 20}, b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    minilm_embed(c->m, c->s, (struct str){text, whole - 2}, b);
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    free(text);
    close_scene(c);
}

TEST(embedding_asks_for_no_memory)
{
    struct scene *c = open_scene(cpu_level());
    static float out[N_TEXTS][TOY_DIMS];
    struct str many[N_TEXTS];
    long before = alloc_n;

    CHECK(before > 0);
    for (int i = 0; i < N_TEXTS; i++)
        many[i] = str_of(texts[i]);
    minilm_embed_many(c->m, c->s, many, N_TEXTS, out[0]);
    minilm_embed(c->m, c->s, many[0], out[0]);
    CHECK_INT(alloc_n, before);
    close_scene(c);
}

/* ---- the product alone ---- */

enum { MOST = MINILM_INNER_MAX, ROWS_MAX = 13, CHANNELS = 128 };

struct product {
    int8_t weights[CHANNELS * MOST];
    int32_t sums[CHANNELS];
    float scales[CHANNELS], bias[CHANNELS];
    uint8_t bytes[ROWS_MAX * MOST];
    float row_scales[ROWS_MAX];
    int32_t zeros[ROWS_MAX];
    float y[ROWS_MAX * CHANNELS], by_hand[ROWS_MAX * CHANNELS];
    bool fits; /* computed from the weights of the last one */
};

/* Channel c of a group of 64, number k, at the place given by struct
 * minilm_matrix. */
static size_t place(size_t n_in, size_t c, size_t k)
{
    return c / 64 * 64 * n_in + k / 4 * 256 + c % 64 * 4 + k % 4;
}

static void multiply_by_hand(struct product *p, size_t n_in, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < CHANNELS; c++) {
            int64_t sum = 0;

            for (size_t k = 0; k < n_in; k++)
                sum += (int64_t)p->weights[place(n_in, c, k)] *
                       (p->bytes[r * n_in + k] - p->zeros[r]);
            p->by_hand[r * CHANNELS + c] =
                fmaf((float)sum, p->scales[c] * p->row_scales[r], p->bias[c]);
        }
}

static void check_product(struct product *p, const struct minilm_ops *ops,
                          size_t n_in, size_t rows)
{
    struct minilm_matrix w = {.n_out = CHANNELS,
                              .n_in = (uint32_t)n_in,
                              .weights = p->weights,
                              .scales = p->scales,
                              .bias = p->bias,
                              .sums = p->sums};
    struct minilm_bytes in = {p->bytes, p->row_scales, p->zeros};

    for (size_t c = 0; c < CHANNELS; c++) {
        p->sums[c] = 0;
        for (size_t k = 0; k < n_in; k++)
            p->sums[c] += p->weights[place(n_in, c, k)];
    }
    w.pairs_fit = minilm_pairs_fit(&w);
    p->fits = w.pairs_fit;
    multiply_by_hand(p, n_in, rows);
    memset(p->y, 0xff, sizeof(p->y));
    ops->multiply(p->y, &w, &in, rows);
    CHECK(memcmp(p->y, p->by_hand, rows * CHANNELS * sizeof(*p->y)) == 0);
}

/* The largest fitting pairs, in both signs, with bytes of 255; then with random
 * bytes and random fitting pairs. */
static void check_fitting(struct product *p, const struct minilm_ops *ops,
                          uint32_t *dice)
{
    static const int8_t pairs[][2] = {{127, 1},    {64, 64},    {1, 127},
                                      {0, -128},   {-64, -64},  {-127, -1},
                                      {127, -128}, {-128, 127}, {0, 0}};

    for (size_t i = 0; i < sizeof(p->weights); i += 2)
        memcpy(p->weights + i, pairs[i / 2 % 9], 2);
    for (size_t rows = 1; rows <= ROWS_MAX; rows++) {
        check_product(p, ops, rows == 1 ? MOST : 64 * rows, rows);
        CHECK(p->fits);
    }
    for (size_t i = 0; i < sizeof(p->bytes); i++)
        p->bytes[i] = (uint8_t)((*dice = *dice * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < sizeof(p->weights); i++)
        p->weights[i] =
            (int8_t)(((*dice = *dice * 1664525 + 1013904223) >> 25) - 64);
    for (size_t r = 0; r < ROWS_MAX; r++)
        p->zeros[r] = (int32_t)(r * 19);
    for (size_t rows = 1; rows <= ROWS_MAX; rows++) {
        check_product(p, ops, 64 * rows, rows);
        CHECK(p->fits);
    }
}

static void check_products(const struct minilm_ops *ops)
{
    struct product *p = calloc(1, sizeof(*p));
    uint32_t dice = 7;

    CHECK(p);
    for (size_t i = 0; i < CHANNELS; i++) {
        p->scales[i] = 0.001f + 0.0001f * (float)i;
        p->bias[i] = 0.1f * (float)i - 5;
    }
    /* No sum saturates, even with the largest values everywhere. */
    memset(p->bytes, 255, sizeof(p->bytes));
    for (size_t i = 0; i < sizeof(p->weights); i++)
        p->weights[i] = i / 4 % 2 ? 127 : -128;
    for (size_t r = 0; r < ROWS_MAX; r++)
        p->row_scales[r] = 0.01f * (float)(r + 1);
    check_product(p, ops, MOST, 1);
    CHECK(!p->fits);
    check_fitting(p, ops, &dice);
    for (size_t i = 0; i < sizeof(p->weights); i++)
        p->weights[i] = (int8_t)((dice = dice * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < sizeof(p->bytes); i++)
        p->bytes[i] = (uint8_t)((dice = dice * 1664525 + 1013904223) >> 24);
    for (size_t r = 0; r < ROWS_MAX; r++)
        p->zeros[r] = (int32_t)(r * 21);
    for (size_t rows = 1; rows <= ROWS_MAX; rows++)
        check_product(p, ops, 64 * rows, rows);
    CHECK(!p->fits);
    free(p);
}

TEST(products_are_exact_on_every_level)
{
    for (int level = 0; level <= (int)cpu_level(); level++)
        check_products(minilm_levels[level]);
}

/* A single weight decides, wherever it is. */
TEST(one_pair_that_is_too_large_is_seen)
{
    static const int8_t bad[][2] = {{127, 2},   {65, 64},   {-128, -1},
                                    {-64, -65}, {127, 127}, {-128, -128}};
    enum { N_IN = 128, ALL = CHANNELS * N_IN };
    static int8_t weights[ALL];
    struct minilm_matrix w = {
        .n_out = CHANNELS, .n_in = N_IN, .weights = weights};

    CHECK(minilm_pairs_fit(&w));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (size_t at = 0; at < ALL; at += 2) {
            memcpy(weights + at, bad[i], 2);
            CHECK(!minilm_pairs_fit(&w));
            memset(weights + at, 0, 2);
        }
    /* The second of one pair and the first of the next do not form a pair. */
    weights[1] = weights[2] = 127;
    CHECK(minilm_pairs_fit(&w));
}
