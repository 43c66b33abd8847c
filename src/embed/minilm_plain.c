/* What every processor can, and what the others are held against. */
#include "embed/minilm.h"

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

/* From 0 to 255, whole. */
FN void lanes_to_u8(uint8_t *p, lanes a)
{
    EACH_LANE p[i] = (uint8_t)a.v[i];
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

/* a * b + c, rounded once, as the instruction does. */
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

/* n whole, from -126 to 127. */
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

/* Without a sign: a file could be made whose sums do not fit, and would then be
 * wrong rather than undefined. */
static void multiply_row(float *y, const struct minilm_matrix *w, size_t group,
                         const uint8_t *x, float scale, int32_t zero)
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

static void multiply(float *y, const struct minilm_matrix *w,
                     const struct minilm_bytes *x, size_t n)
{
    for (size_t group = 0; group < w->n_out; group += MINILM_GROUP)
        for (size_t row = 0; row < n; row++)
            multiply_row(y + row * w->n_out, w, group, x->bytes + row * w->n_in,
                         x->scales[row], x->zeros[row]);
}

enum { ROWS = 4 };

#include "embed/minilm_lanes.inc"

const struct minilm_ops minilm_plain = MINILM_OPS(multiply);
