/* The instruction that multiplies pairs of bytes (maddubs) saturates at 32767.
 * If the pairs of a matrix fit, two products never exceed that and it is exact.
 * Otherwise bytes are widened to 16 bits first and then multiplied in pairs,
 * which is always exact and takes half as long again.
 *
 * For that, the first and third of each four bytes make one pair and the second
 * and fourth the other, because shifts extract those without a shuffle. */
#include "embed/transformer/minilm.h"

#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx2,fma")))
#define FN     TARGET static inline

typedef struct {
    __m256 a, b;
} lanes;

FN lanes lanes_set(float x)
{
    return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

FN lanes lanes_load(const float *p)
{
    return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

FN void lanes_store(float *p, lanes x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

FN __m256 eight_of_i8(const int8_t *p)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)p);

    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

FN lanes lanes_of_i8(const int8_t *p)
{
    return (lanes){eight_of_i8(p), eight_of_i8(p + 8)};
}

/* Round and add zero; packing saturates at 16 bits. NaN becomes the lowest
 * number. */
FN __m128i eight_to_16_bits_avx2(__m256 x, __m256 zero)
{
    __m256i v =
        _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_cvtps_epi32(zero));

    return _mm_packus_epi32(_mm256_castsi256_si128(v),
                            _mm256_extracti128_si256(v, 1));
}

FN void lanes_to_bytes(uint8_t *p, lanes x, lanes zero)
{
    _mm_storeu_si128((__m128i *)p,
                     _mm_packus_epi16(eight_to_16_bits_avx2(x.a, zero.a),
                                      eight_to_16_bits_avx2(x.b, zero.b)));
}

#define BOTH(op)                   \
    (lanes)                        \
    {                              \
        op(x.a, y.a), op(x.b, y.b) \
    }

FN lanes lanes_add(lanes x, lanes y)
{
    return BOTH(_mm256_add_ps);
}

FN lanes lanes_sub(lanes x, lanes y)
{
    return BOTH(_mm256_sub_ps);
}

FN lanes lanes_mul(lanes x, lanes y)
{
    return BOTH(_mm256_mul_ps);
}

FN lanes lanes_min(lanes x, lanes y)
{
    return BOTH(_mm256_min_ps);
}

FN lanes lanes_max(lanes x, lanes y)
{
    return BOTH(_mm256_max_ps);
}

FN lanes lanes_fma(lanes x, lanes y, lanes z)
{
    return (lanes){_mm256_fmadd_ps(x.a, y.a, z.a),
                   _mm256_fmadd_ps(x.b, y.b, z.b)};
}

FN lanes lanes_abs(lanes x)
{
    __m256 sign = _mm256_set1_ps(-0.0f);

    return (lanes){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}

FN lanes lanes_round(lanes x)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

    return (lanes){_mm256_round_ps(x.a, NEAREST),
                   _mm256_round_ps(x.b, NEAREST)};
}

FN __m256 eight_powers_of_2(__m256 n)
{
    __m256i bits =
        _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));

    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
}

FN lanes lanes_power_of_2(lanes n)
{
    return (lanes){eight_powers_of_2(n.a), eight_powers_of_2(n.b)};
}

FN float lanes_first(lanes x)
{
    return _mm256_cvtss_f32(x.a);
}

/* Add eight to eight, four to four, and so on. */
#define IN_HALVES(x, op)                                     \
    __m256 eight = _mm256_##op(x.a, x.b);                    \
    __m128 four = _mm_##op(_mm256_castps256_ps128(eight),    \
                           _mm256_extractf128_ps(eight, 1)); \
    __m128 two = _mm_##op(four, _mm_movehl_ps(four, four));  \
    __m128 one = _mm_##op(two, _mm_shuffle_ps(two, two, 1)); \
    return _mm_cvtss_f32(one)

FN float lanes_sum(lanes x)
{
    IN_HALVES(x, add_ps);
}

FN float lanes_lowest(lanes x)
{
    IN_HALVES(x, min_ps);
}

FN float lanes_highest(lanes x)
{
    IN_HALVES(x, max_ps);
}

/* Two registers of eight channels, and up to five rows. */
enum {
    COLS = 2,
    CHANNELS = 8,
    ROWS_AT_ONCE = 5,
    AHEAD_BYTES = 16 * 4 * MINILM_GROUP,
};

#define EACH_COL UNROLLED for (int c = 0; c < COLS; c++)

/* Four bytes of a row, repeated eight times. */
FN __m256i four_of_avx2(const uint8_t *p)
{
    int32_t four;

    memcpy(&four, p, sizeof(four));
    return _mm256_set1_epi32(four);
}

FN __m256i add_pairs(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

/* Add four numbers of n rows for sixteen channels. */
FN INLINED void add_any(__m256i sum[ROWS_AT_ONCE][COLS], const __m256i w[COLS],
                        const uint8_t *bytes, size_t n_in, const int n)
{
    __m256i even[COLS], odd[COLS];

    EACH_COL even[c] = _mm256_srai_epi16(_mm256_slli_epi16(w[c], 8), 8);
    EACH_COL odd[c] = _mm256_srai_epi16(w[c], 8);
    EACH_ROW
    {
        __m256i b = four_of_avx2(bytes + (size_t)r * n_in);
        __m256i b_even = _mm256_and_si256(b, _mm256_set1_epi32(0x00ff00ff));
        __m256i b_odd = _mm256_srli_epi16(b, 8);

        EACH_COL sum[r][c] = add_pairs(sum[r][c], even[c], b_even);
        EACH_COL sum[r][c] = add_pairs(sum[r][c], odd[c], b_odd);
    }
}

/* The same if pairs_fit. */
FN INLINED void add_fitting(__m256i sum[ROWS_AT_ONCE][COLS],
                            const __m256i w[COLS], const uint8_t *bytes,
                            size_t n_in, const int n)
{
    EACH_ROW
    {
        __m256i b = four_of_avx2(bytes + (size_t)r * n_in);

        EACH_COL sum[r][c] = add_pairs(sum[r][c], _mm256_maddubs_epi16(b, w[c]),
                                       _mm256_set1_epi16(1));
    }
}

/* The sums of n rows for sixteen channels. n and `fits` are constants wherever
 * this is called, so `sum` stays in registers. */
FN INLINED void sum_rows_avx2(int32_t *out, const int8_t *weights,
                              const uint8_t *bytes, size_t n_in, const int n,
                              const bool fits)
{
    __m256i sum[ROWS_AT_ONCE][COLS], w[COLS];

    EACH_ROW EACH_COL sum[r][c] = _mm256_setzero_si256();
    for (size_t k = 0; k < n_in; k += 4, weights += (size_t)4 * MINILM_GROUP) {
        /* One cache line in four, which the hardware prefetcher misses. */
        _mm_prefetch(weights + AHEAD_BYTES, _MM_HINT_T0);
        EACH_COL w[c] = _mm256_loadu_si256((const __m256i *)weights + c);
        if (fits)
            add_fitting(sum, w, bytes + k, n_in, n);
        else
            add_any(sum, w, bytes + k, n_in, n);
    }
    EACH_ROW EACH_COL _mm256_storeu_si256(
        (__m256i *)(out + (size_t)r * COLS * CHANNELS) + c, sum[r][c]);
}

TARGET static void sum_any(int32_t *out, const int8_t *weights,
                           const uint8_t *bytes, size_t n_in, size_t n)
{
    switch (n) {
    case 4: sum_rows_avx2(out, weights, bytes, n_in, 4, false); break;
    case 3: sum_rows_avx2(out, weights, bytes, n_in, 3, false); break;
    case 2: sum_rows_avx2(out, weights, bytes, n_in, 2, false); break;
    default: sum_rows_avx2(out, weights, bytes, n_in, 1, false);
    }
}

TARGET static void sum_fitting(int32_t *out, const int8_t *weights,
                               const uint8_t *bytes, size_t n_in, size_t n)
{
    switch (n) {
    case 5: sum_rows_avx2(out, weights, bytes, n_in, 5, true); break;
    case 4: sum_rows_avx2(out, weights, bytes, n_in, 4, true); break;
    case 3: sum_rows_avx2(out, weights, bytes, n_in, 3, true); break;
    case 2: sum_rows_avx2(out, weights, bytes, n_in, 2, true); break;
    default: sum_rows_avx2(out, weights, bytes, n_in, 1, true);
    }
}

/* Convert the sums of one row to floats: scaled, with the bias added. */
FN void finish_row_avx2(float *y, const int32_t *sum,
                        const struct minilm_matrix *w, size_t at, float scale,
                        int32_t zero)
{
    for (size_t c = 0; c < COLS * CHANNELS; c += CHANNELS, at += CHANNELS) {
        __m256i sums = _mm256_loadu_si256((const __m256i *)(w->sums + at));
        __m256i v =
            _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(sum + c)),
                             _mm256_mullo_epi32(sums, _mm256_set1_epi32(zero)));
        __m256 by = _mm256_mul_ps(_mm256_loadu_ps(w->scales + at),
                                  _mm256_set1_ps(scale));

        _mm256_storeu_ps(y + at,
                         _mm256_fmadd_ps(_mm256_cvtepi32_ps(v), by,
                                         _mm256_loadu_ps(w->bias + at)));
    }
}

/* Sixteen channels of all rows, which are distributed evenly: 9 rows as three,
 * three and three. */
TARGET static void multiply_sixteen(float *y, const struct minilm_matrix *w,
                                    const struct minilm_bytes *x, size_t n,
                                    size_t at)
{
    size_t group = at / MINILM_GROUP * MINILM_GROUP;
    const int8_t *weights =
        w->weights + group * w->n_in + 4 * (at % MINILM_GROUP);
    int32_t sums[ROWS_AT_ONCE * COLS * CHANNELS];
    size_t most = w->pairs_fit ? ROWS_AT_ONCE : ROWS_AT_ONCE - 1;
    size_t left = (n + most - 1) / most;

    for (size_t row = 0, now; left > 0; left--, row += now) {
        now = (n - row + left - 1) / left;
        (w->pairs_fit ? sum_fitting : sum_any)(
            sums, weights, x->bytes + row * w->n_in, w->n_in, now);
        for (size_t r = 0; r < now; r++)
            finish_row_avx2(y + (row + r) * w->n_out,
                            sums + r * COLS * CHANNELS, w, at,
                            x->scales[row + r], x->zeros[row + r]);
    }
}

TARGET static void multiply_avx2(float *y, const struct minilm_matrix *w,
                                 const struct minilm_bytes *x, size_t n)
{
    for (size_t at = 0; at < w->n_out; at += COLS * CHANNELS)
        multiply_sixteen(y, w, x, n, at);
}

/* Four numbers from each of two rows. */
FN __m256 two_fours(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)),
                                _mm_loadu_ps(high), 1);
}

/* Transpose four numbers of eight rows into four rows of eight: rows 0 to 3 are
 * in the low halves, rows 4 to 7 in the high ones. */
FN void turn_eight(float *to, size_t pitch, const float *from, size_t step)
{
    __m256 r0 = two_fours(from, from + 4 * step);
    __m256 r1 = two_fours(from + step, from + 5 * step);
    __m256 r2 = two_fours(from + 2 * step, from + 6 * step);
    __m256 r3 = two_fours(from + 3 * step, from + 7 * step);
    __m256 a = _mm256_unpacklo_ps(r0, r2), b = _mm256_unpacklo_ps(r1, r3);
    __m256 c = _mm256_unpackhi_ps(r0, r2), d = _mm256_unpackhi_ps(r1, r3);

    _mm256_storeu_ps(to, _mm256_unpacklo_ps(a, b));
    _mm256_storeu_ps(to + pitch, _mm256_unpackhi_ps(a, b));
    _mm256_storeu_ps(to + 2 * pitch, _mm256_unpacklo_ps(c, d));
    _mm256_storeu_ps(to + 3 * pitch, _mm256_unpackhi_ps(c, d));
}

FN void turn_sixteen(float *to, size_t pitch, const float *from, size_t step)
{
    for (size_t d = 0; d < MINILM_LANES; d += 4)
        for (size_t j = 0; j < MINILM_LANES; j += 8)
            turn_eight(to + d * pitch + j, pitch, from + j * step + d, step);
}

enum { ROWS = 4, COLUMNS = 1 };

#include "embed/transformer/minilm_lanes.inc"

const struct minilm_ops minilm_avx2 = MINILM_OPS(multiply_avx2);
