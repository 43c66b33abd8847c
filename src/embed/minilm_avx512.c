/* 64 products of bytes in one instruction (VNNI), added to 16 sums of 32 bits
 * without saturation: exact. The byte of the text's side has no sign, the
 * weight's has; minilm_bytes is made for that.
 *
 * A group of 64 channels is four registers of weights, and up to six rows are
 * done with them at a time: 24 sums, the weights and one row's bytes fill the
 * 32 registers. Where the rows take several turns, the first two fetch the next
 * group meanwhile: the processor sees it coming too late. */
#include "embed/minilm.h"

#include <immintrin.h>
#include <math.h>

#define TARGET                                                             \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni," \
                          "fma")))
#define FN TARGET static inline

typedef __m512 lanes;

FN lanes lanes_set(float x)
{
    return _mm512_set1_ps(x);
}

FN lanes lanes_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

FN void lanes_store(float *p, lanes a)
{
    _mm512_storeu_ps(p, a);
}

FN lanes lanes_of_i8(const int8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);

    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

FN void lanes_to_u8(uint8_t *p, lanes a)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}

FN lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_ps(a, b);
}

FN lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_ps(a, b);
}

FN lanes lanes_mul(lanes a, lanes b)
{
    return _mm512_mul_ps(a, b);
}

FN lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_ps(a, b, c);
}

FN lanes lanes_min(lanes a, lanes b)
{
    return _mm512_min_ps(a, b);
}

FN lanes lanes_max(lanes a, lanes b)
{
    return _mm512_max_ps(a, b);
}

FN lanes lanes_abs(lanes a)
{
    return _mm512_abs_ps(a);
}

FN lanes lanes_round(lanes a)
{
    return _mm512_roundscale_ps(a,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

FN lanes lanes_power_of_2(lanes n)
{
    __m512i bits =
        _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));

    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 23));
}

FN float lanes_first(lanes a)
{
    return _mm512_cvtss_f32(a);
}

/* Eight to eight, four to four, and so on. */
#define IN_HALVES(a, op)                                                      \
    __m256 eight =                                                            \
        _mm256_##op(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)); \
    __m128 four = _mm_##op(_mm256_castps256_ps128(eight),                     \
                           _mm256_extractf128_ps(eight, 1));                  \
    __m128 two = _mm_##op(four, _mm_movehl_ps(four, four));                   \
    __m128 one = _mm_##op(two, _mm_shuffle_ps(two, two, 1));                  \
    return _mm_cvtss_f32(one)

FN float lanes_sum(lanes a)
{
    IN_HALVES(a, add_ps);
}

FN float lanes_lowest(lanes a)
{
    IN_HALVES(a, min_ps);
}

FN float lanes_highest(lanes a)
{
    IN_HALVES(a, max_ps);
}

enum { COLS = MINILM_GROUP / MINILM_LANES, ROWS_AT_ONCE = 6 };

#define EACH_COL UNROLLED for (int c = 0; c < COLS; c++)
#define EACH_ROW UNROLLED for (int r = 0; r < n; r++)

/* The sums of n rows with one group of channels. n is known to the compiler
 * wherever this is called, and so `sum` is registers. */
FN __attribute__((always_inline)) void
sum_rows(int32_t *out, const int8_t *weights, const int8_t *next,
         const uint8_t *bytes, size_t n_in, const int n)
{
    __m512i sum[ROWS_AT_ONCE][COLS], w[COLS];

    EACH_ROW EACH_COL sum[r][c] = _mm512_setzero_si512();
    for (size_t k = 0; k < n_in; k += 4, weights += (size_t)4 * MINILM_GROUP) {
        _mm_prefetch(next + 32 * k, _MM_HINT_T1);
        _mm_prefetch(next + 32 * k + 64, _MM_HINT_T1);
        EACH_COL w[c] = _mm512_loadu_si512(weights + (size_t)64 * c);
        EACH_ROW
        {
            int32_t four;
            __m512i b;

            memcpy(&four, bytes + (size_t)r * n_in + k, sizeof(four));
            b = _mm512_set1_epi32(four);
            EACH_COL sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], b, w[c]);
        }
    }
    EACH_ROW EACH_COL _mm512_storeu_si512(
        out + (size_t)r * MINILM_GROUP + (size_t)c * MINILM_LANES, sum[r][c]);
}

TARGET static void sum_some(int32_t *out, const int8_t *weights,
                            const int8_t *next, const uint8_t *bytes,
                            size_t n_in, size_t n)
{
    switch (n) {
    case 6: sum_rows(out, weights, next, bytes, n_in, 6); break;
    case 5: sum_rows(out, weights, next, bytes, n_in, 5); break;
    case 4: sum_rows(out, weights, next, bytes, n_in, 4); break;
    case 3: sum_rows(out, weights, next, bytes, n_in, 3); break;
    case 2: sum_rows(out, weights, next, bytes, n_in, 2); break;
    default: sum_rows(out, weights, next, bytes, n_in, 1);
    }
}

/* The sums of one row as floats: scaled, and with the bias added. */
FN void finish_row(float *y, const int32_t *sum, const struct minilm_matrix *w,
                   size_t group, float scale, int32_t zero)
{
    for (size_t c = 0; c < MINILM_GROUP; c += MINILM_LANES) {
        size_t at = group + c;
        __m512i less = _mm512_mullo_epi32(_mm512_loadu_si512(w->sums + at),
                                          _mm512_set1_epi32(zero));
        __m512i v = _mm512_sub_epi32(_mm512_loadu_si512(sum + c), less);
        __m512 by = _mm512_mul_ps(_mm512_loadu_ps(w->scales + at),
                                  _mm512_set1_ps(scale));

        _mm512_storeu_ps(y + at,
                         _mm512_fmadd_ps(_mm512_cvtepi32_ps(v), by,
                                         _mm512_loadu_ps(w->bias + at)));
    }
}

/* What a turn fetches: a half of the group behind, or its own once more, which
 * costs nothing. */
static const int8_t *next_half(const struct minilm_matrix *w, size_t group,
                               size_t times, size_t turn)
{
    size_t half = MINILM_GROUP / 2;

    if (times > 1 && turn < 2 && group + MINILM_GROUP < w->n_out)
        return w->weights + (group + MINILM_GROUP + turn * half) * w->n_in;
    return w->weights + group * w->n_in;
}

/* Rows are dealt out evenly: of 14, five, five and four. */
TARGET static void multiply(float *y, const struct minilm_matrix *w,
                            const struct minilm_bytes *x, size_t n)
{
    size_t times = (n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    int32_t sums[ROWS_AT_ONCE * MINILM_GROUP];

    for (size_t group = 0; group < w->n_out; group += MINILM_GROUP)
        for (size_t left = times, row = 0, now; left > 0; left--, row += now) {
            now = (n - row + left - 1) / left;
            sum_some(sums, w->weights + group * w->n_in,
                     next_half(w, group, times, times - left),
                     x->bytes + row * w->n_in, w->n_in, now);
            for (size_t r = 0; r < now; r++)
                finish_row(y + (row + r) * w->n_out, sums + r * MINILM_GROUP, w,
                           group, x->scales[row + r], x->zeros[row + r]);
        }
}

/* With four, each sum would wait for its last addition. */
enum { ROWS = 8 };

#include "embed/minilm_lanes.inc"

static const struct minilm_ops minilm_avx512 = MINILM_OPS(multiply);

const struct minilm_ops *const minilm_levels[N_CPU_LEVELS] = {
    [CPU_PLAIN] = &minilm_plain,
    [CPU_AVX2] = &minilm_avx2,
    [CPU_AVX512] = &minilm_avx512,
};
