/* 64 products of bytes in one instruction (VNNI), added to 16 sums of 32 bits
 * without saturation, so exact. The bytes of the text are unsigned, the weights
 * signed; minilm_bytes is designed for that.
 *
 * A group of 64 channels is four registers of weights, used for up to six rows
 * at a time: 24 sums, the weights and one row's bytes fill the 32 registers. If
 * the rows take several turns, the first two prefetch the next group, because
 * the hardware prefetcher starts too late. */
#include "embed/transformer/minilm.h"

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

/* NaN becomes the lowest number, and then 0. */
FN void lanes_to_bytes(uint8_t *p, lanes a, lanes zero)
{
    __m512i v =
        _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(zero));

    v = _mm512_max_epi32(v, _mm512_setzero_si512());
    _mm_storeu_si128((__m128i *)p, _mm512_cvtusepi32_epi8(v));
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

/* Add eight to eight, four to four, and so on. */
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

/* The sums of n rows for one group of channels. n is a constant wherever this
 * is called, so `sum` stays in registers. */
FN INLINED void sum_rows_avx512(int32_t *out, const int8_t *weights,
                                const int8_t *next, const uint8_t *bytes,
                                size_t n_in, const int n)
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

TARGET static void sum_some_avx512(int32_t *out, const int8_t *weights,
                                   const int8_t *next, const uint8_t *bytes,
                                   size_t n_in, size_t n)
{
    switch (n) {
    case 6: sum_rows_avx512(out, weights, next, bytes, n_in, 6); break;
    case 5: sum_rows_avx512(out, weights, next, bytes, n_in, 5); break;
    case 4: sum_rows_avx512(out, weights, next, bytes, n_in, 4); break;
    case 3: sum_rows_avx512(out, weights, next, bytes, n_in, 3); break;
    case 2: sum_rows_avx512(out, weights, next, bytes, n_in, 2); break;
    default: sum_rows_avx512(out, weights, next, bytes, n_in, 1);
    }
}

/* Convert the sums of one row to floats: scaled, with the bias added. */
FN void finish_row_avx512(float *y, const int32_t *sum,
                          const struct minilm_matrix *w, size_t group,
                          float scale, int32_t zero)
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

/* The weights that a turn prefetches: half of the next group, or its own again,
 * which costs nothing. */
static const int8_t *next_half(const struct minilm_matrix *w, size_t group,
                               size_t times, size_t turn)
{
    size_t half = MINILM_GROUP / 2;

    if (times > 1 && turn < 2 && group + MINILM_GROUP < w->n_out)
        return w->weights + (group + MINILM_GROUP + turn * half) * w->n_in;
    return w->weights + group * w->n_in;
}

/* Prefetch the inputs of finish_row_avx512 for a group: after a pause these
 * lines have left the caches. */
FN void fetch_scales(const struct minilm_matrix *w, size_t group)
{
    for (size_t at = group; at < group + MINILM_GROUP; at += MINILM_LANES) {
        _mm_prefetch((const char *)(w->sums + at), _MM_HINT_T0);
        _mm_prefetch((const char *)(w->scales + at), _MM_HINT_T0);
        _mm_prefetch((const char *)(w->bias + at), _MM_HINT_T0);
    }
}

/* Rows are distributed evenly: 14 rows as five, five and four. */
TARGET static void multiply_avx512(float *y, const struct minilm_matrix *w,
                                   const struct minilm_bytes *x, size_t n)
{
    size_t times = (n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    int32_t sums[ROWS_AT_ONCE * MINILM_GROUP];

    for (size_t group = 0; group < w->n_out; group += MINILM_GROUP) {
        fetch_scales(w, group);
        for (size_t left = times, row = 0, now; left > 0; left--, row += now) {
            now = (n - row + left - 1) / left;
            sum_some_avx512(sums, w->weights + group * w->n_in,
                            next_half(w, group, times, times - left),
                            x->bytes + row * w->n_in, w->n_in, now);
            for (size_t r = 0; r < now; r++)
                finish_row_avx512(y + (row + r) * w->n_out,
                                  sums + r * MINILM_GROUP, w, group,
                                  x->scales[row + r], x->zeros[row + r]);
        }
    }
}

/* Four numbers from each of four rows, four rows apart. */
FN __m512 four_fours(const float *from, size_t step)
{
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(from));

    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 4 * step), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(from + 8 * step), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(from + 12 * step), 3);
}

/* Transpose four numbers of sixteen rows into four rows of sixteen. */
FN void turn_four_avx512(float *to, size_t pitch, const float *from,
                         size_t step)
{
    __m512 r0 = four_fours(from, step), r1 = four_fours(from + step, step);
    __m512 r2 = four_fours(from + 2 * step, step);
    __m512 r3 = four_fours(from + 3 * step, step);
    __m512 a = _mm512_unpacklo_ps(r0, r2), b = _mm512_unpacklo_ps(r1, r3);
    __m512 c = _mm512_unpackhi_ps(r0, r2), d = _mm512_unpackhi_ps(r1, r3);

    _mm512_storeu_ps(to, _mm512_unpacklo_ps(a, b));
    _mm512_storeu_ps(to + pitch, _mm512_unpackhi_ps(a, b));
    _mm512_storeu_ps(to + 2 * pitch, _mm512_unpacklo_ps(c, d));
    _mm512_storeu_ps(to + 3 * pitch, _mm512_unpackhi_ps(c, d));
}

FN void turn_sixteen(float *to, size_t pitch, const float *from, size_t step)
{
    for (size_t d = 0; d < MINILM_LANES; d += 4)
        turn_four_avx512(to + d * pitch, pitch, from + d, step);
}

/* With only four sums, each would wait for its last addition. */
enum { ROWS = 6, COLUMNS = 2 };

#include "embed/transformer/minilm_lanes.inc"

static const struct minilm_ops minilm_avx512 = MINILM_OPS(multiply_avx512);

const struct minilm_ops *const minilm_levels[N_CPU_LEVELS] = {
    [CPU_PLAIN] = &minilm_plain,
    [CPU_AVX2] = &minilm_avx2,
    [CPU_AVX512] = &minilm_avx512,
};
