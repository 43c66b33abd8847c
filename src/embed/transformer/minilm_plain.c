/* The level that every processor has. Tests compare the others with it. */
#include "embed/transformer/minilm.h"

#include <math.h>
#include <string.h>

#define FN static inline

typedef struct {
    float v[MINILM_LANES];
} lanes;

#define EACH_LANE for (int i = 0; i < MINILM_LANES; i++)

FN lanes lanes_set(float x)
{
    lanes r;

    EACH_LANE r.v[i] = x;
    return r;
}

FN lanes lanes_load(const float *p)
{
    lanes r;

    memcpy(r.v, p, sizeof(r.v));
    return r;
}

FN void lanes_store(float *p, lanes a)
{
    memcpy(p, a.v, sizeof(a.v));
}

FN lanes lanes_of_i8(const int8_t *p)
{
    lanes r;

    EACH_LANE r.v[i] = (float)p[i];
    return r;
}

FN lanes lanes_add(lanes a, lanes b)
{
    EACH_LANE a.v[i] += b.v[i];
    return a;
}

FN lanes lanes_sub(lanes a, lanes b)
{
    EACH_LANE a.v[i] -= b.v[i];
    return a;
}

FN lanes lanes_mul(lanes a, lanes b)
{
    EACH_LANE a.v[i] *= b.v[i];
    return a;
}

/* a * b + c, rounded once, like the instruction. */
FN lanes lanes_fma(lanes a, lanes b, lanes c)
{
    EACH_LANE a.v[i] = fmaf(a.v[i], b.v[i], c.v[i]);
    return a;
}

FN lanes lanes_min(lanes a, lanes b)
{
    EACH_LANE a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}

FN lanes lanes_max(lanes a, lanes b)
{
    EACH_LANE a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}

FN lanes lanes_abs(lanes a)
{
    EACH_LANE a.v[i] = fabsf(a.v[i]);
    return a;
}

FN lanes lanes_round(lanes a)
{
    EACH_LANE a.v[i] = rintf(a.v[i]);
    return a;
}

FN void lanes_to_bytes(uint8_t *p, lanes a, lanes zero)
{
    a = lanes_add(lanes_round(a), zero);
    a = lanes_min(lanes_max(a, lanes_set(0)), lanes_set(255));
    EACH_LANE p[i] = (uint8_t)a.v[i];
}

/* n is an integer from -126 to 127. */
FN lanes lanes_power_of_2(lanes n)
{
    lanes r;

    EACH_LANE
    {
        uint32_t bits = (uint32_t)((int32_t)n.v[i] + 127) << 23;

        memcpy(&r.v[i], &bits, sizeof(bits));
    }
    return r;
}

FN float lanes_first(lanes a)
{
    return a.v[0];
}

FN float lanes_sum(lanes a)
{
    for (int half = MINILM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            a.v[i] += a.v[i + half];
    return a.v[0];
}

FN float lanes_lowest(lanes a)
{
    for (int half = MINILM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            a.v[i] = a.v[i] < a.v[i + half] ? a.v[i] : a.v[i + half];
    return a.v[0];
}

FN float lanes_highest(lanes a)
{
    for (int half = MINILM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
    return a.v[0];
}

/* Unsigned: a hostile file could make sums overflow, and the result is then
 * wrong but not undefined. */
static void multiply_row_plain(float *y, const struct minilm_matrix *w,
                               size_t group, const uint8_t *x, float scale,
                               int32_t zero)
{
    const int8_t *from = w->weights + group * w->n_in;
    uint32_t sums[MINILM_GROUP] = {0};

    for (size_t k = 0; k < w->n_in; k += 4, from += (size_t)4 * MINILM_GROUP)
        for (size_t c = 0; c < MINILM_GROUP; c++)
            sums[c] +=
                (uint32_t)(x[k] * from[4 * c] + x[k + 1] * from[4 * c + 1] +
                           x[k + 2] * from[4 * c + 2] +
                           x[k + 3] * from[4 * c + 3]);
    for (size_t c = 0; c < MINILM_GROUP; c++) {
        size_t at = group + c;
        uint32_t sum = sums[c] - (uint32_t)zero * (uint32_t)w->sums[at];

        y[at] = fmaf((float)(int32_t)sum, w->scales[at] * scale, w->bias[at]);
    }
}

static void multiply_plain(float *y, const struct minilm_matrix *w,
                           const struct minilm_bytes *x, size_t n)
{
    for (size_t group = 0; group < w->n_out; group += MINILM_GROUP)
        for (size_t row = 0; row < n; row++)
            multiply_row_plain(y + row * w->n_out, w, group,
                               x->bytes + row * w->n_in, x->scales[row],
                               x->zeros[row]);
}

FN void turn_sixteen(float *to, size_t pitch, const float *from, size_t step)
{
    for (size_t j = 0; j < MINILM_LANES; j++, from += step)
        for (size_t d = 0; d < MINILM_LANES; d++)
            to[d * pitch + j] = from[d];
}

enum { ROWS = 4, COLUMNS = 1 };

#include "embed/transformer/minilm_lanes.inc"

const struct minilm_ops minilm_plain = MINILM_OPS(multiply_plain);
