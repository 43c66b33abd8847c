/* Written with the compiler's vectors of sixteen, which it makes out of what
 * the processor has. Copies for wider processors are chosen when the program
 * starts; sanitizers do not get along with that choice, and do without. */
#include "train/floats.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__OPTIMIZE_SIZE__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

enum { LANES = 16 };
typedef float lanes
    __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline float sum_of(const lanes *v)
{
    float s[LANES];

    memcpy(s, v, sizeof(s));
    for (size_t half = LANES / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

WIDE float float_dot(const float *a, const float *b, size_t n)
{
    lanes sum = {0};
    float rest = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        sum += *(const lanes *)(a + i) * *(const lanes *)(b + i);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return sum_of(&sum) + rest;
}

WIDE void float_add(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

WIDE void float_scale(float *y, float a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= a;
}

/* Four rows of a by four times sixteen columns of b stay in registers. */
enum { TILE_ROWS = 4, TILE_LANES = 4 };

WIDE static void mul_tile(float *c, const float *a, const float *b, size_t k,
                          size_t n, int add)
{
    lanes sum[TILE_ROWS][TILE_LANES];

    for (size_t i = 0; i < TILE_ROWS; i++)
        for (size_t j = 0; j < TILE_LANES; j++)
            sum[i][j] =
                add ? *(const lanes *)(c + i * n + j * LANES) : (lanes){0};
    for (size_t p = 0; p < k; p++)
        for (size_t j = 0; j < TILE_LANES; j++) {
            lanes bj = *(const lanes *)(b + p * n + j * LANES);

            for (size_t i = 0; i < TILE_ROWS; i++)
                sum[i][j] += a[i * k + p] * bj;
        }
    for (size_t i = 0; i < TILE_ROWS; i++)
        for (size_t j = 0; j < TILE_LANES; j++)
            *(lanes *)(c + i * n + j * LANES) = sum[i][j];
}

/* What is left over at the edges; every sum in the same order as above. */
WIDE static void mul_strip(float *c, const float *a, const float *b, size_t k,
                           size_t n, int add)
{
    lanes sum = add ? *(const lanes *)c : (lanes){0};

    for (size_t p = 0; p < k; p++)
        sum += a[p] * *(const lanes *)(b + p * n);
    *(lanes *)c = sum;
}

void float_mul(float *c, const float *a, const float *b, size_t rows, size_t k,
               size_t n, int add)
{
    size_t wide = n / (TILE_LANES * LANES) * (TILE_LANES * LANES);
    size_t high = rows / TILE_ROWS * TILE_ROWS;

    for (size_t j = 0; j < wide; j += TILE_LANES * LANES)
        for (size_t i = 0; i < high; i += TILE_ROWS)
            mul_tile(c + i * n + j, a + i * k, b + j, k, n, add);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = i < high ? wide : 0; j < n; j += LANES)
            mul_strip(c + i * n + j, a + i * k, b + j, k, n, add);
}

void float_turn(float *out, const float *a, size_t m, size_t n)
{
    enum { BLOCK = 16 };

    for (size_t i = 0; i < m; i += BLOCK)
        for (size_t j = 0; j < n; j += BLOCK)
            for (size_t k = i; k < m && k < i + BLOCK; k++)
                for (size_t l = j; l < n && l < j + BLOCK; l++)
                    out[l * m + k] = a[k * n + l];
}

/* 2^whole * e^rest, the rest within half of log 2 and by its series. */
WIDE void float_exp(float *x, size_t n)
{
    const float per_log2 = 1.44269504f, log2_high = 0.693359375f,
                log2_low = -2.12194440e-4f, to_whole = 12582912.0f;

    for (size_t i = 0; i < n; i++) {
        float v = x[i] < -87.0f ? -87.0f : x[i];
        float whole, rest, sum;
        int32_t bits;

        v = v > 88.0f ? 88.0f : v;
        whole = (v * per_log2 + to_whole) - to_whole;
        rest = (v - whole * log2_high) - whole * log2_low;
        sum = 1.0f / 5040;
        sum = sum * rest + 1.0f / 720;
        sum = sum * rest + 1.0f / 120;
        sum = sum * rest + 1.0f / 24;
        sum = sum * rest + 1.0f / 6;
        sum = sum * rest + 0.5f;
        sum = sum * rest + 1.0f;
        sum = sum * rest + 1.0f;
        bits = ((int32_t)whole + 127) << 23;
        memcpy(&whole, &bits, sizeof(whole));
        x[i] = sum * whole;
    }
}

/* log(m * 2^e) = e log 2 + 2 artanh((m - 1) / (m + 1)), m near 1. */
double real_log(double x)
{
    int e;
    double m = frexp(x, &e), z, z2, sum = 0;

    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    z = (m - 1) / (m + 1);
    z2 = z * z;
    for (int i = 21; i >= 1; i -= 2)
        sum = sum * z2 + 1.0 / i;
    return e * 0.69314718055994531 + 2 * z * sum;
}

WIDE void float_adam(float *row, float *m, float *v, const float *g, size_t n,
                     float beta1, float beta2, float step, float eps)
{
    for (size_t i = 0; i < n; i++) {
        float gi = g[i];
        float mi = beta1 * m[i] + (1.0f - beta1) * gi;
        float vi = beta2 * v[i] + (1.0f - beta2) * (gi * gi);

        m[i] = mi;
        v[i] = vi;
        row[i] -= step * mi / (sqrtf(vi) + eps);
    }
}
